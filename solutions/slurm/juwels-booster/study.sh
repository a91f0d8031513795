#!/bin/bash
# A scaling study with Horovod on 2 nodes of JUWELS Booster. In one job, a run on 1 rank and one on more ranks
# take turns, an epoch each, so that the machine's drift affects both alike.
#
# Submit it in the top folder of the course:  sbatch slurm/juwels-booster/study.sh
# More nodes: sbatch --nodes=4 slurm/juwels-booster/study.sh
# MirroredStrategy, on one node: sbatch --nodes=1 slurm/juwels-booster/study.sh --strategy mirrored
# Options after the script's name go to `labs study`, such as --models ResNet50V2 ResNet152V2. After a time limit,
# submit it again with --out and the folder of that job: it continues after the pairs of runs that have finished.
# This site needs your account, which does not belong in a script: export SBATCH_ACCOUNT=...
#SBATCH --job-name=study
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --partition=booster
#SBATCH --time=00:30:00
# Two trainings share the GPUs, cores and memory of the job, and only one of them computes. Tasks, GPUs and cores are
# counted for each node, cores for each task:
# 1 GPU: 1 to 24, 2 GPUs: 1 to 48, 3 GPUs: 1 to 72, 4 GPUs: 1 to 96.
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=24

set -euo pipefail # stop at the first error: a job that goes on after one looks like a success

python=("${LABS_PYTHON:-python}")
export TMPDIR="$SCRATCH"
export PYTHONPATH="$PWD" PYTHONUNBUFFERED=1 TF_CPP_MIN_LOG_LEVEL=2
export LABS_RUNS="${LABS_RUNS:-notebooks/runs}" # folder of the run records
SCRIPTS="${SCRIPTS:-notebooks/scripts}"         # your training scripts
mkdir -p "$LABS_RUNS"
echo "Job ${SLURM_JOB_ID:-without SLURM} on ${SLURM_JOB_NODELIST:-this machine}, GPUs ${CUDA_VISIBLE_DEVICES:-none}"
"${python[@]}" -c 'from labs import devices; print("Versions:", devices.versions())'
export SRUN_CPUS_PER_TASK="${SLURM_CPUS_PER_TASK:-1}"
export NCCL_SOCKET_IFNAME=ib0

# The records lie in a folder of their own beside the job's log.
study=(--preset course --strategy horovod --workers 1 2 4 "$SLURM_NTASKS")
study+=(--out "$LABS_RUNS/${LABS_JOB:-${SLURM_JOB_NAME:-study}_${SLURM_JOB_ID:-local}}")
[ -z "${SLURM_JOB_ID:-}" ] || study+=("--launcher=srun")
"${python[@]}" -m labs study "${study[@]}" "$@"
