"""Pictures of notebook 00: the course and how far you are, the first measurement, your predictions so far."""

from functools import partial
from pathlib import Path
from textwrap import shorten, wrap

import numpy as np

from labs import checks
from labs.checks import tasks
from labs.results import metrics
from labs.show import plots
from labs.show.figure import COLOURS, MARKERS, finished, new_figure
from lessons.asked import question
from lessons.drawing import logarithmic
from lessons.start_here.first import speedup

NAMES = {"afternoon": "An afternoon", "practical": "The practical", "everything": "Everything"}  # of the paths
FARTHEST = 100  # a ratio beyond this stands at the border
TICKS = {0.01: "1/100", 0.1: "1/10", 0.2: "1/5", 0.5: "1/2", 1: "1", 2: "2", 5: "5", 10: "10", 100: "100"}


def course(rows, path="everything", folder="."):
    """Figure of a path through the course: each of its lessons with its time, the share of its checks that are right,
    and the tasks that are handed in; below them, in grey, the notebooks that the path leaves out.

    rows: of labs.checks.progress; path: one of labs.checks.tasks.PATHS. Of a lesson whose notebook is not in `folder`
    this is said. Raises TaskError.
    """
    lessons = tasks.on_path(path)
    longest = max(lesson.minutes for lesson in lessons)
    checked, handed_in, step = 1.1 * longest, 1.47 * longest, 0.155 * longest  # where the columns begin
    figure, (axis,) = new_figure(width=11, height=1.5 + 0.26 * len(lessons))
    text = partial(axis.text, va="center", fontsize=9)
    names, sentences = [], []
    for place, lesson in enumerate(lessons):
        missing = not Path(folder, f"{lesson.notebook}.ipynb").is_file()
        notes = " (optional)" * lesson.optional + " (not in this folder)" * missing
        names.append(f"{_number(lesson)}  {lesson.title}{notes}")
        right, count, letters = _stand(rows, [lesson])
        axis.barh(place, lesson.minutes, color="0.92", edgecolor="0.5")
        axis.barh(place, lesson.minutes * right / count, color=COLOURS[0])
        text(checked, place, f"{right} of {count}")
        said = [f"{lesson.minutes} minutes", f"{right} of {count} checks right"]
        for number, (id, done) in enumerate(letters.items()):
            box = {"boxstyle": "round,pad=0.15", "fc": COLOURS[0] if done else "white", "ec": COLOURS[0]}
            shown = "\N{CHECK MARK} " * done + id
            text(handed_in + number * step, place, shown, fontsize=8, color="white" if done else "black", bbox=box)
            said.append(f"{id} {'done' if done else 'open'}")
        sentences.append(f"{names[-1]}: {', '.join(said)}.")
    for place, head in ((0, "time"), (checked, "checks right"), (handed_in, "tasks to hand in")):
        text(place + 0.01 * longest, -0.8, head, color="0.35")
    axis.set(xlim=(0, handed_in + 3.1 * step), ylim=(len(lessons) - 0.4, -1.2))
    axis.set_xticks(range(0, longest + 1, 30))
    axis.spines["bottom"].set_bounds(0, longest)
    axis.set_xlabel("minutes that the notebook states", loc="left")
    axis.grid(axis="y", visible=False)
    axis.set_yticks(range(len(names)), names, fontsize=9, ha="left")
    axis.tick_params(axis="y", length=0, pad=5 * max(map(len, names)))  # in points
    needed = [lesson for lesson in lessons if not lesson.optional]
    right, count, letters = _stand(rows, needed)
    hours = round(sum(lesson.minutes for lesson in needed) / 30) / 2
    head = f"{NAMES[path]}: {len(lessons)} notebooks, {hours:g} hours, {right} of {count} checks right, "
    head += f"{sum(letters.values())} of {len(letters)} tasks done"
    figure.suptitle(head, fontsize=10)
    note = "a bar fills as its checks become right"
    left = [_number(lesson) for lesson in tasks.lessons().values() if lesson not in lessons]
    if left:
        sentences.append(f"Not on this path: {', '.join(left)}.")
        note = f"{note}; not on this path: {', '.join(left)}"
    return finished(figure, f"Map of the course. {head}. {' '.join(sentences)}", "your progress", note=note)


def _number(lesson):
    return lesson.notebook.partition("_")[0]


def _stand(rows, lessons):
    """(checks right, checks, {id: done} of what is handed in) of some lessons."""
    notebooks = [lesson.notebook for lesson in lessons]
    own = [row for row in rows if row["notebook"] in notebooks and not row["title"].endswith("(optional)")]
    right = [row["state"] == "right" for row in own if row["kind"] == "check"]
    letters = {row["id"]: row["state"] in ("right", "written") for row in own if tasks.handed_in(row["id"])}
    return sum(right), len(right), letters


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
    asked, (_, busy) = question(gain, interval), metrics.undisturbed_rounds(*runs[::-1])
    said = f"Mind that {busy}. " if busy else ""
    figure.suptitle("\n".join([asked, *wrap(said, 78)]), weight="bold")
    figure.alt = f"{asked} {said}{figure.alt}"
    return figure


def predictions():
    """Figure of all predictions that have an outcome: numbers as outcome / prediction, words as right or not."""
    rows = checks.predictions()
    known = [row for row in rows if row["outcome"] is not None and row["predicted"] is not None]
    figure, (axis,) = new_figure(width=8, height=1.6 + 0.26 * len(known))
    limit, sentences = 2.5, []
    for place, row in enumerate(known):
        if row["ratios"]:
            if row["interval"] and row["predicted"]:
                ends = _shown(np.divide(row["interval"], row["predicted"]))
                axis.plot(ends, [place, place], color=COLOURS[0], lw=4, alpha=0.35)
            for ratio in row["ratios"]:
                beyond = "<" if ratio < 1 / FARTHEST else ">" if ratio > FARTHEST else MARKERS[0]
                axis.plot(_shown(ratio), place, beyond, color=COLOURS[0])
                limit = max(limit, 1.5 * _shown(ratio), 1.5 / _shown(ratio))
            said = f"outcome / prediction {', '.join(f'{ratio:.3g}' for ratio in row['ratios'])}"
        else:
            said, edge = f"you said {row['predicted']}, found {row['outcome']}", COLOURS[1]
            if row["right"]:
                said, edge = f"right: {row['outcome']}", COLOURS[2]
            box = {"boxstyle": "round", "fc": "white", "ec": edge}
            axis.text(1, place, said, ha="center", va="center", fontsize=9, bbox=box)
        sentences.append(f"{row['id']}: {said}.")
    axis.axvline(1, color="0.3", lw=1, ls="--")
    logarithmic(axis, TICKS)
    axis.set(xlim=(1 / limit, limit), ylim=(len(known) - 0.4, -0.6), xlabel="outcome / prediction (1: as you said)")
    names = [shorten(f"{row['id']} {row['title']}", 58, placeholder=" ...") for row in known]
    axis.set_yticks(range(len(known)), names, fontsize=9)
    missing = sum(row["predicted"] is None for row in rows)
    waiting = f"without outcome: {len(rows) - len(known) - missing}, not made yet: {missing}"
    axis.set_title(f"{len(known)} of {len(rows)} predictions have an outcome", fontsize=10)
    alt = f"{axis.get_title()}; {waiting}. {' '.join(sentences)}"
    return finished(figure, alt, "your predictions", note=waiting)


def _shown(ratio):
    """A ratio as it is drawn: at the border where it lies beyond, or where one of the two numbers is 0."""
    return np.clip(ratio, 1 / FARTHEST, FARTHEST)
