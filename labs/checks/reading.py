"""What the judges of several lessons look at in a student's work: numbers, a script, a figure, a line of a file.

A script is read from its syntax tree and never run. The functions that say something yield cases, as a judge does.
"""

import ast
from functools import cache
from pathlib import Path
from types import SimpleNamespace

from labs import blanks
from labs.checks.judging import NotDone

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


# A script


def refuse_blanks(path, where="", lines=range(10**6)):
    """Raises NotDone with the first of these lines that is still blank; where: what is said behind "blank"."""
    for line, text in blanks.blanks(Path(path)):
        if line in lines:
            raise NotDone(f"Line {line} of {Path(path).name} is still blank{where}: {text.strip()}")


def name_of(node):
    """The last part of a name, `fit` of `model.fit`; None for what is no name."""
    return getattr(node, "attr", getattr(node, "id", None))


def calls(tree):
    """{name of a function: its calls, nodes of the tree} in a script."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            found.setdefault(name_of(node.func) or "", []).append(node)
    return found


def options(call):
    """{keyword: its value if it is a constant, else None} of a call."""
    return {word.arg: getattr(word.value, "value", None) for word in call.keywords}


def learning_rate(tree, workers):
    """Value of the script's learning_rate for a number of workers, or None if nothing is assigned to it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and name_of(node.targets[0]) == "learning_rate":
            expression = compile(ast.Expression(node.value), "learning_rate", "eval")
            known = {"args": SimpleNamespace(n_gpus=workers), "workers": ["GPU"] * workers, "len": len}
            known |= {"strategy": SimpleNamespace(num_replicas_in_sync=workers), "__builtins__": {}}
            return eval(expression, known)  # the student's own expression, with nothing but these names
    return None


def not_mirrored(path):
    """Cases of a script that does not train on its `workers` at the rate of the linear rule; returns (tree, calls).

    Raises NotDone for a script with blanks.
    """
    tree = ast.parse(Path(path).read_text())
    refuse_blanks(path)
    found = calls(tree)
    strategies = found.get("MirroredStrategy")
    yield not strategies, "No MirroredStrategy is created: the model would live on one device."
    bare = not strategies[0].keywords and not strategies[0].args
    yield bare, "MirroredStrategy() takes every device it finds. Give it the `workers`, so that --n_gpus counts."
    rate_1, rate_4 = (learning_rate(tree, workers) for workers in (1, 4))
    yield rate_1 is None or not near(rate_1, 0.01), "With one worker the learning rate must be 0.01."
    yield near(rate_4, 0.01), "The learning rate does not depend on the workers: what does the linear rule say?"
    yield not near(rate_4, 0.04), "With 4 workers the linear rule gives another rate than your script."
    return tree, found


def outside_scope(tree, network):
    """Case of a network (the node of its call) that is created outside `with strategy.scope()`."""
    scopes = [node for node in ast.walk(tree) if isinstance(node, ast.With) and "scope" in ast.dump(node.items[0])]
    inside = any(node is network for scope in scopes for node in ast.walk(scope))
    yield not inside, "The network is created outside `strategy.scope()`: it would have one copy only."


def untrained(found):
    """Cases of calls (of `calls`) without a `fit` that leaves a record and a log."""
    yield "fit" not in found, "The model is never trained: where is `fit`?"
    given = options(found["fit"][0])
    bare = "callbacks" not in given
    yield bare, "`fit` runs without the recorder: pass callbacks=[recorder], or there is no record of your run."
    yield given.get("verbose") != 2, "Pass verbose=2 to `fit`: one line per epoch, which is your log."


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
