#!/bin/bash
#SBATCH --time=00:30:00
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=4 --gres=gpu:2
set -eu
if [ $# -lt 1 ]; then echo "usage: sbatch $0 WORKERS" >&2; exit 2; fi
python notebooks/scripts/ResNet50.py --n_gpus "$1" --batch_size $((64 * $1))
# found: nothing
