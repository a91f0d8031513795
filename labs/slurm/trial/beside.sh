# Read by bash before a script that is tried out: it keeps the line of each command for the programs that are started,
# and the line at which the script fails or leaves; it ends a script that lasts too long.
if [ -z "${LABS_LINE:-}" ]; then
    export LABS_LINE=0 LABS_UNTIL=$((${EPOCHSECONDS:-0} + LABS_SECONDS + 1))
    set -o functrace -o errtrace
    labs_before() {
        ((${EPOCHSECONDS:-0} < LABS_UNTIL)) || { echo "$1" >"$LABS_CALLS/endless" && kill -KILL 0; }
        [[ $BASH_COMMAND != exit\ [1-9]* || $BASH_SUBSHELL -gt 0 ]] || echo "exit $1 $BASH_COMMAND" >"$LABS_CALLS/failed"
        LABS_LINE=$1
    }
    trap 'labs_before "$LINENO"' DEBUG
    trap 'echo "$? $LINENO $BASH_COMMAND" >"$LABS_CALLS/failed"' ERR
fi
