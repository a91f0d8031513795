#!/bin/bash
#SBATCH --ntasks=1 --cpus-per-task=4 --gres=gpu:2
#SBATCH --time=1:00:00 --output=notebooks/runs/%j.out --error=notebooks/runs/%j.err
set -e
stage_in() {
    local target=${1?}
    mkdir -p "$target"
    [[ -f data.tar ]] && tar -C "$target" -xf data.tar || true
}
stage_in "${TMPDIR:-/tmp}/data"
declare -A batch=([1]=64 [2]=128)
for gpus in "${!batch[@]}"; do
    python notebooks/scripts/ResNet50.py --n_gpus "$gpus" --batch_size "${batch[$gpus]}"
done
# found: nothing
