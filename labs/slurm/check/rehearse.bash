# Read by bash before a batch script (BASH_ENV). The script then runs without starting a program: a trap skips every
# command that is not a harmless builtin or a function of the script, and writes on descriptor 9 what would have
# been started: line, folder, number of words, words; each ends with a NUL byte.
# The shell is a restricted one: what escapes the trap can start no program and write no file either.

# Splits a command as bash prints it into words, in __rehearse_parts; stops at redirections, which come last.
__rehearse_split() {
  local text=$1 open='' word='' char next top i started=''
  __rehearse_parts=() __rehearse_writes=''
  for ((i = 0; i <= ${#text}; i++)); do
    char=${text:i:1} next=${text:i+1:1} top=${open: -1}
    if [[ $top == "'" ]]; then
      [[ $char == "'" ]] && open=${open%?}
    elif [[ $char == '\' ]]; then
      char+=$next i=$((i + 1))
    elif [[ $char == '"' ]]; then
      if [[ $top == '"' ]]; then open=${open%?}; else open+='"'; fi
    elif [[ $char == "'" && $top != '"' ]]; then
      open+="'"
    elif [[ $char$next == [\$\<\>]'(' && ! ($top == '"' && $char != '$') ]]; then
      open+='(' char+=$next i=$((i + 1))
    elif [[ $char$next == '${' ]]; then
      open+='{' char+=$next i=$((i + 1))
    elif [[ $char == '(' && $top != '"' ]]; then
      open+='('
    elif [[ ($char == ')' && $top == '(') || ($char == '}' && $top == '{') ]]; then
      open=${open%?}
    elif [[ $char == '`' ]]; then
      if [[ $top == '`' ]]; then open=${open%?}; else open+='`'; fi
    elif [[ -z $open && ($char == [[:space:]] || -z $char) ]]; then
      if [[ $started ]]; then
        if [[ $word =~ ^([0-9]*|\{[A-Za-z_]+\}|'&')[\<\>] && ! $word =~ ^[\<\>]'(' ]]; then
          [[ ${text:i-${#word}} =~ '>' ]] && __rehearse_writes=1
          return 0
        fi
        __rehearse_parts+=("$word")
      fi
      word='' started=''
      continue
    fi
    word+=$char started=1
  done
}

# What a command would start. Status 0: skip it; 1: bash may do it itself.
__rehearse() {
  local __rehearse_line=$1 __rehearse_command=$2
  local -a __rehearse_parts
  local __rehearse_writes __rehearse_word __rehearse_changed=''
  shift 2
  ((++__rehearse_count > 1000)) && builtin exit
  case $__rehearse_command in
    '[['* | '(('* | 'for '* | 'case '* | 'select '*) return 1 ;;
  esac
  __rehearse_split "$__rehearse_command"
  while [[ ${__rehearse_parts[0]} =~ ^([A-Za-z_][A-Za-z_0-9]*)(\[[^\]]*\])?\+?= ]]; do
    case ${BASH_REMATCH[1]} in PATH | ENV | BASH_ENV | SHELL | HISTFILE | IFS | __rehearse*) __rehearse_changed=1 ;; esac
    __rehearse_parts=("${__rehearse_parts[@]:1}")
  done
  if ((${#__rehearse_parts[@]} == 0)); then
    [[ $__rehearse_changed ]]
    return
  fi
  builtin eval "set -- ${__rehearse_parts[*]}" || return 0
  case $1 in
    command | builtin | time | nohup) [[ $2 == -* ]] || shift ;;
    exec) while [[ $2 == -* ]]; do if [[ $2 == -a ]]; then set -- exec "${@:4}"; else set -- exec "${@:3}"; fi; done ;;
  esac
  case $(builtin type -t -- "$1") in
    function)
      [[ $1 == __rehearse* ]] && return 0
      return 1 ;;
    keyword) return 1 ;;
    builtin)
      [[ $__rehearse_writes ]] && return 0
      case $1 in
        cd | pushd)
          case ${2:-.} in
            /* | '~'*) __rehearse_folder=$2 ;;
            -*) ;;
            *) __rehearse_folder+=/${2:-.} ;;
          esac
          return 0 ;;
        exit | logout) [[ $2 && $2 != 0 ]] && return 0 || return 1 ;; # an error's way out: go on
        exec)
          (($# == 1)) && return 0
          __rehearse_say "${@:2}"
          builtin exit ;;
        set) [[ $2 == [-+]?* && $2 != -- ]] && return 0 || return 1 ;;
        export | declare | typeset | local | readonly | unset)
          for __rehearse_word; do
            case ${__rehearse_word%%=*} in PATH | ENV | BASH_ENV | SHELL | HISTFILE | IFS | __rehearse*) return 0 ;; esac
          done
          return 1 ;;
        eval | : | true | false | echo | printf | test | '[' | let | read | mapfile | readarray | shift | return | break | \
          continue | getopts | wait | pwd | type) return 1 ;;
        *) return 0 ;;
      esac ;;
  esac
  __rehearse_say "$@"
}

__rehearse_say() {
  builtin printf '%s\0' "$__rehearse_line" "$__rehearse_folder" $# "$@" >&9
  return 0
}

readonly -f __rehearse __rehearse_say __rehearse_split
__rehearse_count=0 __rehearse_folder=.
exec 9>&1 1>/dev/null 2>/dev/null
set -T
unset BASH_ENV
set -r
# extdebug lets the trap skip commands; set here it would make bash look for its debugger.
trap 'shopt -s extdebug; ! __rehearse "$LINENO" "$BASH_COMMAND" "$@"' DEBUG
