#!/bin/bash
# A scaling study with Horovod on 2 nodes of CTE-POWER. In one job, a run on 1 rank and one on more ranks
# take turns, an epoch each, so that the machine's drift affects both alike.
#
# Submit it in the top folder of the course:  sbatch slurm/cte-power/study.sh
# More nodes: sbatch --nodes=4 slurm/cte-power/study.sh
# MirroredStrategy, on one node: sbatch --nodes=1 slurm/cte-power/study.sh --strategy mirrored
# Options after the script's name go to `labs study`, such as --models ResNet50V2 ResNet152V2. After a time limit,
# submit it again with --out and the folder of that job: it continues after the pairs of runs that have finished.
#SBATCH --job-name=study
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --time=00:30:00
# Two trainings share the GPUs, cores and memory of the job, and only one of them computes. Tasks, GPUs and cores are
# counted for each node, cores for each task:
# 1 GPU: 40 to 80, 2 GPUs: 80, 3 GPUs: 120 to 160, 4 GPUs: 160.
#SBATCH --nodes=...
#SBATCH --ntasks-per-node=...
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
export SRUN_CPUS_PER_TASK="${SLURM_CPUS_PER_TASK:-1}"
export NCCL_SOCKET_IFNAME=ib0

# The records lie in a folder of their own beside the job's log.
study=(--preset course --strategy horovod --workers 1 2 4 "$SLURM_NTASKS")
study+=(--out "$LABS_RUNS/${LABS_JOB:-${SLURM_JOB_NAME:-study}_${SLURM_JOB_ID:-local}}")
[ -z "${SLURM_JOB_ID:-}" ] || study+=("--launcher=srun")
"${python[@]}" -m labs study "${study[@]}" "$@"
