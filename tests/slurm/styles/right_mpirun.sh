#!/bin/bash
#SBATCH --time=00:30:00
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --nodes=2 --ntasks-per-node=2 --cpus-per-task=2 --gres=gpu:2
set -e
mpirun -np $SLURM_NTASKS --bind-to none -x PATH python notebooks/scripts/ResNet50_horovod.py --batch_size $((64*SLURM_NTASKS))
# found: mpirun starts ranks
