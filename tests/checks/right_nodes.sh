# What stands behind the set-up of a right script over 2 nodes with 2 ranks each: 64 images for each rank (nodes.7).
# Each section is a style of writing it.

#### arithmetic
batch=$((64 * SLURM_NTASKS))
srun --mpi=pmi2 "${python[@]}" "$SCRIPTS/ResNet50_horovod.py" --image_size 32 --batch_size "$batch" "$@"

#### default
ranks=${SLURM_NTASKS:-4}
srun -n "$ranks" "${python[@]}" "$SCRIPTS/ResNet50_horovod.py" --image_size 32 --batch_size $((ranks * 64))

#### nodes and tasks
srun "${python[@]}" "$SCRIPTS/ResNet50_horovod.py" --image_size 32 --batch_size $((64 * SLURM_NNODES * SLURM_NTASKS_PER_NODE))

#### node list
nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | wc -l)
srun "${python[@]}" "$SCRIPTS/ResNet50_horovod.py" --image_size 32 --batch_size $((nodes * 2 * 64))

#### gpus
IFS=, read -ra gpus <<<"$CUDA_VISIBLE_DEVICES"
srun "${python[@]}" "$SCRIPTS/ResNet50_horovod.py" --image_size 32 --batch_size $((64 * ${#gpus[@]} * SLURM_JOB_NUM_NODES))

#### launcher in a variable
launch='srun --mpi=pmi2 --label'
$launch --ntasks=$SLURM_NPROCS "${python[@]}" "$SCRIPTS/ResNet50_horovod.py" --image_size 32 --batch_size $((64 * SLURM_NPROCS))

#### launcher in an array
launch=(srun --mpi=pmi2 -n "$SLURM_NTASKS")
"${launch[@]}" "${python[@]}" "$SCRIPTS/ResNet50_horovod.py" --image_size 32 --batch_size $((64 * SLURM_NTASKS))

#### in a shell
srun --kill-on-bad-exit=1 bash -c "python $SCRIPTS/ResNet50_horovod.py --batch_size $((64 * SLURM_NTASKS))"

#### exec
export batch=$(expr $SLURM_NTASKS \* 64)
exec srun "${python[@]}" "$SCRIPTS/ResNet50_horovod.py" --image_size 32 --batch_size $batch

#### function
batch() { echo $(($1 * 64)); }
srun -l "${python[@]}" "$SCRIPTS/ResNet50_horovod.py" --image_size 32 --batch_size $(batch $SLURM_NTASKS)

#### one number after the other
batch=0
for ((rank = 0; rank < SLURM_NTASKS; rank++)); do ((batch += 64)); done
srun "${python[@]}" "$SCRIPTS/ResNet50_horovod.py" --image_size 32 --batch_size "$batch"
