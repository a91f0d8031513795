#!/bin/bash
#SBATCH --time=00:30:00
#SBATCH --gres=gpu:2 --cpus-per-task=4 --ntasks=1
#SBATCH --output=notebooks/runs/o_%j.out
#SBATCH --error=notebooks/runs/o_%j.err
#SBATCH —nodes=1
set -e
python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size 256
# found: word processor
