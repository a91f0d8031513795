"""What the evidence does not carry, or not any more: one Finding for each."""

import json
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from labs import files
from labs.course.release import digest
from labs.printed import few
from labs.report.form import Finding
from labs.results import metrics

SEEN = ".answers.json"  # in the folder of the runs: when each answer was first seen as it is


def findings(course, tasks):
    """All findings about some tasks of labs.report.form, in their order."""
    written, found = _written(course), []
    for task in tasks:
        held = [course.held[name] for name in task.runs if name in course.held]
        rows = course.rows([each.name for each in held])
        for kind, texts in (
            ("script changed", _scripts(course, held)),
            ("answer older than its run", _older(held, written.get(task.id))),
            ("not measured by you", _not_measured(held)),
            ("counted twice", _twice(held)),
            ("oversubscribed", _oversubscribed(held)),
            ("different machines", _machines(held)),
            ("no repeats", _no_repeats(rows)),
        ):
            found += [Finding(kind=kind, task=task.id, text=text) for text in texts]
    return found + list(_outputs(course, tasks))


def _scripts(course, held):
    """Scripts that are not any more what the runs were made with."""
    by_script = {}
    for each in held:
        name, now = course.script_of(each.record)
        if each.record.script_sha256 and now and now != each.record.script_sha256:
            by_script.setdefault(name, []).append(each.name)
    for name, runs in by_script.items():
        yield f"{name} has changed since {few(runs, 4)} ran: these runs do not show what it does now. Run it again."


def _written(course):
    """{id: when the answer had this text at the latest}, in UTC.

    A text cell has no date. So what is known is kept beside the runs: when an answer was first seen as it is now. And
    it is not newer than its notebook's file.
    """
    path, seen = course.runs / SEEN, {}
    with suppress(OSError, ValueError, RecursionError):
        seen = json.loads(files.read(path))
    seen = seen if isinstance(seen, dict) else {}
    now, found = datetime.now(UTC), {}
    for lesson in course.lessons:
        for item in lesson.task:
            if item.id in course.answers and lesson.notebook in course.notebooks:
                mark = digest(course.answers[item.id].encode(errors="replace"))
                saved = datetime.fromtimestamp(course.notebooks[lesson.notebook].stat().st_mtime, UTC)
                found[item.id] = {"sha256": mark, "when": min(now, saved).isoformat(timespec="seconds")}
                with suppress(KeyError, TypeError, ValueError):
                    known = seen[item.id]
                    if known["sha256"] == mark and _time(known["when"]) < _time(found[item.id]["when"]):
                        found[item.id] = {key: known[key] for key in ("sha256", "when")}
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
            if when and each.record.finished and _time(each.record.finished) > when:
                later.append(each.name)
    if later:
        yield (
            f"The answer was written before {few(later, 4)} ended, so it cannot be about what they measured. Compare "
            "it with the tables here, and write it anew."
        )


def _not_measured(held):
    for kind in sorted({each.record.kind for each in held} - {"measured"}):
        names = [each.name for each in held if each.record.kind == kind]
        yield f"{few(names, 4)}: {kind}, where runs of your own are asked for."


def _twice(held):
    """Runs that are one run, or one training measured again, and stand as two or more."""
    by_times, by_inputs = {}, {}
    for each in held:
        if each.record.epochs:
            by_times.setdefault(tuple(epoch.seconds for epoch in each.record.epochs), []).append(each)
    for same in by_times.values():
        if others := len(same) - 1:
            copies = "one of them is a copy" if others == 1 else "all but one are copies"
            yield f"{_and(same)} hold the same times to the last digit: {copies}."
        by_inputs.setdefault(_inputs(same[0]), {}).setdefault(metrics.origin(same[0].run), same[0])
    for measured in by_inputs.values():
        if (times := len(measured)) > 1:
            counted = "two times: that is one result, not two" if times == 2 else f"{times} times: that is one result"
            yield (
                f"{_and(measured.values())} are the same training with the same settings and seed, measured at "
                f"{counted}. Say which one you use."
            )


def _and(held):
    names = [each.name for each in held]
    return " and ".join(names) if len(names) == 2 else few(names, 4)


def _inputs(held):
    """What two measurements of one training have in common."""
    script = held.record.script_sha256 or (held.record.command or [""])[0]
    return repr(held.record.configuration), held.record.hardware, held.record.kind, script


def _oversubscribed(held):
    if names := [each.name for each in held if each.record.oversubscribed]:
        yield f"{few(names, 4)}: more workers than cores or GPUs, which says nothing about speed."


def _machines(held):
    by_machine = {}
    for each in held:
        by_machine.setdefault((each.record.hardware, each.record.machine.get("cores")), []).append(each.name)
    if len(by_machine) > 1:
        said = "; ".join(f"{few(names, 4)} on {_machine(*key)}" for key, names in by_machine.items())
        yield f"Runs of different machines stand beside each other: {said}. Compare within each machine only."


def _machine(hardware, cores):
    return f"{hardware or 'an unknown machine'}" + (f" with {cores} cores" if cores else "")


def _no_repeats(rows):
    for row in rows:
        if row["speedup"] is not None and (row["workers"] or 1) > 1 and not row["speedup_interval"]:
            yield (
                f"{row['source'].removesuffix('.json')}: a speedup of {row['speedup']:.3g} from one measurement, so "
                "without an interval. Measure it again, 3 times or more, or in turns."
            )


def _outputs(course, tasks):
    """Outputs of notebooks that show an older record than the one there is, or, where own runs are asked for and there
    are none, somebody else's."""
    older, others = {}, {}
    for notebook, shown in course.outputs():
        for file, said in shown.items():
            name = str(file).removesuffix(".json")
            if isinstance(said, dict) and said.get("kind") == "measured" and str(file).endswith(".json"):
                now = course.held[name].record.started if name in course.held else None
                if said.get("started") != now:
                    older.setdefault(notebook, []).append(name)
            elif isinstance(said, dict) and said.get("kind"):
                others.setdefault(notebook, {})[name] = said["kind"]
    for notebook, names in older.items():
        text = f"The notebook shows {few(list(dict.fromkeys(names)), 4)} as it was before it ran again, or was removed."
        yield Finding(kind="output of an older record", task=notebook, text=text + " Run its cells again.")
    asked = {item.id for lesson in course.lessons for item in lesson.task if item.evidence.figures}
    for task in tasks:
        if task.id in asked and not task.runs and task.notebook in others:
            names = [f"{Path(name).name} ({kind})" for name, kind in others[task.notebook].items()]
            text = f"The figures in {task.notebook} rest on {few(names, 4)}; this task asks for runs of your own."
            yield Finding(kind="not measured by you", task=task.id, text=text)
