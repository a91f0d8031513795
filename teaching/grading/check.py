"""Every submission looked at: evidence, and checks again; kept by content, so that nothing is done twice.

    grades/checked/007.json     of submission 007 the evidence, and its notebooks in replay: how each check was judged
    grades/notebooks.json       those that count, as they were named the last time

What was found stays until something newer of the same submission and notebook replaces it, whatever else is asked for.
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
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from pathlib import Path

from labs import devices, files, sandbox
from labs.checks import tasks
from labs.errors import LabsError, UseError
from teaching.grading import collect, copies, decides, examine, handed, judge, likeness, points, rubric, store
from teaching.grading.finding import SEVERITIES, Finding, by_id

PR_SET_PDEATHSIG = 1  # of Linux' prctl(2)


def check(out, root=".", notebooks=None, execute=True, report=print, jobs=None):
    """Look at every collected submission that is new, or has changed since it was looked at; returns how many.

    out: the folder of the grading
    root: the course's folder, with solutions
    notebooks: names of those that count (default: those of the last time, or all but optional ones)
    execute: whether students' notebooks are run, in the sandbox
    report: called with a line for each submission
    jobs: how many submissions are looked at at a time (default: as many as there are cores)

    Raises UseError where nothing is collected. Where it is interrupted, the processes that it has started are ended.
    """
    submissions = collect.submissions(out)
    if not submissions:
        raise UseError(f"{out} holds no submissions: name the export that `teach in` shall read.")
    handed.remove_what_was_left()
    root, names = Path(root).resolve(), counting(out, notebooks)
    report(f"Notebooks that count: {', '.join(names)}.")
    if new := rubric.add(out, names):
        report(f"Added to rubric.toml: {', '.join(new)}.")
    if others := sorted(rubric.load(out).notebook.keys() - {name.partition("_")[0] for name in names}):
        report(f"rubric.toml also counts {', '.join(others)}: delete their sections there if they should not count.")
    wanted = names if execute and not sandbox.sandbox_missing() else ()
    keys = {None: _kit(root)} | {name: decides.judged_by(root, name) for name in wanted}
    pieces = [_new(out, number, path, keys) for number, path in submissions.items()]
    if pieces := [piece for piece in pieces if piece[-1]]:
        _look_at(pieces, out, root, report, jobs or devices.cores())
    return len(pieces)


def _new(out, number, path, keys):
    """What examine.look gets of a submission, with the `keys` of what was not looked at yet as it is now."""
    submission, kept = hashlib.sha256(path.read_bytes()).hexdigest(), store.found(out, number)
    old = {name: each["key"] for name, each in kept.get("replayed", {}).items()} | {None: kept.get("key")}
    keys = {name: hashlib.sha256(f"{submission} {key} {name}".encode()).hexdigest() for name, key in keys.items()}
    return number, path, submission, {name: key for name, key in keys.items() if old.get(name) != key}


def counting(out, notebooks=None):
    """The names of the notebooks that count: those given, which are kept for the next time; else those of the last
    time; else those that most submissions say they were given, but optional ones. Raises UseError for a name that no
    notebook has, and where nothing says which count."""
    path, lessons = Path(out, "notebooks.json"), tasks.lessons().values()
    known = [lesson.notebook for lesson in lessons]
    named = tuple(dict.fromkeys(notebooks or store.read(path).get("notebooks", ())))
    if unknown := set(named) - set(known):
        whose = "" if notebooks else f", which {path} names"
        raise UseError(f"There is no notebook {min(unknown)}{whose}. Name with --notebooks some of {', '.join(known)}.")
    if notebooks:
        files.write(path, json.dumps({"notebooks": named}, indent=1))
    if named:
        return tuple(name for name in known if name in named)
    packed = collect.submissions(out).values()
    said = Counter(filter(None, (handed.released(collect.contents(path, {"manifest.json"})) for path in packed)))
    if not said:
        raise UseError(
            "No submission says which notebooks it was given: name them, as `--path practical` or `--notebooks 00-05`."
        )
    ((given, _),) = said.most_common(1)
    return tuple(each.notebook for each in lessons if each.notebook in given and not each.optional)


def _look_at(pieces, out, root, report, at_once):
    """Look at some pieces, as `_new` gives them, so many at once, and keep what is found."""
    began, children, count = time.monotonic(), multiprocessing.active_children(), len(pieces)
    pool = ProcessPoolExecutor(at_once, multiprocessing.get_context("fork"), _mortal)
    try:
        jobs = [pool.submit(examine.look, out, root, *piece) for piece in pieces]
        for done, job in enumerate(as_completed(jobs), 1):
            left = (time.monotonic() - began) / done * (count - done) / 60
            said = _line(out, job.result())
            report(f"{said} ({done} of {count}{f', time left about {max(left, 1):.0f} min' if done < count else ''})")
    except BaseException as problem:
        for worker in set(multiprocessing.active_children()).difference(children):  # with it ends its sandbox
            worker.kill()
            worker.join(2)
        if isinstance(problem, BrokenProcessPool):
            said = "A process that looked at submissions was killed, as where memory runs out. What is finished is kept"
            raise LabsError(f"{said}: run it again, with less beside it.") from None
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        handed.remove_what_was_left()


def _mortal():
    """A worker ends when the process that started it does, also where that is killed, and only then."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    for number in (signal.SIGINT, signal.SIGTERM):  # a terminal sends it to all processes of the command
        signal.signal(number, lambda *_: None)


