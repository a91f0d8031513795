"""The picture of notebook 25: peak memory by what is kept."""

from labs.show.figure import COLOURS, finished, new_figure


def recompute(found):
    """Peak memory of a step by what is kept. found: rows of faster_steps.recompute.measure of one batch size."""
    figure, (axis,) = new_figure(1, width=6.4, height=0.9 + 0.35 * len(found))
    named = {"none": "kept"}
    names = [f"blocks of {row['block']}" if row["block"] else named.get(row["mode"], row["mode"]) for row in found]
    peaks = [row["peak_bytes"] / 2**20 for row in found]
    axis.barh(range(len(found)), peaks, color=COLOURS[0])
    axis.set_yticks(range(len(found)), names)
    axis.invert_yaxis()
    batch = f"batch {found[0]['batch']}"
    axis.set(xlabel="peak memory of a step (MiB)", title=batch)
    told = ", ".join(f"{name} {peak:.0f} MiB" for name, peak in zip(names, peaks, strict=True))
    return finished(figure, f"Peak memory of a step, {batch}: {told}.", "measured")
