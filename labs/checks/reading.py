"""What the judges of several lessons look at in a student's work: numbers, a figure, a line of a file.

The functions that say something yield cases, as a judge does.
"""

from functools import cache
from pathlib import Path

CURVES = {"epoch_seconds": "seconds per epoch", "images_per_second": "images per second", "speedup": "speedup"}


def near(value, wanted, relative=0.01):
    """Whether a number is what is wanted, up to a relative tolerance."""
    return abs(float(value - wanted)) <= max(relative * abs(wanted), 1e-9)


@cache
def bytes_of_resnet50v2():
    """Bytes of ResNet50V2's gradient and of all its variables (float32, 10 classes)."""
    from labs import models

    parts = models.memory(models.network("ResNet50V2", 32, 10), batch=1)
    return parts["gradients"], parts["weights"]


# The rows and the figure of a study


def no_rows(rows):
    """Case of what is no table of a study."""
    wrong = not isinstance(rows, list) or not rows or not isinstance(rows[0], dict)
    yield wrong, "Give the rows that `collect.rows(...)` returns."


def not_yours(own, rows):
    """Cases of rows `own` that were not measured here, and of any that did not end."""
    for row in own:
        if row["kind"] != "measured":
            yield True, f"{row['source']} was not measured by you: give the rows of the jobs that you ran yourself."
    for row in rows:
        yield row["failure"] or row["truncated"], f"{row['source']} did not run to its end: look into its .err."


def no_plots(figure):
    """Cases of a figure without three plots, or without labels on their axes."""
    axes = list(getattr(figure, "axes", []))
    yield len(axes) < 3, f"The figure has {len(axes)} plot(s): epoch time, images/second and speedup are three."
    labelled = all(axis.get_xlabel() and axis.get_ylabel() for axis in axes[:3])
    yield not labelled, "An axis has no label: what is shown, and in which unit?"


def no_curve(figure, rows, whose):
    """Cases of a figure without one of CURVES of these rows over the workers; whose: a word on the rows."""
    lines = [list(line.get_ydata()) for axis in figure.axes for line in axis.get_lines()]
    rows = sorted(rows, key=lambda row: row["workers"])
    for key, what in CURVES.items():
        values = [row[key] for row in rows]
        if any(_alike(line, values) for line in lines):
            continue
        turned = key == "speedup" and any(_alike(line, [1 / v for v in values if v]) for line in lines)
        yield turned, "The speedup is upside down: a faster run must lie above 1."
        yield True, f"No curve shows the {what} of {whose}, ordered by workers."


def _alike(line, values):
    return len(line) == len(values) and all(
        v is not None and near(x, v, 0.02) for x, v in zip(line, values, strict=True)
    )


# The line that says memory ran out


def no_evidence(line, result):
    """Judge of a line that is not in the .err file of a search for the largest batch, or says something else."""
    line = str(line).strip()
    if not result.get("evidence"):
        return "The search has not run out of memory yet: give it less memory, or a higher limit."
    file = Path(result["evidence"]["file"])
    lines = file.read_text(errors="replace").splitlines() if file.exists() else []
    copied = line and line in map(str.strip, lines)
    yield not copied, f"This line does not stand in {file}. Copy it from there, whole."
    if "Traceback" in line or line.startswith("File "):
        return "That is where Python was when it happened. Look for the line that names what could not be had."
    if "OOM" not in line and "RESOURCE_EXHAUSTED" not in line and "out of memory" not in line.lower():
        return "This line is in the file, but does not say that memory ran out. Look for the word OOM."
