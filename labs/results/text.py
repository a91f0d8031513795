"""The text of a log: its lines; of a large log its ends and, between them, the lines that may matter.

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


def lines(path, places):
    """Yield (number from 1, line, whether it is one of an end) of a log; of a small one these are all of its lines.

    Of a log above WHOLE, the first PIECE and the last two are its ends; between them only the lines are given that
    `places` finds in a piece: {offset where a line begins: where it ends}. The last line is "" where the log ends with
    a line break. Raises OSError.
    """
    path = Path(path)
    size = path.stat().st_size
    if size <= WHOLE:
        yield from ((number, line, True) for number, line in enumerate(decode(files.read(path)).split("\n"), 1))
        return
    number, piece = 1, b""
    for begin, piece in _pieces(path):
        end = begin == 0 or begin > size - 2 * PIECE
        found = enumerate(piece.removesuffix(b"\n").split(b"\n"), number) if end else _at(piece, number, places(piece))
        for place, line in found:
            yield place, line[-LONGEST:].decode(errors="replace"), end
        number += piece.count(b"\n")
    if piece.endswith(b"\n"):
        yield number, "", True


def around(piece, place):
    """(offset of the beginning, of the end) of the line of a piece in which a place lies."""
    end = piece.find(b"\n", place)
    return piece.rfind(b"\n", 0, place) + 1, len(piece) if end < 0 else end


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


def _at(piece, number, places):
    """(number, line) of the lines at places of a piece, whose first line has a number."""
    before = 0
    for begin, end in sorted(places.items()):
        number += piece.count(b"\n", before, begin)
        before = begin
        yield number, piece[begin:end]
