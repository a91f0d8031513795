#!/bin/bash
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=4 --gpus=2
#SBATCH --time=00:45:00
#SBATCH --output=notebooks/runs/c_%j.out
#SBATCH --error=notebooks/runs/c_%j.err
set -euo pipefail
IMAGE=${LABS_CONTAINER:?name the image}
BIND="$PWD:/course"
run=(apptainer exec --nv --bind "$BIND" --pwd /course "$IMAGE")
if [[ -n "${SLURM_JOB_ID:-}" ]]; then
    run=(srun --ntasks=1 --cpus-per-task=4 "${run[@]}")
fi
"${run[@]}" bash -c "python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size 256"
# found: nothing
