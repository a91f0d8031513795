#!/bin/bash
#SBATCH -J parallel -N 1 -n 2 -c 2 --gres=gpu:2 -t 1:0:0
#SBATCH -o notebooks/runs/%j.out -e notebooks/runs/%j.err
set -e
# two trainings beside each other, a GPU each
for i in 0 1; do
    srun --exclusive --ntasks=1 --gres=gpu:1 --cpus-per-task=2 --output=notebooks/runs/part_${i}_%j.out \
        python notebooks/scripts/ResNet50.py --n_gpus 1 --batch_size 64 --seed $i &
done
wait
# found: nothing
