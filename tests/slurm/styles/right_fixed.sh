#!/bin/bash
#SBATCH --time=00:30:00
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --nodes=2 --ntasks-per-node=2 --cpus-per-task=2 --gres=gpu:2
set -euo pipefail
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
srun --ntasks=$SLURM_NTASKS python notebooks/scripts/ResNet50_horovod.py --batch_size 512
# found: nothing
