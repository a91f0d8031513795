#!/bin/bash
#SBATCH --job-name=train
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --time=00:30:00
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gres=gpu:2
#SBATCH --cpus-per-task=4

set -e
srun --ntasks=1 --cpus-per-task=4 python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size 256 --epochs 2
# found: nothing
