#!/bin/bash
#SBATCH --time=00:30:00
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=4 --gres=gpu:2
set -e
(cd notebooks/scripts; for g in 0 1; do CUDA_VISIBLE_DEVICES=$g python ResNet50.py --n_gpus 1 --batch_size 64 & done; wait) &
back=$!
trap 'kill $back' TERM
wait $back
# found: nothing
