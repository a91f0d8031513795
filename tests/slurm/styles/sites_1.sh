#!/bin/bash -l
#SBATCH -C gpu
#SBATCH -q shared
#SBATCH -N 1 -n 1
#SBATCH -c 4
#SBATCH --gpus-per-task=2
#SBATCH -t 00:30:00
#SBATCH -o notebooks/runs/%x-%j.out
#SBATCH -e notebooks/runs/%x-%j.err
#SBATCH --mail-type=END,FAIL
#SBATCH --signal=B:USR1@60

set -euo pipefail
export SLURM_CPU_BIND="cores"
on_time_limit() { echo "the limit is near" >&2; kill -TERM "$child"; }
trap on_time_limit USR1

module load python
srun --cpus-per-task=4 -u python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size 256 &
child=$!
wait "$child"
# found: nothing
