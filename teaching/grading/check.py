"""Every submission looked at: evidence, numbers, checks again; kept by content, so that nothing is done twice.

    grades/checked/007.json                           the evidence of submission 007, and of which bytes, by which kit
    grades/replayed/007-05_resnet50_scaling.json      one of its notebooks in replay: how each check was judged
    grades/notebooks.json                             those that count, as they were named the last time

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
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path

import numpy as np

from labs import files, sandbox
from labs.checks import tasks
from labs.errors import LabsError, UseError
from labs.printed import about, grouped
from teaching.grading import (
    collect,
    copies,
    evidence,
    handed,
    judge,
    likeness,
    numbers,
    points,
    rerun,
    rubric,
    store,
    term,
)
from teaching.grading.finding import SEVERITIES, Finding, by_id, looked

PR_SET_PDEATHSIG = 1  # of Linux' prctl(2)
AT_ONCE = 2  # notebooks, of one submission or of several
MOST_ANSWER = 100_000  # characters of a written answer
_COURSE = Path(__file__).parents[2]


def check(out, root=".", notebooks=None, execute=True, at_once=AT_ONCE, report=print):
    """Look at every collected submission that is new, or has changed since it was looked at; returns how many.

    out: the folder of the grading
    root: the course's folder, with solutions
    notebooks: names of those that count (default: those of the last time, or all but optional ones)
    execute: whether students' notebooks are run, in the sandbox
    at_once: how many notebooks are run at the same time
    report: called with a line for each submission

    Raises UseError where nothing is collected. Where it is interrupted, the processes that it has started are ended.
    """
    found = collect.submissions(out)
    if not found:
        raise UseError(f"{out} holds no submissions: run `teach collect` first.")
    handed.remove_what_was_left()
    names = counting(out, notebooks)
    report(f"Notebooks that count: {', '.join(names)}.")
    if new := rubric.add(out, names):
        report(f"Added to rubric.toml: {', '.join(new)}.")
    longest = sorted(names, key=lambda name: Path(root, "solutions", f"{name}.py").stat().st_size, reverse=True)
    # The longest first: started last, it would end alone.
    pieces = (*(longest if execute and not sandbox.sandbox_missing() else ()), None)
    waiting = {}
    for number, path in found.items():
        bytes_of = hashlib.sha256(path.read_bytes()).hexdigest()
        for piece in pieces:
            key = hashlib.sha256(f"{bytes_of} {_kit(root)} {piece}".encode()).hexdigest()
            if _kept(out, number, piece).get("key") != key:
                waiting.setdefault(number, {})[piece] = {"key": key, "submission": bytes_of}
    if waiting:
        _look_at(waiting, out, found, str(Path(root).resolve()), at_once, report)
    return len(waiting)


def counting(out, notebooks=None):
    """The names of the notebooks that count: those given, which are kept for the next time; else those of the last
    time; else those that most submissions say they were given, or all, but optional ones. Raises UseError for a name
    that no notebook has."""
    path, lessons = Path(out, "notebooks.json"), tasks.lessons().values()
    known = [lesson.notebook for lesson in lessons]
    named = tuple(dict.fromkeys(notebooks or store.read(path)))
    if unknown := set(named) - set(known):
        whose = "" if notebooks else f", which {path} names"
        raise UseError(f"There is no notebook {min(unknown)}{whose}. Name with --notebooks some of {', '.join(known)}.")
    if notebooks:
        files.write(path, json.dumps(named, indent=1))
    if named:
        return tuple(name for name in known if name in named)
    packed = collect.submissions(out).values()
    said = Counter(filter(None, (handed.released(collect.contents(path, {"manifest.json"})) for path in packed)))
    every = (said.most_common(1) or [(known, 0)])[0][0]
    return tuple(each.notebook for each in lessons if each.notebook in every and not each.optional)


def _look_at(waiting, out, found, root, at_once, report):
    """Look at {number: {piece: what to keep with it}}, several pieces at once, and keep what is found."""
    began, beside = time.monotonic(), multiprocessing.active_children()
    left, moved = sum(map(len, waiting.values())), {number: [] for number in waiting}
    pieces = left
    pool = ProcessPoolExecutor(at_once, multiprocessing.get_context("fork"), _mortal)
    try:
        done, each = 0, [(number, piece, kept) for number, all in waiting.items() for piece, kept in all.items()]
        for job in as_completed([pool.submit(_look, n, found[n], root, piece, kept) for n, piece, kept in each]):
            number, piece, made = job.result()
            before = _kept(out, number, piece)
            same = before.get("submission") == made["submission"]
            if piece and same:
                made["checks"] = term.carried(before["checks"], made["checks"])
                moved[number].append(term.moved(before["checks"], made["checks"]))
            if made["key"] or not same:  # else what was found stays
                files.write(_path(out, number, piece), json.dumps(made, indent=1).encode(errors="replace"))
            del waiting[number][piece]
            left -= 1
            if not waiting[number]:
                done += 1
                rest = (time.monotonic() - began) / (pieces - left) * left
                said = "; ".join(filter(None, [_line(out, number), *moved[number]]))
                report(f"{said} ({done} of {len(waiting)}{f', time left {about(rest)}' if left else ''})")
    except BaseException as problem:
        for worker in set(multiprocessing.active_children()).difference(beside):  # with it ends its sandbox
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

    Each is a dict {findings: [Finding], checks: {notebook: {id: {state, how, text, code}}}, answers: {id: text}, told,
    ...}. A check that counts and was not judged yet is open for a person, and is no wrong one.
    Raises UseError for a damaged file; `check` looks again at whose it is.
    """
    numbers, counted = paths or collect.submissions(out), (rules or rubric.load(out)).checks
    kept = {number: each for number in numbers if (each := store.read(_path(out, number)))}
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
        each |= _judged(out, number, each, counted)
        own = [Finding(**found) for found in each["findings"]] + list(_claims(each.get("claimed", ()), each["checks"]))
        found = [one for of in (across, equal, alike, again) for one in of.get(number, [])] + own
        each["findings"] = sorted(found, key=lambda one: SEVERITIES.index(one.severity), reverse=True)
    return kept


