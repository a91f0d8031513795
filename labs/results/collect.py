"""From files to results: what `labs results FILE...` prints, as rows (labs.results.metrics.summarise) and as a table.

Files of the same stem are one job. To the .out and .err of a batch script, <stem>, belong the records
<stem>_w<workers>.json of its trainings, or the folder <stem> of its study, which then stands for it.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tabulate import tabulate

from labs.errors import LabsError
from labs.files import beside, later
from labs.printed import grouped, printable
from labs.results import log as logs
from labs.results import metrics, text
from labs.results.record import NoRecordError, RecordError
from labs.results.run import MetricsError, Run, load_record

LOGS = (".out", ".output", ".log", ".txt")
TYPES = (".json", *LOGS, ".err")


SAME_MACHINE = "one machine, as was said"
_SAID = re.compile(r"(.+?):((?:(?:images|model|workers|global_batch)=[^,=]+,?)+)")


def rows(
    paths: str | Path | Iterable[str | Path],
    *,
    images: int | None = None,
    model: str | None = None,
    workers: int | None = None,
    global_batch: int | None = None,
    same_machine: bool = False,
) -> list[metrics.Row]:
    """One row per run in the files, summarised together (so baselines are found across files).

    paths: .json records, logs (.out .output .log .txt), .err files, or folders of them, also copied from a cluster. Of
        one job its record is preferred to its log, and its .err explains its failure; each run of a batch script is one
        row, from its record or else from the log
    images, model, workers, global_batch: what the files do not say: images in the data set, name of the network, number
        of workers, images per step of all of them; of one file behind its path: "four.out:workers=4,global_batch=256"
    same_machine: what belongs to no study was trained on one machine, and 1 worker of it may divide the others

    Raises MetricsError (unknown type, missing file, no number, folder without results), RecordError or LogError (the
    only job given cannot be read). With several jobs, one without epochs becomes a row that holds its failure and a
    note.
    """
    options = {"model": model, "workers": workers, "global_batch": global_batch, "images": images}
    jobs = list(read(paths, **options))
    if len(jobs) == 1 and (error := jobs[0][1]):
        raise error
    runs = [run for found, _ in jobs for run in found]
    for run in runs if same_machine else ():
        run.study = run.study or SAME_MACHINE
        if run.workers == 1:
            run.fill({"strategy": "single"})
    return metrics.summarise(runs)


def read(paths: str | Path | Iterable[str | Path], **options) -> Iterator[tuple[list[Run], LabsError | None]]:
    """For each job in the files (as of `rows`) its runs, and the LabsError that says why it cannot be read, or None.

    A job that cannot be read has the runs that it names, without epochs, or one that stands for it; the last of them
    has the reason among its notes. Raises MetricsError (unknown type, missing file, folder without results).
    """
    paths = [paths] if isinstance(paths, str | Path) else paths
    said = [_said(path) for path in paths]
    of = {path if path.is_dir() else path.with_suffix(""): given for path, given in said if given}
    for stem, files in _jobs([path for path, _ in said]).items():
        try:
            yield _read(stem, files, options | of.get(stem.parent, {}) | of.get(stem, {})), None
        except LabsError as error:
            first = stem.name + next((kind for kind in TYPES if kind in files), "")
            failed = getattr(error, "runs", []) or [Run(first, truncated=True)]
            failed[-1].notes.append(str(error))
            yield failed, error


def _said(path):
    """(path, {field: value}) of a path, behind which may stand what its file does not say."""
    match = _SAID.fullmatch(str(path))
    if not match or Path(path).exists():
        return Path(path), {}
    given = dict(each.split("=") for each in match[2].split(",") if each)
    for name in given.keys() - {"model"}:
        if not given[name].isdecimal() or not 0 < int(given[name]) < 10**9:
            raise MetricsError(f"{path}: {name} is {given[name]}. It must be a whole number of at least 1.")
        given[name] = int(given[name])
    return Path(match[1]), given


def _jobs(paths):
    """{stem: {type: file}} of the files, in the given order; folders give all jobs in them by name.

    Records are given as what `_load` says of them. An earlier run (labs.files.move_aside) is left out where the later
    one is there: they are not measured together.
    """
    jobs = {}
    for path in paths:
        inside = [path]
        if path.is_dir():
            inside = _inside(path)
        elif not path.exists():
            raise MetricsError(f"{path}: no such file or folder. Check its name, and where the job wrote its output.")
        elif path.suffix not in TYPES:
            raise MetricsError(f"{path}: type {path.suffix or '(none)'} is not read, only {', '.join(TYPES)}.")
        elif not path.is_file():
            raise MetricsError(f"{path}: not a regular file, so it is not read. Copy its content into one.")
        for file in inside:
            held = _load(file) if file.suffix == ".json" else file
            if path.is_dir() and (isinstance(held, NoRecordError) or (held is file and _search(file))):
                continue  # other .json lie there too: progress, settings
            jobs.setdefault(file.with_suffix(""), {})[file.suffix] = held
        if path.is_dir() and not any(file.with_suffix("") in jobs for file in inside):
            raise MetricsError(f"{path}: no results ({', '.join(TYPES)}) in this folder. Did the jobs write here?")
    stems = set(jobs)
    for stem in list(jobs):  # records of a batch script's trainings go to its log
        match = re.fullmatch(r"(.+)_w\d+", stem.name)
        script = stem.with_name(match[1]) if match else None
        if script in jobs and ".json" not in jobs[script] and list(jobs[stem]) == [".json"]:
            jobs[script].setdefault("records", []).append(jobs.pop(stem)[".json"])
    return {stem: job for stem, job in jobs.items() if not _replaced(stem, job, stems)}


def _inside(folder):
    """The files of a folder that may hold results, in order of names; of a study in a batch script those of its folder,
    and the batch script's own only where there are no others yet."""
    found, of = [], {}
    for path in sorted(folder.iterdir()):
        if path.suffix not in TYPES or path.suffix == ".txt" or not path.is_file():
            continue
        study = path.with_suffix("")
        if study not in of:
            of[study] = _inside(study) if study.is_dir() else []
            found += of[study]
        found += [] if of[study] else [path]
    return found


