"""A command line whose commands are functions: `labs`, and the instructors' `teach`.

Exit code 0: done, 1: found a problem, 2: wrong use, 3: a script was not tried out. A command's docstring is its help.
"""

import argparse
import errno
import os
import signal
import sys
from collections.abc import Callable

from labs.errors import LabsError
from labs.printed import printable

MOST = 10**9  # of anything that is counted here; more is a mistake in typing


def option(name: str, **settings) -> tuple[str, dict]:
    """An option of a command, as argparse's add_argument takes it."""
    return name, settings


def whole_from(least: int) -> Callable[[str], int]:
    """A type of argparse's: a whole number from `least` to MOST."""

    def number(text):
        if not text.removeprefix("-").isdecimal() or not least <= int(text) <= MOST:
            raise argparse.ArgumentTypeError(f"{text} is not a whole number from {least} to {MOST}")
        return int(text)

    return number


class CommandLine:
    """The command `name`. groups: {first word of commands of two words: what they do}"""

    def __init__(self, name: str, about: str, groups: dict[str, str] | None = None):
        self.name, self.about, self.groups = name, about, groups or {}
        self.commands = {}  # its words: (function, what it does, options)

    def command(self, words: str, *options: tuple[str, dict]) -> Callable:
        """Decorator: the function, which takes the options and returns the exit code (None is 0), becomes a command."""

        def register(function):
            self.commands[words] = function, " ".join(function.__doc__.split()), options
            return function

        return register

    def parser(self) -> argparse.ArgumentParser:
        """The argument parser."""
        top = _Parser(prog=self.name, description=self.about)
        parsers = {"": top.add_subparsers(dest="name", required=True, metavar="COMMAND")}
        for words, (function, text, options) in self.commands.items():
            group, _, name = words.rpartition(" ")
            if group not in parsers:
                about = self.groups[group]
                sub = parsers[""].add_parser(group, help=about, description=about)
                parsers[group] = sub.add_subparsers(dest="action", required=True, metavar="ACTION")
            sub = parsers[group].add_parser(name, help=text, description=text)
            sub.set_defaults(function=function)
            for name, settings in options:
                sub.add_argument(name, **settings)
        return top

    def main(self, argv: list[str] | None = None) -> int:
        """Run it; returns its exit code. LabsErrors become one line; any other error is a bug and shows."""
        for stream in (sys.stdout, sys.stderr):  # where it cannot show a letter, as in ASCII, it shows its number
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        args = self.parser().parse_args(argv)
        if argv is None:  # told to end, as by scancel, the command ends what it has started as at an interrupt
            signal.signal(signal.SIGTERM, _ended)
        try:
            code = args.function(args) or 0
            if sys.stdout:  # None where it was closed
                sys.stdout.flush()
            return code
        except BrokenPipeError:  # whoever reads the output has enough of it, as `head`
            _drop_output()
            return 1
        except LabsError as problem:
            message, code = printable(problem), problem.code
        except OSError as problem:
            if problem.filename is not None or problem.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            _drop_output()
            message, code = f"the output cannot be written: {problem.strerror}.", 1
        except KeyboardInterrupt as stop:
            message = "interrupted; what was finished so far is kept."
            code = 128 + (stop.args or [signal.SIGINT])[0]  # as a shell tells that a signal ended a program
        print(f"{self.name} {args.name}: {message}", file=sys.stderr)
        return code


def say(line: object) -> None:
    """Print a line at once, also into a pipe."""
    print(printable(line), flush=True)


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"{self.prog}: error: {printable(message)} (see {self.prog} --help)\n")


def _drop_output():
    """Send what is still to be printed nowhere, or Python complains at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _ended(number, _):
    raise KeyboardInterrupt(number)
