"""Tables, figures and lines of logs beside a task, all made from the run records. Nothing is copied from a notebook."""

import importlib
import re
from contextlib import suppress
from difflib import SequenceMatcher

from labs import files
from labs.course.release import digest
from labs.errors import LabsError
from labs.measure import breakdown, maxbatch
from labs.printed import grouped, several
from labs.report import content
from labs.report.course import excerpt
from labs.report.form import Cell, Figure, Lines, ReportScript, ReportTable
from labs.results import failures, log, metrics, steps, verdict
from labs.results import tables as of_runs
from labs.results.text import split_rank
from labs.show import plots

MOST_LINES, LONGEST = 60, 400  # of a log that is shown, and characters of each of its lines
_BEGUN = re.compile(r"Epoch \d+/\d+")
_TOLD = re.compile(rf"{_BEGUN.pattern}$|Epoch \d+: early stopping|Repeat \d+ of \d+\b")
_COLUMNS = files.beside(__file__)


def cell(value, form="{}", interval=None, behind=""):
    """A cell of a table with a number, or an empty one."""
    number = value if isinstance(value, int | float) else None
    text = "" if value is None else form.format(value) + behind
    return Cell(text=text, value=number, interval=None if value is None else interval)


def digits(value):
    """A number with three digits that count, and without an exponent where it has a few more: 0.0123, 1010."""
    return f"{float(f'{value:.3g}'):g}"


def tables(course, item, names):
    """The tables of a task: its runs in numbers, then searches, breakdowns, and the comparison of two networks."""
    made = []
    if runs := course.measured_together(names):
        made += [_runs(runs, "Speed, without the first epoch of each training", _COLUMNS["speed"], True)]
        made += [_runs(runs, "What was learnt", _COLUMNS["learning"], False)]
    for name, data in course.measured.items():
        if course.matching(item.evidence.runs, [name.split(".")[0]]):
            with suppress(LabsError, KeyError, TypeError, ValueError, AttributeError):
                made.append(_search(data) if name.endswith(".maxbatch.json") else _parts(name, data))
    if item.evidence.networks:
        made += _verdicts(runs, *item.evidence.networks)
    return made


def _runs(runs, caption, columns, with_notes):
    """Runs as a table: the name, the workers, and the columns of which any run has a value."""
    columns = {head: of for head, of in columns.items() if any(_value(run, of["name"])[0] is not None for run in runs)}
    kinds, notes, body = [], [], []
    if with_notes:
        kinds = ["kind"]
        notes = [f"In brackets: {of_runs.BRACKETS}.", *dict.fromkeys(note for run in runs for note in run.notes)]
    for run in runs:
        made = [Cell(text=run.source.removesuffix(".json")), Cell(text=_workers(run), value=run.workers)]
        made += [Cell(text=_kind(run)) for _ in kinds]
        for name, form in (of.values() for of in columns.values()):
            value, interval = _value(run, name)
            made.append(cell(value, form, interval, of_runs.span(run, name, form.format)))
        body.append(made)
    return ReportTable(caption=caption, columns=["run", "workers", *kinds, *columns], rows=body, notes=notes)


def _value(run, name):
    """(value, interval or None) of what a run says of itself, or of a measure."""
    found = getattr(run, name)
    return getattr(found, "value", found), getattr(found, "interval", None)


def _workers(run):
    return f"{run.workers}{' (oversubscribed)' if run.oversubscribed else ''}"


def _kind(run):
    return f"{run.kind}, {several(of_runs.counted(run), 'round' if run.rounds else 'repeat')}"


def in_words(course, item, task):
    """What a task's runs say of scaling: a sentence for each speedup, and for each comparison of two networks."""
    made, runs = [], course.measured_together(task.runs)
    for run in runs:
        if run.speedup.value and (run.workers or 1) > 1:
            names, short = ("speedup", "efficiency"), "{:.3g}".format
            said = [f"{name} {short(_value(run, name)[0])}{of_runs.span(run, name, short)}" for name in names]
            of = f"{run.model} on {_workers(run)} workers ({run.strategy}, {_kind(run)})"
            made.append(f"{of}: {', '.join(said)}.")
    for table in _verdicts(runs, *item.evidence.networks or ("", "")):
        for strategy, workers, ratio, said in table.rows:
            of = f"{table.caption}, on {workers.text} workers ({strategy.text})"
            made.append(f"{of}: {ratio.text or 'no ratio'}, {said.text}.")
    return made


