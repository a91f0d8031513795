#!/bin/bash
#SBATCH --job-name=functions
#SBATCH --output=notebooks/runs/%j.out
#SBATCH --error=notebooks/runs/%j.err
#SBATCH --time=2:00:00
#SBATCH --gpus=2 --ntasks=1 --cpus-per-task=4

set -euo pipefail

train() { python notebooks/scripts/ResNet50.py --n_gpus "$1" --batch_size $((64 * $1)); }
export CUDA_VISIBLE_DEVICES=0
train 2
# found: leaves 1 GPU for 2
