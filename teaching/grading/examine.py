"""What is found of one submission, and kept: its evidence, and its notebooks in replay."""

import json
import time
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from labs import files
from labs.checks import tasks
from labs.errors import LabsError
from labs.printed import grouped
from teaching.grading import cells, copies, evidence, handed, judge, likeness, shown, store, term
from teaching.grading.finding import looked
from teaching.grading.walled import Walled

MOST_ANSWER = 100_000  # characters of a written answer


@dataclass(frozen=True)
class Piece:
    """What one process looks at of a submission: its evidence (None), and notebooks in replay, which share a sandbox.

    path: of the collected submission; submission: SHA-256 of its bytes; keys: {notebook or None: of these, and of what
    decides what is found}
    """

    number: str
    path: Path
    submission: str
    keys: dict


def look(piece, out, root):
    """Look at a Piece, and keep what is found of each notebook when it is finished. Returns (the number of the
    submission, lines on the checks that are judged otherwise than before)."""
    moved, kept, notebooks = [], store.found(out, piece.number), [name for name in piece.keys if name]
    if kept.get("submission") != piece.submission:
        kept = {"submission": piece.submission, "replayed": {}}
    with handed.opened(piece.number, piece.path) as submission:
        with closing(Walled(submission, root, notebooks)) as walled:
            for name, key in piece.keys.items():
                if name is None:
                    kept |= _evidence(submission, root) | {"key": key}
                else:
                    found, before = _replayed(submission, root, name, key, walled), kept["replayed"].get(name)
                    if before:
                        found["checks"] = term.carried(before["checks"], found["checks"])
                        moved.append(term.moved(before["checks"], found["checks"]))
                    if found["key"] or not before:  # else what was found before stays
                        kept["replayed"][name] = found
                text = json.dumps(kept, indent=1)
                files.write(store.checked(out, piece.number), text.encode(errors="replace"))
    return piece.number, moved


def _replayed(submission, root, notebook, key, walled):
    """{key, checks, told, seconds} of a notebook in replay; the key is "" where it is to be tried again."""
    begin = time.monotonic()
    try:
        found, told = judge.judged(submission, root, notebook, key, walled)
    except Exception as problem:  # of the sandbox or this machine and no fault of the student's: it is tried again
        told = [f"{type(problem).__name__}: {problem}"[:200]]
        found, key = judge.unjudged(root, notebook, told[0]), ""
    checks = {id: asdict(result) for id, result in found.items()}
    return {"key": key, "checks": checks, "told": told, "seconds": round(time.monotonic() - begin, 1)}


def _evidence(submission, root):
    """All that is found in a submission without running anything of it, as JSON."""
    found, asked = [], tasks.items()
    answers = {id: text[:MOST_ANSWER] for id, text in submission.course.answers.items() if id in asked}
    if submission.contents:
        found += looked("evidence", evidence.findings, submission)
        found += looked("answers", likeness.of_solutions, answers, root)
    result = {
        "claimed": [id for id, each in submission.course.progress.items() if each.get("state") == "right"],
        "notebooks": cells.beside(submission.contents),
        "answers": answers | shown.misplaced(submission.contents, answers, root),
        "code": shown.code(submission, root),
        "alike": likeness.own(submission.contents, answers, root),
        "steps": [],
        "tables": {},
    }
    found += looked("runs", _of_records, submission, result)
    return result | {"findings": [asdict(each) for each in found]}


def _of_records(submission, result):
    """Put into a result what comes of the records; finds nothing."""
    for each in copies.series(submission.number, submission.records):
        result["steps"].append([each.name, each.kind, each.started, each.seconds])
    with suppress(LabsError):
        tables = ((task, [caption, *rows]) for (task, caption), rows in submission.tables.items())
        result["tables"] = grouped(tables)
    return ()
