#!/bin/bash
#SBATCH --time=00:30:00
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=4 --gres=gpu:2
set -e
for n in 1 2; do
batch = $((64*n))
python notebooks/scripts/ResNet50.py --n_gpus $n --batch_size $batch
done
# found: without blanks around the =
