#!/bin/bash
#SBATCH --job-name=train
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --time=00:30:00
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gres=gpu:2
#SBATCH --cpus-per-task=4
#SBATCH --time=00:00:10
set -e
python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size 256
# found: 10 seconds
