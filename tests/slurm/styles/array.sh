#!/bin/bash
#SBATCH --array=0-3%2
#SBATCH --job-name=sweep
#SBATCH --output=notebooks/runs/%x_%A_%a.out
#SBATCH --error=notebooks/runs/%x_%A_%a.err
#SBATCH --time=00:20:00
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=2
#SBATCH --ntasks=1
set -o errexit -o nounset

batch=$(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" notebooks/batches.txt)
read -r epochs rest < notebooks/epochs.txt
case $SLURM_ARRAY_TASK_ID in 0) size=32 ;; 1 | 2) size=64 ;; *) size=128 ;; esac
python notebooks/scripts/ResNet50.py --n_gpus 1 --batch_size "$batch" --epochs "$epochs" --image_size $size
# found: nothing
