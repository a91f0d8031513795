"""Tables in notebooks: digits, escaping, intervals, progress."""

import pytest
from epochs import numbered

from labs.results.intervals import Estimate
from labs.results.run import Epoch, Run
from labs.show import tables


@pytest.fixture
def shown(monkeypatch):
    """What was displayed, as a list of (mime bundle, metadata)."""
    found = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, raw, metadata=None: found.append((bundle, metadata)))
    return found


def measured(workers=1, strategy="mirrored", epochs=(), **changes):
    has = {"model": "ResNet50V2", "strategy": strategy, "workers": workers, "global_batch": 64}
    given = {
        "epoch_seconds": Estimate(8.0, (7.25, 8.82)),
        "images_per_second": Estimate(4166.7, (999.7, 12347.8)),
        "final_accuracy": Estimate(0.7383),
        "speedup": Estimate(1.0),
        "notes": ["one repeat"],
    }
    repeats = [list(epochs)] if epochs else 3 * [2 * [Epoch(seconds=8.0)]]
    return Run(source="a.json", epochs=numbered(*repeats), configuration=has, steps=8, **given | changes)


def test_values_come_with_their_intervals_what_they_are_and_which_runs_they_show(shown, capsys):
    when = "2026-05-05T05:05:05+00:00"
    tables.scaling([measured(4, oversubscribed=True, notes=["one repeat", "busy"]), measured(started=when)])
    ((bundle, metadata),) = shown
    text = bundle["text/plain"]
    assert "8 [7.25, 8.82]" in text and "4,167 [1,000, 12,348]" in text and "0.7383" in text
    assert "ResNet50V2 (measured)" in text and "4 (oversubscribed)" in text
    assert metadata == {"labs": {"shows": {"a.json": {"kind": "measured", "started": when}}}}
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith("times and images/s hold for that time only.")
    assert said[1:] == ["Rows 1, 2: one repeat.", "Row 1: busy."]


WEAK, STRONG = (measured(2, scaling=kind, speedup=Estimate(1.8, (1.7, 1.9))) for kind in ("weak", "strong"))
TURNS = measured(study="s", epochs=[Epoch(seconds=9.0), *(Epoch(seconds=8.0, round=n) for n in range(1, 6))])


@pytest.mark.parametrize(
    ("runs", "heading", "cells"),
    [
        ([measured(), WEAK], "speedup over 1 worker (weak scaling)", ["1", "1.8 [1.7, 1.9]"]),
        ([WEAK, STRONG], "speedup over 1 worker", ["1.8 [1.7, 1.9] (weak)", "1.8 [1.7, 1.9] (strong)"]),
        ([TURNS, measured(2)], "rounds", ["5", ""]),
        ([measured(), measured(strategy=None)], "model", ["ResNet50V2, mirrored (measured)", "ResNet50V2 (measured)"]),
    ],
)
def test_headings_and_cells_say_the_baseline_the_scaling_the_repeats_and_the_strategy(shown, runs, heading, cells):
    tables.scaling(runs)
    head, *lines = shown[0][0]["text/plain"].splitlines()
    place = head.index(heading + "  ")
    end = len(head) - len(head[place + len(heading) :].lstrip())
    assert [line[place:end].strip() for line in lines] == cells


def test_cells_are_escaped_columns_have_headings_and_large_numbers_separators(shown):
    tables.show([{"a": "<b>", "b": 2**40}], ("a", "b"), {"a": "first"})
    html = shown[0][0]["text/html"]
    assert ">first, b</caption>" in html and "&lt;b&gt;" in html and "<b>" not in html and 'scope="col"' in html
    tables.show([{"ranks": 2, "bytes": 573801, "batch": 8192}, {"ranks": None, "bytes": 1e6, "batch": True}])
    lines = [line.split() for line in shown[1][0]["text/plain"].splitlines()]
    assert lines == [["ranks", "bytes", "batch"], ["2", "573,801", "8192"], ["1,000,000", "True"]]
