"""Tables in notebooks: digits, escaping, intervals, progress."""

import pytest

from labs.results.intervals import Estimate
from labs.results.run import Epoch, Run
from labs.show import tables


@pytest.fixture
def shown(monkeypatch):
    """What was displayed, as a list of mime bundles."""
    bundles = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, raw, metadata=None: bundles.append(bundle))
    return bundles


def measured(workers=1, strategy="mirrored", epochs=(), **changes):
    has = {"model": "ResNet50V2", "strategy": strategy, "workers": workers, "global_batch": 64}
    given = {
        "epoch_seconds": Estimate(8.0, (7.25, 8.82)),
        "images_per_second": Estimate(4166.7, (4000.0, 4347.8)),
        "final_accuracy": Estimate(0.7383),
        "speedup": Estimate(1.0),
        "notes": ["one repeat"],
    }
    return Run(
        "a.json", [list(epochs)] if epochs else 3 * [2 * [Epoch(8.0)]], configuration=has, steps=8, **given | changes
    )


def test_values_come_with_their_intervals_and_without_exponents(shown):
    tables.scaling([measured()])
    text = shown[0]["text/plain"]
    assert "8 [7.25, 8.82]" in text and "4,167 [4,000, 4,348]" in text and "e+" not in text
    assert "None" not in text and "0.7383" in text and "ResNet50V2 (measured)" in text


def test_the_strategy_is_named_where_there_are_several(shown):
    tables.scaling([measured(), measured(strategy="horovod"), measured(strategy=None)])
    lines = shown[0]["text/plain"].splitlines()[1:]
    assert [line.partition(" (measured)")[0] for line in lines] == [
        "ResNet50V2, mirrored",
        "ResNet50V2, horovod",
        "ResNet50V2",
    ]


def test_the_heading_names_the_baseline_and_the_kind_of_scaling(shown):
    gain = {"speedup": Estimate(1.8, (1.7, 1.9))}
    weak, strong = (measured(2, scaling=kind, **gain) for kind in ("weak", "strong"))
    for runs, heading, cell in (
        ([measured(), weak], "speedup over 1 worker (weak scaling)", "1.8 [1.7, 1.9]"),
        ([weak, strong], "speedup over 1 worker", "1.8 [1.7, 1.9] (strong)"),
        ([measured()], "speedup over 1 worker", "1"),
    ):
        tables.scaling(runs)
        head, *lines = shown.pop()["text/plain"].splitlines()
        place = head.index(heading + "  ")
        assert lines[-1][place:].strip().startswith(cell)


def test_repeats_are_counted_or_else_rounds(shown):
    turns = measured(study="s", epochs=[Epoch(9.0), *(Epoch(8.0, round=n) for n in range(1, 6))])
    for runs, name, numbers in (([measured()], "repeats", ["3"]), ([turns, measured(2)], "rounds", ["5", ""])):
        tables.scaling(runs)
        head, *lines = shown.pop()["text/plain"].splitlines()
        place = head.index(name)
        assert [line[place : place + 3].strip() for line in lines] == numbers


def test_a_table_says_which_runs_it_shows(monkeypatch):
    said = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, raw, metadata=None: said.append(metadata))
    tables.scaling([measured(started="2026-05-05T05:05:05+00:00")])
    assert said == [{"labs": {"shows": {"a.json": {"kind": "measured", "started": "2026-05-05T05:05:05+00:00"}}}}]


def test_oversubscribed_runs_and_notes_are_named(shown, capsys):
    tables.scaling([measured(4, oversubscribed=True), measured()])
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
