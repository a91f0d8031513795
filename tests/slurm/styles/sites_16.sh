#!/bin/bash
#SBATCH --ntasks=1 --cpus-per-task=4 --gres=gpu:2
#SBATCH --time=1:00:00 --output=notebooks/runs/%j.out --error=notebooks/runs/%j.err
set -e
cat << 'END' > notebooks/runs/seen.py
import tensorflow as tf
print(len(tf.config.list_physical_devices("GPU")), "GPUs")
END
python notebooks/runs/seen.py
sed 's/^/# /' notebooks/batches.txt
python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size 256
# found: nothing
