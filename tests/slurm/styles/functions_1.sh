#!/bin/bash
#SBATCH --job-name=functions
#SBATCH --output=notebooks/runs/%j.out
#SBATCH --error=notebooks/runs/%j.err
#SBATCH --time=2:00:00
#SBATCH --gpus=2 --ntasks=1 --cpus-per-task=4

set -euo pipefail

SCRIPT=notebooks/scripts/ResNet50.py
local_batch=64
run() {
    local gpus=$1; shift
    echo "== $gpus" >&2
    python "$SCRIPT" --n_gpus "$gpus" --batch_size $((local_batch * gpus)) "$@"
}
for gpus in 1 2; do
    run "$gpus" --epochs 2 || exit 1
done
# found: nothing
