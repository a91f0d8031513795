#!/bin/bash
#SBATCH --job-name=functions
#SBATCH --output=notebooks/runs/%j.out
#SBATCH --error=notebooks/runs/%j.err
#SBATCH --time=2:00:00
#SBATCH --gpus=2 --ntasks=1 --cpus-per-task=4

set -euo pipefail

options=(--epochs 2 --image_size 32)
if [[ -n "${LABS_DATA:-}" ]]; then options+=(--dataset cifar10); fi
log() { printf '%s %s\n' "$(date +%T)" "$*"; }
trap 'log failed' ERR
log "on $(hostname)"
python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size 256 "${options[@]}"
# found: nothing
