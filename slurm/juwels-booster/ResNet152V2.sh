#!/bin/bash
# ResNet152V2 on 1, 2 and 4 workers of one node of JUWELS Booster, one training after the other (task T9).
#
# Submit it in the top folder of the course:  sbatch slurm/juwels-booster/ResNet152V2.sh
# Options after the script's name go to the training, such as --epochs 2.
# This site needs your account, which does not belong in a script: export SBATCH_ACCOUNT=...
#SBATCH --job-name=ResNet152V2
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --partition=booster
#SBATCH --time=00:30:00
# MirroredStrategy is one process (one task) that drives all GPUs of one node. The site's rule says how many
# cores they may have:
# 1 GPU: 1 to 24, 2 GPUs: 1 to 48, 3 GPUs: 1 to 72, 4 GPUs: 1 to 96.
#SBATCH --nodes=...
#SBATCH --ntasks=...
#SBATCH --gres=...
#SBATCH --cpus-per-task=...

set -euo pipefail # stop at the first error: a job that goes on after one looks like a success

python=("${LABS_PYTHON:-python}")
export TMPDIR="$SCRATCH"
export PYTHONPATH="$PWD" PYTHONUNBUFFERED=1 TF_CPP_MIN_LOG_LEVEL=2
export LABS_RUNS="${LABS_RUNS:-notebooks/runs}" # folder of the run records
SCRIPTS="${SCRIPTS:-notebooks/scripts}"         # your training scripts
mkdir -p "$LABS_RUNS"
echo "Job ${SLURM_JOB_ID:-without SLURM} on ${SLURM_JOB_NODELIST:-this machine}, GPUs ${CUDA_VISIBLE_DEVICES:-none}"
"${python[@]}" -c 'from labs import devices; print("Versions:", devices.versions())'

for workers in 1 2 4; do
    # The global batch: 256 images for each worker. The learning rate follows in ResNet152V2.py.
    batch=...  # your code here
    "${python[@]}" "$SCRIPTS/ResNet152V2.py" --dataset cifar10 --image_size 128 --epochs 5 --repeats 3 \
        --n_gpus "$workers" --batch_size "$batch" "$@"
done