def _judged(out, number, evidence, counted):
    """{checks, told, seconds} of the notebooks of a submission that were run, and of what the rubric asks for besides.

    evidence: what is kept of it, by an older kit with its checks; counted: the ids of the checks that count.
    """
    made = {"checks": dict(evidence["checks"]), "told": list(evidence["told"]), "seconds": {}}
    for lesson in tasks.lessons().values():
        left = counted.keys() - by_id(made["checks"]).keys()  # what an older kit has judged
        name, ids = lesson.notebook, [item.id for item in lesson.task if item.id in left]
        piece = store.read(_path(out, number, name))
        if piece and piece["submission"] == evidence.get("submission"):
            made["checks"][name], made["seconds"][name] = piece["checks"], piece["seconds"]
            made["told"] += [f"{name}, {line}" for line in piece["told"]]
        elif ids and "notebooks" in evidence:
            there = name in evidence["notebooks"]
            how, text = ("person", points.NOT_JUDGED) if there else ("outside", judge.NOT_HANDED_IN)
            made["checks"][name] = {id: {"state": "open", "code": "", "how": how, "text": text} for id in ids}
    return made


def left_open(found):
    """Lines on the checks that a person has to decide, and whose they are. found: of `results`."""
    judged = [(number, id, of) for number, each in found.items() for id, of in by_id(each["checks"]).items()]
    left = [(number, id, of["text"]) for number, id, of in judged if of["how"] == "person"]
    whose = grouped(((id, text), number) for number, id, text in left if text != points.NOT_JUDGED)
    for (id, text), who in sorted(whose.items()):
        yield f"{id} is open for you in {len(who)} ({', '.join(who)}): {text}"
    yield from points.not_run(Counter(number for number, _, text in left if text == points.NOT_JUDGED))


