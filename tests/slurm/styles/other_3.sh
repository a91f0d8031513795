#!/bin/bash
#SBATCH --job-name=het --time=00:30:00
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=4 --gres=gpu:2
#SBATCH hetjob
#SBATCH --nodes=1 --ntasks=2 --cpus-per-task=1
set -e
srun --het-group=0 -c 4 python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size 256
# found: nothing
