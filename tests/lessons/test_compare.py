"""Scripts and loss curves side by side."""

import pytest
from legends import hidden

from labs.results.run import Epoch, Run, save
from lessons import compare

OLD = '''"""What it does."""
import os

rate = 0.01  # of one worker
model = build(
    "net",
    size=3,
)
with scope():
    model.fit(rate)
print("done")
'''
NEW = """import os
from work import begin, count

begin()
rate = 0.01 * count()
model = build("net", size=3)
model.fit(rate)
"""


@pytest.fixture
def pages(monkeypatch):
    """What was displayed, as dicts by type."""
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, raw, metadata=None: shown.append(bundle))
    return shown


def write(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    return [folder / f"{name}.py" for name in texts]


def test_code_lines_have_no_comments_and_no_line_breaks(tmp_path):
    (path,) = write(tmp_path, old=OLD)
    assert compare.code_lines(path) == [
        "import os",
        "rate = 0.01",
        'model = build("net", size=3)',
        "with scope():",
        "    model.fit(rate)",
        'print("done")',
    ]


def test_only_lines_that_differ_are_shown(tmp_path, pages):
    compare.scripts(*write(tmp_path, old=OLD, new=NEW))
    assert pages[0]["text/plain"].split("\n") == [
        "- only in old.py:",
        "- rate = 0.01",
        "- with scope():",
        "+ only in new.py:",
        "+ begin()",
        "+ rate = 0.01 * count()",
    ]


def test_what_a_script_holds_is_shown_as_text_not_as_html(tmp_path, pages):
    compare.scripts(*write(tmp_path, old="a = 1\n", new="b = '<b>' < 'x'\n"))
    assert "&lt;b&gt;" in pages[0]["text/html"] and "'<b>'" not in pages[0]["text/html"]


def record(folder, name, loss, steps):
    path = folder / f"{name}.json"
    save(path, Run(steps=steps, repeats=[[Epoch(1.0, metrics={"loss": v + r}) for v in loss] for r in (0, 1)]))
    return path


def test_losses_are_drawn_over_epochs_and_over_updates(tmp_path):
    runs = {"one": record(tmp_path, "one", [2.0, 1.0], 32), "four": record(tmp_path, "four", [2.5, 1.5, 0.5], 8)}
    figure = compare.losses(runs)
    epochs, updates = figure.axes
    assert [list(line.get_xdata()) for line in epochs.get_lines()] == [[1, 2], [1, 2, 3]]
    assert [list(line.get_xdata()) for line in updates.get_lines()] == [[32, 64], [8, 16, 24]]
    assert [list(line.get_ydata()) for line in updates.get_lines()] == [[2.0, 1.0], [2.5, 1.5, 0.5]]  # first repeat
    assert [text.get_text() for text in updates.get_legend().get_texts()] == ["one", "four"]
    assert "one: 2.0000, 1.0000." in figure.alt and figure.get_supxlabel() == "measured"
    assert hidden(figure) == []
