"""Runs and files that are those of somebody else: across students, and the kit's own recorded ones.

Two step times are never equal by chance, nor are the shapes of two series of them. So each run becomes the logarithms
of its step times without the warm-up: scaled copies differ by a constant then. Two runs are copies if nine tenths of
their differences lie within a tenth of the run's spread; or if both hold the same times in another order, to a
thousandth of it.
"""

import json
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from labs import recorded
from labs.checks import kept
from labs.course.release import digest
from labs.printed import few, grouped
from labs.results.record import NoRecordError
from labs.results.run import load
from teaching.grading.finding import Finding

LEAST, CLOSE, SAME = 12, 0.1, 1e-3  # steps in common; tolerances (of the spread) in order and in any order
KIT = "the kit"
_LONG = 200  # characters of what two students do not have alike by chance


@dataclass(frozen=True)
class Series:
    """The logarithms of the step times of one run: whose, its name, kind, and when it began."""

    owner: str
    name: str
    kind: str
    started: str | None
    steps: np.ndarray


def series(owner, found):
    """A Series for each of {name: Run} that has enough step times behind the warm-up."""
    for name, record in found.items():
        steps = [seconds for epoch in record.epochs if epoch.epoch for seconds in epoch.step_seconds]
        if len(steps) >= LEAST and min(steps) > 0:
            yield Series(owner, name, record.kind, record.started, np.log(steps))


def kit():
    """The Series of the kit's recorded runs."""
    for path in sorted(Path(recorded.HERE).glob("*/*.json")):
        with suppress(NoRecordError):  # what lies beside the records
            yield from series(KIT, {f"{path.parent.name}/{path.stem}": load(path)})


def alike(one, other):
    """By which factor the step times of one run are those of the other, or None where they are not."""
    count = min(len(one), len(other))
    difference = one[:count] - other[:count]
    factor = np.median(difference)
    spread = np.median(np.abs(one[:count] - np.median(one[:count])))
    off = np.quantile(np.abs(difference - factor), 0.9)
    if off <= max(CLOSE * spread, 1e-9):
        return float(np.exp(factor))
    within = max(SAME * spread, 1e-9)
    if len(one) != len(other) or abs(np.ptp(one) - np.ptp(other)) > 2 * within or len(set(one)) < len(one) / 2:
        return None
    difference = np.sort(one) - np.sort(other)
    factor = np.median(difference)
    return float(np.exp(factor)) if np.max(np.abs(difference - factor)) <= within else None


def _copies(runs):
    """(place, place, factor) of the runs that are copies, each run against all others at once: a class has millions of
    pairs. Of one owner's runs that are copies of each other, only pairs with the first one.

    Where nine tenths of some differences lie within t of one number, all of them do but the same tenth at either end of
    their order, at most: within 2 t of each other. Sorting single precision is the fastest way to see that.
    """
    order = sorted(range(len(runs)), key=lambda place: len(runs[place].steps))
    numbers = {owner: number for number, owner in enumerate(dict.fromkeys(run.owner for run in runs))}
    owner, again = np.array([numbers[run.owner] for run in runs]), np.zeros(len(runs), bool)
    for length, group in groupby(order, key=lambda place: len(runs[place].steps)):
        here = list(group)
        order = order[len(here) :]
        places = np.array(here + order)
        steps = np.stack([runs[place].steps[:length] for place in places])
        from_median = np.abs(steps - np.median(steps, axis=1, keepdims=True))
        spread, width = np.median(from_median, axis=1), np.ptp(steps[: len(here)], axis=1)
        steps, least = (steps - steps[:, :1]).astype(np.float32), length - 1 - int(0.9 * (length - 1))
        for n, place in enumerate(here):
            off = steps[n] - steps[n + 1 :]
            off.sort(axis=1)
            either = np.maximum(spread[n], spread[n + 1 :])
            room = 2 * np.maximum(CLOSE * either, 1e-9) + 1e-6 * (1 + np.abs(off[:, 0]) + np.abs(off[:, -1]))
            near = off[:, -1 - least] - off[:, least] <= room
            equal = len(here) - n - 1  # of the same length: then the order may be another one
            near[:equal] |= np.abs(width[n] - width[n + 1 :]) <= 2 * np.maximum(SAME * either[:equal], 1e-9)
            others = places[n + 1 :][near]
            others = others[(owner[others] != owner[place]) | ~(again[others] | again[place])]
            for first, second in (sorted((place, int(other))) for other in others):
                if (factor := alike(runs[first].steps, runs[second].steps)) is not None:
                    again[second] |= owner[first] == owner[second]
                    yield first, second, factor


