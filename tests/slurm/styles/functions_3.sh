#!/bin/bash
#SBATCH --job-name=functions
#SBATCH --output=notebooks/runs/%j.out
#SBATCH --error=notebooks/runs/%j.err
#SBATCH --time=2:00:00
#SBATCH --gpus=2 --ntasks=1 --cpus-per-task=4

set -euo pipefail

usage() { echo "sbatch [--epochs N]" >&2; exit 2; }
epochs=3
while [[ $# -gt 0 ]]; do
    case $1 in
        --epochs) epochs=$2; shift 2 ;;
        *) usage ;;
    esac
done
pids=()
nvidia-smi dmon > notebooks/runs/gpus.txt &
python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size 256 --epochs "$epochs"
# found: nothing
