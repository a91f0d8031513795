#!/bin/bash
#SBATCH --time=00:30:00
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=4 --gres=gpu:2
set -eu
for workers in 1 2; do
$batch=$((64*workers))
python notebooks/scripts/ResNet50.py --n_gpus $workers --batch_size $batch
done
# found: $batch is not set
