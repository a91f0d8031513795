#!/usr/bin/env bash
#SBATCH -J conda -t 0-01:00 -N 1 -n 1 -c 4
#SBATCH --gpus-per-node=2 --mem=32G
#SBATCH -o notebooks/runs/%x.%j.out
#SBATCH -e notebooks/runs/%x.%j.err
set -e

eval "$(conda shell.bash hook)"
conda activate labs
python notebooks/scripts/ResNet50.py --n_gpus=2 --batch_size=256
# found: nothing
