#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
#SBATCH --gres=gpu:2
#SBATCH --time=00:30:00
#SBATCH --output=notebooks/runs/conda-%j.out
#SBATCH --error=notebooks/runs/conda-%j.err
set -eo pipefail
module load anaconda3
eval "$(conda shell.bash hook)"
conda activate labs
python - <<'PY'
import tensorflow as tf
print(tf.config.list_physical_devices("GPU"))
PY
[ -d notebooks/runs ] || mkdir -p notebooks/runs
python notebooks/scripts/ResNet50.py --n_gpus "${SLURM_GPUS_ON_NODE:-2}" --batch_size 256
# found: nothing
