#!/bin/bash
#SBATCH --job-name=functions
#SBATCH --output=notebooks/runs/%j.out
#SBATCH --error=notebooks/runs/%j.err
#SBATCH --time=2:00:00
#SBATCH --gpus=2 --ntasks=1 --cpus-per-task=4

set -euo pipefail

local_batch=64
python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size $((local_btach * 2))
# found: $local_btach is not set
