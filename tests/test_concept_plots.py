"""Pictures of the concepts show what the simulators say, and say it in words too."""

import pytest

from labs import concept_plots, plots
from labs.simulate import pipeline, reduce
from labs.simulate.given import SimulationError

PICTURES = {
    "speedups": (lambda: concept_plots.speedups(64, 0.05), ["ideal 64", "Amdahl 15.4", "Gustafson 60.8"]),
    "data": (lambda: concept_plots.parallelism("data", 4), ["data parallelism on 4 devices", "idle share 0%"]),
    "model": (lambda: concept_plots.parallelism("model", 4), ["12 units of time", "idle share 75%"]),
    "pipeline": (lambda: concept_plots.parallelism("pipeline", 4, 8), ["8 micro-batches", "idle share 27%"]),
    "ring": (lambda: concept_plots.ring(4, 2), ["step 2 of 6, reduce-scatter", "worker 0 sends chunk 3 to 1", "0 of"]),
    "start": (lambda: concept_plots.ring(3, 0), ["before the first step: nothing is sent yet", "0 of 9"]),
    "end": (lambda: concept_plots.ring(3, 99), ["step 4 of 4, all-gather", "9 of 9"]),
    "costs": (lambda: concept_plots.costs(workers=256), ["On 256 workers: one server 4.81e+03 ms", "ring "]),
    "barrier": (lambda: concept_plots.barrier(8, 0.2), ["spread 20%", "1.00 on 1"]),
    "races": (lambda: concept_plots.races(4, 4.0, 20), ["synchronous 5 updates", "asynchronous 65 updates"]),
}


@pytest.mark.parametrize("name", PICTURES)
def test_picture_has_units_a_stamp_and_its_numbers_in_words(name):
    draw, words = PICTURES[name]
    figure = draw()
    assert [word for word in words if word not in figure.alt] == [], figure.alt
    assert figure.get_supxlabel() == "simulated" and plots.png(figure).startswith(b"\x89PNG")
    assert all(axis.get_xlabel() and axis.get_title() for axis in figure.axes)


def test_timeline_draws_every_block_once():
    blocks = pipeline.pipelined(3, 3, 4)
    axis = concept_plots.devices(blocks, "x").axes[0]
    drawn = sorted((round(bar.get_x(), 6), round(bar.get_width(), 6), round(bar.get_y() + 0.4)) for bar in axis.patches)
    assert drawn == sorted((round(b.begin, 6), round(b.end - b.begin, 6), b.device) for b in blocks)


def test_ring_shows_how_many_gradients_each_chunk_holds():
    axis = concept_plots.ring(4, 3).axes[0]
    shown = axis.images[0].get_array()
    assert (shown == reduce.ring([[1] * 4] * 4)[2].vectors).all()
    assert sum("from" in text.get_text() for text in axis.texts) == 4


@pytest.mark.parametrize("draw", [lambda: concept_plots.speedups(0), lambda: concept_plots.ring(0),
                                  lambda: concept_plots.barrier(spread=-1), lambda: concept_plots.races(rate=0)])
def test_wrong_values_are_named(draw):
    with pytest.raises(SimulationError):
        draw()
