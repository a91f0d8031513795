"""labs.show.widgets: controls that redraw one picture with its text alternative."""

import base64
import html
import re

import ipywidgets
import pytest
from matplotlib.figure import Figure

from labs.show import widgets


def draw(bars, colour="red"):
    figure = Figure(figsize=(2, 1))
    figure.subplots().bar(range(bars), range(1, bars + 1), color=colour)
    figure.alt = f'{bars} bars in {colour}, "rising" & wide'
    return figure


def shown(widget):
    """(PNG bytes, text alternative) of the picture."""
    image = r'<img alt="([^"]*)" src="data:image/png;base64,([^"]+)" style="[^"]*" onload="[^"]*suppress-shortcuts'
    found = re.match(image, widget.value)
    assert found, widget.value[:200]
    return base64.b64decode(found[2]), html.unescape(found[1])


def test_a_changed_control_refills_the_picture_which_stays_where_there_are_no_widgets():
    box = widgets.explore(draw, bars=(2, 9), colour=["red", "blue"])
    bars, colour, picture = box.children
    first = shown(picture)
    assert first[0].startswith(b"\x89PNG") and first[1] == '2 bars in red, "rising" & wide'
    bars.value, colour.value = 7, "blue"
    second = shown(picture)
    assert second[1].startswith("7 bars in blue") and second[0] != first[0]
    bundle = box._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["text/plain"].startswith("7 bars in blue") and "onload" not in bundle["text/html"]
    assert base64.b64decode(bundle["image/png"]) == second[0]
    bars.value, colour.value = 2, "red"
    assert shown(picture) == first


@pytest.mark.parametrize(
    ("values", "first", "kind", "has"),
    [
        ((2, 8, 2), 4, ipywidgets.IntSlider, {"min": 2, "max": 8, "step": 2, "value": 4}),
        ((0.0, 1.0, 0.05), 0.5, ipywidgets.FloatSlider, {"step": 0.05, "value": 0.5}),
        ([4, 64, 512], 64, ipywidgets.SelectionSlider, {"options": (4, 64, 512), "value": 64}),
        (["a", "b"], "c", ipywidgets.Dropdown, {"options": ("a", "b"), "value": "a"}),
    ],
)
def test_kinds_of_controls_their_label_and_where_they_begin(values, first, kind, has):
    made = widgets.control("local_batch", values, first)
    assert type(made) is kind and made.description == "local batch"
    assert {name: getattr(made, name) for name in has} == has
    box = widgets.explore(lambda local_batch=first: draw(2), local_batch=values)
    assert box.children[0].value == made.value


def test_an_error_is_said_in_the_pictures_place_and_the_next_value_draws_again():
    def fails_at_2(bars):
        if bars == 2:
            raise ZeroDivisionError("no <bars>")
        return draw(bars)

    box = widgets.explore(fails_at_2, bars=(2, 5))
    bars, picture = box.children
    assert picture.value.startswith('<p role="alert">') and "ZeroDivisionError: no &lt;bars&gt;" in picture.value
    bars.value = 4
    assert shown(picture)[1].startswith("4 bars")
