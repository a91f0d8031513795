"""The lines of what a job printed, each with the rank that printed it."""

import re
from collections.abc import Iterator
from pathlib import Path

# Between the updates of a line that was written over and over: carriage returns and backspaces, also as the letters
# that a pager shows for them, and the next rank's label.
_UPDATES = re.compile(r"(?:[\r\b]|\^[HM])+|(?<=.)(?=\[\d+(?:,\d+)?\]<std(?:out|err)>:)")
_COLOURS = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")
_RANK = re.compile(
    r"^[^\[\]<>]{0,40}\[(?:[^\[\]<>]*?,)?(\d{1,9})\]<std(?:out|err)>:[ ]?"  # horovodrun, mpirun --tag-output
    r"|^\[(\d{1,9})\] "  # mpiexec -prepend-rank
    r"|^ {0,4}(\d{1,5}): ?"  # srun --label
)


def split_rank(line: str) -> tuple[int | None, str]:
    """(rank, rest) of a line with a launcher's rank prefix; (None, line) without one.

    For example `[1,0]<stdout>:Epoch 1/5` gives (0, "Epoch 1/5"), and `1: Epoch 1/5` gives (1, "Epoch 1/5").
    """
    match = _RANK.match(line)
    if not match:
        return None, line
    return int(next(group for group in match.groups() if group)), line[match.end() :]


def content(path: str | Path) -> str:
    """The text of a log. Raises OSError."""
    return Path(path).read_bytes().decode("utf-8-sig", errors="replace")  # carriage returns stay


def updates(text: str) -> Iterator[tuple[int, int | None, str]]:
    """(number from 1, rank, text) of each whole line: one that ends with a line break.

    Of a line that a program wrote over and over, as a progress bar, each update has the same number.
    """
    for number, line in enumerate(_COLOURS.sub("", text).split("\n")[:-1], 1):
        of_line, line = split_rank(line)
        for update in _UPDATES.split(line):
            rank, update = split_rank(update)
            yield number, of_line if rank is None else rank, update.rstrip()
