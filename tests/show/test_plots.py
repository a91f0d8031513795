"""labs.show.plots: labels with units, the stamp, the text alternative, the numbers drawn, and what the data lacks."""

import io

import numpy as np
import pytest
from epochs import numbered
from legends import hidden
from matplotlib.image import imread

from labs.errors import UseError
from labs.results import metrics
from labs.results.intervals import UNKNOWN, Estimate
from labs.results.run import Epoch, Run
from labs.show import plots
from labs.show.figure import png


def measured(workers, source=None, model="ResNet50V2", strategy="mirrored", **changed):
    """A run as labs.results.metrics.measure gives it."""
    epoch = 10.0 / (workers or 1) ** 0.8
    given = {
        "configuration": {"model": model, "strategy": strategy, "workers": workers},
        "epoch_seconds": Estimate(epoch, (0.9 * epoch, 1.2 * epoch)),  # not even about its value
        "images_per_second": Estimate(1e4 / epoch, (9e3 / epoch, 1.1e4 / epoch)),
        "speedup": Estimate(10 / epoch, (9 / epoch, 11 / epoch)),
        "efficiency": Estimate(10 / epoch / (workers or 1)),
        "oversubscribed": False,
        "loss": [2.3, 1.9, 1.5],
        "accuracy": [0.1, 0.3, 0.45],
    }
    return Run(source=source or f"w{workers}.json", **given | changed)


