#!/usr/bin/env bash
# SBATCH lines say what the job needs; sbatch reads them.
#SBATCH --job-name=literal
#SBATCH --output=notebooks/runs/literal_%j.out
#SBATCH --error=notebooks/runs/literal_%j.err
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --gres=gpu:2
#SBATCH --cpus-per-task=2
set -euo pipefail
export SRUN_CPUS_PER_TASK=2
srun --mpi=pmi2 -n4 .venv/bin/python "${SCRIPTS:-notebooks/scripts}/ResNet50_horovod.py" --batch_size 256
