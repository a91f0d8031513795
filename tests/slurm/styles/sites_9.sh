#!/bin/bash -e
#SBATCH --job-name    restart
#SBATCH --time        02:00:00
#SBATCH --ntasks      1
#SBATCH --cpus-per-task 4
#SBATCH --gpus-per-node 2
#SBATCH --requeue --open-mode=append
#SBATCH --output      notebooks/runs/%x-%j.out
#SBATCH --error       notebooks/runs/%x-%j.err
if (( ${SLURM_RESTART_COUNT:-0} > 0 )); then echo "started again" >&2; fi
case "${1:-full}" in
    quick) epochs=1 ;;
    full)  epochs=5 ;;
    *) echo "usage: sbatch $0 [quick|full]" >&2; exit 2 ;;
esac
python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size 256 --epochs "$epochs"
# found: nothing
