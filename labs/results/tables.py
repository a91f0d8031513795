"""From files to runs, and to the table that `labs results FILE...` prints.

Files of the same stem are one job. To the .out and .err of a batch script, <stem>, belong the records
<stem>_w<workers>.json of its trainings, or the folder <stem> of its study, which then stands for it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tabulate import tabulate

from labs.errors import LabsError
from labs.files import later
from labs.printed import finite, grouped, printable
from labs.results import failures, metrics, text
from labs.results import log as logs
from labs.results import run as records
from labs.results.metrics import MetricsError
from labs.results.record import Configuration, NoRecordError, RecordError
from labs.results.run import Run

LOGS = (".out", ".output", ".log", ".txt")
TYPES = (".json", *LOGS, ".err")
SAME_MACHINE = "one machine, as was said"
_GIVEN = re.compile(r"(.+?):((?:(?:images|model|workers|global_batch)=[^,=]+,?)+)")
Paths = str | Path | Iterable[str | Path]


def load(
    paths: Paths,
    *,
    images: int | None = None,
    model: str | None = None,
    workers: int | None = None,
    global_batch: int | None = None,
    same_machine: bool = False,
) -> list[Run]:
    """The runs in the files, measured together (labs.results.metrics.measure).

    paths: .json records, logs (.out .output .log .txt), .err files, or folders of them, also copied from a cluster. Of
        one job its records are preferred to its log, and its .err explains its failure
    images, model, workers, global_batch: what logs do not say: images in the data set, name of the network, number of
        workers, images per step of all of them; of one file behind its path: "four.out:workers=4,global_batch=256"
    same_machine: what belongs to no study was trained on one machine, and 1 worker of it may divide the others

    Raises MetricsError (unknown type, missing file, no number, folder without results), RecordError or LogError (the
    only job given cannot be read). With several jobs, one without epochs is a run that holds its failure and a note.
    """
    options = {"model": model, "workers": workers, "global_batch": global_batch, "images": images}
    jobs = list(read(paths, **options))
    if len(jobs) == 1 and (error := jobs[0][1]):
        raise error
    runs = [run for runs, _ in jobs for run in runs]
    for run in runs if same_machine else ():
        run.study = run.study or SAME_MACHINE
        if run.workers == 1:
            run.configuration.strategy = run.strategy or "single"
    return metrics.measure(runs)


def read(paths: Paths, **options: str | int | None) -> Iterator[tuple[list[Run], LabsError | None]]:
    """For each job in the files (as of `load`) its runs, not measured, and the LabsError that says why it cannot be
    read, or None.

    A job that cannot be read has the runs that it names, without epochs, or one that stands for it; the last of them
    has the reason among its notes. Raises MetricsError (unknown type, missing file, folder without results).
    """
    paths = [paths] if isinstance(paths, str | Path) else paths
    given = [_given(path) for path in paths]
    of_path = {path if path.is_dir() else path.with_suffix(""): values for path, values in given if values}
    for stem, job in _jobs([path for path, _ in given]).items():
        try:
            yield _read(stem, job, options | of_path.get(stem.parent, {}) | of_path.get(stem, {})), None
        except LabsError as error:
            first = stem.name + next((kind for kind in TYPES if kind in job), "")
            runs = getattr(error, "runs", []) or [Run(first, kind="recorded", state="failed")]
            runs[-1].notes.append(str(error))
            yield runs, error


def _given(path):
    """(path, {field: value}) of a path, behind which may stand what its file does not say."""
    match = _GIVEN.fullmatch(str(path))
    if not match or Path(path).exists():
        return Path(path), {}
    values = dict(pair.split("=") for pair in match[2].split(",") if pair)
    for name in values.keys() - {"model"}:
        if not values[name].isdecimal() or not 0 < int(values[name]) < 10**9:
            raise MetricsError(f"{path}: {name} is {values[name]}. It must be a whole number of at least 1.")
        values[name] = int(values[name])
    return Path(match[1]), values


def _jobs(paths):
    """{stem: {type: file}} of the files, in the given order; folders give all jobs in them by name.

    Records are given as the Run, or the RecordError, that reading them gives. An earlier run (labs.files.move_aside)
    is left out where the later one is there: they are not measured together.
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
            content = _load(file) if file.suffix == ".json" else file
            if path.is_dir() and (isinstance(content, NoRecordError) or (content is file and _is_search(file))):
                continue  # other .json lie there too: progress, settings
            jobs.setdefault(file.with_suffix(""), {})[file.suffix] = content
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
    paths, of_study = [], {}
    for path in sorted(folder.iterdir()):
        if path.suffix not in TYPES or path.suffix == ".txt" or not path.is_file():
            continue
        study = path.with_suffix("")
        if study not in of_study:
            of_study[study] = _inside(study) if study.is_dir() else []
            paths += of_study[study]
        paths += [] if of_study[study] else [path]
    return paths


