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

tasks=$SLURM_NTASKS_PER_NODE
python notebooks/scripts/ResNet50.py --n_gpus 1 --batch_size $((64 * tasks))
# found: $SLURM_NTASKS_PER_NODE is not set
