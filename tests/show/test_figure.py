"""labs.show.figure: the picture and its text alternative as Jupyter gets them, the stamp, colours and markers."""

import base64
import itertools

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from labs.show import figure as figures
from labs.show.figure import COLOURS, MARKERS


@pytest.fixture
def drawn():
    figure, _ = figures.new_figure()
    figure.alt = 'loss < 2 & "low"'
    return figure


def test_show_gives_the_alternative_to_screen_readers(monkeypatch, drawn):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, raw, metadata=None: shown.append(bundle))
    figures.show(drawn)
    (bundle,) = shown
    assert (
        'alt="loss &lt; 2 &amp; &quot;low&quot;"' in bundle["text/html"] and bundle["image/png"] in bundle["text/html"]
    )
    assert bundle["text/plain"] == drawn.alt and base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")


def test_a_figure_that_draws_itself_is_asked(drawn):
    drawn.png = lambda: b"fast"
    assert base64.b64decode(figures.bundle(drawn)["image/png"]) == b"fast"


def test_stamp_names_each_kind_once(drawn):
    figures.stamp(drawn, "recorded", "measured", "recorded")
    assert drawn.get_supxlabel() == "measured and recorded"
    figures.stamp(drawn, "simulated", note="from the model")
    assert drawn.get_supxlabel() == "simulated: from the model"


def test_size_is_that_of_each_panel():
    for panels, rows in ((3, 1), (1, 2)):
        figure, axes = figures.new_figure(panels, 4.0, 2.0, rows=rows)
        assert tuple(figure.get_size_inches()) == (4.0 * panels, 2.0 * rows) and len(axes) == panels * rows


# Two forms of colour blindness, as matrices on linear RGB: Machado, Oliveira, Fernandes (2009), severity 1
BLIND = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "none": np.eye(3).tolist(),
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(colour, matrix):
    """CIELAB coordinates of a colour, as somebody with this form of colour blindness sees it."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb > 0.04045, ((rgb + 0.055) / 1.055) ** 2.4, rgb / 12.92)
    x, y, z = np.cbrt(XYZ @ np.clip(np.array(matrix) @ linear, 1e-3, 1) / [0.9505, 1, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("kind", BLIND)
def test_colours_and_markers_are_distinct_also_for_colour_blind_readers(kind):
    distances = {
        (a, b): np.linalg.norm(lab(a, BLIND[kind]) - lab(b, BLIND[kind])) for a, b in itertools.combinations(COLOURS, 2)
    }
    assert min(distances.values()) > 10, min(distances, key=distances.get)
    assert len(set(MARKERS)) == len(MARKERS) == len(COLOURS)
