#!/bin/bash
#SBATCH --job-name=train
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --time=00:30:00
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gres=gpu:2
#SBATCH --cpus-per-task=4

set -e
module purge
module load python/3.11 cuda/12.5
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
cd "$SLURM_SUBMIT_DIR"
date; hostname; nvidia-smi
python notebooks/scripts/ResNet50.py --n_gpus 1 --batch_size 100
python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size 200
# found: nothing
