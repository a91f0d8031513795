"""Answers that lessons make: the solution's with some text replaced, runs of a study.

A function of a folder gives the answer: it writes a file there, and returns what the check is given.
"""

import ast
import functools
import linecache
import re
from pathlib import Path

from matplotlib.figure import Figure

from labs.blanks import parse
from labs.checks import tasks
from labs.measure import breakdown
from labs.results.intervals import Estimate
from labs.results.run import Configuration, Run
from teaching.grading import reference

ROOT = Path(__file__).parents[2]
SOLUTIONS = ROOT / "solutions"
CURVES, UNITS = ("epoch_seconds", "images_per_second", "speedup"), ("seconds per epoch", "images per second", "speedup")


@functools.cache
def solution(id):
    """(path or None, name or None, text) of what a check asks for: of a script, below solutions/, or of a function."""
    notebook = tasks.find(id)[0].notebook
    before, after = (SOLUTIONS / f"{notebook}.py").read_text().split(f'check("{id}", ')
    name = re.match(r'"?([\w/.]+)', after)[1]
    if assigned := re.findall(rf'(?m)^{name} = (?:sites\.script\()?"(.*)"', before):
        name = assigned[-1] if "/" in assigned[-1] else f"slurm/local/{assigned[-1]}"
    if "/" in name:
        return name, None, (SOLUTIONS / name).read_text()
    for cell in reference.forms(ROOT, notebook)[0].values():
        for node in parse(cell).body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                first = min(part.lineno for part in (node, *node.decorator_list))
                text = "\n".join(cell.split("\n")[first - 1 : node.end_lineno])
        if f'check("{id}"' in cell:
            return None, name, text


def edited(id, *texts):
    """Answer: the solution's script or function of a check, each text replaced by the one that follows it.

    A script is written into a folder of the same name (a site's, say), a function is a tuple.
    """
    path, name, source = solution(id)
    for old, new in zip(texts[::2], texts[1::2], strict=True):
        assert old in source, f"The solution of {id} has changed: {old!r} is no more in it"
        source = source.replace(old, new)

    def write(folder):
        to = folder / Path(path).parent.name / Path(path).name
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(source)
        return (to,)

    if path:
        return write
    names = reference.functions(ROOT, tasks.find(id)[0].notebook) | {"__name__": __name__}  # AutoGraph needs a module
    file = f"/{id}/{abs(hash(source))}.py"
    linecache.cache[file] = len(source), None, source.splitlines(True), file  # hints quote its lines
    exec(compile(source, file, "exec"), names)
    return (names[name],)


def measured(model, workers, seconds, speedup, interval=None, *, images=512, **more):
    """A run of a study with what was measured of it."""
    return Run(
        source=f"{model}_w{workers}.json",
        configuration=Configuration(model=model, strategy="mirrored", workers=workers),
        epoch_seconds=Estimate(seconds),
        images_per_second=Estimate(images / seconds),
        speedup=Estimate(speedup, interval),
        **more,
    )


def broken_down(model="ResNet50V2", factor=1.0, local_batch=64, **changed):
    """What labs.measure.breakdown gives: steps of 813 ms alone and 963 ms with exchange for 64 images, in three rounds,
    times `factor`; fewer for 16. changed: seconds of a kind of step."""

    def rounds(*ends):
        return {k: [[factor * end * r] * 2 for r in (0.99, 1.0, 1.01)] for k, end in ends}

    seconds = rounds(*zip(breakdown.KINDS, (0.8133, 0.8633, 0.9633, 0.9733), strict=True)) | changed
    found = {"kind": "measured", "model": model, "ranks": 2, "local_batch": local_batch, "image_size": 32}
    found |= {"gradient_bytes": int(94e6 * factor)}
    return found | {"seconds": {str(local_batch): seconds, "16": rounds(("alone", 0.24), ("exchange", 0.37))}}


def plotted(axis, x, y, label, place):
    axis.plot(x, y, "o-", label=label)


def figure(runs, draw=plotted, labels=UNITS, x="workers", names=("ResNet50V2",), legend=("",)):
    """Answer: a figure of runs, with draw(axis, workers, values, label, place) for each of these networks, and them."""
    drawn = Figure()
    for axis, key, label in zip(drawn.subplots(1, 3), CURVES, labels, strict=True):
        for place, (name, shown) in enumerate(zip(names, legend, strict=True)):
            points = [(run.workers, getattr(run, key).value) for run in runs if run.model == name]
            draw(axis, *zip(*points, strict=True), shown, place)
        axis.set(xlabel=x, ylabel=label)
        if legend[0]:
            axis.legend()
    return drawn, runs


def one_by_one(axis, x, y, label, place):
    for marker, each in zip("os^", zip(x, y, strict=True), strict=False):
        axis.plot(*each, marker, label=label or f"{each[0]} workers")


def changed(runs, number, **values):
    """Runs with some values of one of them changed."""
    return [run.model_copy(update=values) if n == number else run for n, run in enumerate(runs)]
