"""Pictures of notebook 00: the course and how far you are, the first measurement, your predictions so far."""

import math
from functools import partial
from pathlib import Path
from textwrap import shorten, wrap

from labs import checks
from labs.checks import tasks
from labs.show import plots
from labs.show.figure import COLOURS, MARKERS, new_figure, stamp
from lessons.asked import question
from lessons.drawing import logarithmic
from lessons.start_here.first import busy, speedup

NAMES = {"afternoon": "An afternoon", "practical": "The practical", "everything": "Everything"}  # of the paths
FARTHEST = 100  # a ratio beyond this stands at the border


def course(rows, path="everything", folder="."):
    """Figure of a path through the course: each of its lessons with its time, the share of its checks that are right,
    and the tasks that are handed in; below them, in grey, the notebooks that the path leaves out.

    rows: of labs.checks.progress; path: one of labs.checks.tasks.PATHS. A lesson whose notebook is not in `folder` is
    drawn empty, and counts nowhere. Raises TaskError.
    """
    stands = [(lesson, _stand(lesson, rows, folder)) for lesson in tasks.on_path(path)]
    names = [f"{_number(lesson)}  {lesson.title}" + " (optional)" * lesson.optional for lesson, _ in stands]
    left = [_number(each) for each in tasks.lessons().values() if each not in tasks.on_path(path)]
    longest = max(lesson.minutes for lesson, _ in stands)
    checked, handed_in, step = 1.1 * longest, 1.47 * longest, 0.155 * longest  # where the columns begin
    figure, (axis,) = new_figure(width=10.5, height=1.3 + 0.26 * len(stands))
    text = partial(axis.text, va="center", fontsize=9)
    sentences = []
    for place, (name, (lesson, stand)) in enumerate(zip(names, stands, strict=True)):
        if stand is None:
            axis.barh(place, lesson.minutes, color="none", edgecolor="0.6", ls=":")
            text(checked, place, "not in this folder", color="0.35")
            sentences.append(f"{name}: not in this folder.")
            continue
        right, count, letters = stand
        axis.barh(place, lesson.minutes, color="0.92", edgecolor="0.5")
        axis.barh(place, lesson.minutes * right / max(1, count), color=COLOURS[0])
        text(checked, place, f"{right} of {count}")
        for number, (id, done) in enumerate(letters.items()):
            box = {"boxstyle": "round,pad=0.15", "fc": COLOURS[0] if done else "white", "ec": COLOURS[0]}
            shown = "\N{CHECK MARK} " * done + id
            text(handed_in + number * step, place, shown, fontsize=8, color="white" if done else "black", bbox=box)
        said = [f"{lesson.minutes} minutes", f"{right} of {count} checks right"]
        said += [f"{id} {'done' if done else 'open'}" for id, done in letters.items()]
        sentences.append(f"{name}: {', '.join(said)}.")
    for place, head in ((0, "time"), (checked, "checks right"), (handed_in, "tasks to hand in")):
        text(place + 0.01 * longest, -0.8, head, color="0.35")
    most = max([len(stand[2]) for _, stand in stands if stand], default=1)
    axis.set(xlim=(0, handed_in + (max(2, most) + 0.1) * step), ylim=(len(stands) - 0.4, -1.2))
    axis.set_xticks(range(0, longest + 1, 30))
    axis.spines["bottom"].set_bounds(0, longest)
    axis.set_xlabel("minutes that the notebook states", loc="left")
    axis.grid(axis="y", visible=False)
    _left(figure, axis, names)
    head = f"{NAMES[path]}: {_head([(lesson, stand) for lesson, stand in stands if stand])}"
    axis.set_title(head, fontsize=10)
    note = "a bar fills as its checks become right"
    if left:
        sentences.append(f"Not on this path: {', '.join(left)}.")
        note = f"{note}; not on this path: {', '.join(left)}"
    stamp(figure, "your progress", note=note)
    figure.alt = f"Map of the course. {head}. " + " ".join(sentences)
    return figure


def _number(lesson):
    return lesson.notebook.partition("_")[0]


def _stand(lesson, rows, folder):
    """(checks right, checks, {id: done} of what is handed in) of a lesson; None where its notebook is not there."""
    if not Path(folder, f"{lesson.notebook}.ipynb").is_file():
        return None
    own = [row for row in rows if row["notebook"] == lesson.notebook]
    right = [row["state"] == "right" for row in own if row["kind"] == "check"]
    letters = {row["id"]: row["state"] in ("right", "written") for row in own if tasks.handed_in(row["id"])}
    return sum(right), len(right), letters


def _head(stands):
    needed = [(lesson, stand) for lesson, stand in stands if not lesson.optional]
    hours = round(sum(lesson.minutes for lesson, _ in needed) / 30) / 2
    right, count = (sum(stand[number] for _, stand in needed) for number in (0, 1))
    done = [done for _, stand in needed for done in stand[2].values()]
    return (
        f"{len(stands)} notebooks, {hours:g} hours, {right} of {count} checks right, "
        f"{sum(done)} of {len(done)} tasks done"
    )


def _left(figure, axis, names):
    """Names of the rows, aligned at the left."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    axis.set_yticks(range(len(names)), names, fontsize=9, ha="left")
    renderer = FigureCanvasAgg(figure).get_renderer()
    wide = max(tick.label1.get_window_extent(renderer).width for tick in axis.yaxis.get_major_ticks())
    axis.tick_params(axis="y", length=0, pad=72 * wide / figure.dpi + 6)


def first(runs):
    """Figure of the first measurement: each of its rounds, and the question that the result raises.

    runs: of first.measure; where they hold no speedup, the figure says so.
    """
    gain, interval = speedup(runs)
    if gain is None:
        figure, (axis,) = new_figure(width=8, height=1)
        axis.set_axis_off()
        figure.alt = "There is no speedup yet: run the cell above, and let it finish."
        axis.text(0.5, 0.5, figure.alt, ha="center")
        return figure
    figure = plots.rounds(*runs[::-1])
    asked, note = question(gain, interval), busy(runs)
    said = f"Mind that {note}. " if note else ""
    figure.suptitle("\n".join([asked, *wrap(said, 78)]), weight="bold")
    figure.alt = f"{asked} {said}{figure.alt}"
    return figure


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
    stamp(figure, "your predictions", note=f"without outcome: {waiting}, not made yet: {missing}")
    figure.alt = " ".join(
        [f"{axis.get_title()}; without outcome: {waiting}, not made yet: {missing}.", *map(_said, known)]
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
