# Stands for a program of a cluster: writes down how it was called, and succeeds. A launcher also runs what it is to
# start, once; Python also runs a text that it is given (-c, or its input), but without packages.
# $launchers, $processes, $with_value: lists of words with blanks around them, from labs/slurm/directives.py.
called=${0##*/}
case $called in python*) /bin/sleep 0.1 ;; esac # so that nothing is seen of one that the script does not wait for
{
    printf '%s\0' "$called" "$PWD" "$#" "$@"
    cat /proc/$$/environ
} >"$LABS_CALLS/$$"
has() { case $1 in *" $2 "*) ;; *) return 1 ;; esac }
case $called in
singularity | apptainer | shifter | uv | conda | mamba | micromamba | numactl | nsys | ncu | labs-unknown)
    [ "$called" != labs-unknown ] || shift
    while [ $# -gt 0 ]; do # it starts the first of its words that can be a program of ours
        case $1 in
        -* | *://*) ;;
        *.py) [ "$called" = labs-unknown ] || { set -- /tmp/stand-ins/python "$@" && break; } ;;
        *.sh | bash | python | python3 | python3.[0-9]*) ! command -v "$1" >/dev/null || break ;;
        */python | */python3) shift && set -- python "$@" && break ;;
        *) ! has "$launchers" "$1" || break ;;
        esac
        shift
    done
    ;;
python*)
    for word; do
        case $word in
        -c | -) break ;;
        -m* | [!-]*) exit 0 ;;
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
*)
    has "$launchers" "$called" || exit 0
    tasks=${SLURM_NTASKS:-${SLURM_NNODES:-1}}
    while [ $# -gt 0 ]; do
        case $1 in
        --) shift && break ;;
        -n[0-9]*) tasks=${1#-n} ;;
        -*=*) ! has "$processes" "${1%%=*}" || tasks=${1#*=} ;;
        -*) ! has "$processes" "$1" || tasks=$2 ;;
        *) break ;;
        esac
        ! has "$with_value" "$1" || [ $# -eq 1 ] || shift
        shift
    done
    export LABS_RANKS="$tasks" SLURM_NTASKS="$tasks" SLURM_NPROCS="$tasks" SLURM_STEP_NUM_TASKS="$tasks"
    ;;
esac
[ $# -gt 0 ] || exit 0
export LABS_CALL=$$
command -v "$1" >/dev/null || set -- /tmp/stand-ins/labs-unknown "$@" # the container or the site may have it
"$@"
