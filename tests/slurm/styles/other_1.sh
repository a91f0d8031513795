#!/bin/tcsh
#SBATCH --time=00:30:00
#SBATCH --gres=gpu:2 --cpus-per-task=4 --ntasks=1
#SBATCH --output=notebooks/runs/o_%j.out
#SBATCH --error=notebooks/runs/o_%j.err
module load python
setenv OMP_NUM_THREADS 4
foreach n (1 2)
  @ batch = 64 * $n
  python notebooks/scripts/ResNet50.py --n_gpus $n --batch_size $batch
end
# found: nothing
