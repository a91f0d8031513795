#!/bin/bash
#SBATCH --time=00-01:30:00   # days-hours:minutes:seconds
#SBATCH --ntasks=1           # one process
#SBATCH --cpus-per-task=4
#SBATCH --gpus-per-node=gpu:2
#SBATCH --mem=0
#SBATCH --output=notebooks/runs/%x-%N-%j.out
#SBATCH --error=notebooks/runs/%x-%N-%j.err
set -e
module load StdEnv/2023 python/3.11
virtualenv --no-download "$SLURM_TMPDIR/env"
source "$SLURM_TMPDIR/env/bin/activate"
pip install --no-index --upgrade pip
pip install --no-index -r pyproject.toml
python -u notebooks/scripts/ResNet50.py --n_gpus=2 --batch_size=256 --epochs=3
# found: nothing
