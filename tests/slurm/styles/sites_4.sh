#!/bin/bash
#SBATCH --job-name="two sizes"
#SBATCH --qos=debug
#SBATCH -D .
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
#SBATCH --gres gpu:2
#SBATCH --time=02:00:00
#SBATCH --output=notebooks/runs/two_%j.out
#SBATCH --error=notebooks/runs/two_%j.err
set -e
module purge
module load intel/2021 anaconda
source activate labs
for gpus in 1 2; do
    CUDA_VISIBLE_DEVICES=$(seq -s, 0 $((gpus - 1))) python notebooks/scripts/ResNet50.py \
        --n_gpus ${gpus} --batch_size $(( 64*gpus )) |& tee "notebooks/runs/two_${SLURM_JOB_ID}_${gpus}.txt"
done
# found: nothing
