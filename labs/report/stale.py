"""What the evidence does not carry, or not any more: one ReportFinding for each."""

import json
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from labs import files
from labs.course.release import digest
from labs.printed import few, grouped
from labs.report.form import Kind, ReportFinding
from labs.results import metrics

SEEN = ".answers.json"  # in the folder of the runs: when each answer was first seen as it is


def findings(course, tasks):
    """All findings about some tasks of labs.report.form, in their order."""
    written, found = _written(course), []
    for task in tasks:
        held = [course.held[name] for name in task.runs if name in course.held]
        looks: dict[Kind, Iterable[str]] = {
            "script changed": _scripts(course, held),
            "answer older than its run": _older(held, written.get(task.id)),
            "not measured by you": _not_measured(held),
            "counted twice": _twice(held),
            "oversubscribed": _oversubscribed(held),
            "different machines": _machines(held),
            "no repeats": _no_repeats(course.measured_together([each.name for each in held])),
        }
        found += [ReportFinding(kind=kind, task=task.id, text=text) for kind, texts in looks.items() for text in texts]
    return found + list(_outputs(course, tasks))


def _scripts(course, held):
    """Scripts that are not any more what the runs were made with."""
    made = [(course.script_of(each.run), each) for each in held]
    changed = grouped((n, e.name) for (n, now), e in made if now and e.run.script_sha256 not in (None, "", now))
    for name, runs in changed.items():
        yield f"{name} has changed since {few(runs, 4)} ran: these runs do not show what it does now. Run it again."


def _written(course):
    """{id: when the answer had this text at the latest}, in UTC.

    A text cell has no date. So what is known is kept beside the runs: when an answer was first seen as it is now. And
    it is not newer than its notebook's file.
    """
    path, seen = course.runs / SEEN, {}
    with suppress(OSError, ValueError, RecursionError):
        seen = json.loads(files.read(path))
    now, found = datetime.now(UTC), {}
    for lesson in (lesson for lesson in course.lessons if lesson.notebook in course.notebooks):
        for id in (item.id for item in lesson.task if item.id in course.answers):
            mark = digest(course.answers[id].encode(errors="replace"))
            when = min(now, datetime.fromtimestamp(course.notebooks[lesson.notebook].stat().st_mtime, UTC))
            with suppress(KeyError, TypeError, ValueError):
                if seen[id]["sha256"] == mark:
                    when = min(when, _time(seen[id]["when"]))
            found[id] = {"sha256": mark, "when": when.isoformat(timespec="seconds")}
    if found != seen and course.runs.is_dir():
        with suppress(OSError):
            files.write(path, json.dumps(found, indent=1))
    return {id: _time(each["when"]) for id, each in found.items()}


def _time(text):
    return datetime.fromisoformat(text).astimezone(UTC)


def _older(held, when):
    later = []
    for each in held:
        with suppress(ValueError, TypeError):
            if when and each.run.finished and _time(each.run.finished) > when:
                later.append(each.name)
    if later:
        said = "ended, so it cannot be about what they measured. Compare it with the tables here, and write it anew."
        yield f"The answer was written before {few(later, 4)} {said}"


def _not_measured(held):
    for kind, names in sorted(grouped((each.run.kind, each.name) for each in held).items()):
        if kind != "measured":
            yield f"{few(names, 4)}: {kind}, where runs of your own are asked for."


def _twice(held):
    """Runs that are one run, or one training measured again, and stand as two or more."""
    times = grouped((tuple(epoch.seconds for epoch in each.run.epochs), each) for each in held if each.run.epochs)
    by_inputs = {}
    for same in times.values():
        if others := len(same) - 1:
            copies = "one of them is a copy" if others == 1 else "all but one are copies"
            yield f"{_and(same)} hold the same times to the last digit: {copies}."
        by_inputs.setdefault(_inputs(same[0].run), {}).setdefault(metrics.origin(same[0].run), same[0])
    for measured in by_inputs.values():
        if (count := len(measured)) > 1:
            counted = "two times: that is one result, not two" if count == 2 else f"{count} times: that is one result"
            same = f"{_and(measured.values())} are the same training with the same settings and seed, measured at"
            yield f"{same} {counted}. Say which one you use."


def _and(held):
    names = [each.name for each in held]
    return " and ".join(names) if len(names) == 2 else few(names, 4)


def _inputs(run):
    """What two measurements of one training have in common."""
    script = run.script_sha256 or (run.command or [""])[0]
    return repr(run.configuration), run.hardware, run.kind, script


def _oversubscribed(held):
    if names := [each.name for each in held if each.run.oversubscribed]:
        yield f"{few(names, 4)}: more workers than cores or GPUs, which says nothing about speed."


def _machines(held):
    by_machine = grouped(((each.run.hardware, each.run.machine.get("cores")), each.name) for each in held)
    said = []
    for (hardware, cores), names in by_machine.items():
        machine = (hardware or "an unknown machine") + (f" with {cores} cores" if cores else "")
        said.append(f"{few(names, 4)} on {machine}")
    if said[1:]:
        yield f"Runs of different machines stand together: {'; '.join(said)}. Compare within each machine only."


def _no_repeats(runs):
    for run in runs:
        if run.speedup.value is not None and (run.workers or 1) > 1 and not run.speedup.interval:
            name = run.source.removesuffix(".json")
            said = "from one measurement, so without an interval. Measure it again, 3 times or more, or in turns."
            yield f"{name}: a speedup of {run.speedup.value:.3g} {said}"


def _outputs(course, tasks):
    """Outputs of notebooks that show an older record than the one there is, or, where own runs are asked for and there
    are none, somebody else's."""
    older, others = [], []
    shown = ((notebook, str(file), said) for notebook, of in course.outputs() for file, said in of.items())
    for notebook, file, said in shown:
        name, kind = file.removesuffix(".json"), said.get("kind") if isinstance(said, dict) else None
        if kind == "measured" and file.endswith(".json"):
            now = course.held[name].run.started if name in course.held else None
            if said.get("started") != now:
                older.append((notebook, name))
        elif kind:
            others.append((notebook, f"{Path(name).name} ({kind})"))
    for notebook, names in grouped(older).items():
        text = f"The notebook shows {few(list(dict.fromkeys(names)), 4)} as it was before it ran again, or was removed."
        yield ReportFinding(kind="output of an older record", task=notebook, text=text + " Run its cells again.")
    drawing = [
        item for lesson in course.lessons for item in lesson.task if item.evidence.figures or item.evidence.pictured
    ]
    asked = {item.id for item in drawing}
    foreign = grouped(others)
    for task in tasks:
        if task.id in asked and not task.runs and task.notebook in foreign:
            names = few(list(dict.fromkeys(foreign[task.notebook])), 4)
            text = f"The figures in {task.notebook} rest on {names}; this task asks for runs of your own."
            yield ReportFinding(kind="not measured by you", task=task.id, text=text)
