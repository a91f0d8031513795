"""The table that `labs results FILE...` prints, what stands behind its numbers, and a run as JSON."""

from collections.abc import Sequence

from tabulate import tabulate

from labs.printed import digits, finite, grouped, printable
from labs.results import failures, metrics
from labs.results.run import Configuration, Run

BRACKETS = "95 % interval over rounds or repeats, wider for rounded logs; times and images/s hold for that time only"
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
        cells = [said(run, name, write) or "-" for run in runs]
        if name == "workers":
            cells = [cell + "*" * bool(run.oversubscribed) for cell, run in zip(cells, runs, strict=True)]
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
    rounds, _ = metrics.undisturbed_rounds(run, run.baseline or run)
    return len(rounds) or len(run.steady)


def said(run: Run, name: str, write) -> str:
    """What a run says of itself, or a measure and what stands behind it (`span`), as text; "" where it is not known.
    `write` writes a number."""
    value = getattr(run, name)
    value = getattr(value, "value", value)
    return "" if value is None else write(value) + span(run, name, write)


def span(run: Run, name: str, write) -> str:
    """What stands behind an Estimate of a run: " [low, high]", its interval; of 1 run " (1 run, low to high)", what
    rounding leaves open, or " (1 run)"; nothing behind counts and the 1 of a baseline. `write` writes a number."""
    estimate = getattr(run, name)
    if not hasattr(estimate, "interval") or (run.workers == 1 and name in ("speedup", "efficiency")):
        return ""
    if estimate.interval:
        return " [{}, {}]".format(*map(write, estimate.interval))
    if name.startswith("final_"):
        return ""
    low, high = map(write, estimate.rounded or (0, 0))
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