def findings(runs):
    """{owner: findings} of some Series of all students. For who has the run that began earlier, by the dates in
    the records, a copy is a note."""
    found, repeated, every = [], [], [*runs, *kit()]
    for first, second, factor in sorted(_copies(every), key=lambda pair: (pair[1] >= len(runs), pair)):
        one, other = every[first], every[second]
        if one.owner == KIT or (other.owner == KIT and one.kind != "measured"):
            continue  # it says itself that it is recorded: the report's findings name it
        equal = abs(factor - 1) < 1e-6
        how = "equal to" if equal else f"{factor:.4g} times"
        if one.owner == other.owner:
            repeated.append((first, f"{how} those of {other.name}"))
            continue
        for here, there, said in ((one, other, how), (other, one, how if equal else f"{1 / factor:.4g} times")):
            kind = "recorded" if KIT in (one.owner, other.owner) else "copy"
            of = there.name if there.owner == KIT else f"{there.name} of submission {there.owner}"
            seen = f"its step times are {said} those of {'the recorded run ' if kind == 'recorded' else ''}{of}"
            earlier = kind == "copy" and here.started and there.started and here.started < there.started
            found.append((here.owner, Finding(kind, "note" if earlier else "serious", here.name, seen)))
    for first, said in grouped(repeated).items():
        seen = f"its step times are {few(said)}"
        found.append((every[first].owner, Finding("repeated", "serious", every[first].name, seen)))
    return grouped((owner, each) for owner, each in found if owner != KIT)


def prints(submission):
    """{what: hash} of what is never equal by chance and `findings` does not compare: logs without a record, searches,
    breakdowns, long answers."""
    found = {}
    for name, content in submission.contents.items():
        measured = name.endswith((".maxbatch.json", ".breakdown.json"))
        alone = name.endswith(".out") and name.removesuffix(".out") + ".json" not in submission.contents
        if "runs/" in name and len(content) > _LONG and (measured or alone):
            found[Path(name).name] = digest(content)
    for id, text in submission.course.answers.items():
        if len(text) >= _LONG:
            found[f"the answer to {id}"] = digest(" ".join(text.lower().split()).encode(errors="replace"))
    return found


def untouched(contents):
    """Whether nothing was done in a submission, {path: bytes}: no run and no script is there, no answer is written, and
    no cell has run. Two of these are equal, and say nothing about each other."""
    work = [name for name in contents if name.endswith((".py", ".sh")) or "runs/" in name]
    if any(not name.endswith("progress.json") for name in work):
        return False
    for name, content in contents.items():
        with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
            if name.endswith("progress.json") and json.loads(content)["items"]:
                return False
            if name.endswith(".ipynb") and any(map(_worked_on, json.loads(content)["cells"])):
                return False
    return True


def _worked_on(cell):
    answer = cell.get("metadata", {}).get("labs", {}).get("kind") == "answer"
    text = "".join(cell.get("source", ""))
    return cell.get("outputs") or (answer and kept.written(text) and kept.PLACEHOLDER not in text)


def equal_files(marks):
    """{number: findings} of {number: what `prints` gave}."""
    owners = grouped((mark, (number, what)) for number, of_one in marks.items() for what, mark in of_one.items())
    found = []
    for of_all in owners.values():
        for number, what in of_all:
            if others := sorted({other for other, _ in of_all} - {number}):
                seen = f"{what} is the same, to the last letter, in {', '.join(others)}"
                found.append((number, Finding("equal files", "serious", what, seen)))
    return grouped(found)
