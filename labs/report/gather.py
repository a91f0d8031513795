"""The report of a course: its tasks with answers and evidence, its runs, what is stale and what is missing.

It is made of dicts, lists and texts, as report.json holds it. Dates are ISO 8601 in UTC. Numbers stand as they are
printed: the run records, which lie beside it in submission.zip, hold the exact ones.

    version     1
    kit, name                   the kit's version; the student's name, None where not given
    hardware, versions          of the runs, lists of texts
    tasks       that are handed in: the rows of labs.checks.progress with answer (Markdown, or None), holds (what a good
                one contains), runs (names), and as labs.report.evidence makes them tables, figures, scripts, logs
    items       checks and predictions: those rows, with the points that were reached, and attempts
    runs        {name, sha256 (of the record), what, where, started, finished, script, script_sha256}
    findings    {kind, task, text} of labs.report.stale
    missing     lines
"""

from typing import Any

import labs
from labs.checks.tasks import handed_in
from labs.files import digest
from labs.printed import grouped, several
from labs.report import evidence, stale
from labs.report.course import Course, stem_of


def gather_report(course: Course, name: str | None = None) -> tuple[dict, dict[str, Any]]:
    """(the report, {name of a figure: matplotlib figure}) of a labs.report.course.Course.

    name: the student's, as it is to stand on the first page
    """
    drawn, tasks, shown_logs = {}, [], set()
    for item, task in _handed_in(course):
        tasks.append(task)
        figures = list(evidence.figures(course, item, task["runs"]))
        drawn |= {part["name"]: figure for part, figure in figures}
        task["tables"] = evidence.tables(course, item, task["runs"])
        task["figures"] = [part for part, _ in figures]
        task["scripts"] = list(evidence.scripts(course, item))
        others = map(stem_of, course.searches_and_breakdowns)
        names = [*task["runs"], *course.matching(item.evidence.runs, others)] if task["kind"] == "answer" else []
        task["logs"] = list(evidence.logs(course, names, shown_logs))
    items = []
    for row in (row for row in course.rows.values() if row["kind"] != "answer"):
        done = course.progress.get(row["id"], {})
        items.append(row | {name: done.get(name, 0) for name in ("points", "attempts")})
    runs = course.runs_on_record.values()
    report = {
        "version": 1,
        "kit": labs.__version__,
        "name": name,
        "hardware": sorted({_where(run) for run in runs if run.hardware}),
        "versions": sorted({f"{name} {version}" for run in runs for name, version in run.versions.items() if version}),
        "tasks": tasks,
        "items": items,
        "runs": [_run(course, name, run) for name, run in course.runs_on_record.items()],
        "findings": stale.findings(course, tasks),
        "missing": list(_missing(course, tasks, items)),
    }
    return report, drawn


def findings_of(course: Course) -> list[dict[str, str]]:
    """What is stale in the work in a labs.report.course.Course, or does not carry what is said of it."""
    return stale.findings(course, [task for _, task in _handed_in(course)])


def _handed_in(course):
    """(item, task without its evidence) of each task that is handed in, T5 before T6 within a lesson."""
    for lesson in course.lessons:
        lettered = (item for item in lesson.task if handed_in(item.id))
        for item in sorted(lettered, key=lambda item: (item.id[0], int(item.id[1:]))):
            row, answer = course.rows[item.id], course.answers.get(item.id)
            holds = item.shown if row["state"] == "written" else []
            yield item, row | {"answer": answer, "holds": holds, "runs": evidence.runs_of(course, item)}


def _run(course, name, run):
    what = [run.model, run.strategy, run.workers and several(run.workers, "worker")]
    what += [run.global_batch and f"global batch {run.global_batch}", several(len(run.epochs), "epoch")]
    what += ["oversubscribed" if run.oversubscribed else None, run.kind, run.state]
    where = [_where(run), run.job_id and f"job {run.job_id}"]
    return {
        "name": name,
        "sha256": digest((course.runs / f"{name}.json").read_bytes()),
        "what": ", ".join(filter(None, what)),
        "where": ", ".join(filter(None, where)),
        "started": run.started,
        "finished": run.finished,
        "script": course.script_of(run)[0],
        "script_sha256": run.script_sha256,
    }


def _where(run):
    cores = run.machine.get("cores")
    return f"{run.hardware}, {several(cores, 'core')}" if run.hardware and cores else run.hardware


def _missing(course, tasks, items):
    """What is not there yet, a line each."""
    wanted = {item.id for item, _ in _handed_in(course) if item.evidence.runs}
    for notebook in dict.fromkeys(task["notebook"] for task in tasks):
        if notebook not in course.notebooks:
            yield f"The notebook {notebook} is not in {course.folder.name}/."
    for task in tasks:
        id, state = task["id"], task["state"]
        if state in ("open", "wrong"):
            yield f"{id}: {'no answer is written' if task['kind'] == 'answer' else f'its check is {state}'}."
        if id in wanted and not (task["runs"] or task["tables"]):
            yield f"{id}: none of its runs is on record."
    asked = [item for item in items if not item["title"].endswith("(optional)")]
    left = grouped((item["notebook"], item["id"]) for item in asked if item["state"] in ("open", "wrong"))
    yield from (f"{notebook}: not done are {', '.join(ids)}." for notebook, ids in left.items())
