#!/bin/bash
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=4 --gres=gpu:2
#SBATCH --time=00:30:00
#SBATCH --output=notebooks/runs/%j.out --error=notebooks/runs/%j.err
set -eu
python notebooks/scripts/ResNet50.py --n_gpus 2 \ 
    --batch_size 128
# found: Remove the blanks behind the \ that ends line 6
