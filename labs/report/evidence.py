"""Tables, figures and lines of logs beside a task, all made from the run records. Nothing is copied from a notebook."""

import importlib
import re
from contextlib import suppress
from difflib import SequenceMatcher

from labs.errors import LabsError
from labs.files import digest
from labs.measure import breakdown, maxbatch
from labs.printed import digits, grouped, several
from labs.report import content
from labs.report.course import excerpt, stem_of
from labs.results import failures, log, metrics, verdict
from labs.results import tables as of_runs
from labs.results.text import split_rank
from labs.show import plots

MOST_LINES, LONGEST = 60, 400  # of a log that is shown, and characters of each of its lines
BEGINNING = 12  # lines of a log that are shown whatever they say: the headers of a job and of its training
_TOLD = re.compile(r"Epoch \d+/\d+$|Epoch \d+: early stopping|Repeat \d+ of \d+\b")
# The columns of the two tables of runs, as in labs.results.tables.
SPEED = ("batch (global)", "epoch (s)", "images/s", "speedup", "efficiency")
LEARNING = ("steps", "loss", "accuracy")


def runs_of(course, item):
    """The names of the runs of a task: those that it asks for, and others that its answer cites."""
    answer, names = course.answers.get(item.id), course.runs_on_record
    return list(dict.fromkeys([*course.matching(item.evidence.runs, names), *cited(answer, names)]))


def tables(course, item, names):
    """The tables of a task, dicts {caption, columns, rows of texts, notes}: its runs in numbers, then searches,
    breakdowns, and the comparison of two networks."""
    made = []
    if runs := course.with_measures(names):
        notes = [f"In brackets: {of_runs.BRACKETS}.", *dict.fromkeys(note for run in runs for note in run.notes)]
        made.append(_runs(runs, "Speed, without the first epoch of each training", SPEED, notes))
        made.append(_runs(runs, "What was learnt", LEARNING))
    for name, data in course.searches_and_breakdowns.items():
        if course.matching(item.evidence.runs, [stem_of(name)]):
            with suppress(LabsError, KeyError, TypeError, ValueError, AttributeError):  # a damaged one
                made.append(_search(data) if name.endswith(".maxbatch.json") else _parts(name, data))
    return made + _verdicts(runs, item.evidence.networks)


def _table(caption, columns, rows, notes=()):
    return {"caption": caption, "columns": [*columns], "rows": rows, "notes": [*notes]}


def _runs(runs, caption, headings, notes=()):
    """Runs as a table: the name, the workers, the kind, and the columns of which any run has a value."""
    columns = {heading: [of_runs.said(run, *of_runs.COLUMNS[heading]) for run in runs] for heading in headings}
    columns = {heading: numbers for heading, numbers in columns.items() if any(numbers)}
    rows = []
    for place, run in enumerate(runs):
        workers = f"{run.workers}{' (oversubscribed)' if run.oversubscribed else ''}"
        kind = f"{run.kind}, {several(of_runs.counted(run), 'round' if run.rounds else 'repeat')}"
        numbers = [column[place] for column in columns.values()]
        rows.append([run.source.removesuffix(".json"), workers, kind, *numbers])
    return _table(caption, ["run", "workers", "kind", *columns], rows, notes)


def _between(interval, text=digits):
    """An interval as it stands behind a number; "" without one."""
    return f" [{text(interval[0])}, {text(interval[1])}]" if interval else ""


def _search(data):
    rows = []
    for trial in data["trials"]:
        seconds = "" if trial.get("seconds") is None else f"{trial['seconds']:.3g}"
        rows.append([str(trial["batch"]), "fits" if trial["fits"] else "out of memory", seconds])
    caption = f"Search for the largest batch of {data['model']} at {maxbatch.conditions(data)} ({data['kind']})"
    notes = [f"Largest batch that fits: {data['largest']}; the smallest that does not: {data['fails']}."]
    return _table(caption, ["batch", "result", "seconds of a step"], rows, notes)


def _parts(name, data):
    parts = breakdown.parts(data)
    rows = [
        [part, digits(1e3 * seconds, 4) + _between(interval and [1e3 * end for end in interval])]
        for part, (seconds, interval) in parts.items()
    ]
    caption = f"Parts of a step of {data['model']} ({data['kind']}, {stem_of(name)})"
    said = dict.fromkeys([*data["notes"], *breakdown.too_noisy(parts)])
    notes = [f"{note[:1].upper()}{note[1:]}." for note in said]
    return _table(caption, ["part", "ms per step"], rows, notes)


