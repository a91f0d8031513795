#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
#SBATCH --gres=gpu:2
#SBATCH --time=01:00:00
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --eror=notebooks/runs/%x_%j.err
set -e
exec > >(tee notebooks/runs/all.txt) 2>&1
cleanup() { rm -f notebooks/runs/tmp; }
trap cleanup EXIT
timeout 50m numactl --interleave=all python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size 256
# found: eror
