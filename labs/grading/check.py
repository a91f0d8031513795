"""Every submission looked at: evidence, numbers, checks again; kept by content, so that nothing is done twice.

    grades/checked/007.json   what was found about submission 007, and of which bytes, by which kit

A kill at any moment loses what was being done, and nothing that was finished: each file is written whole.
"""

import ctypes
import hashlib
import json
import multiprocessing
import signal
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path

import numpy as np

from labs import files, sandbox
from labs.checks import tasks
from labs.errors import LabsError, UseError
from labs.grading import collect, copies, evidence, handed, judge, likeness, numbers, rerun, rubric, store, term
from labs.grading.finding import SEVERITIES, Finding, looked

PR_SET_PDEATHSIG = 1  # of Linux' prctl(2)
AT_ONCE = 2  # notebooks, of one submission or of several
MOST_ANSWER = 100_000  # characters of a written answer
_KIT = Path(__file__).parents[1]


def check(out, root=".", notebooks=None, execute=True, at_once=AT_ONCE, report=print):
    """Look at every collected submission that was not looked at as it is; returns how many were.

    root: of the course, with solutions; notebooks: names of those that count (default: all but optional ones); execute:
    whether students' notebooks are run, in the sandbox. report: called with a line for each.
    Raises UseError where nothing is collected.
    """
    found = collect.submissions(out)
    if not found:
        raise UseError(f"{out} holds no submissions: run `labs grade collect` first.")
    handed.remove_what_was_left()
    known = [lesson.notebook for lesson in tasks.lessons().values()]
    if unknown := set(notebooks or ()) - set(known):
        raise UseError(f"There is no notebook {min(unknown)}; there are {', '.join(known)}.")
    rubric.load(out, notebooks)  # the first one is about these notebooks
    names = tuple(notebooks or (lesson.notebook for lesson in tasks.lessons().values() if not lesson.optional))
    keys = {number: _key(path, root, names, execute) for number, path in found.items()}
    waiting = [number for number in found if _kept(out, number).get("key") != keys[number]]
    longest = sorted(names, key=lambda name: Path(root, "solutions", f"{name}.py").stat().st_size, reverse=True)
    pieces = (*(longest if execute else ()), None)  # so that none is left alone at the end
    with ProcessPoolExecutor(at_once, multiprocessing.get_context("fork"), _mortal) as pool:
        jobs = {
            pool.submit(_look, number, found[number], str(Path(root).resolve()), notebook, keys[number]): number
            for number in waiting
            for notebook in pieces
        }
        of = {number: hashlib.sha256(found[number].read_bytes()).hexdigest() for number in waiting}
        seen = {number: {} for number in waiting}
        for done in as_completed(jobs):
            number = jobs.pop(done)
            notebook, piece = done.result()
            seen[number][notebook] = piece
            if len(seen[number]) == len(pieces):
                report(_keep(out, number, keys[number], of[number], seen.pop(number), names))
    return len(waiting)


def _mortal():
    """A worker ends when the process that started it does, also where that is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def results(out):
    """{number: what was found} of all that are collected, with the findings across students.

    Each is a dict {findings: [Finding], checks: {notebook: {id: {state, how, text}}}, answers: {id: text}, told, ...}.
    Raises UseError for a damaged file; `check` looks again at whose it is.
    """
    kept = {number: store.read(Path(out, f"checked/{number}.json")) for number in collect.submissions(out)}
    kept = {number: each for number, each in kept.items() if each}
    series = [
        copies.Series(number, name, kind, started, np.log(steps))
        for number, each in kept.items()
        for name, kind, started, steps in each["steps"]
    ]
    across = copies.findings(series)
    equal = copies.equal_files({number: each["prints"] for number, each in kept.items()})
    alike = likeness.findings(likeness.pairs({number: each["alike"] for number, each in kept.items()}))
    again = rerun.findings(out)
    for number, each in kept.items():
        own = [Finding(**found) for found in each["findings"]]
        found = [one for of in (across, equal, alike, again) for one in of.get(number, [])] + own
        each["findings"] = sorted(found, key=lambda one: SEVERITIES.index(one.severity), reverse=True)
    return kept


def _kept(out, number):
    with suppress(UseError):
        return store.read(Path(out, f"checked/{number}.json"))
    return {}


def _key(path, root, notebooks, execute):
    """What a result depends on: the submission's bytes, the code and the tasks of the kit, and what is asked for."""
    asked = json.dumps([notebooks, execute, execute and sandbox.missing()])
    return hashlib.sha256(path.read_bytes() + _kit(root).encode() + asked.encode()).hexdigest()


