"""Scripts and loss curves side by side."""

from epochs import numbered
from figures import sound

from labs.results.run import Epoch, Run, save_record
from lessons import compare

OLD = (
    'import os\nrate = 0.01  # of one worker\nmodel = build(\n    "net", size=3)\nwith scope():\n    model.fit(rate)\n'
)
NEW = 'import os\n\nbegin()\nrate = "<b>" * count()\nmodel = build("net", size=3)\nmodel.fit(rate)\n'


def test_only_lines_that_differ_are_shown_without_comments_and_line_breaks_as_text(tmp_path, monkeypatch):
    shown, paths = [], [tmp_path / "old.py", tmp_path / "new.py"]
    monkeypatch.setattr("IPython.display.display", lambda bundle, raw, metadata=None: shown.append(bundle))
    for path, text in zip(paths, (OLD, NEW), strict=True):
        path.write_text(text)
    compare.scripts(*paths)
    lines = ["- only in old.py:", "- rate = 0.01", "- with scope():", "+ only in new.py:", "+ begin()"]
    assert shown[0]["text/plain"].split("\n") == [*lines, "+ rate = '<b>' * count()"]
    assert "&lt;b&gt;" in shown[0]["text/html"] and "<b>" not in shown[0]["text/html"]


def test_losses_are_drawn_over_epochs_and_over_updates(tmp_path):
    runs = {"one": (tmp_path / "one.json", [2.0, 1.0], 32), "four": (tmp_path / "four.json", [2.5, 1.5, 0.5], 8)}
    for path, loss, steps in runs.values():
        repeats = [[Epoch(seconds=1.0, metrics={"loss": value + repeat}) for value in loss] for repeat in (0, 1)]
        save_record(path, Run(steps=steps, epochs=numbered(*repeats)))
    figure = sound(
        compare.losses({name: path for name, (path, *_) in runs.items()}), "measured", "one: 2.0000, 1.0000."
    )
    epochs, updates = figure.axes
    assert [list(line.get_xdata()) for line in epochs.get_lines()] == [[1, 2], [1, 2, 3]]
    assert [list(line.get_xdata()) for line in updates.get_lines()] == [[32, 64], [8, 16, 24]]
    assert [list(line.get_ydata()) for line in updates.get_lines()] == [[2.0, 1.0], [2.5, 1.5, 0.5]]  # first repeat
