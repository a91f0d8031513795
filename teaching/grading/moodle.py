"""Moodle's files of an assignment: the grading worksheet, the zip of feedback that it takes back.

The worksheet is in the language of the site, so nothing in it is known by its name. Moodle's importer
(mod/assign/feedback/offline) looks for three columns: the identifier, the grade, and when the grade was changed.
"""

import re

from labs.printed import grouped
from labs.report.archive import zipped
from teaching.grading.table import Sheet, file_name, number

_IDENTIFIER = re.compile(r"\s*(?P<word>.*\D)(?P<id>\d+)\s*", re.S | re.A)


def sheet(table):
    """The Sheet of a grading worksheet, in any language; None where the table is something else."""
    head, filled = table.rows[0], [at for at, row in enumerate(table.rows) if at and any(cell.strip() for cell in row)]
    rows = [table.rows[at] for at in filled]
    if not rows or len(head) < 3 or any(len(row) != len(head) for row in rows):
        return None
    columns = list(zip(*rows, strict=True))
    identified = ((at, found) for at, cells in enumerate(columns) if (found := _participants(cells)))
    identifier, participants = next(identified, (0, []))
    if not participants:
        return None
    found = grouped((each["id"].lstrip("0"), at) for at, each in zip(filled, participants, strict=True))
    names = {at: table.rows[at][identifier + 1] for at in filled}  # the status, where nobody is named
    return Sheet("moodle", table, found, names, _grades(head, columns, identifier))


def packed(feedback):
    """The bytes of a zip that "Upload multiple feedback files in a zip" takes back. feedback: {(id, who): PDF}.

    Only the number in a name counts there. A name must not begin with a dot or a tilde, and its first underscore is
    followed by the number. Files in no folder are what every version of Moodle reads.
    """
    names = {key: file_name(key[1].replace("_", " ")) or "participant" for key in feedback}
    return zipped({f"{names[key]}_{key[0]}_assignsubmission_file_feedback.pdf": pdf for key, pdf in feedback.items()})


def _participants(cells):
    """Matches (word, id) of cells that are "Participant 123" in some language, one word in all; [] of other cells."""
    found = [each for each in map(_IDENTIFIER.fullmatch, cells) if each]
    words = {each["word"].strip() for each in found}
    return found if len(found) == len(cells) and len(words) == 1 and any(c.isalpha() for c in words.pop()) else []


def _grades(head, columns, identifier):
    """{number of a column that could hold the grades: (its name, the maximum)}: it stands before that of the maximum,
    which is one number throughout, and behind that comes text (may the grade be changed?)."""
    found = {}
    for at in range(identifier + 2, len(head) - 1):
        grades, most, behind = columns[at - 1], {number(cell) for cell in columns[at]}, columns[at + 1]
        of_text = all(c.strip() and number(c) is None for c in behind)
        if len(most) == 1 and None not in most and of_text and not any(c.strip() and number(c) is None for c in grades):
            found[at - 1] = {head[at - 1].strip().casefold()}, most.pop()
    return found
