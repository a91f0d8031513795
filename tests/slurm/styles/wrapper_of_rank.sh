#!/bin/bash
#SBATCH --time=1:00:00
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=2
#SBATCH --gpus-per-node=2
#SBATCH --output=notebooks/runs/ranks-%j.out
#SBATCH --error=notebooks/runs/ranks-%j.err

set -o errexit -o nounset -o pipefail
export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}
cat > "$TMPDIR/select_gpu" <<'EOF'
#!/bin/bash
export CUDA_VISIBLE_DEVICES=$SLURM_LOCALID
exec "$@"
EOF
chmod +x "$TMPDIR/select_gpu"
srun --cpu-bind=cores --cpus-per-task="$SLURM_CPUS_PER_TASK" "$TMPDIR/select_gpu" \
    python notebooks/scripts/ResNet50_horovod.py --batch_size $((SLURM_NTASKS * 64))
# found: nothing
