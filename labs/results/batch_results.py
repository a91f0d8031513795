"""The runs of a batch script: several trainings with one log, one .err, and a record each."""

import re

from labs.results import log as logs
from labs.results.failures import failure
from labs.results.run import Run, load_record


def runs(records, log=None, err=None, options=None):
    """The runs of a batch script, each once: from its record (times are finer there), else from the log.

    records: paths of <stem>_w<workers>.json; log, err: paths of the script's .out and .err, or None
    options: what fills in where the files say nothing, as in labs.results.collect.results
    Returns: labs.results.run.Run in the order of the log. The failure that .err (or the log) names is given to the run that
    did not end; if all ended, the script failed after them, and the failure is a run of its own.
    Errors: MetricsError for a record that cannot be read; LogError if the log cannot be read.
    """
    records = sorted(records, key=lambda path: [int(part) for part in re.findall(r"\d+", path.stem)[-1:]])
    measured, logged = [load_record(path) for path in records], []
    if log:
        try:
            logged = logs.read(log)
        except logs.LogError as error:  # no finished epoch in it
            logged = error.runs
    found = _merge(measured, logged)
    for run in found:
        run.failure = None
        fill(run, options or {})
    problem = _problem(err) or _problem(log)
    if problem:
        unfinished = [run for run in found if run.truncated]
        if unfinished:
            unfinished[-1].failure = problem
        elif not logs.harmless(problem):
            note = "the job failed after the runs above had finished"
            found.append(Run(problem["file"], failure=problem, truncated=True, notes=[note]))
    return found


def fill(run, options):
    """Set what the files do not say."""
    for key, value in options.items():
        if getattr(run, key) is None:
            setattr(run, key, value)


def _merge(measured, logged):
    """The log's runs, each replaced by its record where there is one; then the records that the log does not show."""
    place = {}
    for test in (_same_loss, _same_workers):
        for run in measured:
            free = [index for index, other in enumerate(logged) if index not in place.values() and test(run, other)]
            if free and id(run) not in place:
                place[id(run)] = free[-1]  # a training that was repeated has written its record over the first one's
    records = {index: run for run in measured if (index := place.get(id(run))) is not None}
    return [records.get(index, run) for index, run in enumerate(logged)] + [r for r in measured if id(r) not in place]


def _same_workers(run, other):
    return other.workers is not None and run.workers == other.workers


def _same_loss(run, other):
    """The first epoch's loss, as far as the log gives its digits."""
    if not (run.repeats and other.repeats) or (other.workers or run.workers) != run.workers:
        return False
    losses = [each.repeats[0][0].metrics.get("loss") for each in (run, other)]
    return None not in losses and abs(losses[0] - losses[1]) <= 0.6e-4 * max(1, abs(losses[1]))


def _problem(path):
    found = failure(path) if path and path.is_file() else None
    return found and found | {"file": path.name}
