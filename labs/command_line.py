"""A command line whose commands are functions: `labs`, and the instructors' `teach`.

Exit code 0: done, 1: found a problem, 2: wrong use. A command's docstring is its help; its options stand in a TOML
file beside the module, as argparse's add_argument takes them, in the order of the help. `count = N` stands for a whole
number from N to MOST. The name of a table may hold several commands, with commas: then each of them has its options.
"""

import argparse
import errno
import os
import re
import signal
import sys
from collections.abc import Callable

from labs.errors import LabsError
from labs.printed import printable

MOST = 10**9  # of anything that is counted here; more is a mistake in typing


class CommandLine:
    """The command `name`.

    options: {words of a command: {option: its settings}}; groups: {first word: what its commands do}
    """

    def __init__(self, name: str, about: str, options: dict[str, dict], groups: dict[str, str] | None = None):
        self.name, self.about, self.options, self.groups = name, about, options, groups or {}
        self.commands = {}  # (words of the command, one or two): (function, what it does, {option: its settings})

    def command(self, words: str) -> Callable:
        """Decorator: the function, which takes the options and returns the exit code (None is 0), becomes a command."""

        def register(function):
            tables = [table for names, table in self.options.items() if words in names.split(", ")]
            options = {option: settings for table in tables for option, settings in table.items()}
            self.commands[tuple(words.split())] = function, " ".join(function.__doc__.split()), options
            return function

        return register

    def parser(self) -> argparse.ArgumentParser:
        """The argument parser."""
        top = _Parser(prog=self.name, description=self.about)
        parsers = {(): top.add_subparsers(dest="name", required=True, metavar="COMMAND")}
        for words, (function, text, options) in self.commands.items():
            *group, name = words
            if tuple(group) not in parsers:
                about = self.groups[group[0]]
                sub = parsers[()].add_parser(group[0], help=about, description=about)
                parsers[tuple(group)] = sub.add_subparsers(dest="action", required=True, metavar="ACTION")
            sub = parsers[tuple(group)].add_parser(name, help=text, description=text)
            sub.set_defaults(function=function)
            for option, settings in options.items():
                sub.add_argument(option, **_of_argparse(**settings))
        return top

    def main(self, argv: list[str] | None = None) -> int:
        """Run it; returns its exit code. LabsErrors become one line; any other error is a bug and shows."""
        for stream in (sys.stdout, sys.stderr):  # where it cannot show a letter, as in ASCII, it shows its number
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        args = self.parser().parse_args(argv)
        if (
            argv is None
        ):  # the command itself: told to end, as by scancel, it ends what it has started as at an interrupt
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
            said, code = printable(problem), problem.code
        except OSError as problem:
            full = problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
            if problem.errno == errno.ENAMETOOLONG:
                said, code = f"{printable(problem.filename)[:40]}...: no file can have a name of that length.", 2
            elif problem.filename is None and full:
                _drop_output()
                said, code = f"the output cannot be written: {problem.strerror}.", 1
            else:
                raise
        except KeyboardInterrupt as stop:
            said = "interrupted; what was finished so far is kept."
            code = 128 + (stop.args or [signal.SIGINT])[0]  # as a shell tells that a signal ended a program
        print(f"{self.name} {args.name}: {said}", file=sys.stderr)
        return code


def say(line: object) -> None:
    """Print a line at once, also into a pipe."""
    print(printable(line), flush=True)


class _Parser(argparse.ArgumentParser):
    def __init__(self, **settings):
        super().__init__(**settings)
        self._negative_number_matcher = re.compile(r"-\.?\d")  # also -1GiB is a value, and no option

    def error(self, message):
        self.exit(2, f"{self.prog}: error: {printable(message)} (see {self.prog} --help)\n")


def _whole_from(least):
    """What argparse calls to read a whole number from `least` on."""

    def number(text):
        if not least <= int(text) <= MOST:
            raise argparse.ArgumentTypeError(f"{text} is not a whole number from {least} to {MOST}")
        return int(text)

    return number


def _of_argparse(count=None, **settings):
    """The settings of an option as `add_argument` takes them: its type is a function, which a file can only name."""

    if count is not None:
        settings["type"] = _whole_from(count)
    elif "type" in settings:
        settings["type"] = {"int": int, "float": float}[settings["type"]]
    return settings


def _drop_output():
    """Send what is still to be printed nowhere, or Python complains at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _ended(number, _):
    raise KeyboardInterrupt(number)
