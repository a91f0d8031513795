"""The lines of a log, also of a large one, which is never held as a whole."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

PIECE = 2**20  # characters
MOST = 2000  # characters of an end of a long line
LONGEST = 2**14  # characters of an update of a bar, or of another line without an end, that are looked at: its end
# Carriage returns and backspaces, also as the letters that an editor shows for them; tags of ranks within a line.
_UPDATES = re.compile(r"(?:[\r\b]|\^[HM])+|(?<=.)(?=\[\d+(?:,\d+)?\]<std(?:out|err)>:)")
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


def lines(path: str | Path, marks: Sequence[str] = ()) -> Iterator[tuple[int, str, bool]]:
    """(number from 1, text, whether its line has ended) of each line of a file; of a line that a program wrote over and
    over, as a progress bar with carriage returns or backspaces, each update with the same number.

    marks: in lower case; pieces of a large file that hold none of them, nor the piece before, are left out. A
    launcher's rank prefix stands in front of each update. UTF-8 (a replacement mark for other bytes), or UTF-16 as
    PowerShell writes it. Raises OSError.
    """
    path = Path(path)
    with path.open("rb") as start:
        encoding = "utf-16" if start.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    number, rest, marked = 1, "", True
    with path.open(encoding=encoding, errors="replace", newline="\n") as file:
        while piece := file.read(PIECE):
            piece = rest + piece
            low, before = piece.lower() if marks else "", marked
            marked = not marks or any(mark in low for mark in marks)
            if not (marked or before):
                number, rest = number + piece.count("\n"), piece.rpartition("\n")[2][-LONGEST:]
                continue
            *whole, rest = piece.split("\n")
            for line in whole:
                if len(line) > MOST or _UPDATES.search(line):
                    yield from ((number, update, True) for update in _updates(line))
                else:
                    yield number, line, True
                number += 1
            if len(rest) > PIECE:
                *done, last = _updates(rest)
                yield from ((number, text, True) for text in done)
                rest = last[-LONGEST:]
        if rest:
            *done, last = _updates(rest)
            yield from ((number, text, True) for text in done)
            yield number, last, False


def _updates(line):
    """The texts that stood in a line, one after the other, each with a rank prefix: its own one, or the line's; of a
    very long one its ends. A single text is given as it is."""
    texts = [text for text in _UPDATES.split(line) if text]
    if prefix := line[: len(line) - len(split_rank(line)[1])] if len(texts) > 1 else "":
        texts = [text if split_rank(text)[0] is not None else prefix + text for text in texts]
    return [text if len(text) <= 2 * MOST else f"{text[:MOST]} ... {text[-MOST:]}" for text in texts or [""]]