def _load(path):
    """The run that a record describes; a RecordError where it cannot be read."""
    try:
        return load_record(path)
    except RecordError as error:
        error.source = path.name
        return error


def _replaced(stem, job, stems):
    """Whether a job is an earlier run of another one of these. A record tells under which name its run was made."""
    if not any(stem.with_name(name) in stems for name in later(stem.name)):
        return False
    return not (isinstance(job.get(".json"), Run) and job[".json"].name == stem.name)


def _search(path):
    """Whether a log or .err is that of labs.measure.maxbatch, which runs out of memory on purpose."""
    if path.with_name(re.sub(r"_bisect\d+$", "", path.stem) + ".maxbatch.json").exists():
        return True
    out = path.with_suffix(".out")
    lines = text.lines(out) if out.is_file() else ()
    return any(line.startswith("largest batch that fits: ") for _, line, _ in lines)


def _read(stem, files, options):
    log = next((files[kind] for kind in LOGS if kind in files), None)
    if "records" in files:
        found = _batch(files["records"], log, files.get(".err"), options)
        for run in found:  # one job, also where no record says its number
            run.job, run.folder = run.job or stem.name, stem.resolve().parent
        return found
    record = files.get(".json")
    if isinstance(record, RecordError):
        raise record
    err = files.get(".err") or stem.with_name(stem.name + ".err")
    if record and (record.repeats or not log):
        if not err.is_file():
            err = err.with_name(re.sub(r"_w\d+\.err$", ".err", err.name))  # of the batch script
        record.fill(options)
        record.failure = logs.problem_in(err) if record.truncated else None
        return [record]
    if not log:  # an .err alone: the log beside it, or the failure only
        beside = (stem.with_name(stem.name + kind) for kind in LOGS)
        log = next((path for path in beside if path.is_file()), None)
    if log:
        return logs.read(log, **options)
    problem = logs.problem_in(err)
    if not problem:
        raise logs.LogError(f"{err}: it shows no failure, and there is no log beside it. Give the job's .out as well.")
    return [Run(err.name, failure=problem, truncated=True)]


