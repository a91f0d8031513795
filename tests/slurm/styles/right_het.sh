#!/bin/bash
#SBATCH --time=00:30:00
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --ntasks=1 --cpus-per-task=4 --gres=gpu:2
#SBATCH hetjob
#SBATCH --ntasks=4
set -eu
echo $SLURM_JOB_NODELIST_HET_GROUP_1 $SLURM_HET_SIZE
srun --het-group=0 -n1 -c4 python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size 128 : --het-group=1 ./server
# found: nothing
