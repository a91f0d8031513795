#!/bin/bash
# ResNet50V2 with Horovod on @WORKERS_TEXT@ ranks of one node of @SITE@, one training after the other.
#
# Submit it in the top folder of the course:  sbatch @PATH@
# Options after the script's name go to the training, such as --epochs 2.
@PERSONAL@
#SBATCH --job-name=ResNet50_horovod
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
@PARTITION@
#SBATCH --time=@TIME@
# Horovod is one process (one task) for each GPU. They share the cores that the site's rule allows
# for all GPUs of the node:
# @RULE@
### BEGIN SOLUTION
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=@TASKS@
@GRES@
#SBATCH --cpus-per-task=@CPUS_PER_RANK@
### END SOLUTION

set -euo pipefail # stop at the first error: a job that goes on after one looks like a success

@SETUP@
@HOROVOD@

for ranks in @WORKERS@; do
    # The global batch: @LOCAL_BATCH@ images for each rank. The learning rate follows in ResNet50_horovod.py.
    ### BEGIN SOLUTION
    batch=$((@LOCAL_BATCH@ * ranks))
    ### END SOLUTION
    @LAUNCH_RANKS@ \
        "${python[@]}" "$SCRIPTS/ResNet50_horovod.py" @SIZES@ \
        --batch_size "$batch" "$@"
done