def _batch(records, log, err, options):
    """The runs of a batch script, each once: from its record (times are finer there), else from the log.

    In the order of the log. The failure that .err (or the log) names is given to the run that did not end; if all
    ended, the script failed after them, and the failure is a run of its own.
    """
    records = sorted(records, key=lambda run: [int(part) for part in re.findall(r"\d+", run.source)[-1:]])
    measured, logged = [run for run in records if isinstance(run, Run)], []
    if log:
        try:
            logged = logs.read(log)
        except logs.LogError as error:  # no finished epoch in it
            logged = error.runs
    found = _merge(measured, logged)
    for run in found:
        run.failure = None
        run.fill(options)
    problem = logs.problem_in(err) or logs.problem_in(log)
    if unfinished := [run for run in found if run.truncated]:
        unfinished[-1].failure = problem
    elif problem and not logs.harmless(problem):
        note = "the job failed after the runs above had finished"
        found.append(Run(problem["file"], failure=problem, truncated=True, notes=[note]))
    broken = [error for error in records if not isinstance(error, Run)]
    return found + [Run(error.source, truncated=True, notes=[str(error)]) for error in broken]


def _merge(measured, logged):
    """The log's runs, each replaced by its record where there is one; then the records that the log does not show."""
    place = {}  # number of the record -> place in the log
    for same in (_same_loss, lambda run, other: other.workers is not None and run.workers == other.workers):
        for number, run in enumerate(measured):
            free = [n for n, other in enumerate(logged) if n not in place.values() and same(run, other)]
            if free and number not in place:
                place[number] = free[-1]  # a training that was repeated has written its record over the first one's
    records = {index: measured[number] for number, index in place.items()}
    unseen = [run for number, run in enumerate(measured) if number not in place]
    return [records.get(index, run) for index, run in enumerate(logged)] + unseen


def _same_loss(run, other):
    """The first epoch's loss, as far as the log gives its digits."""
    if not (run.repeats and other.repeats) or (other.workers or run.workers) != run.workers:
        return False
    losses = [each.repeats[0][0].metrics.get("loss") for each in (run, other)]
    return None not in losses and abs(losses[0] - losses[1]) <= 0.6e-4 * max(1, abs(losses[1]))


_COLUMNS = beside(__file__, "columns.toml")


BRACKETS = "95 % interval over rounds or repeats, wider for rounded logs; for times and images/s only in these minutes"


def table(rows) -> str:
    """Rows as an aligned plain text table: value [interval], units in the header, notes below.

    Columns that are empty in every row are left out.
    """
    columns = {"run": [f"{n} {row['source']}{' FAILED' if row['failure'] else ''}" for n, row in enumerate(rows, 1)]}
    for heading, column in _COLUMNS.items():
        cells = [_cell(row, **column) for row in rows]
        if any(cell != "-" for cell in cells):
            columns[heading] = cells
    text = tabulate(columns, headers="keys", tablefmt="simple", disable_numparse=True).splitlines()
    said = []  # (note, number of the run)
    for number, row in enumerate(rows, 1):
        problem = row["failure"]
        where = f"{problem['file'] or row['source']}, line {problem['line_number']}" if problem else ""
        failed = [f"failed: {problem['kind']} ({where}: {problem['line'][:200]})"] if problem else []
        said += [(note, str(number)) for note in [*failed, *row["notes"]]]
    legend = ["", f"[low, high]: {BRACKETS}."]
    if any("(1 run" in line for line in text):
        legend.append("(1 run): no interval; low to high is what the log's rounding leaves open.")
    text += legend if rows else ["(no runs)"]
    text += [f"Run {', '.join(which)}: {note}" for note, which in grouped(said).items()]
    return printable("\n".join(map(str.rstrip, text)))


def _cell(row, key, form):
    value = row[key]
    if value is None:
        return "-"
    mark = "*" if key == "workers" and row["oversubscribed"] else ""
    return form.format(value) + span(row, key, form.format) + mark


def span(row, key, text) -> str:
    """What stands behind a value of a row: " [low, high]", its interval; of 1 run " (1 run, low to high)", what
    rounding leaves open, or " (1 run)"; nothing behind counts and the 1 of a baseline. `text` writes a number."""
    if f"{key}_interval" not in row or (row["workers"] == 1 and key in ("speedup", "efficiency")):
        return ""
    if interval := row[f"{key}_interval"]:
        return " [{}, {}]".format(*map(text, interval))
    if key.startswith("final_"):
        return ""
    low, high = map(text, row[f"{key}_rounded"] or (0, 0))
    return f" (1 run, {low} to {high})" if low != high else " (1 run)"
