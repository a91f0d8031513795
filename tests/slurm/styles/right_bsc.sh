#!/bin/bash
#SBATCH --time=00:30:00
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=4 --gres=gpu:2
set -e
module purge
module load singularity EB/apps
tar -xf "$HOME/data/cifar.tar" -C "$TMPDIR"
wget -q https://example.org/labels.txt -O "$TMPDIR/labels.txt"
export SINGULARITYENV_DATA=$TMPDIR
singularity exec --nv --bind "$TMPDIR" "$LABS_CONTAINER" python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size 128
# found: nothing
