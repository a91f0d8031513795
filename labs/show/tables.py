"""Rows as a table in a notebook; numbers keep their digits, None is an empty cell."""

import html
from collections.abc import Mapping, Sequence

from labs.printed import digits, grouped
from labs.results.run import Run
from labs.results.tables import BRACKETS, counted, said, span
from labs.show.figure import runs_metadata

UNSEEN = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)"  # for screen readers


def _text(value):
    if value is None:
        return ""
    if isinstance(value, int) and abs(value) >= 10_000:
        return f"{value:,}"
    return digits(value, 4) if isinstance(value, float) else str(value)


def display_html(html_text: str, plain: str, metadata: dict | None = None) -> None:
    """Display HTML, which `plain` replaces where there is none."""
    from IPython.display import display

    display({"text/html": html_text, "text/plain": plain}, raw=True, metadata=metadata)


def show(
    rows: Sequence[Mapping], columns: Sequence[str] = (), headers: dict | None = None, metadata: dict | None = None
) -> None:
    """Display rows as a table.

    columns: keys of the rows, those of the first row if none are named
    headers: {column: heading}, else the column's own name
    metadata: of the output, see labs.show.figure.runs_metadata
    """
    from tabulate import tabulate

    columns, headers = columns or list(next(iter(rows), ())), headers or {}
    names = [headers.get(column, column) for column in columns]
    body = [[_text(row.get(column)) for column in columns] for row in rows]
    plain = tabulate([names, *body], tablefmt="plain", disable_numparse=True)  # as headers they would be padded
    head = _line('th scope="col"', names)
    lines = "".join(_line("td", line) for line in body)
    caption = f'<caption style="{UNSEEN}">{html.escape(", ".join(names))}</caption>'
    display_html(f"<table>{caption}<thead>{head}</thead><tbody>{lines}</tbody></table>", plain, metadata)


def _line(cell, texts):
    cells = (f'<{cell} style="text-align:left">{html.escape(text)}</{cell[:2]}>' for text in texts)
    return f"<tr>{''.join(cells)}</tr>"


def scaling(runs: Sequence[Run]) -> None:
    """Display runs as a table, with intervals in brackets.

    runs: as of labs.results.load. Where they are of several strategies, each stands behind its model; where scaling is
    of several kinds, each stands behind its speedup.
    """
    count = "rounds" if any(run.rounds for run in runs) else "repeats"
    strategies, kinds = len({run.strategy for run in runs}) > 1, {run.scaling for run in runs if run.scaling}
    speedup = "speedup over 1 worker" + (f" ({min(kinds)} scaling)" if len(kinds) == 1 else "")

    def cell(run, name):
        return said(run, name, digits if span(run, name, digits) else _text)

    shown = [
        {
            "model": f"{', '.join(filter(None, (run.model, run.strategy if strategies else None)))} ({run.kind})",
            "workers": cell(run, "workers") + (" (oversubscribed)" if run.oversubscribed else ""),
            "steps x global batch": f"{cell(run, 'steps')} x {cell(run, 'global_batch')}",
            count: counted(run) if run.rounds or count == "repeats" else None,
            "epoch (s)": cell(run, "epoch_seconds"),
            "images/s": cell(run, "images_per_second"),
            speedup: cell(run, "speedup") + (f" ({run.scaling})" if len(kinds) > 1 and run.scaling else ""),
            "efficiency": cell(run, "efficiency"),
            "accuracy": cell(run, "final_accuracy"),
        }
        for run in runs
    ]
    show(shown, metadata=runs_metadata(runs))
    print(f"[low, high]: {BRACKETS}.")
    notes = dict.fromkeys((note, str(row)) for row, run in enumerate(runs, 1) for note in run.notes)
    for note, rows in grouped(notes).items():
        print(f"Row{'s' * (len(rows) > 1)} {', '.join(rows)}: {note}.")
