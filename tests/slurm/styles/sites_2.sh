#!/bin/bash
#SBATCH --job-name=sweep
#SBATCH --array=0-3%2
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=4
#SBATCH --gres=gpu:2
#SBATCH --time=0-00:40
#SBATCH --mem-per-cpu=4000M
#SBATCH --output=notebooks/runs/%x_%A_%a.out
#SBATCH --error=notebooks/runs/%x_%A_%a.err

set -eu
LOCALS=(16 32 64 128)
local_batch=${LOCALS[$SLURM_ARRAY_TASK_ID]}
python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size $((2 * local_batch)) --run "local_${local_batch}"
# found: nothing
