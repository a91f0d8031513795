"""From files to runs, and to the table that `labs results FILE...` prints.

Files of the same stem are one job. For the .out and .err of a batch script, <stem>, stand the records
<stem>_w<workers>.json of its trainings, or those of its study in the folder <stem>.
"""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from tabulate import tabulate

from labs.errors import LabsError, UseError
from labs.files import later
from labs.printed import digits, finite, grouped, printable
from labs.results import failures, metrics, text
from labs.results import log as logs
from labs.results import run as records
from labs.results.run import Configuration, NoRecordError, RecordError, Run

LOGS = (".out", ".log", ".txt")
TYPES = (".json", *LOGS, ".err")


def load(
    paths: str | Path | Iterable[str | Path],
    *,
    images: int | None = None,
    model: str | None = None,
    workers: int | None = None,
    global_batch: int | None = None,
) -> list[Run]:
    """The runs in the files, measured together (labs.results.metrics.measure).

    paths: .json records, logs (.out .log .txt), .err files, or folders of them, also copied from a cluster. Of one job
        its records are preferred to its log, and its .err explains its failure
    images, model, workers, global_batch: what logs do not say: images in the data set, name of the network, number of
        workers, images per step of all of them

    Raises UseError: unknown type, missing file, folder without results, or the only job given cannot be read. With
    several jobs, one without epochs is a run that holds its failure and a note.
    """
    options = {"images": images, "model": model, "workers": workers, "global_batch": global_batch}
    jobs, runs = _jobs(paths), []
    for stem, job in jobs.items():
        try:
            runs += _read(stem, job, options)
        except LabsError as error:
            if len(jobs) == 1:
                raise
            first = next(job[kind] for kind in TYPES if kind in job).name
            unread = getattr(error, "runs", []) or [Run(source=first, kind="recorded", state="failed")]
            unread[-1].notes.append(str(error))
            runs += unread
    return metrics.measure(runs)


def _jobs(paths):
    """{stem: {type: path}} of the jobs whose files these are, or lie in these folders."""
    jobs = {}
    for path in map(Path, [paths] if isinstance(paths, str | Path) else paths):
        if not path.exists():
            raise UseError(f"{path}: no such file or folder. Check its name, and where the job wrote its output.")
        if not path.is_dir() and (path.suffix not in TYPES or not path.is_file()):
            raise UseError(f"{path}: not a regular file of a type that is read ({', '.join(TYPES)}).")
        inside = _inside(path) if path.is_dir() else [path]
        if not inside:
            raise UseError(f"{path}: no results ({', '.join(TYPES)}) in this folder. Did the jobs write here?")
        for file in inside:
            jobs.setdefault(file.with_suffix(""), {})[file.suffix] = file
    scripts = {_script(stem) for stem, job in jobs.items() if ".json" in job}  # whose trainings have records
    return {stem: job for stem, job in jobs.items() if ".json" in job or stem not in scripts}


def _script(stem):
    """The stem of the files of the batch script in which a training ran, or its own."""
    return stem.with_name(re.sub(r"_w\d+$", "", stem.name))


def _inside(folder):
    """The files of a folder that hold results, in order of names, but for those of labs.measure.maxbatch, which runs
    out of memory on purpose. The folder of a batch script's study stands for the script's own files."""
    files = []
    for path in sorted(folder.iterdir()):
        stem, out = path.with_suffix(""), path.with_suffix(".out")
        if path.suffix not in (".json", ".out", ".log", ".err") or not path.is_file() or _replaced(stem):
            continue
        if path.suffix == ".json":
            files += [path] if _is_record(path) else []
        else:
            search = out.is_file() and re.search(
                r"(?m)^(?:Trial batch \d|largest batch that fits: )", text.content(out)
            )
            study = _inside(stem) if stem.is_dir() else []
            files += study or ([] if search else [path])
    return list(dict.fromkeys(files))


def _replaced(stem):
    """Whether this is an earlier run (labs.files.move_aside) of one that is there. Its record says its name."""
    if not any(stem.with_name(f"{name}{kind}").exists() for name in later(stem.name) for kind in (".json", ".out")):
        return False
    with suppress(LabsError):
        return records.load(stem.with_name(f"{stem.name}.json")).name != stem.name
    return True


def _is_record(path):
    """Whether a .json is a run record, if a broken one; others are progress, settings, timelines."""
    with suppress(RecordError):
        try:
            records.load(path)
        except NoRecordError:
            return False
    return True


def _read(stem, job, options):
    """The runs of one job."""
    log = next((job[kind] for kind in LOGS if kind in job), stem.with_name(f"{stem.name}.out"))
    err = job.get(".err", stem.with_name(f"{stem.name}.err"))
    if ".json" in job:
        run = records.load(job[".json"])
        script = _script(stem)
        if script != stem and script.with_name(f"{script.name}.out").is_file():
            run.job_id = run.job_id or script.name  # one job, also where no record says its number
        run.failure = failures.in_files(err, script.with_name(f"{script.name}.err")) if run.truncated else None
        return [run]
    if log.is_file():
        return logs.read(log, **options)
    problem = failures.in_files(err)
    if not problem:
        raise UseError(f"{err}: no line that the kit knows, and no log beside it. Give the job's .out as well.")
    return [Run(source=err.name, kind="recorded", state="failed", failure=problem)]


BRACKETS = "95 % interval over rounds or repeats, wider for rounded logs; for times and images/s only in these minutes"
# heading: (attribute of a run, function that writes its value)
COLUMNS = {
    "model": ("model", str),
    "workers": ("workers", str),
    "batch (global)": ("global_batch", str),
    "steps": ("steps", str),
    "epoch (s)": ("epoch_seconds", lambda value: digits(value, 4)),
    "images/s": ("images_per_second", lambda value: digits(value, 4)),
    "speedup": ("speedup", digits),
    "efficiency": ("efficiency", digits),
    "scaling": ("scaling", str),
    "loss": ("final_loss", "{:.4f}".format),
    "accuracy": ("final_accuracy", "{:.4f}".format),
    "kind": ("kind", str),
}


def table(runs: Sequence[Run]) -> str:
    """Runs as an aligned plain text table: value [interval], units in the header, notes and failures below.

    Columns that are empty in every row are left out.
    """
    columns = {"run": [f"{n} {run.source}{' FAILED' if run.failure else ''}" for n, run in enumerate(runs, 1)]}
    for heading, (name, write) in COLUMNS.items():
        cells = [_cell(run, name, write) for run in runs]
        if any(cell != "-" for cell in cells):
            columns[heading] = cells
        if name == "steps":
            columns["rounds or repeats"] = [str(counted(run)) for run in runs]
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


def _cell(run, name, write):
    value = getattr(run, name)
    number = getattr(value, "value", value)
    if number is None:
        return "-"
    mark = "*" if name == "workers" and run.oversubscribed else ""
    return write(number) + span(run, name, write) + mark


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
_PLAIN += ("loss", "accuracy")
_ESTIMATES = ("epoch_seconds", "images_per_second", "speedup", "efficiency")


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
