"""A figure of the notebooks: made, stamped measured, recorded or simulated, and shown with its text alternative.

Whoever draws puts the text alternative into `figure.alt`. Colours: Okabe and Ito's palette, which colour-blind readers
can tell apart; markers differ too.
"""

import base64
import html
import io
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from labs.results.run import Run

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")


def new_figure(
    panels: int = 1, width: float = 4.0, height: float = 3.2, rows: int = 1, **options
) -> "tuple[Figure, Any]":
    """(Figure, array of its axes): `panels` beside each other, or `rows` under each other, each width x height inches.

    options: further ones of matplotlib's Figure.subplots.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * panels, height * rows), dpi=100, layout="constrained")
    axes = figure.subplots(rows, panels, squeeze=False, **options).ravel()
    for axis in axes:
        plain_look(axis)
    return figure, axes


def plain_look(axis: "Axes") -> None:
    """The look of all axes: a pale grid, no lines above and at the right."""
    axis.grid(alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)


def finished(figure: "Figure", alt: str, *kinds: str, note: str | None = None, runs: "Iterable[Run]" = ()) -> "Figure":
    """The figure, as `show` displays it: stamped, at the lower right, with what its numbers are.

    alt: its text alternative; kinds: "measured", "recorded", "simulated", "computed" or "predicted"; note: what stands
    behind these and a colon; runs: that it shows, see `runs_metadata`.
    """
    text = " and ".join(sorted(set(kinds))) + (f": {note}" if note else "")
    figure.supxlabel(text, fontsize=9, x=0.99, ha="right", color="0.35")
    figure.alt, figure.runs = alt, runs
    return figure


def png(figure: "Figure") -> bytes:
    """The figure as PNG bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def bundle(figure: "Figure") -> dict[str, str]:
    """The figure as Jupyter displays it, see `picture`. One that has a `png` of its own, which is faster, is asked for
    it."""
    return picture(figure.png() if hasattr(figure, "png") else png(figure), figure.alt)


def picture(content: bytes, alt: str) -> dict[str, str]:
    """PNG bytes as Jupyter displays them: {"text/html": one image with its text alternative, "image/png": base64,
    "text/plain": the text}."""
    data, said = base64.b64encode(content).decode(), html.escape(alt, quote=True)
    image = f'<img alt="{said}" src="data:image/png;base64,{data}" style="max-width:100%;background:white">'
    return {"text/html": image, "image/png": data, "text/plain": alt}


def runs_metadata(runs: "Iterable[Run]") -> dict[str, Any]:
    """What an output says of the runs in it, for a later reader: {"labs": {"shows": {file: {kind, started}}}}."""
    return {"labs": {"shows": {run.source: {"kind": run.kind, "started": run.started} for run in runs}}}


def show(figure: "Figure") -> None:
    """Display a figure in a notebook, with its text alternative.

    It becomes an image. Of a figure with `runs` the output also says which runs these are.
    """
    from IPython.display import display

    display(bundle(figure), raw=True, metadata=runs_metadata(getattr(figure, "runs", ())))
