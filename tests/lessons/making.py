"""Answers that several lessons make: a solution with some text replaced, the .err file of a search, runs of a study.

A function of a folder gives the answer: it writes a file there, and returns what the check is given.
"""

from pathlib import Path

from labs import sandbox
from labs.results.intervals import Estimate
from labs.results.run import Configuration, Run

SOLUTIONS = Path(__file__).parents[2] / "solutions"
OOM = "OOM when allocating tensor with shape[512,64,8,8] and type float on device:CPU:0 by allocator cpu"
ADVICE = (
    "Hint: If you want to see a list of allocated tensors when OOM happens, add report_tensor_allocations_upon_oom to "
    "RunOptions for current allocation info. This isn't available when running in Eager mode."
)
ERR = ["Traceback (most recent call last):", "ResourceExhaustedError: Graph execution error:", f"  {OOM}", ADVICE]


def swapped(name, *pairs):
    """Answer: the path of solutions/`name` with some text replaced, in a folder of the same name (a site's, say)."""

    def write(folder):
        path = folder / Path(name).parent.name / Path(name).name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = (SOLUTIONS / name).read_text()
        for old, new in pairs:
            assert old in text, f"{name} has changed: {old!r} is no more in it"
            text = text.replace(old, new)
        path.write_text(text)
        return (path,)

    return write


def evidence(line, found=True):
    """Answer: a line, and the result of a search for the largest batch whose .err file ends with OOM."""

    def write(folder):
        err = folder / "search.err"
        err.write_text("\n".join(ERR))
        return line, {"evidence": {"file": str(err), "line_number": 5, "line": OOM} if found else None}

    return write


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


def changed(runs, number, **values):
    """Runs with some values of one of them changed."""
    return [run.model_copy(update=values) if n == number else run for n, run in enumerate(runs)]


def tried_out(answer, blank, *instead):
    """Answers with other texts for a blank of a batch script, which only a try-out tells; [] without a sandbox."""
    return [] if sandbox.sandbox_missing() else [answer((blank, text)) for text in instead]