def _verdicts(runs, networks):
    """The comparison of two networks as a table, in a list; empty without networks, or without runs of both."""
    if not networks:
        return []
    (first, second), rows = networks, []
    for strategy in sorted({run.strategy or "" for run in runs}):
        same = [run for run in runs if run.strategy in (strategy, "single")]
        for workers in sorted({run.workers for run in same if (run.workers or 1) > 1}):
            with suppress(LabsError):
                found = verdict.compare(same, first, second, workers)
                ratio = f"{found.ratio:.3f}" + _between(found.interval, "{:.3f}".format)
                rows.append([strategy, str(workers), ratio, found.said])
    caption = f"Efficiency of {first} divided by that of {second}"
    return [_table(caption, ["strategy", "workers", "ratio", "different?"], rows)] if rows else []


def figures(course, item, names):
    """({name, caption, alt}, the matplotlib figure) for each figure of a task that its runs allow."""
    if item.evidence.pictured:
        module, _, function = f"lessons.{item.evidence.pictured}".rpartition(".")
        drawn = getattr(importlib.import_module(module), function)(course.runs)
    else:
        drawn = _drawn(item.evidence.figures, course.with_measures(n for n in names if course.runs_on_record[n].steady))
    for number, (caption, figure) in enumerate(drawn, 1):
        yield {"name": f"{item.id}-{number}", "caption": caption, "alt": figure.alt}, figure


def _drawn(kinds, runs):
    """(caption, figure) of each kind that the runs allow: of a run and a 1-worker run that took turns, or of all runs
    of one strategy, kind and hardware."""
    ones = [run for run in runs if run.workers == 1]
    pairs = [(one, run) for run in runs if run.workers != 1 for one in ones if metrics.in_turns(run, one)]
    groups = grouped(((run.strategy, run.kind, run.hardware, not run.study), run) for run in runs if run.workers)
    for kind in kinds:
        for one, run in pairs:
            with suppress(LabsError):  # as of two machines
                if kind == "rounds":
                    yield _titled("Epochs and speedup by round", plots.rounds(run, one))
                if kind == "steps":
                    yield _titled("Every step", plots.steps(one, run))
        for group in groups.values():
            if kind == "scaling" and len(group) > 1:
                yield _titled("Epoch time, images per second and speedup", plots.scaling(group))
            if kind == "learning" and any(run.loss for run in group):
                yield _titled("Loss and accuracy by epoch", plots.learning(group))


def _titled(what, figure):
    return f"{what} ({', '.join(run.source.removesuffix('.json') for run in figure.runs)})", figure


def scripts(course, item):
    """The scripts of a task, {file, sha256, lines, changed}: the numbers, from 1, of the lines that differ from what
    the student began with, None where that is not known."""
    for label, script in course.scripts(item.evidence):
        text = course.private.code(script.decode(errors="replace"))
        lines, changed, before = text.replace("\r\n", "\n").rstrip("\n").split("\n"), None, course.before(label)
        if before is not None:
            changed = [number + 1 for number in other_lines(before.decode().split("\n"), lines)]
        yield {"file": label, "sha256": digest(script), "lines": _cut(lines, 400), "changed": changed}


def other_lines(before, after):
    """Numbers, from 0, of the lines of a text, `after`, that differ from those of an earlier one."""
    codes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [number for tag, _, _, begin, end in codes if tag != "equal" for number in range(begin, end)]


def logs(course, names, seen):
    """{file, lines that matter: header, epochs, failure} of the .out and .err files of some runs. `seen`: files that
    have been shown, which is once."""
    for path in (course.log(name, ending) for name in names for ending in (".out", ".err")):
        if path and path not in seen:
            seen.add(path)
            with suppress(OSError):
                yield {"file": path.name, "lines": _lines(course, path)}


def _lines(course, path):
    text, _ = excerpt(path.read_bytes())
    ranked = map(split_rank, content.shown(text).split("\n"))
    lines = [line.rstrip() for rank, line in ranked if rank in (None, 0)] if path.suffix == ".out" else []
    told = (_TOLD.match, log.epoch_of_line, log.header_of_line)
    chosen = lines[:BEGINNING] + [line for line in lines[BEGINNING:] if any(look(line) for look in told)]
    chosen = _cut([line for line in chosen if line], MOST_LINES)
    if problem := failures.failure(path):
        chosen.append(f"line {problem['line_number']}: {problem['line']}  <- {problem['kind']}")
    return [course.private.log(line[:LONGEST] + (" ..." if len(line) > LONGEST else "")) for line in chosen]


def _cut(lines, most):
    """The lines, the middle of many left out."""
    if len(lines) <= most:
        return lines
    return [*lines[: most // 2], f"... {len(lines) - most} lines are left out ...", *lines[-most // 2 :]]


def cited(answer, names):
    """Those of the runs that an answer names; one whose name is a word like others only as runs/NAME."""
    there = [name for name in names if name in (answer or "")]
    before = {name: r"(?<![\w.-])" if re.search(r"[\d_]", name) else "runs/" for name in there}
    return [name for name in there if re.search(rf"{before[name]}{re.escape(name)}(?![\w-])", answer)]