def _path(out, number, notebook=None):
    return Path(out, f"checked/{number}.json" if notebook is None else f"replayed/{number}-{notebook}.json")


def _kept(out, number, notebook=None):
    """What is kept of a submission's evidence, or of one of its notebooks; {} where nothing can be read."""
    with suppress(UseError):
        return store.read(_path(out, number, notebook))
    return {}


@cache
def _kit(root):
    """SHA-256 over the files that decide what is found."""
    packages = [Path(_COURSE, name) for name in ("labs", "lessons", "teaching")]
    paths = [path for folder in packages for kind in ("*.py", "*.toml") for path in folder.rglob(kind)]
    paths += Path(root, "solutions").glob("*.py")
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(paths))).hexdigest()


def _look(number, path, root, notebook, kept):
    """(number, notebook, what is found in this piece of a submission, to be kept): its evidence where notebook is
    None. kept: what is kept with it."""
    with handed.opened(number, path) as submission:
        if notebook is None:
            return number, None, kept | _evidence(submission, root)
        begin = time.monotonic()
        try:
            found, told = judge.judged(submission, root, notebook, kept["key"])
        except Exception as problem:  # of the sandbox or this machine and no fault of the student's: it is tried again
            told = [f"{type(problem).__name__}: {problem}"[:200]]
            found, kept = judge.unjudged(submission, root, notebook, told[0]), kept | {"key": ""}
        checks = {id: asdict(result) for id, result in found.items()}
        seconds = round(time.monotonic() - begin, 1)
        return number, notebook, kept | {"checks": checks, "told": told, "seconds": seconds}


def _evidence(submission, root):
    """All that is found in a submission without running anything of it, as JSON."""
    found, asked, said = [], tasks.items(), submission.course.progress
    answers = {id: text[:MOST_ANSWER] for id, text in submission.course.answers.items() if id in asked}
    if submission.contents:
        found += looked("evidence", evidence.findings, submission)
        found += looked("report", numbers.findings, submission)
        found += looked("answers", likeness.of_solutions, answers, root)
    result = {
        "claimed": [id for id, each in said.items() if each.get("state") == "right"],
        "notebooks": [Path(name).stem for name in submission.contents if name.endswith(".ipynb")],
        "prints": copies.prints(submission),
        "answers": answers,
        "alike": likeness.own(submission.contents, answers, root),
    }
    result |= {"checks": {}, "told": []}  # stand in files of their own
    result |= {"steps": [], "speedups": [], "tables": {}}
    found += looked("runs", _of_records, submission, result)
    return result | {"findings": [asdict(each) for each in found]}


def _of_records(submission, result):
    """Put into a result what comes of the records; finds nothing."""
    for each in copies.series(submission.number, submission.records):
        result["steps"].append([each.name, each.kind, each.started, np.exp(each.steps).tolist()])
    with suppress(LabsError):
        result["speedups"] = [[r.source, r.workers, r.speedup.value, r.speedup.interval] for r in submission.speedups]
        tables = ((task, [caption, *rows]) for (task, caption), rows in submission.tables.items())
        result["tables"] = grouped(tables)
    return ()


def _line(out, number):
    """A line on what was found about a submission."""
    checks = [_kept(out, number, lesson.notebook).get("checks", {}) for lesson in tasks.lessons().values()]
    states = Counter(each["state"] for of_one in checks for each in of_one.values())
    said = ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "nothing run"
    return f"{number}: {len(_kept(out, number)['findings'])} findings; checks: {said}"


def _claims(claimed, checks):
    """A finding where progress.json calls checks right that are wrong here. A function that is right only for the
    notebook's own numbers does not count: in the notebook it was right."""
    left = {id: each for id, each in by_id(checks).items() if each["state"] != "right" and each["how"] != "person"}
    if said := [id for id in claimed if id in left and left[id]["text"] != judge.OTHER_INPUTS]:
        yield Finding("progress", "look", "progress.json", f"it says right, and here it was not: {', '.join(said)}")
