"""What a log in whole seconds would have said of the comparison in notebook 10."""

from labs.results import metrics, verdict


def table(runs, first, second):
    """Rows on efficiency(first) / efficiency(second): from every step, from epoch times in whole seconds, and from
    these with their rounding taken into account. runs: labs.results.run.Run objects. Raises UseError, as
    verdict.compare."""
    versions = {
        "every step, as recorded": runs,
        "whole seconds, at face value": [rounded(run, counted=False) for run in runs],
        "whole seconds, rounding counted": [rounded(run, counted=True) for run in runs],
    }
    rows = []
    for name, several in versions.items():
        ratio, interval, said = None, None, f"{verdict.OPEN}: the log says 0 s"
        if not any(0 in metrics.sample(run)[0] for run in several):
            told = verdict.compare(several, first, second)
            ratio, said = told.ratio, told.said
            interval = f"[{told.interval[0]:.3f}, {told.interval[1]:.3f}]" if told.interval else ""
        shown = {"ratio of efficiencies": ratio, "95 % interval": interval, "difference real?": said}
        rows.append({"epoch times": name} | shown)
    return rows


def rounded(run, counted):
    """The run as a log with times in whole seconds would tell it; counted: whether it says so, too."""
    epochs = [
        epoch.model_copy(update={"seconds": float(round(epoch.seconds)), "resolution": float(counted)})
        for epoch in run.epochs
    ]
    return run.model_copy(update={"epochs": epochs})
