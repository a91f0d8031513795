#!/bin/bash
#SBATCH --time=00:30:00
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=4 --gres=gpu:2
set -euo pipefail
[[ -d "$SLURM_SUBMIT_DIR/data" ]] || { echo "no data" >&2; exit 1; }
cd $SLURM_SUBMIT_DIR
python notebooks/scripts/ResNet50.py --n_gpus $(nvidia-smi -L | wc -l) --batch_size $((64 * $(nvidia-smi --query-gpu=name --format=csv,noheader | wc -l)))
# found: nothing
