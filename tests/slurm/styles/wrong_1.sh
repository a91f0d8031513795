#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
#SBATCH --gres=gpu:2
#SBATCH --time=01:00:00
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
set -e
run() { nohup "$@" > notebooks/runs/log.txt 2>&1 & }
run python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size 256
echo started
# found: starts in the background
