"""What bash's own commands do to a shell that is followed on paper (bash.Shell): `cd`, `set`, `echo`, `exit`, ...

DO: {name: function of the shell and the words behind the name}. It returns the status: True, False, "ran" for what a
program does as well, None where it is not known.
"""

import re
from functools import partial

from labs.slurm.check import words
from labs.slurm.check.words import UNKNOWN


class Leave(Exception):
    """The script, loop or function is left here: `exit`, `return`, `break`, `continue`."""

    def __init__(self, word, levels=1):
        super().__init__(word)
        self.word, self.levels = word, levels


def _echo(shell, rest):
    while rest and re.fullmatch("-[neE]+", rest[0]):
        rest = rest[1:]
    shell.write(" ".join(rest))
    return True


def _printf(shell, rest):
    if rest[:1] == ["-v"] and len(rest) > 1:
        shell.set(rest[1], UNKNOWN)
    form, *values = rest or [""]
    shell.write({"%s": " ".join(values), r"%s\n": "\n".join(values), "%d": " ".join(values)}.get(form))
    return True


def _seq(shell, rest):
    numbers = [int(word) for word in rest if re.fullmatch(r"-?\d{1,9}", word)]
    told = None
    if 1 <= len(numbers) == len(rest) <= 3:
        first, step, last = {1: (1, 1, *numbers), 2: (numbers[0], 1, numbers[-1])}.get(len(numbers), numbers)
        if step and (last - first) // step < words.MOST:
            told = "\n".join(map(str, range(first, last + (1 if step > 0 else -1), step)))
    shell.write(told)
    return "ran"


def _cd(shell, rest):
    goal = next((word for word in rest if not re.fullmatch("-[LPe@]+", word)), None)
    if goal in (None, "-") or UNKNOWN in goal:
        shell.folder = UNKNOWN
    else:
        shell.folder = goal if goal.startswith("/") else f"{shell.folder}/{goal or '.'}"[-words.MOST :]
    return True


def _exit(shell, rest):
    if rest and rest[0] != "0" and not shell.maybe and not shell.forked:
        return True  # an error's way out: what stands behind it is read too
    raise Leave("exit")


def _leave(word, shell, rest):
    raise Leave(word, _count(rest))


def _shift(shell, rest):
    shell.arguments = shell.arguments and shell.arguments[_count(rest) :]
    return True


def _count(rest):
    return int(rest[0]) if rest and re.fullmatch(r"\d{1,9}", rest[0]) else 1


def _exec(shell, rest):
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] == "-a" else rest[1:]
    if not rest:
        return True
    shell.start(rest)
    raise Leave("exit")


def _set(shell, rest):
    for index, word in enumerate(rest):
        if word == "--":
            shell.arguments = rest[index + 1 :]
            break
        if re.fullmatch(r"[-+][a-zA-Z]*u[a-zA-Z]*", word) or (word[1:] == "o" and rest[index + 1 :][:1] == ["nounset"]):
            shell.nounset = word[0] == "-"
    return True


def _wait(shell, rest):
    for start in shell.starts:
        start.alone = False
    return True


def _trap(shell, rest):
    return _wait(shell, rest) if "wait" in " ".join(rest[:1]) else True


def _eval(shell, rest):
    text = " ".join(rest)
    shell.note(["eval", *rest])
    if UNKNOWN in text:
        shell.foreign = True
        return None
    return shell.text(text, shell.line)


def _source(shell, rest):
    shell.note(["source", *rest])
    shell.foreign = True  # it may set anything
    return "ran"


def _let(shell, rest):
    value = None
    for word in rest:
        value = shell.number(word)
    return None if value is None else bool(value)


def _read(shell, rest):
    for word in rest:
        if re.fullmatch(r"[A-Za-z_]\w*", word):
            shell.set(word, UNKNOWN)


def _says(status, shell, rest):
    shell.write(None)
    return status


_NOT_FOLLOWED = "[ alias bg builtin command disown enable fg hash history jobs kill shopt test times type ulimit umask"
DO = dict.fromkeys(_NOT_FOLLOWED.split(), partial(_says, None))
DO |= {name: partial(_says, True) for name in (":", "true", "pwd")} | {"false": partial(_says, False)}
DO |= {name: partial(_leave, name) for name in ("break", "continue", "return")}
DO |= dict.fromkeys(("cd", "pushd", "popd"), _cd) | dict.fromkeys(("exit", "logout"), _exit)
DO |= dict.fromkeys(("read", "getopts", "mapfile", "readarray"), _read) | dict.fromkeys(("source", "."), _source)
DO |= {"echo": _echo, "printf": _printf, "seq": _seq, "shift": _shift, "exec": _exec, "set": _set}
DO |= {"wait": _wait, "trap": _trap, "eval": _eval, "let": _let}
