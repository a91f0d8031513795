#!/bin/bash
# ResNet50V2 with Horovod on @NODES@ nodes of @SITE@: one rank for each GPU, all in one training.
#
# Submit it in the top folder of the course:  sbatch @PATH@
# More nodes: sbatch --nodes=4 @PATH@
# Options after the script's name go to the training, such as --epochs 2.
@PERSONAL@
#SBATCH --job-name=ResNet50_horovod_nodes
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
@PARTITION@
#SBATCH --time=@TIME@
# Tasks, GPUs and cores are counted for each node, cores for each task:
# @RULE@
### BEGIN SOLUTION
#SBATCH --nodes=@NODES@
#SBATCH --ntasks-per-node=@NODE_TASKS@
@NODE_GRES@
#SBATCH --cpus-per-task=@CPUS_PER_TASK@
### END SOLUTION

set -euo pipefail # stop at the first error: a job that goes on after one looks like a success

@SETUP@
@HOROVOD@

# The global batch: @LOCAL_BATCH@ images for each of all ranks, whose number SLURM knows.
### BEGIN SOLUTION
batch=$((@LOCAL_BATCH@ * SLURM_NTASKS))
### END SOLUTION
@LAUNCH@ \
    "${python[@]}" "$SCRIPTS/ResNet50_horovod.py" @SIZES@ \
    --batch_size "$batch" "$@"
