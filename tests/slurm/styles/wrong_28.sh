#!/bin/bash
#SBATCH --time=00:30:00
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=4 --gres=gpu:2
set -eu
( for i in 0 1; do python notebooks/scripts/ResNet50.py --n_gpus 1 --batch_size 64; done ) &
sleep 1
# found: starts in the background
