"""Tables in notebooks: digits, escaping, intervals, progress."""

import pytest

from labs.show import tables


@pytest.fixture
def shown(monkeypatch):
    """What was displayed, as a list of mime bundles."""
    bundles = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, raw, metadata=None: bundles.append(bundle))
    return bundles


def row(**changes):
    base = {
        "model": "ResNet50V2",
        "workers": 1,
        "global_batch": 64,
        "steps": 8,
        "repeats": 3,
        "epoch_seconds": 8.0,
        "epoch_seconds_interval": [7.25, 8.82],
        "images_per_second": 4166.7,
        "images_per_second_interval": [4000.0, 4347.8],
        "speedup": None,
        "efficiency": None,
        "final_accuracy": 0.7383,
        "kind": "measured",
        "notes": [],
        "oversubscribed": False,
    }
    return base | changes


def test_values_come_with_their_intervals_and_without_exponents(shown):
    tables.scaling([row()])
    text = shown[0]["text/plain"]
    assert "8 [7.25, 8.82]" in text and "4,167 [4,000, 4,348]" in text and "e+" not in text
    assert "None" not in text and "0.7383" in text


def test_oversubscribed_runs_and_notes_are_named(shown, capsys):
    tables.scaling([row(workers=4, oversubscribed=True, notes=["one repeat"]), row(notes=["one repeat"])])
    assert "4 (oversubscribed)" in shown[0]["text/plain"]
    assert capsys.readouterr().out == "Notes: one repeat.\n"


def test_cells_are_escaped_and_columns_have_headings(shown):
    tables.show([{"a": "<b>", "b": 2**40}], ("a", "b"), {"a": "first"})
    html = shown[0]["text/html"]
    assert "&lt;b&gt;" in html and "<b>" not in html and 'scope="col"' in html and "first" in html


def test_progress_counts_items_and_lists_the_open_ones(shown, capsys):
    rows = [
        {"id": "03.1", "title": "guess", "notebook": "03_x", "kind": "prediction", "points": 0, "state": "predicted"},
        {"id": "03.2", "title": "count", "notebook": "03_x", "kind": "check", "points": 2, "state": "right"},
        {"id": "03.3", "title": "scope", "notebook": "03_x", "kind": "check", "points": 3, "state": "wrong"},
    ]
    tables.progress(rows)
    assert shown[0]["text/plain"] == "03_x: 2 of 3 items done, 2 of 5 points from checks"
    assert 'href="03_x.ipynb"' in shown[0]["text/html"]
    assert "03.3" in shown[1]["text/plain"] and "03.2" not in shown[1]["text/plain"]
    assert "Still open" in capsys.readouterr().out
