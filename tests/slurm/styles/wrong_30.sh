#!/bin/bash
#SBATCH --nodes=1 --ntasks=1 --gres=gpu:2 --cpus-per-task=4
#SBATCH --time=00:30:00 --output=notebooks/runs/%x_%j.out --error=notebooks/runs/%j.err
set -e
for workers in 1 2; do
batch=64*workers
python notebooks/scripts/ResNet50.py --n_gpus $workers --batch_size $batch
done
# found: '64*workers', which is not a whole number
