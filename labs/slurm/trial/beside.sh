# Read by bash before a script that is tried out: it keeps the line of each command for the programs that are started,
# and the line at which the script fails or leaves; it ends a script that lasts too long.
if [ -z "${LABS_LINE:-}" ]; then
    export LABS_LINE=0 LABS_UNTIL=$((${EPOCHSECONDS:-0} + LABS_SECONDS + 1))
    set -o functrace -o errtrace
    labs_before() {
        ((${EPOCHSECONDS:-0} < LABS_UNTIL)) || { echo "$LABS_LINE" >"$LABS_CALLS/endless" && kill -KILL 0; }
        [ "$BASH_SUBSHELL" = 0 ] || export LABS_ASIDE=yes # it may be in the background
        [ "$2" != "$0" ] || LABS_LINE=$1 # of the script's own lines, not of a file that it sources
        case $BASH_COMMAND in
        exit\ [1-9]*) [ "$BASH_SUBSHELL" -gt 0 ] || echo "exit $LABS_LINE $BASH_COMMAND" >"$LABS_CALLS/failed" ;;
        esac
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
# `conda activate` is a function, which a login shell, conda's hook, a file of the site's or a module may define.
labs_conda() {
    for REPLY in conda mamba micromamba; do
        eval "$REPLY() { case \${1-} in *activate) ;; *) command $REPLY \"\$@\" ;; esac; }"
    done
}
module() {
    case "$*" in *[Cc]onda* | *mamba* | *forge* | *[Pp]ython*) labs_conda ;; esac
    /tmp/stand-ins/module "$@"
}
ml() { module "$@"; }
! shopt -q login_shell || labs_conda
