#!/bin/bash
# A scaling study with Horovod on 2 nodes of the practice cluster. In one job, a run on 1 rank and one on more ranks
# take turns, an epoch each, so that the machine's drift affects both alike.
#
# Submit it in the top folder of the course:  sbatch slurm/local/study.sh
# More nodes: sbatch --nodes=4 slurm/local/study.sh
# MirroredStrategy, on one node: sbatch --nodes=1 slurm/local/study.sh --strategy mirrored
# Options after the script's name go to `labs study`, such as --models ResNet50V2 ResNet152V2. After a time limit,
# submit it again with --out and the folder of that job: it continues after the pairs of runs that have finished.
#SBATCH --job-name=study
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --partition=main
#SBATCH --time=00:30:00
# Two trainings share the GPUs, cores and memory of the job, and only one of them computes. Tasks, GPUs and cores are
# counted for each node, cores for each task:
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

# The records lie in a folder of their own beside the job's log.
study=(--preset laptop --strategy horovod --workers 1 2 "$SLURM_NTASKS")
study+=(--out "$LABS_RUNS/${LABS_JOB:-${SLURM_JOB_NAME:-study}_${SLURM_JOB_ID:-local}}")
[ -z "${SLURM_JOB_ID:-}" ] || study+=("--launcher=srun --mpi=pmi2")
"${python[@]}" -m labs study "${study[@]}" "$@"
