#!/bin/bash
#SBATCH --job-name=monitored
#SBATCH --ntasks=1 --cpus-per-task=4 --gres=gpu:2 --time=1:00:00
#SBATCH --output=notebooks/runs/%j.out --error=notebooks/runs/%j.err
set -e
nvidia-smi --query-gpu=utilization.gpu --format=csv -l 10 > notebooks/runs/gpu.csv &
monitor=$!
python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size 256
kill $monitor
# found: nothing
