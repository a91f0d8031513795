"""Two things side by side: what changed between two scripts, and the loss curves of several runs."""

import html
import io
import tokenize
from pathlib import Path

from labs.show.figure import COLOURS, MARKERS, finished, new_figure
from labs.show.tables import UNSEEN, page

_PLUMBING = ("import ", "from ", "print(", "parser", "if hvd.rank() == 0:", "recorder")  # not what a training is about


def code_lines(path):
    """The lines of a Python file without comments, docstring and empty lines; a bracket's content is one line."""
    lines, text = [], []
    source = Path(path).read_text()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
            continue
        if token.type == tokenize.NEWLINE:
            if not (len(text) == 1 and text[0].type == tokenize.STRING):  # a docstring
                lines.append(_join(text))
            text = []
        else:
            text.append(token)
    return lines


def _join(tokens):
    """The tokens of a logical line as one text: as written, but with one blank for a line break."""
    shown, before = " " * tokens[0].start[1], None
    for token in tokens:
        if before:
            gap = token.start[1] - before.end[1] if token.start[0] == before.end[0] else before.string not in "([{"
            if token.string in ")]}" and token.start[0] != before.end[0]:
                gap, shown = 0, shown.removesuffix(",")
            shown += " " * gap
        shown, before = shown + token.string, token
    return shown


def scripts(old, new):
    """Display the lines of two scripts that the other one has not, side by side: what went and what came.

    Comments, line breaks, indentation, imports, printing and the command line do not count.
    """
    before, after = ([line.strip() for line in code_lines(path)] for path in (old, new))
    went = [line for line in before if line not in after and not line.startswith(_PLUMBING)]
    came = [line for line in after if line not in before and not line.startswith(_PLUMBING)]
    heads, columns, plain = "", "", []
    for path, mark, colour, lines in ((old, "-", "#D55E00", went), (new, "+", "#0072B2", came)):
        name = Path(path).name
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
    page(f'<table style="{look}">{caption}<tr>{heads}</tr><tr>{columns}</tr></table>', "\n".join(plain))


def losses(runs):
    """Training loss of several runs over epochs and over updates of the weights, in one figure.

    runs: {name: path of a run record}; only the first repeat counts. Curves that lie on each other stay visible:
    each has a line and a marker of its own, the later ones smaller.
    """
    from labs.results import run as records

    figure, axes = new_figure(2, width=4.6)
    sentences, kinds = [], []
    for number, (name, path) in enumerate(runs.items()):
        run = records.load(path)
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
