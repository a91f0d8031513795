#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gpus-per-node=2
#SBATCH --cpus-per-gpu=2
#SBATCH --mem-per-gpu=16G
#SBATCH --time=30:00
#SBATCH --output=notebooks/runs/%A.out
#SBATCH --error=notebooks/runs/%A.err
set -Eeuo pipefail
trap 'echo "line $LINENO failed" >&2' ERR
script_dir=$(dirname "$(readlink -f "$0")")
log() { printf '%s %s\n' "$(date +%T)" "$*" >&2; }
log "in $script_dir"
local_batch=64
while getopts "b:" option; do
    case $option in b) local_batch=$OPTARG ;; *) exit 2 ;; esac
done
shift $((OPTIND - 1))
log "begin"
python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size $((2 * local_batch)) "$@"
log "end"
# found: nothing
