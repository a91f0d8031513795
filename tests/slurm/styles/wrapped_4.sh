#!/bin/bash
#SBATCH --nodes=1 --ntasks-per-node=1 --gres=gpu:2 --cpus-per-task=4 --exclusive
#SBATCH --time=00:45:00
#SBATCH --output=notebooks/runs/w_%j.out --error=notebooks/runs/w_%j.err
set -e -o pipefail

bash -c "python notebooks/scripts/ResNet50.py --n_gpu_s 2 --batch_size 256"
# found: no option --n_gpu_s
