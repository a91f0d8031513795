"""A CSV file that somebody else gave, of which single cells are filled and every other byte stays as it is."""

import re
import unicodedata
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass

from labs import files
from labs.errors import UseError

MOST_BYTES = 64 << 20
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_NUMBER = re.compile(r"\s*\d+(?:[.,]\d+)?\s*")


class CsvTable:
    """The cells of a CSV file. rows: lists of texts; separator, encoding: those of the file.

    Raises UseError for a quote that is not closed.
    """

    def __init__(self, mark, text, encoding, separator):
        self._mark, self._text, self.encoding, self.separator = mark, text, encoding, separator
        self._places = list(_places(text, separator))
        self.rows = [[_value(text[start:end]) for start, end in row] for row in self._places]

    def filled(self, cells):
        """The bytes of the file with the texts of {(row, column): text} in its cells."""
        parts, done = [], 0
        for (row, column), value in sorted(cells.items()):
            start, end = self._places[row][column]
            if self._text[start:end].startswith('"') or set(value) & {self.separator, *'"\r\n'}:
                value = '"' + value.replace('"', '""') + '"'
            parts += [self._text[done:start], value]
            done = end
        return self._mark + "".join([*parts, self._text[done:]]).encode(self.encoding)

    @property
    def form(self):
        """Encoding and separator, for which an importer asks, in words."""
        named = {"utf-8": "UTF-8", "latin-1": "the encoding that it had (no Unicode)"}
        return f"{named.get(self.encoding, 'UTF-16')}, {SEPARATORS[self.separator]}"


@dataclass
class Sheet:
    """What a platform's file says: whose row is which, and which column takes the points.

    rows: {id: [numbers of rows]}; names: {number of a row: texts that may be the name in it}; column: of the points;
    most: what it may hold at most, None if the file does not say; alike: the name that all have where grading is
    anonymous; late: {number of a row: (how late in the platform's words, "" in time; when, as its clock shows, or None;
    whether the due date was moved for this student), or None where nothing was handed in}, if the file says it.
    """

    platform: str
    table: CsvTable
    rows: dict
    names: dict
    column: int
    most: float | None
    alike: str = ""
    late: dict | None = None

    def rows_of(self, names):
        """({number of a submission: its row}, {number: why it has none}). names: {number: {platform, id, who}}."""
        own = {number: each for number, each in names.items() if each["platform"] == self.platform}
        called = {_plain(each["who"]) for each in own.values()}
        alike = called <= {_plain(self.alike)} or len(called) == 1 < len(own)  # the words differ in some languages
        ids = Counter(each["id"] for each in own.values())
        why = {number: self._no_row(each, ids, alike) for number, each in names.items()}
        rows = {number: self._of_id(names[number])[0] for number, said in why.items() if not said}
        return rows, {number: said for number, said in why.items() if said}

    def _of_id(self, who):
        return self.rows.get(who["id"].lstrip("0"), [])

    def _no_row(self, who, ids, alike):
        """Why somebody has no row here; None for who has one."""
        of_id, id = self._of_id(who), who["id"]
        if who["platform"] != self.platform:
            return f"not collected from {self.platform.capitalize()}: its row is not known"
        if ids[id] > 1:
            return f"several submissions have the identifier {id}: enter these points yourself"
        if id.startswith("anon_"):
            return "collected anonymously: the file does not say who that is"
        if len(of_id) != 1:
            return f"the file has {len(of_id)} rows of {id}"
        if len(self.table.rows[of_id[0]]) <= self.column:
            return "the row ends before the column of the points: get the file again"
        if named := not alike and self.names[of_id[0]]:
            if not _same(who["who"], *named):
                asked = "Is it the submission of a group, or of another course? Enter these points yourself"
                return f"in the file {id} is {named[0]!r}. {asked}"
        return None

    def decimal(self):
        """The sign before decimals in this file: that of its own numbers."""
        cells = [cell.strip() for row in self.table.rows[1:] for cell in row]
        return "," if any(re.fullmatch(r"\d+,\d+", cell) for cell in cells) else "."


def read(path):
    """Yield a CsvTable for each separator that the file at `path` may have, the likeliest first.

    Raises UseError: the file cannot be read; or, once all were asked for, its quotes fit no separator.
    """
    try:
        content = files.read(path)
    except OSError as problem:
        raise UseError(f"{path} cannot be read: {problem.strerror}.") from None
    if content.startswith(b"PK"):
        raise UseError(f"{path} is a spreadsheet, not a CSV file: give the file as the platform gave it.")
    if len(content) > MOST_BYTES:
        raise UseError(f"{path} has {len(content) >> 20} MiB: no worksheet has that many.")
    mark, encoding = next(((m, e) for m, e in _MARKS if content.startswith(m)), (b"", _encoding(content)))
    try:
        text = content[len(mark) :].decode(encoding)
    except ValueError:
        raise UseError(f"{path} is damaged: it is not {encoding} throughout. Get it again from the platform.") from None
    problems = []
    for separator in sorted(SEPARATORS, key=text.partition("\n")[0].count, reverse=True):
        try:
            yield CsvTable(mark, text, encoding, separator)
        except UseError as problem:
            problems.append(problem)
    if problems:
        raise UseError(f"{path}: {problems[0]}")


def number(cell):
    """The number in a cell, with a point or a comma before its decimals; None if it holds none."""
    return float(cell.strip().replace(",", ".")) if _NUMBER.fullmatch(cell) else None


def _encoding(content):
    """The encoding of a file without a mark. What is not Unicode is read byte by byte: separators are always ASCII."""
    begin = content[:400]
    if b"\0" in begin:
        return "utf-16-le" if begin[1::2].count(0) > begin[::2].count(0) else "utf-16-be"
    with suppress(ValueError):
        content.decode()
        return "utf-8"
    return "latin-1"


def _places(text, separator):
    """A list of (start, end) for each row: the cells as they stand in the text, quotes among them."""
    cell = re.compile(rf'(?:"[^"]*+(?:""[^"]*+)*+"|(?!")[^{separator}\r\n]*+)(?=({separator})|(\r\n|\r|\n|\Z))')
    row, at = [], 0
    while at < len(text) or row:
        found = cell.match(text, at)
        if not found:
            line = text.count("\n", 0, at) + 1
            raise UseError(f"the quote that opens in line {line} is not closed as CSV closes it; get the file again.")
        row.append(found.span())
        at = found.end() + len(found[1] or found[2])
        if not found[1]:
            yield row
            row = []


def _value(cell):
    return cell[1:-1].replace('""', '"') if cell.startswith('"') else cell


def _plain(name):
    """The letters and digits of a name, which is all that platforms leave of it everywhere."""
    return "".join(c for c in unicodedata.normalize("NFKC", name).casefold() if c.isalnum())


def _same(one, other):
    """Whether two texts are the same name; also where a zip spoiled letters that are not ASCII."""
    if sorted(map(_plain, one.split())) == sorted(map(_plain, other.split())) or _plain(one) == _plain(other):
        return bool(_plain(one))
    ascii_only = {re.sub(r"[^a-z0-9]", "", name.casefold()) for name in (one, other)}
    return not (one.isascii() and other.isascii()) and len(ascii_only) == 1 and ascii_only != {""}
