"""What of a submission stands beside a question: the code of a check, what was changed in scripts, lines of logs, and
where the runs were made."""

from contextlib import suppress
from difflib import unified_diff
from functools import cache
from pathlib import Path

from labs.checks import tasks
from labs.report import evidence
from teaching.grading import cells, plain, reference
from teaching.grading.handed import ROOT

MOST_RUNS = 12
LONGEST = 20_000  # characters of the code of a check


def code(submission, root):
    """{id: source} of what a student wrote for each check: the cells that call it or bind what it is called with, as
    far as they are not as the course gives them; of a check of a batch script, that."""
    found, others = {}, [held for path, held in submission.contents.items() if path.startswith(cells.OTHERS)]
    for lesson in tasks.lessons().values():
        held = [submission.contents.get(f"notebooks/{lesson.notebook}.ipynb", b"")]
        held += [content for content in others if cells.lesson(content) == lesson.notebook]
        if not any(held):
            continue
        asked = reference.asked(root, lesson.notebook)
        given = set(map(str.strip, reference.forms(root, lesson.notebook)[1].values()))
        names = {id: {name for name in each.names if name} for id, each in asked.items()}
        about = [cells.about(content, names, plain.binds) for content in held]
        for id in names:
            written = [source for sources in about for source in sources[id] if source.strip() not in given]
            if batch := asked[id].batch:
                paths = sorted(submission.root.glob(f"slurm/*/{batch}"))
                written = [path.read_text(errors="replace") for path in paths]
            if written:
                found[id] = "\n\n".join(written)[:LONGEST]
    return found


def misplaced(contents, answers, root):
    """{id: what a person is to read} of the written answers that were not found, where something could hold them:
    another file, or, where its cell is gone, other texts that the student has written in the notebook."""
    found = {}
    for lesson in tasks.lessons().values():
        every = cells.read(contents.get(f"notebooks/{lesson.notebook}.ipynb", b""))[0]
        for id in (item.id for item in lesson.task if item.kind == "answer" and item.id not in answers):
            there = any(id in cell.items for cell in every)
            where, texts = cells.elsewhere(contents, lesson.notebook, id, there), []
            if every and not there:
                given = {cell.source.strip() for cell in reference.pair(root, lesson.notebook)[1].cells}
                texts = [cell.source for cell in every if cell.kind != "code" and cell.source.strip() not in given]
            if where or texts:
                found[id] = "\n\n".join([f"(Its cell was not found. {where})", *texts])
    return found


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
    """{file, lines} of each log of the runs that a task asks for."""
    return list(evidence.logs(submission.course, _names(submission, item.evidence.runs), set()))


def machines(submission, item):
    """A line for each run that a task asks for: where and how it was made."""
    for name in _names(submission, item.evidence.runs):
        if record := submission.records.get(name):
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
