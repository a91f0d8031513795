#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=2 --cpus-per-task=2 --gres=gpu:2
#SBATCH --time=00:15:00
#SBATCH --output=notebooks/runs/%x_%j.out --error=notebooks/runs/%x_%j.err
set -euo pipefail
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
head_node=$(scontrol show hostname "$SLURM_JOB_NODELIST" | head -n 1)
echo "first node: $head_node, $(nvidia-smi -L | head -n 1)"
srun --mpi=pmi2 python notebooks/scripts/ResNet50_horovod.py --batch_size $((64 * SLURM_JOB_NUM_NODES * SLURM_NTASKS_PER_NODE))
# found: nothing
