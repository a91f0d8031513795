#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --gres=gpu:2
#SBATCH --cpus-per-task=2
#SBATCH --time=01:00:00
#SBATCH --output=notebooks/runs/ranks_%j.out
#SBATCH --error=notebooks/runs/ranks_%j.err

set -eu
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

srun python notebooks/scripts/ResNet50_horovod.py --batch_size 64
# found: nothing
