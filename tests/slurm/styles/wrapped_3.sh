#!/bin/bash
#SBATCH --nodes=1 --ntasks-per-node=1 --gres=gpu:2 --cpus-per-task=4 --exclusive
#SBATCH --time=00:45:00
#SBATCH --output=notebooks/runs/w_%j.out --error=notebooks/runs/w_%j.err
set -e -o pipefail

python - <<'END'
import tensorflow as tf
print(tf.config.list_physical_devices("GPU"))
END
(
    for gpus in 0 1; do
        CUDA_VISIBLE_DEVICES=$gpus python notebooks/scripts/ResNet50.py --n_gpus 1 --batch_size 64 --run "gpu_$gpus" &
    done
    wait
)
# found: nothing