def in_turns(workers, epochs, study="s"):
    """A run of a study whose epochs took turns: their seconds, or those of their steps; the first is warm-up."""
    has = {"model": "M", "strategy": "mirrored", "workers": workers, "global_batch": 64 * workers, "local_batch": 64}
    made = []
    for number, each in enumerate(epochs):
        steps = each if isinstance(each, list) else []
        made.append(Epoch(seconds=sum(steps) or each, images=512, round=number or None))
        made[-1].step_seconds = steps
    return Run(source="a", epochs=numbered(made), configuration=has, steps=8 // workers, study=study)


RUNS = [measured(1), measured(2), measured(4, oversubscribed=True)]
ONE = [[9.0, 1.0, 1.0], [1.0, 1.1, 1.2], [1.0, 1.4, 1.2]]
TWO = [[15.0, 1.5], [1.3, 1.6], [1.5, 1.4]]
FIGURES = {  # each with the units on its axes, in their order
    "scaling": (
        lambda: plots.scaling(RUNS, tuple(plots.QUANTITIES)),
        ["workers: seconds per epoch", "workers: images per second", "workers: speedup S(p) = T(1)/T(p)",
         "workers: efficiency S(p)/p"],
    ),
    "learning": (
        lambda: plots.learning(RUNS),
        ["epoch: training loss (cross-entropy, nats)", "epoch: training accuracy (share of images)"],
    ),
    "curves": (
        lambda: plots.curves({"a": [3.0, 2.0], "b": [3.0, 1.25]}, x="step", y="loss (nats)", title="two"),
        ["step: loss (nats)"],
    ),
    "rounds": (
        lambda: plots.rounds(in_turns(2, [99, 2.0, 4.2, 3.0]), in_turns(1, [99, 4.0, 8.0, 6.0])),
        ["round: seconds per epoch", "round: speedup (times)"],
    ),
    "steps": (
        lambda: plots.steps(in_turns(1, ONE), in_turns(2, TWO)),
        ["round (0 = warm-up): seconds of a step (logarithmic)",
         "seconds of a step, or less (logarithmic): share of the steps"],
    ),
}  # fmt: skip


def texts(legend):
    return [text.get_text() for text in legend.get_texts()]


def drawn(figure):
    """Draw it: much of what is wrong in a figure shows only then."""
    data = png(figure)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert (imread(io.BytesIO(data))[..., :3] < 0.98).any(axis=2).mean() > 0.005, "an empty picture"
    assert "None" not in figure.alt and "nan" not in figure.alt
    return figure


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_has_units_stamp_alternative_and_a_legend_that_covers_nothing(name):
    make, units = FIGURES[name]
    figure = drawn(make())
    assert [f"{axis.get_xlabel()}: {axis.get_ylabel()}" for axis in figure.axes] == units
    assert any(word in figure.get_supxlabel() for word in ("measured", "recorded", "simulated"))
    assert len(figure.alt) > 40 and any(c.isdigit() for c in figure.alt) and "\n" not in figure.alt
    boxes = [axis.get_legend().get_window_extent() for axis in figure.axes if axis.get_legend()]
    assert boxes and hidden(figure) == []
    assert all(box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y0 >= 0 and box.y1 <= figure.bbox.y1 for box in boxes)


def test_scaling_shows_the_numbers_of_the_runs_and_their_intervals():
    figure = plots.scaling(RUNS)
    for axis, name in zip(figure.axes, ("epoch_seconds", "images_per_second", "speedup"), strict=True):
        (curve, _, (bars,)), values = axis.containers[0], [getattr(run, name) for run in RUNS]
        assert curve.get_xdata().tolist() == [1, 2, 4] == list(axis.get_xticks())
        assert curve.get_ydata().tolist() == [each.value for each in values]
        assert np.allclose([segment[:, 1] for segment in bars.get_segments()], [each.interval for each in values])
        assert all(axis.get_ylim()[1] * 0.95 > each.interval[1] for each in values), "a bar touches the end"
    assert f"{RUNS[1].epoch_seconds.value:.3g} s on 2 (interval " in figure.alt
    assert "3,031 images/s on 4 (interval 2,728 to 3,335)" in figure.alt
    assert "oversubscribed: workers share cores" in texts(figure.axes[-1].get_legend())
    assert "oversubscribed: workers share cores" not in texts(plots.scaling(RUNS[:2]).axes[-1].get_legend())


def test_measured_and_recorded_are_told_apart():
    recorded = [measured(n, "log.out", kind="recorded") for n in (1, 2)]
    figure = plots.scaling([*RUNS, *recorded])
    assert "ResNet50V2, mirrored (recorded)" in texts(figure.axes[-1].get_legend())
    assert figure.get_supxlabel() == "measured and recorded"
    learned = texts(plots.learning([RUNS[0], recorded[0]]).axes[1].get_legend())
    assert len(set(learned)) == 2 and "(recorded)" in learned[1]


def test_what_the_data_lacks_is_left_out_and_no_crash():
    alone = measured(2, model="ResNet152V2", speedup=UNKNOWN, efficiency=UNKNOWN)
    figure = drawn(plots.scaling([*RUNS, alone]))  # a curve without a speedup stands in the legend all the same
    assert "ResNet152V2, mirrored (measured)" in texts(figure.axes[-1].get_legend())
    assert len(figure.axes[2].containers) == 1
    runs = [measured(1, strategy=None), measured(None), measured(4, model=None, loss=[], accuracy=[])]
    assert "w4.json" in drawn(plots.scaling(runs)).alt  # without a model its file names it
    assert "2.3, not a number, not a number" in drawn(plots.learning([measured(1, loss=[2.3, None, None])])).alt


def test_learning_and_curves_begin_at_their_first_epoch():
    loss, accuracy = FIGURES["learning"][0]().axes
    (axis,) = plots.curves({"a": [3.0, 2.0]}, x="epoch", y="loss", title="two", start=1).axes
    for line, values in ((loss.lines[0], RUNS[0].loss), (accuracy.lines[2], RUNS[2].accuracy), (axis.lines[0], [3, 2])):
        assert list(line.get_xdata()) == [*range(1, 1 + len(values))] and list(line.get_ydata()) == values


def test_rounds_show_the_epochs_of_both_and_the_ratio_within_each_that_counts():
    one, two = in_turns(1, [99, 4.0, 8.0, 6.0, 4.0]), in_turns(2, [99, 2.0, 4.2, 3.0, 4.0])
    two.epochs[4].others = 0.5  # another program ran
    figure = plots.rounds(two, one)
    times, gain = figure.axes
    assert [list(line.get_ydata()) for line in times.lines] == [[4, 8, 6, 4], [2, 4.2, 3, 4]]
    counted, left, mean, ideal = gain.lines
    assert list(counted.get_xdata()) == [1, 2, 3] and np.allclose(counted.get_ydata(), [2, 8 / 4.2, 2])
    assert list(left.get_xdata()) == [4] and np.allclose(left.get_ydata(), [1])
    assert left.get_markerfacecolor() == "white" and "Left out, since other programs ran: round 4." in figure.alt
    found = metrics.speedup(two, one)
    assert "from {:.3g} to {:.3g}".format(*found.interval) in figure.alt and "4, 8, 6" in figure.alt
    assert mean.get_ydata()[0] == found.value and ideal.get_ydata()[0] == 2 < gain.get_ylim()[1]
    with pytest.raises(UseError, match="did not take turns"):
        plots.rounds(in_turns(2, [9, 2.0, 2.1], study="other"), in_turns(1, [9, 4.0, 4.1]))


def test_steps_show_time_distribution_and_what_waiting_would_make_of_one_worker():
    figure = FIGURES["steps"][0]()
    times, shares = figure.axes
    assert list(times.get_lines()[0].get_ydata()) == [s for epoch in ONE for s in epoch]
    names = texts(shares.get_legend())
    assert names[0] == "M, 1 worker: half within 1.15 s"
    assert names[2] == "slowest of 2 steps on 1 worker: half within 1.2 s"
    assert figure.get_supxlabel() == "measured: the dashed curve is computed from the steps of 1 worker"
    apart = plots.steps(in_turns(1, ONE), in_turns(2, TWO, study="other"))  # which may not be divided
    assert len(apart.axes[1].get_lines()) == 2 and apart.get_supxlabel() == "measured"
