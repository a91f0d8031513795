"""What the evidence does not carry, or not any more: a finding {kind, task, text} for each."""

from datetime import UTC, datetime

from labs.printed import few, grouped


def findings(course, tasks):
    """All findings about some tasks of labs.report.gather, in their order."""
    found = []
    for task in tasks:
        runs = {name: course.runs_on_record[name] for name in task["runs"]}
        looks = {
            "script changed": _scripts(course, runs),
            "answer older than its run": _older(course, task, runs),
            "not measured by you": _not_measured(runs),
            "counted twice": _twice(runs),
            "oversubscribed": _oversubscribed(runs),
            "different machines": _machines(runs),
            "no repeats": _no_repeats(course.with_measures(runs)),
        }
        found += [{"kind": kind, "task": task["id"], "text": text} for kind, texts in looks.items() for text in texts]
    return found + list(_outputs(course, tasks))


def _scripts(course, runs):
    """Scripts that are not any more what the runs were made with."""
    made = [(*course.script_of(run), run.script_sha256, name) for name, run in runs.items()]
    changed = grouped((script, name) for script, now, then, name in made if now and then not in (None, "", now))
    for script, names in changed.items():
        yield f"{script} has changed since {few(names, 4)} ran: these runs do not show what it does now. Run it again."


def _older(course, task, runs):
    """Runs that ended after the notebook with the answer was last saved: a text cell has no date of its own."""
    if task["answer"] and task["notebook"] in course.notebooks:
        saved = datetime.fromtimestamp(course.notebooks[task["notebook"]].stat().st_mtime, UTC).isoformat()
        if later := [name for name, run in runs.items() if (run.finished or "") > saved]:  # both are ISO 8601 in UTC
            said = "so it cannot be about what they measured. Compare it with the tables here, and write it anew."
            yield f"The answer was written before {few(later, 4)} ended, {said}"


def _not_measured(runs):
    for kind, names in sorted(grouped((run.kind, name) for name, run in runs.items()).items()):
        if kind != "measured":
            yield f"{few(names, 4)}: {kind}, where runs of your own are asked for."


def _twice(runs):
    """Runs that are one run, or one training measured again, and stand as two or more."""
    runs = {name: run for name, run in runs.items() if run.epochs}
    copies = grouped((tuple(epoch.seconds for epoch in run.epochs), name) for name, run in runs.items())
    for names in copies.values():
        if names[1:]:
            yield f"{few(names, 4)} hold the same times to the last digit: all but one are copies."
    again = grouped((_inputs(runs[first]), first) for first, *_ in copies.values())
    for names in again.values():
        if names[1:]:
            same = "are the same training with the same settings and seed, measured again"
            yield f"{few(names, 4)} {same}: that is one result. Say which one you use."


def _inputs(run):
    """What two measurements of one training have in common."""
    script = run.script_sha256 or (run.command or [""])[0]
    return repr(run.configuration), run.hardware, run.kind, script


def _oversubscribed(runs):
    if names := [name for name, run in runs.items() if run.oversubscribed]:
        yield f"{few(names, 4)}: more workers than cores or GPUs, which says nothing about speed."


def _machines(runs):
    by_machine = grouped(((run.hardware, run.machine.get("cores")), name) for name, run in runs.items())
    if len(by_machine) > 1:
        said = [f"{few(names, 4)} on {machine} with {cores} cores" for (machine, cores), names in by_machine.items()]
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
    for notebook, file, kind, started in course.outputs():
        name = file.removesuffix(".json")
        if kind != "measured":
            others.append((notebook, f"{name.rpartition('/')[2]} ({kind})"))
        elif name not in course.runs_on_record or course.runs_on_record[name].started != started:
            older.append((notebook, name))
    older, others = grouped(dict.fromkeys(older)), grouped(dict.fromkeys(others))
    for notebook, names in older.items():
        text = f"The notebook shows {few(names, 4)} as it was before it ran again, or was removed. Run its cells again."
        yield {"kind": "output of an older record", "task": notebook, "text": text}
    drawn = [item for lesson in course.lessons for item in lesson.task]
    drawn = {item.id for item in drawn if item.evidence.figures or item.evidence.pictured}
    for task in tasks:
        notebook = task["notebook"]
        if task["id"] in drawn and not task["runs"] and notebook in others:
            text = f"The figures in {notebook} rest on {few(others[notebook], 4)}; this task asks for runs of your own."
            yield {"kind": "not measured by you", "task": task["id"], "text": text}
