#!/bin/sh
# Stands for a program of a cluster: writes down how it was called, and succeeds. A launcher also runs what it is to
# start, once; Python also runs a text that it is given (-c, or its input), but without packages.
called=${0##*/}
while read -r key ignored; do # SIGINT and SIGQUIT are what bash lets programs in the background ignore
    [ "$key" != SigIgn: ] || break
done </proc/$$/status
above=$$ chain=
while [ "$above" -gt 1 ] && read -r number name state above ignored_too </proc/$above/stat; do chain="$chain $number"; done 2>/dev/null
{
    printf '%s\0' "$called" "$PWD" "$ignored$chain" "$#" "$@"
    cat /proc/$$/environ
} >"$LABS_CALLS/$$"

behind=0 # words between the options and the command
case $called in
@LAUNCHERS@) with_value="@WITH_VALUE@" launches=+ tasks=${SLURM_NTASKS:-1} ;;
singularity | apptainer)
    case $1 in exec | run) ;; *) exit 0 ;; esac
    shift
    with_value="-B --bind --env --env-file -H --home --pwd -W --workdir -o --overlay --network -S --scratch" behind=1
    ;;
uv | conda | mamba | micromamba)
    case "$1 $2" in "info --base") echo /tmp/conda ;; esac
    [ "$1" = run ] || exit 0
    shift
    with_value="-n --name -p --prefix --cwd --extra --group --with --project --directory --python"
    ;;
shifter) with_value="--image --volume --module --env" ;;
numactl | nsys | ncu) with_value="-N -m -C -t -o" ;;
labs-unknown) # it may start one of its words
    while [ $# -gt 0 ]; do
        shift
        case ${1##*/} in bash | sh | [!-]*.sh) [ -z "$1" ] || break ;; esac
        [ ! -x "/tmp/stand-ins/${1##*/}" ] || [ -z "$1" ] || break
    done
    [ $# -gt 0 ] || exit 0
    ;;
python*)
    for word; do
        case $word in
        -c | -) break ;;
        -m*) exit 0 ;;
        -*) ;;
        *) exit 0 ;;
        esac
    done
    "$LABS_REAL_PYTHON" -I -S "$@" 2>"/tmp/said.$$" && exit 0
    status=$?
    grep -q '^\(ModuleNotFound\|Import\)Error' "/tmp/said.$$" && exit 0
    cat "/tmp/said.$$" >&2
    exit $status
    ;;
scontrol)
    node=0 lines=
    case "$1 $2" in "show hostname" | "show hostnames") ;; *) exit 0 ;; esac
    while [ $node -lt "$SLURM_JOB_NUM_NODES" ]; do
        node=$((node + 1))
        lines="${lines}node$node
"
    done
    printf %s "$lines" && exit 0 # at once: `| head -n 1` does not wait for more
    ;;
nvidia-smi)
    gpu=0 lines=
    case "$*" in *-L* | *--list-gpus* | *--query-gpu*) ;; *) exit 0 ;; esac
    case "$*" in *csv) lines="name
" ;; esac
    while [ $gpu -lt "${SLURM_GPUS_ON_NODE:-0}" ]; do
        lines="${lines}GPU $gpu
"
        gpu=$((gpu + 1))
    done
    printf %s "$lines" && exit 0
    ;;
sbatch) echo "Submitted batch job 1001" && exit 0 ;;
*) exit 0 ;;
esac

while [ $# -gt 0 ]; do
    case ${launches:-}$1 in
    -- | +--) shift && break ;;
    @PROCESSES@) tasks=$2 ;;
    +-n[0-9]*) tasks=${1#-n} ;;
    @PROCESSES_IS@) tasks=${1#*=} ;;
    -* | +-*) ;;
    *) break ;;
    esac
    case " $with_value " in *" $1 "*) [ $# -eq 1 ] || shift ;; esac
    shift
done
[ $# -gt $behind ] || exit 0
shift $behind
export LABS_CALL=$$
[ -z "${launches:-}" ] || export SLURM_NTASKS="$tasks" SLURM_NPROCS="$tasks" SLURM_STEP_NUM_TASKS="$tasks"
command -v "$1" >/dev/null || set -- /tmp/stand-ins/labs-unknown "$@" # the container or the site may have it
"$@"
