"""From files to runs.

Files of the same stem are one job. For the .out and .err of a batch script, <stem>, stand the records
<stem>_w<workers>.json of its trainings, or those of its study in the folder <stem>.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from labs.errors import LabsError, UseError
from labs.files import newer_names
from labs.results import failures, metrics, text
from labs.results import log as logs
from labs.results import run as records
from labs.results.run import NoRecordError, RecordError, Run

LOGS = (".out", ".log", ".txt")
TYPES = (".json", *LOGS, ".err")
IN_FOLDERS = (".json", ".out", ".log", ".err")  # a .txt there may be anything, as the table of a study


def load(
    paths: str | Path | Iterable[str | Path],
    *,
    images: int | None = None,
    model: str | None = None,
    workers: int | None = None,
    global_batch: int | None = None,
) -> list[Run]:
    """The runs in the files, measured together (labs.results.metrics.measure).

    paths: .json records, logs (.out .log .txt), .err files, or folders of them (a .txt in a folder is no log), also
        copied from a cluster. Of one job its records are preferred to its log, and its .err explains its failure
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
            raise UseError(f"{path}: no results ({', '.join(IN_FOLDERS)}) in this folder. Did the jobs write here?")
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
        if path.suffix not in IN_FOLDERS or not path.is_file() or _replaced(stem):
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
    if not any(stem.with_name(f"{name}{end}").exists() for name in newer_names(stem.name) for end in (".json", ".out")):
        return False
    with suppress(LabsError):
        return records.load_record(stem.with_name(f"{stem.name}.json")).name != stem.name
    return True


def _is_record(path):
    """Whether a .json is a run record, if a broken one; others are progress, settings, timelines."""
    try:
        records.load_record(path)
    except RecordError as problem:
        return not isinstance(problem, NoRecordError)
    return True


def _read(stem, job, options):
    """The runs of one job."""
    log = next((job[kind] for kind in LOGS if kind in job), stem.with_name(f"{stem.name}.out"))
    err = job.get(".err", stem.with_name(f"{stem.name}.err"))
    if ".json" in job:
        run = records.load_record(job[".json"])
        script = _script(stem)
        run.failure = failures.in_files(err, script.with_name(f"{script.name}.err")) if run.truncated else None
        return [run]
    if log.is_file():
        return logs.read(log, **options)
    problem = failures.in_files(err)
    if not problem:
        raise UseError(f"{err}: no line that the kit knows, and no log beside it. Give the job's .out as well.")
    return [Run(source=err.name, kind="recorded", state="failed", failure=problem)]