def _load(path):
    """The run that a record describes; a RecordError where it cannot be read."""
    try:
        return records.load(path)
    except RecordError as error:
        error.source = path.name
        return error


def _replaced(stem, job, stems):
    """Whether a job is an earlier run of another one of these. A record tells under which name its run was made."""
    if not any(stem.with_name(name) in stems for name in later(stem.name)):
        return False
    return not (isinstance(job.get(".json"), Run) and job[".json"].name == stem.name)


def _is_search(path):
    """Whether a log or .err is that of labs.measure.maxbatch, which runs out of memory on purpose."""
    if path.with_name(re.sub(r"_bisect\d+$", "", path.stem) + ".maxbatch.json").exists():
        return True
    out = path.with_suffix(".out")  # of a batch script
    return out.is_file() and any(line.startswith("largest batch that fits: ") for _, line, _ in text.lines(out))


def _read(stem, job, options):
    """The runs of one job."""
    log = next((job[kind] for kind in LOGS if kind in job), None)
    if "records" in job:
        return _batch(stem, job["records"], log, job.get(".err"), options)
    record = job.get(".json")
    if isinstance(record, RecordError):
        raise record
    err = job.get(".err") or stem.with_name(stem.name + ".err")
    if record and (record.epochs or not log):
        if not err.is_file():
            err = err.with_name(re.sub(r"_w\d+\.err$", ".err", err.name))  # of the batch script
        record.failure = failures.in_files(err) if record.truncated else None
        return [record]
    if not log:  # an .err alone: the log beside it, or the failure only
        beside = (stem.with_name(stem.name + kind) for kind in LOGS)
        log = next((path for path in beside if path.is_file()), None)
    if log:
        return logs.read(log, **options)
    problem = failures.in_files(err)
    if not problem:
        raise logs.LogError(f"{err}: no line that the kit knows, and no log beside it. Give the job's .out as well.")
    return [Run(err.name, kind="recorded", state="failed", failure=problem)]


def _batch(stem, entries, log, err, options):
    """The runs of a batch script's trainings by their workers, from their records, else as its log has them.

    The failure that .err (or the log) names is given to the run that did not end; if all ended, the script failed
    after them, or before the next one began, and the failure is a run of its own.
    """
    runs, logged = [entry for entry in entries if isinstance(entry, Run)], []
    if log:
        try:
            logged = logs.read(log, **options)
        except logs.LogError as error:
            logged = error.runs
    for run in logged:
        run.failure = None
    runs += [run for run in logged if run.workers not in {None, *(other.workers for other in runs)}]
    runs.sort(key=lambda run: run.workers or 0)
    problem = failures.in_files(err, log)
    if unfinished := [run for run in runs if run.truncated]:
        unfinished[-1].failure = problem
    elif problem and not failures.harmless(problem):
        note = "the job failed after the runs above had finished"
        runs.append(Run(problem["file"], kind="recorded", state="failed", failure=problem, notes=[note]))
    for run in runs:  # one job, also where no record says its number
        run.job_id, run.folder = run.job_id or stem.name, stem.resolve().parent
    broken = [entry for entry in entries if not isinstance(entry, Run)]
    return runs + [Run(error.source, kind="recorded", state="failed", notes=[str(error)]) for error in broken]


BRACKETS = "95 % interval over rounds or repeats, wider for rounded logs; for times and images/s only in these minutes"
# heading: (attribute of a run, how its number is written)
COLUMNS = {
    "model": ("model", "{}"),
    "workers": ("workers", "{}"),
    "batch (global)": ("global_batch", "{}"),
    "steps": ("steps", "{}"),
    "epoch (s)": ("epoch_seconds", "{:.4g}"),
    "step (s)": ("step_time", "{:.3g}"),
    "images/s": ("images_per_second", "{:.4g}"),
    "images/s without validation": ("training_images_per_second", "{:.4g}"),
    "images/s per worker": ("images_per_second_per_worker", "{:.4g}"),
    "speedup": ("speedup", "{:.3g}"),
    "efficiency": ("efficiency", "{:.3g}"),
    "loss": ("final_loss", "{:.4f}"),
    "accuracy": ("final_accuracy", "{:.4f}"),
    "kind": ("kind", "{}"),
}


