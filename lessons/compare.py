"""Two things side by side: what changed between two scripts, and the loss curves of several runs."""

import ast
import html
from pathlib import Path

from labs.show.figure import COLOURS, MARKERS, finished, new_figure
from labs.show.tables import UNSEEN, display_html

_PLUMBING = ("import ", "from ", "print(", "parser", "if hvd.rank() == 0:", "recorder")  # not what a training is about


def _lines(path):
    """The lines of a Python file as Python writes them, a statement in each, without comments and docstring."""
    tree = ast.parse(Path(path).read_text())
    if ast.get_docstring(tree):
        del tree.body[0]
    lines = [line.strip() for line in ast.unparse(tree).splitlines()]
    return [line for line in lines if line and not line.startswith(_PLUMBING)]


def scripts(old, new):
    """Display the lines of two scripts that the other one has not, side by side: what went and what came.

    Comments, line breaks, indentation, quotes, imports, printing and the command line do not count.
    """
    before, after = _lines(old), _lines(new)
    heads, columns, plain = "", "", []
    for path, mark, colour, own, other in ((old, "-", "#D55E00", before, after), (new, "+", "#0072B2", after, before)):
        name, lines = Path(path).name, [line for line in own if line not in other]
        shown = "".join(
            f'<div style="margin:.3em 0;border-left:3px solid {colour};padding-left:.5em">'
            f"<code>{html.escape(line)}</code></div>"
            for line in lines
        )
        heads += f'<th scope="col" style="text-align:left;width:50%">{mark} only in {name}</th>'
        columns += f'<td style="vertical-align:top;text-align:left">{shown}</td>'
        plain += [f"{mark} only in {name}:", *(f"{mark} {line}" for line in lines)]
    look = "width:100%;table-layout:fixed;overflow-wrap:anywhere"
    caption = f'<caption style="{UNSEEN}">{Path(old).name} and {Path(new).name}</caption>'
    display_html(f'<table style="{look}">{caption}<tr>{heads}</tr><tr>{columns}</tr></table>', "\n".join(plain))


def losses(runs):
    """Training loss of several runs over epochs and over updates of the weights, in one figure.

    runs: {name: path of a run record}; only the first repeat counts. Curves that lie on each other stay visible:
    each has a line and a marker of its own, the later ones smaller.
    """
    from labs.results import run as records

    figure, axes = new_figure(2, width=4.6)
    sentences, kinds = [], []
    for number, (name, path) in enumerate(runs.items()):
        run = records.load_record(path)
        loss = [epoch.metrics["loss"] for epoch in run.epochs if epoch.repeat == 0]
        count = range(1, len(loss) + 1)
        style = {"color": COLOURS[number], "marker": MARKERS[number], "alpha": 0.85}
        style |= {"lw": max(1.2, 5 - 1.8 * number), "ms": max(4, 11 - 3 * number)}
        axes[0].plot(count, loss, label=name, **style)
        axes[1].plot([run.steps * epoch for epoch in count], loss, label=name, **style)
        sentences.append(f"{name}: " + ", ".join(f"{value:.4f}" for value in loss) + ".")
        kinds.append(run.kind)
    axes[0].set(xlabel="epoch", ylabel="training loss (cross-entropy, nats)", title="loss over epochs", ylim=(0, None))
    axes[0].xaxis.get_major_locator().set_params(integer=True)
    axes[1].set(xlabel="updates of the weights", title="the same, over updates", ylim=(0, None))
    axes[1].legend(fontsize=9)
    alt = "Training loss after each epoch, over epochs and over updates. " + " ".join(sentences)
    return finished(figure, alt, *kinds)
