#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
#SBATCH --gres=gpu:2
#SBATCH --time=01:00:00
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
set -o pipefail
set -eu
BATCHSIZE=256
python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size $BATCH_SIZE
# found: $BATCH_SIZE is not set
