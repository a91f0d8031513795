"""Pictures of a batch in memory: what a step needs, computed, and what a search for the largest batch has measured."""

import numpy as np

from labs.show.figure import COLOURS, finished, new_figure
from labs.show.plots import legend


def memory(parts_by_batch):
    """Memory of a training step by part, stacked, for several batch sizes.

    parts_by_batch: {images per worker and step: {part: bytes}}
    """
    figure, (axis,) = new_figure(width=5.0)
    batches, parts = list(map(str, parts_by_batch)), list(next(iter(parts_by_batch.values())))
    bottom = np.zeros(len(batches))
    for part, colour, hatch in zip(parts, COLOURS, ("", "//", "..", "xx"), strict=False):
        values = np.array([found[part] / 2**30 for found in parts_by_batch.values()])
        axis.bar(batches, values, bottom=bottom, color=colour, hatch=hatch, label=part, edgecolor="white")
        bottom += values
    axis.set(xlabel="batch size (images)", ylabel="memory (GiB)", title="memory of one training step")
    legend(axis)
    totals = ", ".join(f"{t:.2f} GiB at batch {b}" for b, t in zip(batches, bottom, strict=True))
    alt = f"Stacked bars of memory by part ({', '.join(parts)}): {totals}. Only the activations grow."
    return finished(figure, alt, "simulated", note="computed from the model")


def search(result):
    """Images per second of each batch size that labs.measure.maxbatch.search has tried, and where memory ran out.

    result: what it returns.
    """
    figure, (axis,) = new_figure(width=5.0)
    trials = result["trials"]
    fits = [trial for trial in trials if trial["fits"]]
    rates = [trial["batch"] / trial["seconds"] for trial in fits]
    axis.plot([trial["batch"] for trial in fits], rates, "-o", color=COLOURS[0], label="fits")
    border = "memory did not run out"
    if result["fails"]:
        axis.axvline(result["fails"], color=COLOURS[1], ls="--", label="out of memory")
        border = f"{result['fails']} runs out of memory"
    ticks = [trial["batch"] for trial in trials]
    axis.set_xscale("log", base=2)
    axis.set_xticks(ticks, ticks, fontsize=9)
    axis.set(xlabel="batch size (images)", ylabel="images per second (one step)", ylim=(0, None))
    axis.set_title(f"{result['model']}: doubling until memory runs out")
    legend(axis)
    largest = result["largest"] or "none that was tried"
    alt = f"Images per second over batch size for {result['model']}. Largest batch that fits: {largest}; {border}."
    return finished(figure, alt, result["kind"])
