#!/bin/bash
#SBATCH --time=00:30:00
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --array=0-4 --gres=gpu:1 --cpus-per-task=2
set -eu
sizes=(16 32 64 128)
python notebooks/scripts/ResNet50.py --n_gpus 1 --batch_size ${sizes[$SLURM_ARRAY_TASK_ID]}
# found: the array has no element
