#!/bin/zsh
#SBATCH --time=30min
#SBATCH --gres=gpu:2 --cpus-per-task=4 --ntasks=1
#SBATCH --output=notebooks/runs/o_%j.out
#SBATCH --error=notebooks/runs/o_%j.err
setopt errexit
for n ({1..2}) python notebooks/scripts/ResNet50.py --n_gpus $n --batch_size $((64 * n))
# found: not a value for --time
