"""From files to results: what `labs results FILE...` prints, as rows (labs.results.metrics.summarise) and as a table."""

import re
from pathlib import Path

from labs.results import batch_results, metrics
from labs.results import log as logs
from labs.results.failures import failure
from labs.results.run import MetricsError, Run, load_record

LOGS = (".out", ".output", ".log", ".txt")
TYPES = (".json", *LOGS, ".err")


def rows(paths, *, images=None, model=None, workers=None, global_batch=None) -> list[dict]:
    """One row per run in the files, summarised together (so baselines are found across files).

    Args: `paths` are .json records, logs (.out .output .log .txt), .err files, or folders of them, also copied from a
    cluster. Files of the same stem are one job: its record is preferred to its log, its .err explains its failure. To
    the .out and .err of a batch script, <stem>, belong the records <stem>_w<workers>.json: each of its runs is one row,
    from its record or else from the log. The options fill in what the files do not say.
    Errors: MetricsError (unknown type, missing file, folder without results) or LogError (no epoch in the only
    job given). With several jobs, one without epochs becomes a row that holds its failure and a note.
    """
    options = {"model": model, "workers": workers, "global_batch": global_batch, "images": images}
    paths = [paths] if isinstance(paths, str | Path) else paths
    jobs = _jobs([Path(path) for path in paths])
    runs, errors = [], []
    for stem, files in jobs.items():
        try:
            runs += _read(stem, files, options)
        except (logs.LogError, MetricsError) as error:
            errors.append(error)
            source = next(files[kind] for kind in TYPES if kind in files).name
            failed = getattr(error, "runs", []) or [Run(source, truncated=True)]
            failed[-1].notes.append(str(error))
            runs += failed
    if errors and len(errors) == len(jobs):
        raise errors[0]
    return metrics.summarise(runs)


def _jobs(paths):
    """{stem: {type: file}} of the files, in the given order; folders give all jobs in them by name."""
    jobs = {}
    for path in paths:
        if path.is_dir():
            inside = [p for p in sorted(path.iterdir()) if p.suffix in TYPES and p.is_file() and _belongs(p)]
            if not inside:
                raise MetricsError(f"{path}: no results ({', '.join(TYPES)}) in this folder. Did the jobs write here?")
        elif path.suffix not in TYPES:
            raise MetricsError(f"{path}: type {path.suffix or '(none)'} is not read, only {', '.join(TYPES)}.")
        elif not path.exists():
            raise MetricsError(f"{path}: no such file. Check its name, and where the job wrote its output.")
        else:
            inside = [path]
        for file in inside:
            jobs.setdefault(file.with_suffix(""), {})[file.suffix] = file
    for stem in list(jobs):  # records of a batch script's trainings go to its log
        match = re.fullmatch(r"(.+)_w\d+", stem.name)
        script = stem.with_name(match[1]) if match else None
        if script in jobs and ".json" not in jobs[script] and list(jobs[stem]) == [".json"]:
            jobs[script].setdefault("records", []).append(jobs.pop(stem)[".json"])
    return jobs


def _belongs(path):
    """Whether a file in a folder is a training's: other .json (progress, settings) and .txt files lie there too."""
    if path.suffix == ".json":
        try:
            load_record(path)
        except MetricsError as error:
            return "not a run record" not in str(error)
    return path.suffix != ".txt" and not _search(path)


def _search(path):
    """Whether a log or .err is that of a search for the largest batch (labs.measure.maxbatch), which runs out of memory."""
    if path.with_name(re.sub(r"_bisect\d+$", "", path.stem) + ".maxbatch.json").exists():
        return True
    out = path.with_suffix(".out")
    return out.is_file() and b"\nlargest batch that fits: " in out.read_bytes()


def _read(stem, files, options):
    log = next((files[kind] for kind in LOGS if kind in files), None)
    if "records" in files:
        return batch_results.runs(files["records"], log, files.get(".err"), options)
    record = load_record(files[".json"]) if ".json" in files else None
    err = files.get(".err") or stem.with_name(stem.name + ".err")
    if record and (record.repeats or not log):
        if not err.is_file():
            err = err.with_name(re.sub(r"_w\d+\.err$", ".err", err.name))  # of the batch script
        batch_results.fill(record, options)
        if record.truncated and err.is_file() and (problem := failure(err)):
            record.failure = problem | {"file": err.name}
        return [record]
    if not log:  # an .err alone: the log beside it, or the failure only
        beside = (stem.with_name(stem.name + kind) for kind in LOGS)
        log = next((path for path in beside if path.is_file()), None)
    if log:
        return logs.read(log, **options)
    problem = failure(err)
    if not problem:
        raise logs.LogError(f"{err}: no failure in it, and no log beside it. Give the job's .out as well.")
    return [Run(err.name, failure=problem | {"file": err.name}, truncated=True)]


_COLUMNS = [  # heading, key, format
    ("run", None, None),
    ("model", "model", "{}"),
    ("workers", "workers", "{}"),
    ("batch (global)", "global_batch", "{}"),
    ("steps", "steps", "{}"),
    ("repeats", "repeats", "{}"),
    ("epoch (s)", "epoch_seconds", "{:.4g}"),
    ("images/s", "images_per_second", "{:.4g}"),
    ("images/s per worker", "images_per_second_per_worker", "{:.4g}"),
    ("speedup", "speedup", "{:.3g}"),
    ("efficiency", "efficiency", "{:.3g}"),
    ("loss", "final_loss", "{:.4f}"),
    ("accuracy", "final_accuracy", "{:.4f}"),
    ("kind", "kind", "{}"),
]


def table(rows) -> str:
    """Rows as an aligned plain text table: value [95 % interval], units in the header, notes below.

    Columns that are empty in every row are left out.
    """
    cells = [[_cell(row, number, *column[1:]) for column in _COLUMNS] for number, row in enumerate(rows, 1)]
    used = [n for n in range(len(_COLUMNS)) if any(line[n] != "-" for line in cells)]
    lines = [[_COLUMNS[n][0] for n in used], *([line[n] for n in used] for line in cells)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    text.insert(1, "  ".join("-" * width for width in widths))
    notes = {}
    for number, row in enumerate(rows, 1):
        problem = row["failure"]
        where = f"{problem.get('file', row['source'])}, line {problem['line_number']}" if problem else ""
        failed = [f"failed: {problem['kind']} ({where}: {problem['line'][:200]})"] if problem else []
        for note in [*failed, *row["notes"]]:
            notes.setdefault(note, []).append(str(number))
    legend = ["", "[low, high]: 95 % interval over repeats, widened by the rounding of the log."]
    text += legend if rows else ["(no runs)"]
    return "\n".join([*text, *(f"Run {', '.join(numbers)}: {note}" for note, numbers in notes.items())])


def _cell(row, number, key, form):
    if key is None:
        return f"{number} {row['source']}" + (" FAILED" if row["failure"] else "")
    value, interval = row[key], row.get(f"{key}_interval")
    if value is None:
        return "-"
    mark = "*" if key == "workers" and row["oversubscribed"] else ""
    span = f" [{form.format(interval[0])}, {form.format(interval[1])}]" if interval else ""
    return form.format(value) + span + mark
