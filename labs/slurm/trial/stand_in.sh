#!/bin/sh
# Stands for a program of a cluster: writes down how it was called, and succeeds. A launcher also runs what it is to
# start, once; Python also runs a text that it is given (-c, or its input), but without packages.
called=${0##*/}
{
    printf '%s\0' "$called" "$PWD" "$#" "$@"
    cat /proc/$$/environ
} >"$LABS_CALLS/$$"
train() { # in the background it takes a moment, so that a script that does not wait for it has ended before
    while read -r key ignored; do [ "$key" != SigIgn: ] || break; done </proc/$$/status
    case $ignored in *[67ef]) beside=yes ;; esac # SIGINT and SIGQUIT are ignored there
    [ -z "${beside:-}${LABS_ASIDE:-}" ] || /bin/sleep 0.3
    echo "${beside:-}" >"$LABS_CALLS/done.$$"
    exit 0
}

behind=0 # words between the options and the command
case $called in
@LAUNCHERS@) with_value="@WITH_VALUE@" launches=+ tasks=${SLURM_NTASKS:-1} ;;
singularity | apptainer)
    case $1 in exec | run) ;; *) exit 0 ;; esac
    shift
    with_value="-B --bind --env --env-file -H --home --pwd -W --workdir -o --overlay --network -S --scratch" behind=1
    ;;
uv | conda | mamba | micromamba)
    case "$1 $2" in
    "info --base") echo /tmp/conda ;;
    shell*) echo labs_conda ;;
    activate*)
        echo "$LABS_LINE $called" >>"$LABS_CALLS/not_found"
        echo "CommandNotFoundError: Your shell has not been properly configured to use '$called activate'." >&2
        exit 1
        ;;
    esac
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
        -m* | [!-]*) train ;;
        esac
    done
    "$LABS_REAL_PYTHON" -I -S "$@" 2>"/tmp/said.$$" && exit 0
    status=$?
    grep -q '^\(ModuleNotFound\|Import\)Error' "/tmp/said.$$" && exit 0
    cat "/tmp/said.$$" >&2
    exit $status
    ;;
scontrol)
    case "$1 $2" in "show hostname" | "show hostnames") ;; *) exit 0 ;; esac
    printf '%s\n' $(seq -f node%g "$SLURM_JOB_NUM_NODES") # at once: `| head -n 1` does not wait for more
    exit
    ;;
nvidia-smi)
    case "$*" in *-L* | *--list-gpus* | *--query-gpu*) ;; *) exit 0 ;; esac
    case "$*" in *csv) set -- name ;; *) set -- ;; esac
    set -- "$@" $(seq -f GPU%g "${SLURM_GPUS_ON_NODE:-0}")
    [ $# -eq 0 ] || printf '%s\n' "$@"
    exit
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
