#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --gres=gpu:2
#SBATCH --cpus-per-task=2
#SBATCH --time=01:00:00
#SBATCH --output=notebooks/runs/ranks_%j.out
#SBATCH --error=notebooks/runs/ranks_%j.err

set -eu
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
head=${nodes[0]}
export MASTER_ADDR=$head MASTER_PORT=29500 NCCL_DEBUG=WARN
for i in 1 2; do
    srun --label --ntasks=$SLURM_NTASKS --ntasks-per-node=2 \
        python notebooks/scripts/ResNet50_horovod.py \
        --batch_size $((SLURM_NNODES * 2 * 64)) \
        --run "repeat_$i"
done
# found: nothing
