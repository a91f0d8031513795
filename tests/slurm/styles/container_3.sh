#!/bin/bash -e
#SBATCH --nodes=1
#SBATCH --tasks-per-node=1
#SBATCH --cpus-per-task=4
#SBATCH --gres=gpu:2
#SBATCH --time=30
#SBATCH --output=notebooks/runs/container-%j.out
#SBATCH --error=notebooks/runs/container-%j.err

image="${LABS_CONTAINER:?set it to the path of your container}"
apptainer exec --nv --bind "$PWD" "$image" \
    python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size 256 \
    --epochs 2
# found: nothing
