#!/bin/bash
#SBATCH --nodes=1 --ntasks-per-node=1 --gres=gpu:2 --cpus-per-task=4 --exclusive
#SBATCH --time=00:45:00
#SBATCH --output=notebooks/runs/w_%j.out --error=notebooks/runs/w_%j.err
set -e -o pipefail

cat > notebooks/runs/hosts_$SLURM_JOB_ID.txt <<END
#SBATCH --nodes=9
$(hostname) slots=2
END
srun -c 4 bash -lc 'cd notebooks && python scripts/ResNet50.py --n_gpus 2 --batch_size 256'
# found: nothing
