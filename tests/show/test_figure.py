"""labs.show.figure: the picture and its text alternative as Jupyter gets them, the stamp, colours and markers."""

import base64

from labs.show import figure as figures


def test_show_gives_the_alternative_to_screen_readers_and_asks_a_figure_that_draws_itself(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, raw, metadata=None: shown.append(bundle))
    drawn, _ = figures.new_figure()
    figures.show(figures.finished(drawn, 'loss < 2 & "low"', "measured"))
    (bundle,) = shown
    assert 'alt="loss &lt; 2 &amp; &quot;low&quot;"' in bundle["text/html"]
    assert bundle["image/png"] in bundle["text/html"] and bundle["text/plain"] == drawn.alt
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    drawn.png = lambda: b"fast"
    assert base64.b64decode(figures.bundle(drawn)["image/png"]) == b"fast"


def test_stamp_names_each_kind_once_and_size_is_that_of_each_panel():
    figure, axes = figures.new_figure(2, 4.0, 2.0, rows=3)
    assert tuple(figure.get_size_inches()) == (8.0, 6.0) and len(axes) == 6
    figures.finished(figure, "", "recorded", "measured", "recorded")
    assert figure.get_supxlabel() == "measured and recorded"
    figures.finished(figure, "", "simulated", note="from the model")
    assert figure.get_supxlabel() == "simulated: from the model"


# Two forms of colour blindness, as matrices on linear RGB: Machado, Oliveira, Fernandes (2009), severity 1
