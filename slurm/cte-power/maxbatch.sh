#!/bin/bash
# The largest batch of a network that fits into the memory of one worker of CTE-POWER (tasks T4 and T8).
#
# Submit it in the top folder of the course:  sbatch slurm/cte-power/maxbatch.sh
# Options after the script's name go to the search, such as --model ResNet152V2.
#SBATCH --job-name=maxbatch
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --time=00:30:00
# One GPU is enough. The site's rule for its cores:
# 1 GPU: 40 to 80, 2 GPUs: 80, 3 GPUs: 120 to 160, 4 GPUs: 160.
#SBATCH --nodes=...
#SBATCH --ntasks=...
#SBATCH --gres=...
#SBATCH --cpus-per-task=...

set -euo pipefail # stop at the first error: a job that goes on after one looks like a success

module purge
module load gcc/8.3.0 cuda/10.2 cudnn/7.6.4 nccl/2.4.8 tensorrt/6.0.1 openmpi/4.0.1 atlas/3.10.3 scalapack/2.0.2 \
    fftw/3.3.8 szip/2.1.1 ffmpeg/4.2.1 opencv/4.1.1 python/3.7.4_ML
python=("${LABS_PYTHON:-python}")
export PYTHONPATH="$PWD" PYTHONUNBUFFERED=1 TF_CPP_MIN_LOG_LEVEL=2
export LABS_RUNS="${LABS_RUNS:-notebooks/runs}" # folder of the run records
SCRIPTS="${SCRIPTS:-notebooks/scripts}"         # your training scripts
mkdir -p "$LABS_RUNS"
echo "Job ${SLURM_JOB_ID:-without SLURM} on ${SLURM_JOB_NODELIST:-this machine}, GPUs ${CUDA_VISIBLE_DEVICES:-none}"
"${python[@]}" -c 'from labs import devices; print("Versions:", devices.versions())'

# Doubles the batch until memory runs out; the line of the .err that proves it is in the evidence it prints.
"${python[@]}" -m labs maxbatch --image_size 128 --out "$LABS_RUNS" "$@"
