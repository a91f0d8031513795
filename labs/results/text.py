"""The text of a log: its lines; of a large log its ends and, between them, the pieces that may matter.

A large log is read in pieces and never held as a whole.
"""

from pathlib import Path

from labs import files

PIECE = 2**20  # bytes
LONGEST = 2**14  # bytes of a line that are looked at in a large log: its end
WHOLE = 4 * PIECE  # up to this size all lines are read


def decode(data: bytes) -> str:
    """Text of a log: UTF-8 (a replacement mark for other bytes), or UTF-16 as PowerShell writes it."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8-sig", errors="replace")


def lines(path, marks=()):
    """Yield (number from 1, line, whether it is one of an end) of a log; of a small one these are all of its lines.

    Of a log above WHOLE, the first PIECE and the last two are its ends; between them only the pieces are given that
    hold one of `marks` (bytes, in lower case). The last line is "" where the log ends with a line break.
    Raises OSError.
    """
    path, number, piece = Path(path), 1, b""
    size = path.stat().st_size
    if size <= WHOLE:
        yield from ((number, line, True) for number, line in enumerate(decode(files.read(path)).split("\n"), 1))
        return
    for begin, piece in _pieces(path):
        end, low = begin == 0 or begin > size - 2 * PIECE, piece.lower()
        if end or any(mark in low for mark in marks):
            for place, line in enumerate(piece.removesuffix(b"\n").split(b"\n"), number):
                yield place, line[-LONGEST:].decode(errors="replace"), end
        number += piece.count(b"\n")
    if piece.endswith(b"\n"):
        yield number, "", True


def _pieces(path):
    """(offset, bytes) of a file in pieces of whole lines; of a very long line the end only."""
    with path.open("rb") as file:
        rest, begin = b"", 0
        while chunk := file.read(PIECE):
            whole, end, rest = (rest + chunk).rpartition(b"\n")
            if end:
                yield begin, whole + end
                begin = file.tell() - len(rest)
            else:
                rest = rest[-LONGEST:]
        if rest:
            yield max(begin, file.tell() - len(rest)), rest
