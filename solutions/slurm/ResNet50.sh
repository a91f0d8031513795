#!/bin/bash
# ResNet50V2 on @WORKERS_TEXT@ workers of one node of @SITE@, one training after the other (task T5).
#
# Submit it in the top folder of the course:  sbatch @PATH@
# Options after the script's name go to the training, such as --epochs 2.
@PERSONAL@
#SBATCH --job-name=ResNet50
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
@PARTITION@
#SBATCH --time=@TIME@
# MirroredStrategy is one process (one task) that drives all GPUs of one node. The site's rule says how many
# cores they may have:
# @RULE@
### BEGIN SOLUTION
#SBATCH --nodes=1
#SBATCH --ntasks=1
@GRES@
#SBATCH --cpus-per-task=@CPUS@
### END SOLUTION

set -euo pipefail # stop at the first error: a job that goes on after one looks like a success

@SETUP@

for workers in @WORKERS@; do
    # The global batch: @LOCAL_BATCH@ images for each worker. The learning rate follows in ResNet50.py.
    ### BEGIN SOLUTION
    batch=$((@LOCAL_BATCH@ * workers))
    ### END SOLUTION
    "${python[@]}" "$SCRIPTS/ResNet50.py" @SIZES@ \
        --n_gpus "$workers" --batch_size "$batch" "$@"
done
