#!/bin/bash
# ResNet50V2 with Horovod on 2 nodes of MareNostrum 5: one rank for each GPU, all in one training.
#
# Submit it in the top folder of the course:  sbatch slurm/marenostrum5/ResNet50_horovod_nodes.sh
# More nodes: sbatch --nodes=4 slurm/marenostrum5/ResNet50_horovod_nodes.sh
# Options after the script's name go to the training, such as --epochs 2.
# This site needs your account, which does not belong in a script: export SBATCH_ACCOUNT=...
# This site needs your QOS, which does not belong in a script: export SBATCH_QOS=...
#SBATCH --job-name=ResNet50_horovod_nodes
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --time=00:30:00
# Tasks, GPUs and cores are counted for each node, cores for each task:
# 1 GPU: 20, 2 GPUs: 40, 3 GPUs: 60, 4 GPUs: 80.
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=20

set -euo pipefail # stop at the first error: a job that goes on after one looks like a success

module purge
module load singularity
python=(singularity exec --nv "${LABS_CONTAINER:?set it to the path of your container}" python)
export PYTHONPATH="$PWD" PYTHONUNBUFFERED=1 TF_CPP_MIN_LOG_LEVEL=2
export LABS_RUNS="${LABS_RUNS:-notebooks/runs}" # folder of the run records
SCRIPTS="${SCRIPTS:-notebooks/scripts}"         # your training scripts
mkdir -p "$LABS_RUNS"
echo "Job ${SLURM_JOB_ID:-without SLURM} on ${SLURM_JOB_NODELIST:-this machine}, GPUs ${CUDA_VISIBLE_DEVICES:-none}"
"${python[@]}" -c 'from labs import devices; print("Versions:", devices.versions())'
export SRUN_CPUS_PER_TASK="${SLURM_CPUS_PER_TASK:-1}"
export NCCL_SOCKET_IFNAME=ib0

# The global batch: 256 images for each of all ranks, whose number SLURM knows.
batch=$((256 * SLURM_NTASKS))
srun --kill-on-bad-exit=1 --label --ntasks="$SLURM_NTASKS" \
    "${python[@]}" "$SCRIPTS/ResNet50_horovod.py" --dataset cifar10 --image_size 128 --epochs 5 --repeats 3 \
    --batch_size "$batch" "$@"
