#!/bin/bash
# ResNet50V2 with Horovod on 2 nodes of the practice cluster: one rank for each GPU, all in one training.
#
# Submit it in the top folder of the course:  sbatch slurm/local/ResNet50_horovod_nodes.sh
# More nodes: sbatch --nodes=4 slurm/local/ResNet50_horovod_nodes.sh
# Options after the script's name go to the training, such as --epochs 2.
#SBATCH --job-name=ResNet50_horovod_nodes
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --partition=main
#SBATCH --time=00:30:00
# Tasks, GPUs and cores are counted for each node, cores for each task:
# 1 GPU: 2, 2 GPUs: 4.
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --gres=gpu:2
#SBATCH --cpus-per-task=2

set -euo pipefail # stop at the first error: a job that goes on after one looks like a success

python=("${LABS_PYTHON:-.venv/bin/python}")
export PYTHONPATH="$PWD" PYTHONUNBUFFERED=1 TF_CPP_MIN_LOG_LEVEL=2
export LABS_RUNS="${LABS_RUNS:-notebooks/runs}" # folder of the run records
SCRIPTS="${SCRIPTS:-notebooks/scripts}"         # your training scripts
mkdir -p "$LABS_RUNS"
echo "Job ${SLURM_JOB_ID:-without SLURM} on ${SLURM_JOB_NODELIST:-this machine}, GPUs ${CUDA_VISIBLE_DEVICES:-none}"
"${python[@]}" -c 'from labs import devices; print("Versions:", devices.versions())'
export SRUN_CPUS_PER_TASK="${SLURM_CPUS_PER_TASK:-1}"

# The global batch: 64 images for each of all ranks, whose number SLURM knows.
batch=$((64 * SLURM_NTASKS))
srun --mpi=pmi2 --kill-on-bad-exit=1 --label --ntasks="$SLURM_NTASKS" \
    "${python[@]}" "$SCRIPTS/ResNet50_horovod.py" --dataset digits --image_size 32 --epochs 3 --repeats 3 --images 512 \
    --batch_size "$batch" "$@"
