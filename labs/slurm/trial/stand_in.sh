#!/bin/sh
# Stands for a program of a cluster: writes down how it was called, and succeeds. A launcher also runs what it is to
# start, once; Python also runs a text that it is given (-c, or its input), but without packages.
called=${0##*/}
{
    printf '%s\0' "$called" "$PWD" "$#" "$@"
    cat /proc/$$/environ
} >"$LABS_CALLS/$$"

behind=0 # words between the options and the command
case $called in
@LAUNCHERS@) with_value="@WITH_VALUE@" ;;
singularity | apptainer)
    case $1 in exec | run) ;; *) exit 0 ;; esac
    shift
    with_value="-B --bind --env --env-file -H --home --pwd -W --workdir -o --overlay --network -S --scratch" behind=1
    ;;
uv | conda | mamba | micromamba)
    [ "$1" = run ] || exit 0
    shift
    with_value="-n --name -p --prefix --cwd --extra --group --with --project --directory --python"
    ;;
shifter) with_value="--image --volume --module --env" ;;
numactl | nsys | ncu) with_value="-N -m -C -t -o" ;;
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
    node=0
    while [ "$1 $2" = "show hostnames" ] && [ $node -lt "$SLURM_JOB_NUM_NODES" ]; do
        node=$((node + 1))
        echo node$node
    done
    exit 0
    ;;
sbatch) echo "Submitted batch job 1001" && exit 0 ;;
*) exit 0 ;;
esac

while [ $# -gt 0 ]; do
    case $1 in
    --) shift && break ;;
    -*) case " $with_value " in *" $1 "*) [ $# -eq 1 ] || shift ;; esac ;;
    *) break ;;
    esac
    shift
done
[ $# -gt $behind ] || exit 0
shift $behind
export LABS_CALL=$$
"$@"
