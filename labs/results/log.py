"""Read the logs (.out) that Keras' `fit` leaves: which runs are in it, how long each epoch took, loss, accuracy.

Formats: Keras 2 and 3, TensorFlow 1 and 2, `verbose=2` (a line per epoch, see labs.results.loglines) and `verbose=1`
(progress bars), also with the rank prefixes of horovodrun, mpirun, mpiexec and srun: then the epochs of the lowest
rank that has any are read. What a log does not say comes from the run record beside it (`<stem>.json`), else from
the caller, else it is None. Where they disagree with the file, the file wins and a note says so.

A run starts at a header `Model ...`, at an echoed command line, or where the epoch counter starts again;
`Repeat 2 of 3` is another repeat of the same run.
"""

import math
from pathlib import Path

from labs.results.failures import decode, failure
from labs.results.loglines import LogError, lines, sections
from labs.results.run import MetricsError, Run, load_record

__all__ = ["LogError", "failure", "read"]

_FIELDS = (
    "name model strategy workers nodes global_batch local_batch images learning_rate dataset image_size precision "
    "hardware oversubscribed"
).split()


def read(source, *, model=None, workers=None, global_batch=None, images=None) -> list[Run]:
    """The runs in a log, in its order.

    Args: `source` is a path or an open file; the others fill in what the log does not say (`global_batch`: images
    per step over all workers; `images`: in the data set).
    Returns: one labs.results.run.Run for each run in the file, also for those that ended before their first epoch.
    Errors: LogError if the file cannot be read, holds no finished epoch, or mixes ranks without a prefix.
    """
    text, path, name = _load(source)
    problem = _problem(path, name, text)
    found = sections(lines(text), name)
    options = {"model": model, "workers": workers, "global_batch": global_batch, "images": images}
    runs = [_run(section, name, index) for index, section in enumerate(found, 1)]
    record = _record(path)
    if record and len(runs) == 1:
        runs[0].kind = record.kind
        _fill(runs[0], vars(record), "the run record")
    elif record:
        runs[0].notes.append(f"the run record beside this log is not used: the log holds {len(runs)} runs")
    for run in runs:
        _fill(run, options, "the option")
        _complete(run)
    _blame(runs, problem)
    if not any(run.repeats for run in runs):
        raise LogError(_explain(name, text, found, problem), runs)
    return runs


def _load(source):
    """(text, path or None, name) of a path or an open file."""
    if hasattr(source, "read"):
        text, name = source.read(), getattr(source, "name", None)
        path = Path(name) if isinstance(name, str) and Path(name).is_file() else None
        return (decode(text) if isinstance(text, bytes) else text), path, path.name if path else "log"
    path = Path(source)
    try:
        return decode(path.read_bytes()), path, path.name
    except OSError as error:
        raise LogError(
            f"{path}: cannot be read ({error.strerror}). Check its name, and where the job wrote its output."
        ) from None


def _problem(path, name, text):
    """The failure in the .err beside the log, else in the log itself; with the name of the file that shows it."""
    err = path and path.with_suffix(".err")
    found = failure(err) if err and err != path and err.is_file() else None
    if found:
        return found | {"file": err.name}
    found = failure(text if "\n" in text else text + "\n")  # never taken for a file name
    return found and found | {"file": name}


def _record(path):
    """The run that the record beside a log describes, if there is a usable one."""
    beside = path and path.with_suffix(".json")
    try:
        return load_record(beside) if beside and beside != path and beside.is_file() else None
    except MetricsError:
        return None


def _run(section, name, index):
    run = Run(name, index, repeats=[r for r in section.repeats if r], truncated=section.truncated)
    for key in _FIELDS:
        setattr(run, key, section.facts.value(key))
    counted = {epoch.images for repeat in run.repeats for epoch in repeat} - {None}
    run.images = counted.pop() if len(counted) == 1 else run.images
    run.steps = min(section.steps) if len(section.steps) == 1 else None
    run.notes = [*section.facts.notes, *section.notes]
    if len(section.steps) > 1:
        run.notes.append(f"the number of steps changes within the run: {sorted(section.steps)}")
    if section.truncated:
        cut = ": the last epoch is not finished" if section.open else ""
        run.notes.append(f"the log ends before the run does{cut}")
    return run


def _fill(run, values, origin):
    """Set what the file does not say; where both say something else, the file wins."""
    for key in _FIELDS:
        said, value = getattr(run, key), values.get(key)
        if said is None:
            setattr(run, key, value)
        elif value is not None and value != said and key != "name":
            run.notes.append(f"{key} is {said} in the file, {value} in {origin}: the file is used")


def _complete(run):
    """What follows by arithmetic alone: local x workers = global batch, steps = ceil(samples / batch)."""
    if run.global_batch is None and run.local_batch and run.workers:
        run.global_batch = run.local_batch * run.workers
    elif run.local_batch is None and run.global_batch and run.workers and run.global_batch % run.workers == 0:
        run.local_batch = run.global_batch // run.workers
    if run.steps is None and run.repeats and run.repeats[0][0].images and run.global_batch:
        run.steps = math.ceil(run.repeats[0][0].images / run.global_batch)


def harmless(problem):
    """Whether a job whose runs have all finished can have gone on after this failure."""
    return "CUDA_ERROR_OUT_OF_MEMORY" in problem["line"] or problem["kind"] in ("missing file", "missing module")


def _blame(runs, problem):
    """Give the failure to the run that did not end. A refused request after which all went well is no failure."""
    unfinished = [run for run in runs if run.truncated]
    if problem and runs and (unfinished or not harmless(problem)):
        run = (unfinished or runs)[-1]
        run.failure = problem
        if len(unfinished) > 1:
            run.notes.append("several runs did not finish; the failure may belong to another of them")


def _explain(name, text, found, problem):
    if problem:
        return (
            f"{name}: no finished epoch, since the job failed: {problem['kind']} (line {problem['line_number']} of "
            f"{problem['file']}: {problem['line'][:160]}). {problem['advice']}"
        )
    if not text.strip():
        return f"{name}: the file is empty, so there is nothing to measure. Did the job start? Look at its .err."
    if any(section.open for section in found):
        return f"{name}: the first epoch began but did not end. Wait until the job is done, or look at its .err."
    return (
        f"{name}: no epoch in its {len(text.splitlines())} line(s). A log of Keras' fit with verbose=2 is needed: give "
        "the .out of the training job, and check that the script calls fit with verbose=2."
    )
