"""The Report of a course: its tasks with answers and evidence, its runs, what is stale and what is missing."""

import re
from pathlib import Path
from typing import Any

import labs
from labs.course.release import digest
from labs.printed import grouped
from labs.report import evidence, stale
from labs.report.course import Course, look
from labs.report.form import Cell, Main, Report, ReportFinding, ReportItem, ReportRun, ReportTask


def gather_report(course: Course, name: str | None = None, machine: str | None = None) -> tuple[Report, dict[str, Any]]:
    """(Report, {name of a figure: matplotlib figure}) of a labs.report.course.Course.

    name, machine: the student's and the machine's, as they are to stand on the first page
    """
    drawn, tasks, logs = {}, [], set()
    for lesson in course.lessons:
        for item in _lettered(lesson):
            task, figures = _task(course, lesson, item, logs)
            tasks.append(task)
            drawn |= figures
    items = [_item(course, lesson, item) for lesson in course.lessons for item in lesson.task if item.kind != "answer"]
    runs = [_run(course, held) for held in course.held.values()]
    versions = grouped(sorted({of for run in runs for of in run.versions.items() if of[1]}))
    report = Report(
        kit=labs.__version__,
        name=name,
        machine=machine,
        hardware=sorted({f"{r.hardware}, {r.cores} cores" if r.cores else r.hardware for r in runs if r.hardware}),
        versions=versions,
        first_run=min((run.started for run in runs if run.started), default=None),
        last_run=max((run.finished for run in runs if run.finished), default=None),
        main=_main(course, tasks),
        tasks=tasks,
        items=items,
        runs=runs,
        findings=stale.findings(course, tasks),
        missing=_missing(course, tasks, items),
    )
    return report, drawn


def findings(start: str | Path = ".", runs: str | Path | None = None) -> list[ReportFinding]:
    """What is stale in a course's work, or does not carry what is said of it.

    start: a folder of the course; its notebooks lie there, or in the course's notebooks/
    runs: folder of the runs (default: $LABS_RUNS, or `runs` beside the notebooks)

    Raises CourseError where there is no course.
    """
    return findings_of(look(start, runs))


def findings_of(course: Course) -> list[ReportFinding]:
    """The findings about the work in a labs.report.course.Course."""
    tasks = [_task(course, lesson, item)[0] for lesson in course.lessons for item in _lettered(lesson)]
    return stale.findings(course, tasks)


def _lettered(lesson):
    """The tasks of a lesson that are handed in, T5 before T6."""
    lettered = (item for item in lesson.task if item.handed_in)
    return sorted(lettered, key=lambda item: (item.id[0], int(item.id[1:])))


def _task(course, lesson, item, logs=None):
    """(ReportTask, {name: figure}). logs: those that were shown; without it only what findings are made of is there."""
    answer, written = course.answers.get(item.id), item.kind == "answer"
    names = course.matching(item.evidence.runs, course.held)
    names += [name for name in evidence.cited(answer, course.held) if name not in names]
    state = course.progress.get(item.id, {}).get("state", "open")
    if written:
        state = "written" if answer else "open"
    kind = "answer" if written else "check"
    task = ReportTask(
        id=item.id, notebook=lesson.notebook, kind=kind, question=item.title, state=state, points=item.points
    )
    task.runs, task.answer, task.holds = names, answer, item.shown if written and answer else []
    if logs is None:
        return task, {}
    task.tables = evidence.tables(course, item, names)
    figures = list(evidence.figures(course, item, names))
    task.figures = [said for said, _ in figures]
    task.scripts = list(evidence.scripts(course, item))
    if written:
        searches = [n.removesuffix(".maxbatch.json") for n in course.measured if n.endswith(".maxbatch.json")]
        task.logs = list(evidence.logs(course, [*names, *course.matching(item.evidence.runs, searches)], logs))
    return task, {said.name: figure for said, figure in figures}


def _item(course, lesson, item):
    kept = course.progress.get(item.id, {})
    kind, answer, outcome = "check", "", None
    state = kept.get("state", "open")
    if item.kind == "prediction":
        kind, answer = item.kind, _said(course.private.text(kept.get("answer", "")))
        outcome = _outcome(course, item, kept) if state != "open" else None
    done = {"state": state, "points": kept.get("points", 0), "attempts": kept.get("attempts", 0)}
    done |= {"kind": kind, "answer": answer, "outcome": outcome}
    return ReportItem(id=item.id, notebook=lesson.notebook, title=item.title, **done)


def _outcome(course, item, kept):
    """The outcome of a prediction: from the records where they say it, else as its notebook has told it."""
    found, told = evidence.outcome(course, item), kept.get("outcome")
    if found or told is None:
        return found
    if isinstance(told, float):
        return evidence.measured(told, kept["interval"] and tuple(kept["interval"]))
    words = ", ".join(map(evidence.digits, told)) if isinstance(told, list) else course.private.text(told)
    return Cell(text=words)


def _main(course, tasks):
    """The main result: of the last task whose runs show how a training scales; None without such runs."""
    items = {item.id: item for lesson in course.lessons for item in _lettered(lesson)}
    for task in reversed([each for each in tasks if each.figures and "scaling" in items[each.id].evidence.figures]):
        if sentences := evidence.in_words(course, items[task.id], task):
            most = max(task.figures, key=lambda each: len(each.runs))
            return Main(task=task.id, sentences=sentences, figure=most.name)
    return None


def _said(answer):
    """A prediction as it is printed: of a long number four digits, a word without its quotation marks."""
    try:
        number = float(answer)
    except ValueError:
        return re.sub(r"""^(["'])([^"']*)\1$""", r"\2", answer).strip("[]")
    return f"{number:.4g}" if len(answer) > 6 else answer


def _run(course, held):
    run, cores = held.run, held.run.machine.get("cores")
    values = {name: getattr(run, name) for name in ReportRun.model_fields if hasattr(run, name)}
    values |= {"name": held.name, "sha256": digest(held.content), "epochs": len(run.epochs)}
    values |= {"script": course.script_of(run)[0], "cores": cores if isinstance(cores, int) else None}
    return ReportRun(**values)


def _missing(course, tasks, items):
    """What is not there yet, a line each."""
    lines = []
    for notebook in dict.fromkeys(task.notebook for task in tasks):
        if notebook not in course.notebooks:
            lines.append(f"The notebook {notebook} is not in {Path(course.folder).name}/.")
    asked = {item.id: item for lesson in course.lessons for item in _lettered(lesson)}
    for task in tasks:
        if task.state in ("open", "wrong"):
            what = "no answer is written" if task.kind == "answer" else f"its check is {task.state}"
            lines.append(f"{task.id}: {what}.")
        if asked[task.id].evidence.runs and not (task.runs or task.tables):
            lines.append(f"{task.id}: none of its runs is on record.")
    left = grouped((item.notebook, item.id) for item in items if item.state in ("open", "wrong"))
    return lines + [f"{notebook}: not done are {', '.join(ids)}." for notebook, ids in left.items()]
