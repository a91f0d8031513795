#!/bin/bash -e
#SBATCH --nodes=1
#SBATCH --tasks-per-node=1
#SBATCH --cpus-per-task=4
#SBATCH --gres=gpu:2
#SBATCH --time=30
#SBATCH --output=notebooks/runs/container-%j.out
#SBATCH --error=notebooks/runs/container-%j.err
#SBATCH --container-image=./labs.sqsh
#SBATCH --container-mounts=.:/course
srun --cpus-per-task=4 python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size 256
# found: nothing
