#!/bin/bash
#SBATCH --time=00:30:00
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=4 --gres=gpu:2
set -eu
srun -c 4 --gpus-per-task=1 python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size 128
# found: srun gives its step 1 GPU
