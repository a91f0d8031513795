#!/bin/bash -l
##SBATCH --nodes=7 --time=99-00:00:00
#SBATCH -J functions -N2 # two nodes
#SBATCH -o notebooks/runs/%x_%j.out -e notebooks/runs/%x_%j.err
#SBATCH --gpus-per-node=2
#SBATCH -n 4
#SBATCH -c 2 -t 2:00:00
# Submit it with: sbatch --time=1:00:00 slurm/local/functions.sh
set -o errexit

local_batch=32
options=(--mpi=pmi2 --cpus-per-task=2)

train() {
    local script=$1
    shift
    echo "Training $script with $*" >&2
    srun "${options[@]}" -n "$SLURM_NTASKS" "${LABS_PYTHON:-python}" "${SCRIPTS:-notebooks/scripts}/$script.py" "$@"
}

if [ ! -d notebooks ]; then
    echo "not the course's folder" >&2
    exit 2
fi
cat > "$TMPDIR/note.txt" <<END
#SBATCH --nodes=3
END
train ResNet50_horovod --epochs 1 --batch_size "$((local_batch * SLURM_NTASKS))" "$@" > notebooks/runs/training.txt 2>&1
