"""labs.show.widgets: controls that redraw one picture with its text alternative."""

import base64
import html
import re

import ipywidgets
import pytest
from matplotlib.figure import Figure

from labs.show import widgets


def draw(bars, colour):
    figure = Figure(figsize=(2, 1))
    figure.subplots().bar(range(bars), range(1, bars + 1), color=colour)
    figure.alt = f'{bars} bars in {colour}, "rising" & wide'
    return figure


def shown(widget):
    """(PNG bytes, text alternative) of the picture."""
    found = re.fullmatch(
        r'<img alt="([^"]*)" src="data:image/png;base64,([^"]+)" style="[^"]*"'
        r' onload="[^"]*suppress-shortcuts[^"]*">',
        widget.value,
    )
    assert found, widget.value[:200]
    return base64.b64decode(found[2]), html.unescape(found[1])


def test_a_changed_control_refills_the_picture_and_its_text_alternative():
    box = widgets.explore(draw, bars=(2, 9), colour=["red", "blue"])
    bars, colour, picture = box.children
    first = shown(picture)
    assert first[0].startswith(b"\x89PNG") and first[1] == '2 bars in red, "rising" & wide'
    bars.value = 7
    second = shown(picture)
    assert second[1].startswith("7 bars in red") and second[0] != first[0]
    colour.value = "blue"
    third = shown(picture)
    assert third[1].startswith("7 bars in blue") and third[0] != second[0]
    bars.value, colour.value = 2, "red"
    assert shown(picture) == first


def test_it_is_one_widget_with_labelled_controls():
    box = widgets.explore(lambda local_batch, order: draw(local_batch, "red"), local_batch=(2, 8, 2), order=["a", "b"])
    assert isinstance(box, ipywidgets.VBox)
    slider, menu, picture = box.children
    assert slider.description == "local batch" and menu.description == "order"
    assert isinstance(picture, ipywidgets.HTML)
    assert (slider.min, slider.max, slider.step, slider.value) == (2, 8, 2, 2)
    assert menu.options == ("a", "b") and menu.value == "a"


def test_kinds_of_controls():
    assert isinstance(widgets.control("k", (1, 4)), ipywidgets.IntSlider)
    share = widgets.control("share", (0.0, 1.0))
    assert isinstance(share, ipywidgets.FloatSlider) and share.step == 0.05
    assert widgets.control("rate", (0.0, 1.0, 0.25)).step == 0.25
    some = widgets.control("batch", [4, 64, 512], 64)
    assert isinstance(some, ipywidgets.SelectionSlider) and some.options == (4, 64, 512) and some.value == 64
    assert isinstance(widgets.control("kind", ["a", "b"]), ipywidgets.Dropdown)


@pytest.mark.parametrize("values", [(4, 1), (1,), [], 3, "abc", None])
def test_impossible_controls_are_refused_by_name(values):
    with pytest.raises(ValueError, match="^size=.* is no control: give"):
        widgets.control("size", values)


def test_an_error_is_said_in_the_pictures_place_and_the_next_value_draws_again():
    def fails_at_3(bars):
        if bars == 3:
            raise ZeroDivisionError("no <bars>")
        return draw(bars, "red")

    box = widgets.explore(fails_at_3, bars=(2, 5))
    bars, picture = box.children
    bars.value = 3
    assert picture.value.startswith('<p role="alert">') and "ZeroDivisionError: no &lt;bars&gt;" in picture.value
    bars.value = 4
    assert shown(picture)[1].startswith("4 bars")


def test_the_shares_of_notebook_06_follow_its_controls():
    import numpy as np

    from labs.data import shares
    from lessons.horovod_sharding import pictures

    draw = pictures.explorer(np.repeat(np.arange(10), 24))
    sources = ["sorted by class", "shuffled once"]
    box = widgets.explore(draw, workers=(2, 4), batch=(8, 64, 8), order=list(shares.ORDERS), source=sources)
    workers, batch, order, source, picture = box.children
    seen = {shown(picture)}
    for control, value, words in (
        (workers, 3, "4, 4, 4"),
        (batch, 64, "batches of 64"),
        (order, shares.ORDERS[4], "never"),
        (source, sources[1], "shuffled once"),
    ):
        control.value = value
        assert words in shown(picture)[1]
        seen.add(shown(picture))
    assert len(seen) == 5


def test_controls_begin_at_the_defaults_of_the_drawing():
    def starts(bars=4, colour="blue", wide=0.5, beyond=99):
        return draw(bars, colour)

    box = widgets.explore(starts, bars=(2, 9), colour=["red", "blue"], wide=(0.0, 1.0), beyond=(1, 3))
    assert [control.value for control in box.children[:-1]] == [4, "blue", 0.5, 1]


def test_the_picture_stays_where_there_are_no_widgets():
    box = widgets.explore(draw, bars=(2, 9), colour=["red", "blue"])
    box.children[0].value = 5
    bundle = box._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["text/plain"].startswith("5 bars in red") and "onload" not in bundle["text/html"]
    assert box.children[-1].value.startswith(bundle["text/html"].removesuffix(">"))
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")


def test_a_drawing_that_fails_at_first_leaves_a_widget_without_a_picture():
    box = widgets.explore(lambda bars: draw(0 / bars, "red"), bars=(0, 2))
    assert 'role="alert"' in box.children[-1].value and "image/png" not in box._repr_mimebundle_()
