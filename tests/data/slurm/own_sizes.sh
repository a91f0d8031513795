#!/bin/bash
#SBATCH --job-name=own_sizes
#SBATCH --output=notebooks/runs/%x-%A.out
#SBATCH --error=notebooks/runs/%x-%A.err
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --time=0-00:30
set -e
export LABS_RUNS=notebooks/runs
# more images for a worker than the course's, and the same for each
for batch in 96 192; do
    for rate in 1 2; do
        nvidia-smi || true
        time "${LABS_PYTHON:-python}" "${SCRIPTS:-notebooks/scripts}/ResNet50.py" --n_gpus 1 --batch_size="$batch" \
            --run "own_${batch}_$rate" --seed "$rate"
    done
done > notebooks/runs/all.txt
while read -r line; do
    echo "$line"
done < notebooks/runs/all.txt
(cd notebooks && ls)
