# What stands behind the set-up of a right script for one node: 64 images for each of 1 and 2 workers (slurm.2, resnet152.10).
# Each section is a style of writing it.

#### arithmetic
for n in 1 2; do
    batch=$(( 64 * n ))
    "${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32 --n_gpus "$n" --batch_size "$batch" "$@"
done

#### let
for n in 1 2; do
    let batch=64*n
    "${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32 --n_gpus $n --batch_size $batch
done

#### expr
for n in 1 2; do
    batch=`expr 64 \* $n`
    "${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32 --n_gpus $n --batch_size $batch
done

#### bc
for n in $(seq 2); do
    "${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32 --n_gpus $n --batch_size "$(bc <<< "64 * $n")"
done

#### awk
for n in 1 2; do
    batch=$(awk -v n=$n 'BEGIN { print 64 * n }')
    "${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32 --n_gpus $n --batch_size $batch
done

#### python
for n in 1 2; do
    batch=$("${python[@]}" -c "print(64 * $n)")
    "${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32 --n_gpus $n --batch_size $batch
done

#### integer
declare -i batch
for n in 1 2; do
    batch=64*n
    "${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32 --n_gpus $n --batch_size $batch
done

#### equals sign
for ((n = 1; n <= 2; n *= 2)); do
    "${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32 --n_gpus="$n" --batch_size="$((n << 6))"
done

#### while
n=1
while (( n <= 2 )); do
    "${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32 --n_gpus $n --batch_size $((n * 64)) || exit 1
    ((n += 1))
done

#### until
n=0
until [ "$n" -eq 2 ]; do
    n=$((n + 1))
    "${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32 --n_gpus $n --batch_size $((64 * n)) 2>&1 | tee -a log
done

#### array
workers=(1 2)
for i in "${!workers[@]}"; do
    batch[i]=$((64 * workers[i]))
    "${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32 --n_gpus "${workers[i]}" --batch_size "${batch[i]}"
done

#### table
declare -A batch=([1]=64 [2]=128)
for n in "${!batch[@]}"; do
    "${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32 --n_gpus "$n" --batch_size "${batch[$n]}"
done

#### case
for n in 1 2; do
    case $n in
    1) batch=64 ;;
    *) batch=128 ;;
    esac
    "${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32 --n_gpus "$n" --batch_size "$batch"
done

#### function
train() {
    local n=$1
    shift
    "${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32 --n_gpus "$n" --batch_size $((${LOCAL:-64} * n)) "$@"
}
train 1 "$@"
train 2 "$@"

#### no loop
"${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32 --n_gpus 1 --batch_size 64
"${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32  \
   --n_gpus 2 \
   --batch_size 128

#### options in an array
for n in 1 2; do
    options=(--n_gpus "$n")
    options+=(--batch_size $((64 * n)))
    "${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32  "${options[@]}"
done

#### options in a text
for n in 1 2; do
    options="--n_gpus $n --batch_size $((64 * n))"
    "${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32  $options
done

#### heredoc
while read -r n batch; do
    "${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32 --n_gpus $n --batch_size $batch </dev/null
done <<END
1 64
2 128
END

#### eval
for n in 1 2; do
    eval "batch=\$((64 * $n))"
    "${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32 --n_gpus $n --batch_size $batch
done

#### background
for n in 1 2; do
    "${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32 --n_gpus $n --batch_size $((64 * n)) &
    wait
done

#### srun
for n in 1 2; do
    srun -n 1 --cpus-per-task=4 --cpu-bind=none bash -c "python $SCRIPTS/ResNet50.py --n_gpus $n --batch_size $((64 * n))"
done

#### activated
source .venv/bin/activate
for n in 1 2; do
    python "$SCRIPTS/ResNet50.py" --n_gpus $n --batch_size $((64 * n))
done

#### uv
for n in 1 2; do
    uv run python "$SCRIPTS/ResNet50.py" --n_gpus $n --batch_size $((64 * n))
done

#### folder
for n in 1 2; do
    (cd notebooks/scripts && python ResNet50.py --n_gpus $n --batch_size $((64 * n)))
done

#### time and env
for n in 1 2; do
    time env OMP_NUM_THREADS=1 "${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32 --n_gpus $n --batch_size $((64 * n))
    sleep 60
done

#### checked
for n in 1 2; do
    batch=$((64 * n))
    if [[ $batch -lt 64 ]]; then echo "too small" >&2; exit 1; fi
    "${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32 --n_gpus $n --batch_size $batch
done

#### trap
trap 'echo done at line $LINENO' EXIT
for n in {1..2}; do
    "${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32 --n_gpus $n --batch_size $((64 * n))
done

#### short names
for n in 1 2; do
    "${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32 --n $n --batch $((64 * n))
done

#### xargs
export SCRIPTS
printf "%s\n" 1 2 | xargs -I % bash -c 'python "$SCRIPTS/ResNet50.py" --n_gpus % --batch_size $((64 * %))'

#### nvidia-smi
nvidia-smi
for n in 1 2; do
    "${python[@]}" "$SCRIPTS/ResNet50.py" --image_size 32 --n_gpus $n --batch_size $((64 * n))
done
