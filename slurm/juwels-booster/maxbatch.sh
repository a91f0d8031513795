#!/bin/bash
# The largest batch of a network that fits into the memory of one worker of JUWELS Booster (tasks T4 and T8).
#
# Submit it in the top folder of the course:  sbatch slurm/juwels-booster/maxbatch.sh
# Options after the script's name go to the search, such as --model ResNet152V2.
# This site needs your account, which does not belong in a script: export SBATCH_ACCOUNT=...
#SBATCH --job-name=maxbatch
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --partition=booster
#SBATCH --time=00:30:00
# One GPU is enough. The site's rule for its cores:
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

# Doubles the batch until memory runs out; the line of the .err that proves it is in the evidence it prints.
"${python[@]}" -m labs maxbatch --image_size 128 --out "$LABS_RUNS" "$@"
