"""Rows as a table in a notebook; numbers keep their digits, None is an empty cell."""

import html
from collections.abc import Mapping, Sequence

from labs.results.collect import BRACKETS, span
from labs.results.metrics import Row
from labs.show.figure import shows

UNSEEN = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)"  # for screen readers


def _text(value):
    if value is None:
        return ""
    if isinstance(value, int | float) and abs(value) >= 10_000:
        return f"{value:,.0f}" if isinstance(value, float) else f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _digits(value):
    """Three digits, and never an exponent: 0.938, 45, 1,111."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def page(html_text: str, plain: str, metadata: dict | None = None) -> None:
    """Display HTML, which `plain` replaces where there is none."""
    from IPython.display import display

    display({"text/html": html_text, "text/plain": plain}, raw=True, metadata=metadata)


def show(
    rows: Sequence[Mapping], columns: Sequence[str] = (), headers: dict | None = None, metadata: dict | None = None
) -> None:
    """Display rows as a table.

    columns: keys of the rows, those of the first row if none are named
    headers: {column: heading}, else the column's own name
    metadata: of the output, see labs.show.figure.shows
    """
    from tabulate import tabulate

    columns, headers = columns or list(rows[0]), headers or {}
    names = [headers.get(column, column) for column in columns]
    body = [[_text(row.get(column)) for column in columns] for row in rows]
    plain = tabulate([names, *body], tablefmt="plain", disable_numparse=True)  # as headers they would be padded
    head = _line('th scope="col"', names)
    lines = "".join(_line("td", line) for line in body)
    caption = f'<caption style="{UNSEEN}">{html.escape(", ".join(names))}</caption>'
    page(f"<table>{caption}<thead>{head}</thead><tbody>{lines}</tbody></table>", plain, metadata)


def _line(cell, texts):
    cells = (f'<{cell} style="text-align:left">{html.escape(text)}</{cell[:2]}>' for text in texts)
    return f"<tr>{''.join(cells)}</tr>"


def scaling(rows: Sequence[Row]) -> None:
    """Display rows of labs.results.collect as a table for a notebook: values with their intervals in brackets."""

    def cell(row, key):
        value, behind = row.get(key), None if row.get(key) is None else span(row, key, _digits)
        return f"{_digits(value)}{behind}" if behind else _text(value)

    rounds = "rounds" if any(row.get("rounds") for row in rows) else "repeats"
    columns = ("model", "workers", "epoch", rounds, "epoch_seconds", "images_per_second")
    columns += ("speedup", "efficiency", "final_accuracy")
    headers = {"epoch": "steps x global batch", "epoch_seconds": "epoch (s)"}
    headers |= {"images_per_second": "images/s", "final_accuracy": "accuracy"}
    shown = [{key: cell(row, key) for key in columns} for row in rows]
    for line, row in zip(shown, rows, strict=True):
        line["model"] += f" ({row['kind']})"
        line["epoch"] = f"{cell(row, 'steps')} x {cell(row, 'global_batch')}"
        if row.get("oversubscribed"):
            line["workers"] += " (oversubscribed)"
    show(shown, columns, headers, shows(rows))
    notes = list(dict.fromkeys(note for row in rows for note in row["notes"]))
    print(f"[low, high]: {BRACKETS}.")
    if notes:
        print("Notes: " + "; ".join(notes) + ".")
