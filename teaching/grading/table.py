"""A platform's CSV file, of which single cells are filled: whose row is which, and which column takes the points."""

import csv
import io
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass

from labs import files
from labs.errors import UseError

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
_NUMBER = re.compile(r"\s*\d+(?:[.,]\d+)?\s*")


@dataclass
class CsvTable:
    """The cells of a CSV file, in rows of texts; mark: the bytes before its text, which say that it is UTF-8."""

    rows: list
    separator: str
    line_end: str
    mark: bytes

    def filled(self, cells):
        """The bytes of a file with the texts of {(row, column): text} in its cells, and all others as they were."""
        rows = [list(row) for row in self.rows]
        for (row, column), text in cells.items():
            rows[row][column] = text
        buffer = io.StringIO()
        csv.writer(buffer, delimiter=self.separator, lineterminator=self.line_end).writerows(rows)
        return self.mark + buffer.getvalue().encode()


def read(path):
    """The CsvTable in a file. Raises UseError."""
    try:
        content = files.read(path)
    except OSError as problem:
        raise UseError(f"{path} cannot be read: {problem.strerror}.") from None
    try:
        text = content.decode("utf-8-sig")
        separator = max(SEPARATORS, key=text.partition("\n")[0].count)
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except UnicodeDecodeError:
        why = "is not UTF-8, as where a spreadsheet has saved it: give the file as the platform gave it"
        raise UseError(f"{path} {why}.") from None
    except csv.Error as problem:
        raise UseError(f"{path} is damaged: {problem}. Get it again from the platform.") from None
    mark = content[: len(content) - len(text.encode())]
    return CsvTable(rows, separator, "\r\n" if "\r\n" in text else "\n", mark)


@dataclass
class Sheet:
    """What a platform's file says.

    rows: {identifier of a student: [numbers of the rows]}; names: {number of a row: the name in it}; columns: {number
    of a column that could take the points: (what it is called, in small letters, the most that it may hold)}
    """

    platform: str
    table: CsvTable
    rows: dict
    names: dict
    columns: dict

    def column(self, name=None):
        """(number, maximum) of the column that takes the points. Raises UseError where it is not clear, or where none,
        or more than one, has this name."""
        fit = [at for at, (names, _) in self.columns.items() if name is None or name.strip().casefold() in names]
        if len(fit) != 1:
            every = ", ".join(self.table.rows[0][at] for at in self.columns) or "none, as where a scale takes no points"
            asked = "name one with --column" if name is None else f"--column {name!r} names {len(fit)} of them"
            raise UseError(f"These columns of the file could take the points; {asked}: {every}.")
        return fit[0], self.columns[fit[0]][1]

    def rows_of(self, students):
        """({number of a submission: its row}, {number: why it has none}). students: {number: {id, who}} of this
        platform."""
        every = students.values()
        anonymous = len({_letters(each["who"]) for each in every}) == 1 < len(every)  # all are called "Participant"
        ids, rows, why = Counter(each["id"] for each in every), {}, {}
        for number, student in students.items():
            found = self._row_of(student, ids[student["id"]], anonymous)
            (why if isinstance(found, str) else rows)[number] = found
        return rows, why

    def _row_of(self, student, count, anonymous):
        """The row of a student, whose identifier `count` submissions have; or, as text, why it is not sure which."""
        id, rows = student["id"], self.rows.get(student["id"].lstrip("0"), [])
        if count > 1:
            return f"several submissions have the identifier {id}: enter these points yourself"
        if len(rows) != 1:
            return f"the file has {len(rows)} rows of {id}"
        (row,) = rows
        if len(self.table.rows[row]) <= max(self.columns):
            return "the row ends before the column of the points: get the file again"
        if not anonymous and _letters(student["who"]) != _letters(self.names[row]):
            asked = "Is it the submission of a group, or of another course? Enter these points yourself"
            return f"in the file {id} is {self.names[row]!r}. {asked}"
        return row

    def decimal(self):
        """The sign before decimals in this file: that of its own numbers."""
        cells = [cell.strip() for row in self.table.rows[1:] for cell in row]
        return "," if any(re.fullmatch(r"\d+,\d+", cell) for cell in cells) else "."


def number(cell):
    """The number in a cell, with a point or a comma before its decimals; None if it holds none."""
    return float(cell.strip().replace(",", ".")) if _NUMBER.fullmatch(cell) else None


def file_name(text):
    """A name, as of a student, as that of a file or folder everywhere; "" where nothing of it can be."""
    text = re.sub(r'[\x00-\x1f/\\:*?"<>|&`\']', "", text.encode(errors="ignore").decode())
    return text[:60].strip(" .~")


def _letters(name):
    """The letters and digits of a name, which is all that platforms leave of it everywhere."""
    return "".join(c for c in unicodedata.normalize("NFKC", name).casefold() if c.isalnum())