def table(runs: Sequence[Run]) -> str:
    """Runs as an aligned plain text table: value [interval], units in the header, notes and failures below.

    Columns that are empty in every row are left out.
    """
    columns = {"run": [f"{n} {run.source}{' FAILED' if run.failure else ''}" for n, run in enumerate(runs, 1)]}
    validated = any("val_loss" in epoch.metrics for run in runs for epoch in run.epochs)
    for heading, (name, form) in COLUMNS.items():
        cells = [_cell(run, name, form) for run in runs]
        if any(cell != "-" for cell in cells) and (name != "training_images_per_second" or validated):
            columns[heading] = cells
        if name == "steps":
            columns["rounds or repeats"] = [str(counted(run)) for run in runs]
        if name == "efficiency" and any(run.scaling for run in runs):
            columns["scaling"] = [_scaling(run, runs) for run in runs]
    lines = tabulate(columns, headers="keys", tablefmt="simple", disable_numparse=True).splitlines()
    notes = []  # (note, number of the run)
    for number, run in enumerate(runs, 1):
        failed = [failures.sentence(run.failure, run.source)] if run.failure else []
        notes += [(note, str(number)) for note in [*failed, *run.notes]]
    legend = ["", f"[low, high]: {BRACKETS}."]
    if any("(1 run" in line for line in lines):
        legend.append("(1 run): no interval; low to high is what the log's rounding leaves open.")
    lines += legend if runs else ["(no runs)"]
    lines += [f"Run {', '.join(numbers)}: {note}" for note, numbers in grouped(notes).items()]
    return printable("\n".join(map(str.rstrip, lines)))


def counted(run: Run) -> int:
    """Of how many rounds, or repeats with a steady epoch, a run's times are the mean."""
    rounds, _ = metrics.quiet_rounds(run, run.baseline or run)
    return len(rounds) or len(run.steady)


def _scaling(run, runs):
    """The kind of scaling, and by which row was divided: "weak, by run 1"."""
    if run.speedup.value is None or run.workers == 1:
        return "-"
    of_base = run.baseline.folder, run.baseline.source, run.baseline.index
    by = next((n for n, one in enumerate(runs, 1) if (one.folder, one.source, one.index) == of_base), None)
    return f"{run.scaling or 'unknown'}, by {f'run {by}' if by else run.baseline.source}"


def _cell(run, name, form):
    value = getattr(run, name)
    number = getattr(value, "value", value)
    if number is None:
        return "-"
    mark = "*" if name == "workers" and run.oversubscribed else ""
    return form.format(number) + span(run, name, form.format) + mark


def span(run: Run, name: str, text) -> str:
    """What stands behind an Estimate of a run: " [low, high]", its interval; of 1 run " (1 run, low to high)", what
    rounding leaves open, or " (1 run)"; nothing behind counts and the 1 of a baseline. `text` writes a number."""
    estimate = getattr(run, name)
    if not hasattr(estimate, "interval") or (run.workers == 1 and name in ("speedup", "efficiency")):
        return ""
    if estimate.interval:
        return " [{}, {}]".format(*map(text, estimate.interval))
    if name.startswith("final_"):
        return ""
    low, high = map(text, estimate.rounded or (0, 0))
    return f" (1 run, {low} to {high})" if low != high else " (1 run)"


_PLAIN = ("kind", "name", "steps", "hardware", "oversubscribed", "study", "started", "failure", "truncated", "scaling")
_PLAIN += ("images_per_second_per_worker", "loss", "accuracy")
_ESTIMATES = ("epoch_seconds", "step_time", "images_per_second", "training_images_per_second", "speedup", "efficiency")


def row(run: Run) -> dict:
    """A run in numbers, ready for JSON: None for what is not known or not finite; times in seconds.

    Beside a quantity stand its interval [low, high], None without one, and `_rounded`, what the rounding of a log's
    times leaves open. loss and accuracy have a value for each epoch.
    """
    values = {"source": run.source, "run": run.index, "repeats": len(run.steady)}
    values["rounds"] = counted(run) if run.rounds else None
    values |= {name: getattr(run.configuration, name) for name in Configuration.model_fields if name != "repeats"}
    values |= {name: getattr(run, name) for name in _PLAIN}
    values |= {"images_per_epoch": metrics.epoch_images(run)[0]}
    values["baseline"] = run.baseline and run.baseline.source
    for name in (*_ESTIMATES, "final_loss", "final_accuracy"):
        estimate = getattr(run, name)
        values |= {name: estimate.value, f"{name}_interval": estimate.interval, f"{name}_rounded": estimate.rounded}
    return finite(values | {"notes": run.notes})
