"""Every number of a report, computed again from the records that lie beside it."""

import json
import re
import subprocess
import sys
from importlib.util import find_spec

from labs.report.content import shown
from teaching.grading.finding import Finding

# A PDF is read in a process of its own: what somebody made may take any time and memory there, or end it. An honest
# report takes a second, 100 MB and some 100,000 characters.
_READ = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
import pypdfium2
room = 10_000_000
for page in pypdfium2.PdfDocument(sys.stdin.buffer.read()):
    text = page.get_textpage().get_text_range()[:room]
    sys.stdout.buffer.write(text.encode(errors="replace"))
    room -= len(text)
"""


def findings(submission):
    """Findings where report.json or report.pdf says other numbers than the records; and where one is missing."""
    for name, look in (("report.json", _json), ("report.pdf", _pdf)):
        if name in submission.contents:
            yield from look(submission.contents[name], submission.tables)
        else:
            yield Finding("report", "look", name, "it was not handed in")


def _json(content, again):
    tables = {}
    try:
        for task in json.loads(content)["tasks"]:
            for table in task["tables"]:
                rows = [[cell["text"] for cell in row] for row in table["rows"]]
                tables[task["id"], table["caption"]] = [table["columns"], *rows]
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        yield Finding("report", "look", "report.json", f"it cannot be read ({type(problem).__name__})")
        return
    for key, rows in again.items():
        there, other = ([cell for row in of for cell in row] for of in (tables.get(key, []), rows))
        if tables.get(key) != rows:
            unlike = [pair for pair in zip(there, other, strict=False) if pair[0] != pair[1]]
            seen = "the records give other rows" if there else "the table is missing"
            seen = "{!r:.60} where the records give {!r:.60}".format(*unlike[0]) if unlike else seen
            yield Finding("report", "serious", f"report.json, {key[0]}", f"{key[1]}: {seen}")
    for task, caption in tables.keys() - again.keys():
        yield Finding("report", "serious", f"report.json, {task}", f"{caption:.80}: no record gives this table")


def _pdf(content, again):
    if find_spec("pypdfium2") is None:
        yield Finding("report", "note", "report.pdf", "its numbers were not read: the package pypdfium2 is missing")
        return
    done = subprocess.run([sys.executable, "-c", _READ], input=content, capture_output=True)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2] or "it takes too much time or memory"
        yield Finding("report", "look", "report.pdf", f"it cannot be read ({said:.200})")
        return
    text = _squeezed(done.stdout.decode(errors="replace"))
    for (task, caption), (_, *rows) in again.items():
        place = 0
        for row in rows:
            wanted = _squeezed("".join(map(shown, row)))
            place = max(text.find(wanted, place), 0) or text.find(wanted)  # rows stand in their order, mostly
            if place < 0:
                said = ", ".join(cell for cell in row if cell)
                seen = f"{caption}: the row that the records give is not in it: {said:.200}"
                yield Finding("report", "serious", f"report.pdf, {task}", seen)
                break


def _squeezed(text):
    """A text without what a line break may have added: blanks, places to break, hyphens of the setting."""
    return re.sub(r"[\s\u200b\u00ad\ufffe\x02]+", "", text)
