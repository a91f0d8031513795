#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --gres=gpu:2
#SBATCH --cpus-per-task=2
#SBATCH --time=01:00:00
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
set -e
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
srun --ntasks-per-node=4 --ntasks=8 python notebooks/scripts/ResNet50_horovod.py --batch_size 512
# found: starts 8 tasks