def _search(data):
    rows = [
        [cell(t["batch"]), Cell(text="fits" if t["fits"] else "out of memory"), cell(t.get("seconds"), "{:.3g}")]
        for t in data["trials"]
    ]
    memory = f", {data['memory'] / 2**30:.3g} GiB for a step" if data["memory"] else ""
    caption = f"Search for the largest batch of {data['model']} ({data['kind']}, {data['device']}{memory})"
    notes = [f"Largest batch that fits: {data['largest']}; the smallest that does not: {data['fails']}."]
    return ReportTable(caption=caption, columns=["batch", "result", "seconds of a step"], rows=rows, notes=notes)


def _parts(name, data):
    rows, parts = [], breakdown.parts(data)
    for part, (seconds, interval) in parts.items():
        between = interval and tuple(1e3 * end for end in interval)
        behind = " [{}, {}]".format(*map(digits, between)) if between else ""
        rows.append([Cell(text=part), cell(1e3 * seconds, "{:.4g}", between, behind)])
    caption = f"Parts of a step of {data['model']} ({data['kind']}, {name.split('.')[0]})"
    said = dict.fromkeys([*data["notes"], *breakdown.too_noisy(parts)])
    notes = [f"{note[:1].upper()}{note[1:]}." for note in said]
    return ReportTable(caption=caption, columns=["part", "ms per step"], rows=rows, notes=notes)


def _verdicts(runs, first, second):
    rows = []
    for strategy in sorted({run.strategy or "" for run in runs}):
        same = [run for run in runs if run.strategy in (strategy, "single")]
        for workers in sorted({run.workers for run in same if (run.workers or 1) > 1}):
            with suppress(LabsError):
                found = verdict.compare(same, first, second, workers)
                behind = " [{:.3f}, {:.3f}]".format(*found.interval) if found.interval else ""
                ratio = cell(found.ratio, "{:.3f}", found.interval, behind)
                rows.append([Cell(text=strategy), cell(workers), ratio, Cell(text=found.said)])
    caption = f"Efficiency of {first} divided by that of {second}"
    heads = ["strategy", "workers", "ratio", "different?"]
    return [ReportTable(caption=caption, columns=heads, rows=rows)] if rows else []


def figures(course, item, names):
    """(what report.json says of it, the matplotlib figure) for each figure of a task that its runs allow."""
    if item.evidence.pictured:
        module, _, function = f"lessons.{item.evidence.pictured}".rpartition(".")
        pictured = getattr(importlib.import_module(module), function)(course.runs)
        for number, (caption, figure) in enumerate(pictured, 1):
            yield Figure(name=f"{item.id}-{number}", caption=caption, alt=figure.alt, runs=[]), figure
        return
    steady = course.measured_together([name for name in names if course.held[name].run.steady])
    for number, (caption, figure) in enumerate(_drawn(item.evidence.figures, steady), 1):
        runs = [run.source for run in figure.runs]
        of = f"{caption} ({', '.join(run.removesuffix('.json') for run in runs)})"
        yield Figure(name=f"{item.id}-{number}", caption=of, alt=figure.alt, runs=runs), figure


def _drawn(kinds, runs):
    """(caption, figure) of each kind that the runs allow."""
    pairs = _pairs(runs)
    for kind in kinds:
        for one, run in pairs if kind in ("rounds", "steps") else ():
            with suppress(LabsError):  # as of two machines
                if kind == "rounds":
                    yield "Epochs and speedup by round", plots.rounds(run, one)
                else:
                    yield "Every step", plots.steps(one, run)
        for group in _comparable(runs):
            if kind == "scaling" and len(group) > 1:
                yield "Epoch time, images per second and speedup", plots.scaling(group)
            if kind == "learning" and any(run.loss for run in group):
                yield "Loss and accuracy by epoch", plots.learning(group)


def _pairs(runs):
    """(1-worker run, other run) of the trainings that took turns."""
    ones = [run for run in runs if run.workers == 1]
    return [(one, run) for run in runs if run.workers != 1 for one in ones if metrics.in_turns(run, one)]


def _comparable(runs):
    """Runs in groups that may stand in one figure: of one strategy, kind and hardware, each run once."""

    def of(run):
        return run.strategy, run.kind, run.hardware, not run.study

    return [*grouped((of(run), run) for run in runs if run.workers).values()]


