#!/bin/bash
# ResNet50V2 with Horovod on 1 and 2 ranks of one node of the practice cluster, one training after the other.
#
# Submit it in the top folder of the course:  sbatch slurm/local/ResNet50_horovod.sh
# Options after the script's name go to the training, such as --epochs 2.
#SBATCH --job-name=ResNet50_horovod
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --partition=main
#SBATCH --time=00:30:00
# Horovod is one process (one task) for each GPU. They share the cores that the site's rule allows
# for all GPUs of the node:
# 1 GPU: 2, 2 GPUs: 4.
#SBATCH --nodes=...
#SBATCH --ntasks-per-node=...
#SBATCH --gres=...
#SBATCH --cpus-per-task=...

set -euo pipefail # stop at the first error: a job that goes on after one looks like a success

python=("${LABS_PYTHON:-.venv/bin/python}")
export PYTHONPATH="$PWD" PYTHONUNBUFFERED=1 TF_CPP_MIN_LOG_LEVEL=2
export LABS_RUNS="${LABS_RUNS:-notebooks/runs}" # folder of the run records
SCRIPTS="${SCRIPTS:-notebooks/scripts}"         # your training scripts
mkdir -p "$LABS_RUNS"
echo "Job ${SLURM_JOB_ID:-without SLURM} on ${SLURM_JOB_NODELIST:-this machine}, GPUs ${CUDA_VISIBLE_DEVICES:-none}"
"${python[@]}" -c 'from labs import devices; print("Versions:", devices.versions())'
export SRUN_CPUS_PER_TASK="${SLURM_CPUS_PER_TASK:-1}"

for ranks in 1 2; do
    # The global batch: 64 images for each rank. The learning rate follows in ResNet50_horovod.py.
    batch=...  # your code here
    srun --mpi=pmi2 --kill-on-bad-exit=1 --label --ntasks="$ranks" \
        "${python[@]}" "$SCRIPTS/ResNet50_horovod.py" --dataset digits --image_size 32 --epochs 3 --repeats 3 --images 512 \
        --batch_size "$batch" "$@"
done