@cache
def _kit(root):
    """SHA-256 over the files that decide what is found."""
    digest = hashlib.sha256()
    folders = [*_KIT.rglob("*.py"), *_KIT.rglob("*.toml"), *Path(root, "solutions").glob("*.py")]
    for path in sorted(folders):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _look(number, path, root, notebook, key):
    """(notebook, what is found in this piece of a submission): its evidence where notebook is None."""
    with handed.opened(number, path) as submission:
        if notebook is None:
            return notebook, _evidence(submission, root)
        if not submission.contents:
            return notebook, None
        begin = time.monotonic()
        found, told = judge.judged(submission, root, notebook, key)
        return notebook, (judge.as_data(found), told, round(time.monotonic() - begin, 1))


def _evidence(submission, root):
    """All that is found in a submission without running anything of it, as JSON."""
    found, asked = [], {item.id for lesson in tasks.lessons().values() for item in lesson.task}
    answers = {id: text[:MOST_ANSWER] for id, text in submission.course.answers.items() if id in asked}
    if submission.contents:
        found += looked("evidence", evidence.findings, submission)
        found += looked("report", numbers.findings, submission)
        found += looked("answers", likeness.of_solutions, answers, root)
    result = {
        "progress": submission.course.progress,
        "steps": [],
        "prints": copies.prints(submission),
        "answers": answers,
        "alike": likeness.own(submission.contents, answers, root),
        "speedups": [],
        "tables": {},
    }
    found += looked("runs", _of_records, submission, result)
    return result | {"findings": [asdict(each) for each in found]}


def _of_records(submission, result):
    """Put into a result what comes of the records; finds nothing."""
    for each in copies.series(submission.number, submission.records):
        result["steps"].append([each.name, each.kind, each.started, np.exp(each.steps).tolist()])
    with suppress(LabsError):
        result["speedups"] = list(_speedups(submission))
        for (task, caption), rows in submission.tables.items():
            result["tables"].setdefault(task, []).append([caption, *rows])
    return ()


def _keep(out, number, key, of, pieces, notebooks):
    """Keep what is found of a submission, from its pieces. of: SHA-256 of its file. Returns a line."""
    before, moved = _kept(out, number), ""
    result = {"key": key, "of": of} | pieces[None] | {"checks": {}, "told": [], "seconds": {}}
    for notebook in notebooks:
        if pieces.get(notebook):
            result["checks"][notebook], told, result["seconds"][notebook] = pieces[notebook]
            result["told"] += [f"{notebook}, {line}" for line in told]
    if before.get("of") == of:  # the same work
        result["checks"] = term.carried(before["checks"], result["checks"])
        moved = term.moved(before["checks"], result["checks"])
    result["findings"] += [asdict(each) for each in _claims(result.pop("progress"), result["checks"])]
    files.write(Path(out, f"checked/{number}.json"), json.dumps(result, indent=1).encode(errors="replace"))
    states = Counter(each["state"] for of_one in result["checks"].values() for each in of_one.values())
    said = ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "nothing run"
    return f"{number}: {len(result['findings'])} findings; checks: {said}" + (f"; {moved}" if moved else "")


def _speedups(submission):
    """[source, workers, speedup, interval or None] of each run on more than one worker."""
    for row in submission.course.rows(submission.course.held):
        if row["speedup"] and (row["workers"] or 1) > 1:
            yield [row["source"], row["workers"], row["speedup"], row["speedup_interval"]]


def _claims(progress, checks):
    """A finding where progress.json calls checks right that are not; a function that is right for the notebook's own
    numbers was."""
    judged = {id: each for of_one in checks.values() for id, each in of_one.items()}
    claimed = [
        id
        for id, each in judged.items()
        if progress.get(id, {}).get("state") == "right"
        and each["state"] != "right"
        and each["how"] != "person"
        and each["text"] != judge.OTHER_INPUTS
    ]
    if claimed:
        yield Finding("progress", "look", "progress.json", f"it says right, and here it was not: {', '.join(claimed)}")
