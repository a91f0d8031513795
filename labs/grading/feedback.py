"""PDF for students and instructors: feedback on a submission, and the overview of all; tagged, as the report is."""

import shutil
import tempfile
from collections import Counter
from pathlib import Path
from statistics import fmean

from labs.grading import points
from labs.report import content, document, form

HERE = Path(__file__).parent
MOST_HINTS, LONGEST = 20, 300
MOST_SPEEDUPS = 12  # of one submission, in the figure of all


def pdf(number, found, made, most, comments, collected):
    """The feedback on a submission, as bytes. found: of check.results; made: its Lines; comments: texts; collected: the
    lines of the collection's report."""
    waiting = sum(line.open for line in made)
    data = {
        "title": f"Feedback on submission {number}",
        "points": f"{points.total(made):g}",
        "most": f"{most:g}",
        "state": f"Of these items {waiting} are not decided yet: see below." if waiting else "",
        "lines": [[line.id, f"{line.points:g}", f"{line.of:g}", line.why[:LONGEST]] for line in made],
        "comments": comments,
        "findings": [
            {"where": f.where, "kind": f"{f.kind} ({f.severity})", "seen": f.seen[:LONGEST], "honest": f.honest}
            for f in found["findings"]
            if f.severity != "note"
        ],
        "told": found["told"],
        "collected": [line[:LONGEST] for line in collected],
    }  # fmt: skip
    return _set("feedback", data)


def overview(found, made, most, collected):
    """The overview, as bytes. found, made: {number: ...}; collected: {number: lines}."""
    lines = {id: [] for of_one in made.values() for id in (line.id for line in of_one)}
    for of_one in made.values():
        for line in of_one:
            lines[line.id].append(line)
    hints = Counter(
        (id, each["text"])
        for of_one in found.values()
        for of_all in of_one["checks"].values()
        for id, each in of_all.items()
        if each["state"] == "wrong"
    )
    figure = _speedups({number: each["speedups"] for number, each in found.items() if each["speedups"]})
    data = {
        "title": "Overview of the submissions",
        "count": len(found),
        "most": f"{most:g}",
        "rows": [
            [
                number,
                f"{points.total(of_one):g}",
                str(sum(line.open for line in of_one)),
                str(len(found[number]["findings"])),
                next((f"{f.severity}: {f.where}, {f.seen}"[:LONGEST] for f in found[number]["findings"]), ""),
            ]
            for number, of_one in sorted(made.items())
        ],
        "tasks": [
            [id, f"{of[0].of:g}", f"{fmean(one.points / one.of for one in of):.2f}", f"{sum(one.open for one in of)}"]
            for id, of in lines.items()
            if of[0].of
        ],
        "hints": [[str(count), id, hint[:LONGEST]] for (id, hint), count in hints.most_common(MOST_HINTS)],
        "alt": figure.alt if figure else None,
        "collected": [[number, line[:LONGEST]] for number, of_one in sorted(collected.items()) for line in of_one],
    }  # fmt: skip
    return _set("overview", data, {"speedups.svg": document.svg(figure)} if figure else {})


def _speedups(runs):
    """Every speedup with its interval over the submissions; None where there is none."""
    from labs.show import figure as figures

    if not runs:
        return None
    figure, (axis,) = figures.new_figure(width=7.5)
    said, marked = [], set()
    for place, (number, of_one) in enumerate(sorted(runs.items())):
        for source, workers, speedup, interval in of_one[:MOST_SPEEDUPS]:
            ends = interval or (speedup, speedup)
            style = {"fmt": figures.MARKERS[workers % 6], "color": figures.COLOURS[workers % 6], "capsize": 2}
            label = None if workers in marked else f"{workers} workers"
            marked.add(workers)
            axis.errorbar(
                place, speedup, [[max(0, speedup - ends[0])], [max(0, ends[1] - speedup)]], label=label, **style
            )
            said.append(
                f"{number}, {source.removesuffix('.json')}: {speedup:.3g}"
                + (f" [{interval[0]:.3g}, {interval[1]:.3g}]" if interval else "")
            )
    axis.set_xticks(range(len(runs)), sorted(runs), rotation=90)
    axis.set(xlabel="submission", ylabel="speedup (times)", ylim=(0, None))
    axis.legend()
    figures.stamp(figure, "measured", note="as the records say")
    figure.alt = "Speedups by submission, with 95 % intervals. " + "; ".join(said) + "."
    return figure


def _set(name, data, beside=None):
    with tempfile.TemporaryDirectory(prefix="labs-feedback-") as folder:
        shutil.copyfile(HERE / f"{name}.typ", Path(folder, f"{name}.typ"))
        shutil.copyfile(document.HERE / "parts.typ", Path(folder, "parts.typ"))
        Path(folder, "data.json").write_text(form.as_json(content.every(data)), encoding="utf-8", errors="replace")
        for file, text in (beside or {}).items():
            Path(folder, file).write_text(text, encoding="utf-8")
        return document.compile(Path(folder), main=f"{name}.typ")
