"""Scripts side by side."""

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
