"""Pictures of notebook 08: which rank runs where.

Every function returns a matplotlib Figure with its text alternative in `figure.alt`.
"""

from matplotlib.patches import FancyBboxPatch

from labs.show.figure import COLOURS, finished, new_figure

WIDE, HIGH, APART = 0.86, 1.0, 0.5  # of the box of a rank, and between nodes, in units of the axis


def ranks(nodes=2, gpus=4):
    """Where the ranks of a job run: `nodes` machines with `gpus` GPUs each, a rank for each GPU."""
    size = nodes * gpus
    figure, (axis,) = new_figure(width=0.95 * size + 1.4, height=2.9)
    axis.set_axis_off()
    sentences = []
    for node in range(nodes):
        left = node * (gpus + APART)
        _box(axis, left - 0.12, -0.62, gpus + 0.1, 2.25, fc="0.95", ec="0.4", lw=1.2)
        axis.text(left, 1.36, f"node {node}", va="center", fontsize=11)
        for local in range(gpus):
            rank, x = node * gpus + local, left + local
            _box(axis, x, 0.1, WIDE, HIGH, fc=COLOURS[0], ec="none")
            white = {"ha": "center", "va": "center", "color": "white"}
            axis.text(x + WIDE / 2, 0.76, f"rank {rank}", weight="bold", fontsize=11, **white)
            axis.text(x + WIDE / 2, 0.4, f"local rank {local}", fontsize=9, **white)
            axis.text(x + WIDE / 2, -0.2, f"GPU {local}", ha="center", va="center", fontsize=9)
        _span(axis, left, left + gpus - 1 + WIDE, -0.95, f"local size {gpus}")
        places = ", ".join(f"rank {node * gpus + local} is local rank {local} on GPU {local}" for local in range(gpus))
        sentences.append(f"Node {node}: {places}.")
    right = (nodes - 1) * (gpus + APART) + gpus - 1 + WIDE
    _span(axis, 0, right, -1.5, f"size {size}")
    axis.set(xlim=(-0.3, right + 0.3), ylim=(-1.75, 1.8))
    axis.set_title(f"{nodes} nodes with {gpus} GPUs each, a rank for each GPU", fontsize=11)
    said = f"{nodes} nodes with {gpus} GPUs each, a rank for each GPU: size {size}, on every node local size {gpus}."
    note = "counted node by node, as a launcher does; no program ran"
    return finished(figure, " ".join([said, *sentences]), "simulated", note=note)


def _box(axis, x, y, width, height, **look):
    style = "round,pad=0,rounding_size=0.08"
    axis.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=style, **look))


def _span(axis, begin, end, y, text):
    """A line from one end to the other, with what it counts in its middle."""
    axis.annotate("", (begin, y), (end, y), arrowprops={"arrowstyle": "|-|,widthA=0.3,widthB=0.3", "color": "0.3"})
    axis.text((begin + end) / 2, y, text, ha="center", va="center", fontsize=10, bbox={"fc": "white", "ec": "none"})
