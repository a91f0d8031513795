#!/usr/bin/env bash
#SBATCH -J conda -t 0-01:00 -N 1 -n 1 -c 4
#SBATCH --gpus-per-node=2 --mem=32G
#SBATCH -o notebooks/runs/%x.%j.out
#SBATCH -e notebooks/runs/%x.%j.err
set -e

source ~/miniforge3/etc/profile.d/conda.sh
conda activate labs
srun -n1 -c4 python -u notebooks/scripts/ResNet152V2.py --n_gpus 2 --batch_size 128 |& tee notebooks/runs/log.txt
# found: nothing
