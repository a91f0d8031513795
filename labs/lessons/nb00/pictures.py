"""Picture of notebook 00: how good are your predictions, over the course?"""

import math
from textwrap import shorten

from labs import checks
from labs.lessons.drawing import logarithmic
from labs.show.figure import COLOURS, MARKERS, new_figure, stamp

FARTHEST = 100  # a ratio beyond this stands at the border


def predictions():
    """Figure of all predictions that have an outcome: numbers as outcome / prediction, words as right or not."""
    rows = checks.predictions()
    known = [row for row in rows if row["outcome"] is not None and row["said"] is not None]
    figure, (axis,) = new_figure(width=8, height=1.6 + 0.26 * len(known))
    half = max([abs(math.log(_shown(r))) for row in known for r in row["ratios"] or ()], default=0)
    limit = max(2.5, 1.5 * math.exp(half))
    for place, row in enumerate(known):
        if row["ratios"]:
            low, high = row["interval"] or (None, None)
            if low and row["said"] and low > 0:
                axis.plot([low / row["said"], high / row["said"]], [place, place], color=COLOURS[0], lw=4, alpha=0.35)
            for ratio in row["ratios"]:
                beyond = "<" if ratio < 1 / FARTHEST else ">" if ratio > FARTHEST else MARKERS[0]
                axis.plot(_shown(ratio), place, beyond, color=COLOURS[0])
        else:
            box = {"boxstyle": "round", "fc": "white", "ec": COLOURS[2] if row["right"] else COLOURS[1]}
            axis.text(1, place, _words(row), ha="center", va="center", fontsize=9, bbox=box)
    axis.axvline(1, color="0.3", lw=1, ls="--")
    steps = [step for step in ((1, 2, 5, 10) if limit < 20 else (1, 10, 100)) if step < limit]
    logarithmic(axis, {1 / step: f"1/{step}" for step in steps[:0:-1]} | {step: f"{step}" for step in steps})
    axis.set(xlim=(1 / limit, limit), ylim=(len(known) - 0.4, -0.6), xlabel="outcome / prediction (1: as you said)")
    axis.set_yticks(
        range(len(known)), [shorten(f"{r['id']} {r['title']}", 58, placeholder=" ...") for r in known], fontsize=9
    )
    missing = sum(row["said"] is None for row in rows)
    waiting = len(rows) - len(known) - missing
    axis.set_title(f"{len(known)} of {len(rows)} predictions have an outcome", fontsize=10)
    stamp(figure, "your predictions", note=f"{waiting} wait for theirs, {missing} are not made")
    figure.alt = " ".join(
        [f"{axis.get_title()}; {waiting} wait for theirs, {missing} are not made.", *map(_said, known)]
    )
    return figure


def _shown(ratio):
    """A ratio as it is drawn: at the border where it lies beyond, or where one of the two numbers is 0."""
    return min(max(ratio, 1 / FARTHEST), FARTHEST)


def _said(row):
    if row["ratios"]:
        return f"{row['id']}: outcome / prediction {', '.join(f'{ratio:.3g}' for ratio in row['ratios'])}."
    return f"{row['id']}: {_words(row)}."


def _words(row):
    return f"right: {row['outcome']}" if row["right"] else f"you said {row['said']}, found {row['outcome']}"
