"""What is found of one submission, and kept: its evidence, and its notebooks in replay."""

import json
from contextlib import closing, suppress
from dataclasses import asdict

from labs import files
from labs.checks import tasks
from labs.errors import LabsError
from teaching.grading import cells, copies, evidence, handed, judge, likeness, shown, store
from teaching.grading.finding import looked
from teaching.grading.walled import Walled

MOST_ANSWER = 100_000  # characters of a written answer


def look(out, root, number, path, digest, keys):
    """Look at a submission, and keep what is found of each notebook when it is finished. Returns its number.

    path: of the collected submission; digest: SHA-256 of its bytes; keys: {what is looked at: SHA-256 of this, and of
    what decides what is found}, where None is the evidence, and notebooks run in replay, in one sandbox
    """
    kept = store.found(out, number)
    if kept.get("submission") != digest:
        kept = {"submission": digest, "replayed": {}}
    with handed.opened(number, path) as submission:
        with closing(Walled(submission, root, [*filter(None, keys)])) as walled:
            for name, key in keys.items():
                if name is None:
                    kept |= _evidence(submission, root) | {"key": key}
                else:
                    found, before = _replayed(submission, root, name, key, walled), kept["replayed"].get(name)
                    if before:
                        found["checks"] = _carried(before["checks"], found["checks"])
                    if found["key"] or not before:  # else what was found before stays
                        kept["replayed"][name] = found
                text = json.dumps(kept, indent=1)
                files.write(store.checked(out, number), text.encode(errors="replace"))
    return number


def _replayed(submission, root, notebook, key, walled):
    """{key, checks, told} of a notebook in replay; the key is "" where it is to be tried again."""
    try:
        found, told = judge.judged(submission, root, notebook, key, walled)
    except Exception as problem:  # of the sandbox or this machine and no fault of the student's: it is tried again
        told = [f"{type(problem).__name__}: {problem}"[:200]]
        found, key = judge.unjudged(root, notebook, told[0]), ""
    checks = {id: asdict(result) for id, result in found.items()}
    return {"key": key, "checks": checks, "told": told}


def _carried(before, after):
    """The checks of a notebook as they are judged now, {id: result}, where none falls by itself in the middle of a
    term: a check that was mended may judge the same work differently. A student who gains by it gets the points at
    once; for one who would lose some, what was right of the same work stays so until a person has decided, and `fell`
    says what the kit finds now.

    before: the checks of the same notebook as they were judged before, by the same kit or an earlier one.
    """
    made = dict(after)
    for id, was in before.items():
        now = made.get(id, {"state": "open", "how": "person", "text": "this kit has no such check"})
        if _right(was) and not _right(now):
            made[id] = was | {"fell": now["text"] or now["state"]}
    return made


def _right(result):
    return result["state"] == "right" and result["how"] != "person"


def _evidence(submission, root):
    """All that is found in a submission without running anything of it, as JSON."""
    found, asked = [], tasks.items()
    answers = {id: text[:MOST_ANSWER] for id, text in submission.course.answers.items() if id in asked}
    alike = likeness.own(submission.contents, answers, root)
    if submission.contents:
        found += looked("evidence", evidence.findings, submission)
        found += looked("answers", likeness.of_solutions, alike, root)
    result = {
        "claimed": [id for id, each in submission.course.progress.items() if each.get("state") == "right"],
        "notebooks": cells.beside(submission.contents),
        "answers": answers | shown.misplaced(submission.contents, answers, root),
        "code": shown.code(submission, root),
        "alike": alike,
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
        result["tables"] = submission.tables
    return ()
