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
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "Notes: one repeat." and said[0].endswith("for times and images/s only in these minutes.")


def test_cells_are_escaped_and_columns_have_headings(shown):
    tables.show([{"a": "<b>", "b": 2**40}], ("a", "b"), {"a": "first"})
    html = shown[0]["text/html"]
    assert ">first, b</caption>" in html
    assert "&lt;b&gt;" in html and "<b>" not in html and 'scope="col"' in html and "first" in html


def test_without_columns_they_are_those_of_the_first_row_and_large_numbers_have_separators(shown):
    tables.show([{"ranks": 2, "bytes": 573801, "batch": 8192}, {"ranks": 4, "bytes": 1e6, "batch": True}])
    lines = [line.split() for line in shown[0]["text/plain"].splitlines()]
    assert lines == [["ranks", "bytes", "batch"], ["2", "573,801", "8192"], ["4", "1,000,000", "True"]]
