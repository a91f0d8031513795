#!/usr/bin/env python3
#SBATCH --time=00:30:00
#SBATCH --gres=gpu:2 --cpus-per-task=4 --ntasks=1
#SBATCH --output=notebooks/runs/o_%j.out
#SBATCH --error=notebooks/runs/o_%j.err
import subprocess

for gpus in (1, 2):
    command = ["python", "notebooks/scripts/ResNet50.py", "--n_gpus", str(gpus)]
    subprocess.run([*command, "--batch_size", str(64 * gpus)], check=True)
# found: nothing
