#!/bin/sh
#SBATCH --ntasks=1 --cpus-per-task=4
#SBATCH --gres=gpu:a100:2,tmpdir:10G
#SBATCH --time=1:00:00 --output=notebooks/runs/%j.out --error=notebooks/runs/%j.err
set -e
N=1
while [ "$N" -le 2 ]; do
    python notebooks/scripts/ResNet50.py --n_gpus "$N" --batch_size `expr 64 \* $N`
    N=`expr $N + 1`
done
# found: nothing
