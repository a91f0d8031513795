"""The picture of notebook 25: peak memory by what is kept."""

from labs.show.figure import COLOURS, new_figure, stamp


def recompute(found, kind="measured"):
    """Peak memory of a step by what is kept. found: rows of faster_steps.recompute.measure of one batch size."""
    figure, (axis,) = new_figure(1, width=6.4, height=0.9 + 0.35 * len(found))
    names = [
        f"blocks of {row['block']}" if row["block"] else {"none": "kept"}.get(row["mode"], row["mode"]) for row in found
    ]
    peaks = [row["peak_bytes"] / 2**20 for row in found]
    axis.barh(range(len(found)), peaks, color=COLOURS[0])
    axis.set_yticks(range(len(found)), names)
    axis.invert_yaxis()
    axis.set(xlabel="peak memory of a step (MiB)", title=f"batch {found[0]['batch']}")
    stamp(figure, kind)
    told = ", ".join(f"{name} {peak:.0f} MiB" for name, peak in zip(names, peaks, strict=True))
    figure.alt = f"Peak memory of a step, batch {found[0]['batch']}: {told}."
    return figure
