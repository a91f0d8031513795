# Read by bash before a script that is tried out: it keeps the line of each command for the programs that are started,
# and the line at which the script fails or leaves; it ends a script that lasts too long.
if [ -z "${LABS_LINE:-}" ]; then
    export LABS_LINE=0 LABS_STEP=0 LABS_ASIDE= LABS_UNTIL=$((${EPOCHSECONDS:-0} + LABS_SECONDS + 1))
    while read -r REPLY LABS_IGNORED; do [ "$REPLY" != SigIgn: ] || break; done </proc/$$/status
    echo "$LABS_IGNORED" >"$LABS_CALLS/ignored"
    set -o functrace -o errtrace
    labs_before() {
        ((${EPOCHSECONDS:-0} < LABS_UNTIL)) || { echo "$LABS_LINE" >"$LABS_CALLS/endless" && kill -KILL 0; }
        [ "$2" != "$0" ] || LABS_LINE=$1 # of the script's own lines, not of a file that it sources
        LABS_STEP=$((LABS_STEP + 1))
        labs_aside
        case $BASH_COMMAND in
        exit\ [1-9]*) [ "$BASH_SUBSHELL" -gt 0 ] || echo "exit $LABS_LINE $BASH_COMMAND" >"$LABS_CALLS/failed" ;;
        wait | wait\ * | fg* | *kill\ -0* | *--pid*) echo "$LABS_STEP" >>"$LABS_CALLS/waits" ;;
        esac
    }
    labs_aside() { # the newest process in the background
        [ "${!-}" = "$LABS_ASIDE" ] || { LABS_ASIDE=${!-} && echo "$LABS_ASIDE" >>"$LABS_CALLS/aside"; }
    }
    # A name that cannot be a program's, a blank too many in `name = value`, a file that stands for a `*`: a mistake.
    # Every other program may be there at the site.
    command_not_found_handle() {
        if [[ $1 =~ ^[A-Za-z_][A-Za-z0-9_.+-]*$ && ${2-} != =* && ! -e $1 ]]; then
            /tmp/stand-ins/labs-unknown "$@"
            return
        fi
        echo "$LABS_LINE $1" >>"$LABS_CALLS/not_found"
        echo "$0: line $LABS_LINE: $1: command not found" >&2
        return 127
    }
    export -f command_not_found_handle
    trap 'labs_before "$LINENO" "${BASH_SOURCE[0]:-$0}"' DEBUG
    trap 'echo "$? $([ "${BASH_SOURCE[0]:-$0}" = "$0" ] && echo $LINENO || echo $LABS_LINE) $BASH_COMMAND" >"$LABS_CALLS/failed"' ERR
    [ -z "${LABS_POSIX:-}" ] || set -o posix # for #!/bin/sh, which is bash at most sites
fi