def results(out, paths=None, rules=None):
    """{number: what was found} of all that are collected, with the findings across students. paths, rules: the
    collected submissions, {number: path}, and the Rubric, where they have been read.

    Each is a dict {findings: [Finding], checks: {notebook: {id: {state, how, text}}}, answers: {id: text}, code: {id:
    text}, told, ...}. A check that counts and was not judged yet is open for a person, and is no wrong one.
    Raises UseError for a damaged file; `check` looks again at whose it is.
    """
    numbers, counted = paths or collect.submissions(out), (rules or rubric.load(out)).checks
    kept = {number: each for number in numbers if (each := store.read(store.checked(out, number)))}
    series = [copies.Series(number, *run) for number, each in kept.items() for run in each["steps"]]
    alike = likeness.pairs({number: each["alike"] for number, each in kept.items()})
    across = [copies.findings(series), likeness.findings(alike)]
    for number, each in kept.items():
        each |= _judged(each, counted)
        found = [finding for of_all in across for finding in of_all.get(number, [])]
        found += [*(Finding(**of) for of in each["findings"]), *_claims(each["claimed"], each["checks"])]
        each["findings"] = sorted(found, key=lambda one: SEVERITIES.index(one.severity), reverse=True)
    return kept


def _judged(kept, counted):
    """{checks, told} of the notebooks of a submission that were run, and of the other checks that count.

    kept: what is kept of it; counted: the ids of the checks that count.
    """
    made = {"checks": {}, "told": []}
    for lesson in tasks.lessons().values():
        name, ids = lesson.notebook, [item.id for item in lesson.task if item.id in counted]
        if replayed := kept["replayed"].get(name):
            made["checks"][name] = replayed["checks"]
            made["told"] += [f"{name}, {line}" for line in replayed["told"]]
        elif ids:
            there = name in kept["notebooks"]
            how, text = ("person", points.NOT_JUDGED) if there else ("outside", judge.NOT_HANDED_IN)
            made["checks"][name] = {id: {"state": "open", "how": how, "text": text} for id in ids}
    return made


@cache
def _kit(root):
    """SHA-256 over the files that decide what the evidence is."""
    folders = [root / name for name in ("labs", "lessons", "teaching", "solutions")]
    paths = [path for folder in folders for kind in ("*.py", "*.toml") for path in folder.rglob(kind)]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(paths))).hexdigest()


def _line(out, number):
    """A line on what was found about a submission."""
    found = store.found(out, number)
    checks = [each for of_one in found["replayed"].values() for each in of_one["checks"].values()]
    named = ("for you" if each["how"] == "person" else each["state"].replace("open", "not done") for each in checks)
    said = ", ".join(f"{count} {state}" for state, count in sorted(Counter(named).items())) or "nothing run"
    return f"{number}: checks: {said}"


def _claims(claimed, checks):
    """A finding where progress.json calls checks right that are wrong here. A function that is right only for the
    notebook's own numbers does not count: in the notebook it was right."""
    left = {id: each for id, each in by_id(checks).items() if each["state"] != "right" and each["how"] != "person"}
    if said := [id for id in claimed if id in left and left[id]["text"] != judge.OTHER_INPUTS]:
        yield Finding("progress", "look", "progress.json", f"it says right, and here it was not: {', '.join(said)}")
