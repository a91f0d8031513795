# Read by bash before a script that is tried out: it keeps the line of each command for the programs that are started,
# and the line at which the script fails or leaves; it ends a script that lasts too long.
[ -z "${LABS_LINE:-}" ] || return 0
export LABS_LINE=0 LABS_UNTIL=$((${EPOCHSECONDS:-0} + LABS_SECONDS + 1))
set -o functrace -o errtrace
labs_before() {
    ((${EPOCHSECONDS:-0} < LABS_UNTIL)) || { echo "$LABS_LINE" >"$LABS_CALLS/endless" && kill -KILL 0; }
    [ "$2" != "$0" ] || LABS_LINE=$1 # of the script's own lines, not of a file that it sources
    case $BASH_COMMAND in
    exit\ [1-9]*) [ "$BASH_SUBSHELL" -gt 0 ] || echo "exit $LABS_LINE $BASH_COMMAND" >"$LABS_CALLS/failed" ;;
    esac
}
# A name that cannot be a program's, a blank too many in `name = value`, a file that stands for a `*`: a mistake.
# Every other program may be there at the site, and every file that sets it up.
command_not_found_handle() {
    if [[ $1 =~ ^[A-Za-z_][A-Za-z0-9_.+-]*$ && ${2-} != =* && ! -e $1 ]]; then
        /tmp/stand-ins/labs-unknown "$@"
        return
    fi
    echo "$0: line $LABS_LINE: $1: command not found" >&2
    return 127
}
source() { if [ -e "$1" ]; then builtin source "$@"; else /tmp/stand-ins/labs-unknown "source $1"; fi; }
function . { source "$@"; }
export -f command_not_found_handle
trap 'labs_before "$LINENO" "${BASH_SOURCE[0]:-$0}"' DEBUG
trap 'echo "$? $([ "${BASH_SOURCE[0]:-$0}" = "$0" ] && echo $LINENO || echo $LABS_LINE) $BASH_COMMAND" >"$LABS_CALLS/failed"' ERR
