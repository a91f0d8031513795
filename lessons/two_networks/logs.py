"""What a log in whole seconds would have said of the comparison in notebook 10."""

from labs.results import metrics, verdict


def table(runs, first, second):
    """Rows on efficiency(first) / efficiency(second): from every step, from epoch times in whole seconds, and from
    these with their rounding taken into account. runs: labs.results.run.Run objects. Raises UseError, as
    verdict.compare."""
    versions = {
        "every step, as recorded": runs,
        "whole seconds, at face value": [rounded(run, counted=False) for run in runs],
        "whole seconds, rounding counted": [rounded(run) for run in runs],
    }
    rows = []
    for name, several in versions.items():
        row = {"epoch times": name, "ratio of efficiencies": None, "95 % interval": None}
        if several is not runs and any(0 in metrics.sample(run)[0] for run in several):
            rows.append(row | {"difference real?": f"{verdict.OPEN}: the log says 0 s"})
            continue
        told = verdict.compare(several, first, second)
        row["ratio of efficiencies"] = told.ratio
        row["95 % interval"] = f"[{told.interval[0]:.3f}, {told.interval[1]:.3f}]" if told.interval else ""
        rows.append(row | {"difference real?": told.said})
    return rows


def rounded(run, counted=True):
    """The run as a log with times in whole seconds would tell it; counted: whether it says so, too."""

    def whole(epoch):
        return epoch.model_copy(update={"seconds": float(round(epoch.seconds)), "resolution": float(counted)})

    return run.model_copy(update={"epochs": list(map(whole, run.epochs))})
