#!/bin/bash
# ResNet50V2 with Horovod on 1, 2 and 4 ranks of one node of MareNostrum 5, one training after the other.
#
# Submit it in the top folder of the course:  sbatch slurm/marenostrum5/ResNet50_horovod.sh
# Options after the script's name go to the training, such as --epochs 2.
# This site needs your account, which does not belong in a script: export SBATCH_ACCOUNT=...
# This site needs your QOS, which does not belong in a script: export SBATCH_QOS=...
#SBATCH --job-name=ResNet50_horovod
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --time=00:30:00
# Horovod is one process (one task) for each GPU. They share the cores that the site's rule allows
# for all GPUs of the node:
# 1 GPU: 20, 2 GPUs: 40, 3 GPUs: 60, 4 GPUs: 80.
#SBATCH --nodes=...
#SBATCH --ntasks-per-node=...
#SBATCH --gres=...
#SBATCH --cpus-per-task=...

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

for ranks in 1 2 4; do
    # The global batch: 256 images for each rank. The learning rate follows in ResNet50_horovod.py.
    batch=...  # your code here
    srun --kill-on-bad-exit=1 --label --ntasks="$ranks" \
        "${python[@]}" "$SCRIPTS/ResNet50_horovod.py" --dataset cifar10 --image_size 128 --epochs 5 --repeats 3 \
        --batch_size "$batch" "$@"
done
