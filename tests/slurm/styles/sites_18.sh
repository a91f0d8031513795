#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
#SBATCH --gres=gpu:2
#SBATCH --time=01:00:00
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
set -e
pids=()
for i in 0 1; do
  CUDA_VISIBLE_DEVICES=$i python notebooks/scripts/ResNet50.py --n_gpus 1 --batch_size 64 --seed $i > notebooks/runs/$i.txt &
  pids+=($!)
done
for p in "${pids[@]}"; do wait "$p"; done
# found: nothing
