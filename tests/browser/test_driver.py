"""The tests of this folder fail for what is wrong: a notebook whose widgets are wrong, each in its own way."""

import json

import pytest

from . import lab
from .keys import Widget

SOURCE = """
from IPython.display import HTML, display
from matplotlib.figure import Figure
from labs.show import widgets

def draw(bars=1, colour="red", other=1, kind="data", alt="follows"):
    if bars == 4:
        raise ValueError("four")
    figure = Figure(figsize=(3, 1))
    figure.subplots().bar(range(bars), range(bars), color=colour)
    text = f"{bars} {colour} {kind} " + (str(other) if kind == "model" else "")
    figure.text(0, 0.9, text)
    figure.alt = text if alt == "follows" else "a picture"
    return figure

#
widgets.explore(draw, bars=(7, 9), other=(0.0, 1.0), kind=["data", "model"])
#
widgets.explore(draw, bars=(1, 4), alt=["follows", "stays"], other=(0, 5))
#
display(HTML("<img src='http://192.0.2.1/pixel.png'>"))
#
1 / 0
#
print("not reached")
"""


@pytest.fixture(scope="module")
def wrong(course, open_notebook):
    codes = SOURCE.split("#\n")
    cells = [
        {
            "cell_type": "code",
            "source": code.strip(),
            "metadata": {},
            "outputs": [],
            "execution_count": None,
            "id": f"cell{number}",
        }
        for number, code in enumerate(codes)
    ]
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    (course / "notebooks/99_wrong.ipynb").write_text(json.dumps(notebook))
    assert lab.widgets(course)["99_wrong"] == {1: "draw", 2: "draw"}
    opened = open_notebook("99_wrong")
    opened.run()
    return opened


def test_what_is_missing_is_named(monkeypatch, tmp_path):
    (tmp_path / "browser").write_text("")
    monkeypatch.setenv("CHROMIUM", str(tmp_path / "browser"))
    monkeypatch.setattr(lab.importlib.util, "find_spec", lambda name: name)
    assert "apt-get install chromium" in lab.missing() and "\n" not in lab.missing()
    (tmp_path / "browser").chmod(0o755)
    assert lab.missing() is None
    monkeypatch.setattr(lab.importlib.util, "find_spec", lambda name: None)
    assert "uv sync --locked --inexact --group browser" in lab.missing()


def test_errors_and_requests_are_seen(wrong):
    assert wrong.counts == [1, 2, 3, 4, 5, None]
    assert wrong.problems() == ["ZeroDivisionError: division by zero"]
    assert sorted(set(wrong.outside)) == ["http://192.0.2.1/pixel.png"]


def test_a_control_that_does_not_matter_is_tried_beside_other_values(wrong):
    widget = Widget(wrong, 1, "draw")
    assert widget.tab() == ["bars", "other", "kind"]
    bars, other, kind = widget.controls
    (press,) = widget.change(bars)
    assert press.problem is None and (press.before, press.after) == ("7", "8") and press.seconds > 0
    assert press.alts == ("7 red data ", "8 red data ")
    *useless, press = widget.change(other)
    assert len(useless) >= 2 and all("did not change the picture" in each.problem for each in useless)
    assert press.problem is None and kind.value == "model" and press.alts[1].startswith("9 red model 0.")


def test_keys_that_change_nothing_or_too_little_are_problems(wrong):
    widget = Widget(wrong, 2, "draw")
    bars, alt, other = widget.controls
    useless = widget.change(other)
    assert len(useless) == 4 and "did not change the picture" in useless[-1].problem
    assert alt.value == "stays"
    assert "text alternative 'a picture'" in widget.change(bars)[-1].problem
    assert "an error" in bars.press().problem
    assert any("ValueError: four" in problem for problem in wrong.problems())
    # A drop-down from which JupyterLab takes the keys
    alt.target.evaluate("menu => menu.removeAttribute('data-lm-suppress-shortcuts')")
    assert "JupyterLab took it" in alt.press().problem
