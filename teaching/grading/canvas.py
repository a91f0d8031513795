"""Canvas' file: the CSV file of the gradebook.

Its importer knows columns by English names in every language: Student (or LastName, FirstName), ID, the SIS columns and
Section come first, and an assignment is "Name (12345)". Numbers may have a comma.
"""

import re

from labs.printed import grouped
from teaching.grading.table import Sheet, number

_ASSIGNMENT = re.compile(r"(?P<name>.*\S)\s*\((?P<id>\d+)\)", re.S)


def sheet(table):
    """The Sheet of a gradebook, whose columns are called by name or number of the assignment; None where the table is
    something else."""
    head = [cell.strip() for cell in table.rows[0]]
    if not (head[:2] == ["Student", "ID"] or head[:3] == ["LastName", "FirstName", "ID"]) or "Section" not in head:
        return None
    points = next((row for row in table.rows[1:] if row and row[0].strip() == "Points Possible"), ())
    of_id, first = head.index("ID"), head.index("Section") + 1
    columns = {}
    for at in range(first, min(len(head), len(points))):
        name, most = _ASSIGNMENT.fullmatch(head[at]), number(points[at])
        if name and most is not None:  # else it is read-only
            columns[at] = {head[at].casefold(), name["name"].casefold(), name["id"]}, most
    ids = [row[of_id].strip() if len(row) > of_id else "" for row in table.rows]
    rows = grouped((id.lstrip("0"), at) for at, id in enumerate(ids) if re.fullmatch(r"[0-9]+", id))
    names = {at: " ".join(table.rows[at][:of_id]) for of_one in rows.values() for at in of_one}
    return Sheet("canvas", table, rows, names, columns)
