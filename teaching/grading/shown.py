"""What of a submission stands beside a question: the code of a check, what was changed in scripts, lines of logs, and
where the runs were made."""

import json
import re
from contextlib import suppress
from difflib import unified_diff
from functools import cache
from pathlib import Path

from labs.blanks import BuildError
from labs.checks import tasks
from labs.errors import LabsError
from labs.report import evidence
from labs.results.run import load
from teaching.grading import collect, reference
from teaching.grading.handed import ROOT

_CHECK = re.compile(r"\bcheck\(\s*[\"']([^\"']+)[\"']")
MOST_RUNS = 12


def code(packed):
    """{id: source} of the cells with checks in the course's notebooks of a collected submission, a path, as far as the
    student changed them."""
    found = {}
    names = [f"notebooks/{lesson.notebook}.ipynb" for lesson in tasks.lessons().values()]
    for name, content in collect.contents(packed, names).items():
        given, cells = _given(Path(name).stem), []
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            cells = list(json.loads(content)["cells"])
        for cell in cells:
            with suppress(KeyError, TypeError, AttributeError, IndexError):  # a damaged one hides no other
                source = "".join(cell["source"]).strip()
                id = cell["metadata"].get("labs", {}).get("id") or _CHECK.findall(source)[0]
                if cell["cell_type"] == "code" and isinstance(id, str) and source not in given:
                    found.setdefault(id, source)
    return found


@cache
def _given(notebook):
    """The sources of a notebook's code cells, as students get them; empty for one that is not of the course."""
    with suppress(OSError, BuildError, LabsError, StopIteration):
        if Path(ROOT, "solutions", f"{notebook}.py").is_file():
            return {source.strip() for source in reference.forms(ROOT, notebook)[1].values()}
    return set()


def changes(contents, wanted, code=""):
    """(file, lines of its difference from what students get) of the scripts that some tasks.Evidence or the code of a
    check names; of a file that students do not get, all lines."""
    names = [f"notebooks/scripts/{name}" for name in wanted.scripts]
    own = [name for name in contents if name.startswith("notebooks/scripts/") and name not in names]
    names += [name for name in own if name.removeprefix("notebooks/") in code]
    names += sorted(name for name in contents if name.startswith("slurm/") and Path(name).name in wanted.batch)
    for name in (name for name in names if name in contents):
        there, blank = contents[name].decode(errors="replace").splitlines(), _blank(name)
        changed = there if blank is None else list(unified_diff(blank, there, n=2, lineterm=""))[2:]
        yield name, changed or ["(as students get it)"]


@cache
def _blank(name):
    """The lines of a script as students get it, or None."""
    with suppress(OSError, UnicodeDecodeError):
        return (ROOT / name).read_text(encoding="utf-8").splitlines()
    return None


def logs(submission, item):
    """The labs.report.form.Lines of each log of the runs that a task asks for."""
    return list(evidence.logs(submission.course, _names(submission, item.evidence.runs), set()))


def machines(submission, item):
    """A line for each run that a task asks for: where and how it was made."""
    for name in _names(submission, item.evidence.runs):
        with suppress(LabsError):
            record = load(submission.runs / f"{name}.json")
            has, machine = record.configuration, record.machine
            gpus = machine.get("gpus") or []
            where = f"{machine.get('cores')} cores, {machine.get('cpu')}" + (f", {len(gpus)} GPUs" if gpus else "")
            how = f"{has.workers} workers, local batch {has.local_batch}, repeats: {has.repeats}"
            yield f"{name}: {record.kind}, {how}; on {where}; started {record.started}"


def _names(submission, patterns):
    """The runs of a submission that a task asks for, by its patterns; a few, if there are many."""
    stems = {path.stem for path in submission.runs.glob("*") if path.suffix in (".json", ".out", ".err")}
    stems -= {stem for stem in stems if stem.endswith((".maxbatch", ".breakdown"))}
    return submission.course.matching(patterns, stems)[:MOST_RUNS]
