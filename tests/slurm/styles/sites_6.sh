#!/usr/bin/env -S bash -eu
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --gpus-per-node=2
#SBATCH --cpus-per-task=2
#SBATCH --time=60
#SBATCH --output=notebooks/runs/ibrun_%j.out
#SBATCH --error=notebooks/runs/ibrun_%j.err
cd "$SLURM_SUBMIT_DIR"
date; hostname; pwd
readonly BATCH=$(( 64 * SLURM_NTASKS_PER_NODE * SLURM_JOB_NUM_NODES ))
srun -c "$SLURM_CPUS_PER_TASK" python notebooks/scripts/ResNet50_horovod.py --batch_size "$BATCH"
echo "done after $SECONDS s"
# found: nothing