def outcome(course, prediction):
    """The measured outcome of a prediction as a Cell; None where it was not measured, or cannot be."""
    wanted = prediction.outcome
    if not wanted:
        return None
    try:
        value, interval = _quantity(course, wanted.what, wanted.of)
        if wanted.by:
            value, interval = value / _quantity(course, wanted.what, wanted.by)[0], None
            if wanted.what == "largest_batch":
                maxbatch.refuse_other_budget(*(course.measured[f"{of}.maxbatch.json"] for of in (wanted.of, wanted.by)))
        return measured(value, interval)
    except maxbatch.BatchError as problem:
        return Cell(text=str(problem))
    except (LabsError, KeyError, TypeError, IndexError, ZeroDivisionError):
        return None


def measured(value, interval):
    """A cell with a number and its interval, or None."""
    text = digits(value) + (" [{}, {}]".format(*map(digits, interval)) if interval else "")
    return Cell(text=text, value=value, interval=interval)


def _quantity(course, what, name):
    """(value, interval or None) of a run. Raises LabsError, KeyError and others where it is not known."""
    if what == "largest_batch":
        return course.measured[f"{name}.maxbatch.json"]["largest"], None
    if what == "median_step":
        return steps.quantile(*steps.distribution(course.held[name].run)), None
    study = course.held[name].run.study
    together = [other for other, held in course.held.items() if other == name or (study and held.run.study == study)]
    return _value(course.measured_together(together)[together.index(name)], what)


def scripts(course, item):
    """The scripts of a task, with the lines marked that differ from what the student began with."""
    for label, script in course.scripts(item.evidence):
        text = course.private.code(script.decode(errors="replace"))
        lines, changed = text.replace("\r\n", "\n").rstrip("\n").split("\n"), None
        with suppress(LabsError, OSError, KeyError):
            before = course.fresh[label]().decode(errors="replace").split("\n")
            changed = [number + 1 for number in other_lines(before, lines)]
        yield ReportScript(file=label, sha256=digest(script), lines=_cut(lines, 400)[0], changed=changed)


def other_lines(before, after):
    """Numbers, from 0, of the lines of a text, `after`, that differ from those of an earlier one."""
    codes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [number for tag, _, _, begin, end in codes if tag != "equal" for number in range(begin, end)]


def logs(course, names, seen):
    """The lines of the .out and .err files of some runs that matter: header, epochs, failure. `seen`: files that have
    been shown, which is once."""
    for name in names:
        for ending in (".out", ".err"):
            path = course.held[name].log(ending) if name in course.held else course.runs / (name + ending)
            if path and path not in seen:
                seen.add(path)
                with suppress(OSError):
                    yield _log(course, path)


def _log(course, path):
    text, _ = excerpt(path)
    ranked = map(split_rank, content.shown(text).split("\n"))
    whole = [line.rstrip() for rank, line in ranked if rank in (None, 0)] if path.suffix == ".out" else []
    begin = next((n for n, line in enumerate(whole) if _BEGUN.fullmatch(line)), len(whole))
    told = [line for line in whole[begin:] if _TOLD.match(line) or log.result(line) or log.header(line)]
    chosen = whole[: min(begin, 12)] + told
    chosen, left = _cut([line for line in chosen if line], MOST_LINES)
    if problem := failures.failure(path):
        chosen.append(f"line {problem['line_number']}: {problem['line']}  <- {problem['kind']}")
    kept = [course.private.log(line[:LONGEST] + (" ..." if len(line) > LONGEST else "")) for line in chosen]
    return Lines(file=path.name, lines=kept, left_out=left)


def _cut(lines, most):
    """(lines, the middle of many left out; how many these are)."""
    if len(lines) <= most:
        return lines, 0
    left = len(lines) - most
    return lines[: most // 2] + [f"... {left} lines are left out ..."] + lines[-(most - most // 2) :], left


def cited(answer, names):
    """Those of the runs that an answer names; one whose name is a word like others only as runs/NAME."""
    there = [name for name in names if name in (answer or "")]
    before = {name: r"(?<![\w.-])" if re.search(r"[\d_]", name) else "runs/" for name in there}
    return [name for name in there if re.search(rf"{before[name]}{re.escape(name)}(?![\w-])", answer)]
