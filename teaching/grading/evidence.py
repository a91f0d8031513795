"""What the evidence of one submission says of itself: each run's clocks, counts, log, script, spread.

Every check compares two things that an honest run cannot let differ, with tolerances that the kit's own runs keep.
"""

from contextlib import suppress
from datetime import datetime
from statistics import fmean, median, pstdev

from labs.report.gather import findings_of
from teaching.grading.finding import Finding, Severity, looked

LEAST = 8  # steps: fewer say nothing about their spread
_SEVERITY: dict[str, Severity] = {"not measured by you": "look", "counted twice": "look", "different machines": "look"}


def findings(submission):
    """All findings about one teaching.grading.handed.Submission."""
    found = [Finding("record", "look", name, why) for name, why in submission.broken.items()]
    for name, record in submission.records.items():
        for look in (_clock, _images, _spread):
            found += looked(name, look, name, record)
        for look in (_log, _script):
            found += looked(name, look, submission, name, record)
    for look in (_superlinear, _report):
        found += looked("runs", look, submission)
    return sorted(found, key=lambda each: each.where)


def _report(submission):
    """What the report itself would say; of a run once, however many tasks it belongs to."""
    told = set()
    for each in findings_of(submission.course):
        # `_script` knows the script as it was before paths were taken out
        kind, text = each["kind"], each["text"]
        if kind != "script changed" and (kind, text) not in told:
            told.add((kind, text))
            yield Finding(kind, _SEVERITY.get(kind, "note"), each["task"], text)


def _clock(name, record):
    """Steps lie within their epoch, epochs within the run."""
    sums = [(epoch, sum(epoch.step_seconds)) for epoch in record.epochs]
    for epoch, steps in [each for each in sums if each[1] > each[0].seconds * (1 + 1e-6) + 1e-6][:1]:
        seen = f"the steps of epoch {epoch.epoch + 1} take {steps:.4g} s together, the epoch {epoch.seconds:.4g} s"
        yield Finding("clock", "serious", name, seen)
    # The time of an epoch with a validation holds that, too.
    plain = [each for each in sums if each[1] and not any(key.startswith("val_") for key in each[0].metrics)]
    if plain and (filled := median(steps / epoch.seconds for epoch, steps in plain)) < 0.75:
        yield Finding("clock", "look", name, f"the steps fill only {filled:.0%} of their epochs")
    with suppress(ValueError, TypeError):
        whole = (datetime.fromisoformat(record.finished) - datetime.fromisoformat(record.started)).total_seconds()
        epochs = sum(epoch.seconds for epoch in record.epochs)
        if epochs > whole + 2:
            seen = f"its epochs take {epochs:.4g} s, and from its start to its end are {whole:.4g} s"
            yield Finding("clock", "serious", name, seen)


def _images(name, record):
    """Images are steps x batch; the last step may be smaller, and never more than the data set."""
    batch = record.configuration.global_batch
    for epoch in record.epochs:
        steps = len(epoch.step_seconds)
        if not (batch and steps and epoch.images):
            continue
        fits = (steps - 1) * batch < epoch.images <= steps * batch
        if not fits and epoch.images != record.dataset_images:
            seen = f"epoch {epoch.epoch + 1} has {epoch.images} images in {steps} steps of {batch}"
            yield Finding("images", "serious" if epoch.images > steps * batch else "look", name, seen)
            return


def _log(submission, name, record):
    """The .out says what the record says: epochs, seconds as far as they are printed, loss and accuracy."""
    path = name in submission.course.runs_on_record and submission.course.log(name, ".out")
    # No runs: of a script that prints no epochs.
    runs = submission.logged(path).get(record.configuration.workers, ()) if path and record.epochs else ()
    if len(runs) != 1:
        return
    printed = [epoch for repeat in runs[0].repeats for epoch in repeat]
    if len(printed) != len(record.epochs):
        seen = f"{path.name} has {len(printed)} epochs, the record {len(record.epochs)}"
        yield Finding("log", "look", name, seen)
        return
    both = list(zip(printed, record.epochs, strict=True))
    off = [abs(said.seconds - kept.seconds) for said, kept in both]
    room = [said.resolution / 2 + 0.02 + 0.002 * kept.seconds for said, kept in both]
    ratios = [a / b for a, b in zip(off, room, strict=True)]
    wild = any(o > said.resolution + 1.5 + 0.1 * kept.seconds for o, (said, kept) in zip(off, both, strict=True))
    if median(ratios) > 1.2 or wild:
        said, kept = both[worst := max(range(len(ratios)), key=ratios.__getitem__)]
        seen = f"epoch {worst + 1} took {said.seconds:.4g} s by {path.name} and {kept.seconds:.4g} s by the record"
        yield Finding("log", "serious", name, seen)
    for said, kept in both:
        for key, value in kept.metrics.items():
            if key in said.metrics and abs(said.metrics[key] - value) > 1e-4 + 1e-3 * abs(value):
                seen = f"{key} of epoch {kept.epoch + 1} is {said.metrics[key]:.4g} in {path.name}, {value:.4g} in the"
                yield Finding("log", "serious", name, f"{seen} record")
                return


def _script(submission, name, record):
    """The script that a run was made with is the one that was handed in."""
    script = submission.course.script_of(record)[0]
    place = f"notebooks/scripts/{script}"
    if not record.script_sha256 or place not in submission.contents:
        return
    if record.script_sha256 not in submission.digests(place):
        yield Finding("script", "look", name, f"it was made with another {script} than the one that was handed in")


def _spread(name, record):
    """Measured times are never quite equal, and a clock gives more digits than a person types."""
    steps = [seconds for epoch in record.epochs if epoch.epoch for seconds in epoch.step_seconds]
    if len(steps) < LEAST:
        return
    second, mean = [c - 2 * b + a for a, b, c in zip(steps, steps[1:], steps[2:], strict=False)], fmean(steps)
    if len(set(steps)) < len(steps) / 2:
        yield Finding("spread", "serious", name, f"of {len(steps)} step times only {len(set(steps))} are different")
    elif pstdev(second) < 1e-5 * mean:
        yield Finding("spread", "serious", name, f"the {len(steps)} step times lie on a line, without any noise")
    elif pstdev(steps) < 5e-4 * mean:
        seen = f"the {len(steps)} step times differ by {pstdev(steps) / mean:.2g} of their mean"
        yield Finding("spread", "look", name, seen)
    if all(seconds == round(seconds, 4) for seconds in steps):
        yield Finding("spread", "look", name, "no step time has more than 4 digits behind the point")


def _superlinear(submission):
    for run in submission.speedups:
        interval, workers = run.speedup.interval, run.workers
        if interval and interval[0] > 1.1 * workers:
            seen = f"a speedup of {run.speedup.value:.3g} [{interval[0]:.3g}, {interval[1]:.3g}] on {workers} workers"
            yield Finding("superlinear", "look", run.source.removesuffix(".json"), seen)
