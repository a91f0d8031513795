#!/bin/bash
# ResNet50V2 with Horovod on 1, 2 and 4 ranks of one node of JUWELS Booster, one training after the other.
#
# Submit it in the top folder of the course:  sbatch slurm/juwels-booster/ResNet50_horovod.sh
# Options after the script's name go to the training, such as --epochs 2.
# This site needs your account, which does not belong in a script: export SBATCH_ACCOUNT=...
#SBATCH --job-name=ResNet50_horovod
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --partition=booster
#SBATCH --time=00:30:00
# Horovod is one process (one task) for each GPU. They share the cores that the site's rule allows
# for all GPUs of the node:
# 1 GPU: 1 to 24, 2 GPUs: 1 to 48, 3 GPUs: 1 to 72, 4 GPUs: 1 to 96.
#SBATCH --nodes=1
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

for ranks in 1 2 4; do
    # The global batch: 256 images for each rank. The learning rate follows in ResNet50_horovod.py.
    batch=$((256 * ranks))
    srun --kill-on-bad-exit=1 --label --ntasks="$ranks" \
        "${python[@]}" "$SCRIPTS/ResNet50_horovod.py" --dataset cifar10 --image_size 128 --epochs 5 --repeats 3 \
        --batch_size "$batch" "$@"
done
