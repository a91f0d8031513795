#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --gres=gpu:2
#SBATCH --cpus-per-task=2
#SBATCH --time=00:30:00
#SBATCH --output=notebooks/runs/mpi-%j.out
#SBATCH --error=notebooks/runs/mpi-%j.err
set -e
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK}
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_ADDR="${MASTER_ADDR}i"
ARGS="
  --batch_size $(( 64 * SLURM_NTASKS ))
  --epochs 2
"
srun bash -c "
  export LABS_RANK=\$SLURM_PROCID
  python notebooks/scripts/ResNet50_horovod.py $ARGS
"
# found: nothing
