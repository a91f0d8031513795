#!/bin/bash
#SBATCH --time=00:30:00
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --nodes=2 --ntasks-per-node=2 --cpus-per-task=2 --gres=gpu:2
set -euo pipefail
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK}
jutil env activate -p myproject
ml Stages/2025 GCC OpenMPI TensorFlow
source "$PROJECT/venv/bin/activate"
export CUDA_VISIBLE_DEVICES=0,1
export MASTER_ADDR="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)i"
srun --cpu-bind=none bash -c "source $PROJECT/venv/bin/activate; python -u notebooks/scripts/ResNet50_horovod.py --batch_size $((64*SLURM_NTASKS))"
# found: nothing
