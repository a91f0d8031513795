"""labs.show.plots: labels with units, the stamp, the text alternative, and what is missing in the data."""

import io

import numpy as np
import pytest
from legends import hidden
from matplotlib.image import imread

from labs.results import metrics
from labs.results.intervals import UNKNOWN, Estimate
from labs.results.metrics import MetricsError
from labs.results.run import Epoch, Run
from labs.show import plots
from labs.show.figure import png


def measured(workers, source=None, model="ResNet50V2", strategy="mirrored", **changed):
    """A run as labs.results.metrics.measure gives it."""
    epoch = 10.0 / (workers or 1) ** 0.8
    given = {
        "configuration": {"model": model, "strategy": strategy, "workers": workers},
        "epoch_seconds": Estimate(epoch, (0.9 * epoch, 1.1 * epoch)),
        "images_per_second": Estimate(1000 / epoch, (900 / epoch, 1100 / epoch)),
        "speedup": Estimate(10 / epoch, (9 / epoch, 11 / epoch)),
        "efficiency": Estimate(10 / epoch / (workers or 1)),
        "oversubscribed": False,
        "loss": [2.3, 1.9, 1.5],
        "accuracy": [0.1, 0.3, 0.45],
    }
    return Run(source or f"w{workers}.json", **given | changed)


RUNS = [measured(1), measured(2), measured(4, oversubscribed=True)]
SEARCH = {
    "kind": "measured",
    "model": "SmallCNN",
    "largest": 128,
    "fails": 256,
    "trials": [
        {"batch": 64, "fits": True, "seconds": 0.5},
        {"batch": 128, "fits": True, "seconds": 0.9},
        {"batch": 256, "fits": False, "seconds": None},
    ],
}
PARTS = {b: {"weights": 2**30, "gradients": 2**30, "optimizer": 0, "activations": b * 2**24} for b in (1, 64)}
FIGURES = {
    "scaling": lambda: plots.scaling(RUNS, tuple(plots.QUANTITIES)),
    "learning": lambda: plots.learning(RUNS),
    "memory": lambda: plots.memory(PARTS, limit=2**31),
    "search": lambda: plots.search(SEARCH),
    "curves": lambda: plots.curves({"a": [3.0, 2.0], "b": [3.0, 1.25]}, x="step", y="loss (nats)", title="two"),
}


def texts(legend):
    return [text.get_text() for text in legend.get_texts()]


def drawn(figure):
    """Draw it: much of what is wrong in a figure shows only then. Returns the PNG."""
    data = png(figure)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    pixels = imread(io.BytesIO(data))[..., :3]
    assert (pixels < 0.98).any(axis=2).mean() > 0.005, "an empty picture"
    return data


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_has_labels_stamp_legend_and_alternative(name):
    figure = FIGURES[name]()
    drawn(figure)
    for axis in figure.axes:
        assert axis.get_xlabel() and axis.get_ylabel() and axis.get_title()
    assert any(word in figure.get_supxlabel() for word in ("measured", "recorded", "simulated"))
    assert any(axis.get_legend() for axis in figure.axes)
    assert len(figure.alt) > 40 and any(c.isdigit() for c in figure.alt) and "\n" not in figure.alt


def test_axes_say_the_unit():
    labels = [axis.get_ylabel() for axis in FIGURES["scaling"]().axes]
    assert labels[:2] == ["seconds per epoch", "images per second"]
    assert "T(1)/T(p)" in labels[2] and "S(p)/p" in labels[3]  # ratios have no unit, but a definition
    assert "nats" in plots.learning(RUNS).axes[0].get_ylabel()
    assert "GiB" in FIGURES["memory"]().axes[0].get_ylabel()
    assert "images" in FIGURES["search"]().axes[0].get_xlabel()


def test_curve_and_interval_show_the_numbers_of_the_runs():
    runs = [measured(1, epoch_seconds=Estimate(10.0, (9.0, 14.0))), *RUNS[1:]]  # not even about its value
    figure = plots.scaling(runs)
    (curve, _, (bars,)) = figure.axes[0].containers[0]
    assert curve.get_xdata().tolist() == [1, 2, 4]
    assert curve.get_ydata().tolist() == [run.epoch_seconds.value for run in runs]
    ends = [segment[:, 1].tolist() for segment in bars.get_segments()]
    assert np.allclose(ends, [run.epoch_seconds.interval for run in runs])
    assert all(list(axis.get_xticks()) == [1, 2, 4] for axis in figure.axes)
    for run in runs:
        assert f"{run.epoch_seconds.value:.3g} s on {run.workers}" in figure.alt


def test_oversubscribed_points_are_marked():
    assert "oversubscribed: workers share cores" in texts(plots.scaling(RUNS).axes[-1].get_legend())
    assert "oversubscribed: workers share cores" not in texts(plots.scaling(RUNS[:2]).axes[-1].get_legend())


def test_measured_and_recorded_are_told_apart():
    recorded = [measured(n, "log.out", kind="recorded") for n in (1, 2)]
    figure = plots.scaling([*RUNS, *recorded])
    names = texts(figure.axes[-1].get_legend())
    assert "ResNet50V2, mirrored (measured)" in names and "ResNet50V2, mirrored (recorded)" in names
    assert figure.get_supxlabel() == "measured and recorded"
    colours = {container.lines[0].get_color() for container in figure.axes[0].containers}
    markers = {container.lines[0].get_marker() for container in figure.axes[0].containers}
    assert len(colours) == len(markers) == 2
    learned = texts(plots.learning([RUNS[0], recorded[0]]).axes[1].get_legend())
    assert len(set(learned)) == 2 and "(recorded)" in learned[1]


def test_curve_without_speedup_stands_in_the_legend_all_the_same():
    alone = measured(2, model="ResNet152V2", speedup=UNKNOWN, efficiency=UNKNOWN)
    figure = plots.scaling([*RUNS, alone])
    drawn(figure)
    assert "ResNet152V2, mirrored (measured)" in texts(figure.axes[-1].get_legend())
    assert len(figure.axes[2].containers) == 1


def test_missing_intervals_and_values():
    bare = {name: Estimate(getattr(RUNS[0], name).value) for name, _, _ in plots.QUANTITIES.values()}
    runs = [
        measured(1, strategy=None, **bare),
        measured(2, strategy=None, **bare | {"images_per_second": UNKNOWN}),
        measured(None),
        measured(4, model=None, loss=[], accuracy=[]),
    ]
    for figure in (plots.scaling(runs), plots.learning(runs)):
        drawn(figure)
        assert "None" not in figure.alt and "nan" not in figure.alt
    assert "w4.json" in plots.scaling(runs).alt  # without a model its file names it
    (name,) = texts(plots.learning([measured(None)]).axes[1].get_legend())
    assert name == "ResNet50V2, mirrored, ? workers (measured)"


@pytest.mark.parametrize("name", FIGURES)
def test_no_legend_lies_over_what_is_drawn(name):
    assert hidden(FIGURES[name]()) == []


def test_a_curve_point_or_bar_below_a_legend_is_seen():
    curves = FIGURES["curves"]()
    curves.axes[0].legend(loc="center")
    assert hidden(curves) == [("two", "b")]  # between its two points
    bars = FIGURES["memory"]()
    bars.axes[0].legend(loc="lower right")
    assert len(hidden(bars)) > 1


@pytest.mark.parametrize("runs", [1, 2, 4])
def test_the_legend_of_the_learning_covers_no_point(runs):
    figure = plots.learning([measured(n) for n in range(1, runs + 1)])
    drawn(figure)
    axis = figure.axes[1]
    legend = axis.get_legend().get_window_extent()
    assert legend.x0 >= axis.get_window_extent().x1 and legend.x1 <= figure.bbox.x1, "outside, and in the picture"
    assert legend.y0 >= 0 and legend.y1 <= figure.bbox.y1


def test_diverged_training_is_drawn_up_to_where_it_diverged():
    figure = plots.learning([measured(1, loss=[2.3, None, None])])
    drawn(figure)
    assert "2.3, not a number, not a number" in figure.alt
    figure = plots.curves({"fast": [2.3, None], "none": []}, x="epoch", y="loss (nats)", title="rates")
    drawn(figure)
    assert "fast: from 2.3 to not a number." in figure.alt


def test_nothing_to_draw_is_no_crash():
    for figure in (plots.scaling([]), plots.learning([])):
        assert png(figure)


def test_memory_is_stacked_in_gib_with_its_limit():
    figure = FIGURES["memory"]()
    bars = [bar.get_height() for container in figure.axes[0].containers for bar in container]
    assert bars == [1, 1, 1, 1, 0, 0, 2**24 / 2**30, 1.0]
    assert "3.00 GiB at batch 64" in figure.alt and "limit: 2.0 GiB" in texts(figure.axes[0].get_legend())
    assert figure.get_supxlabel().startswith("simulated")


def test_search_shows_rates_and_the_border():
    figure = FIGURES["search"]()
    assert figure.axes[0].get_lines()[0].get_ydata().tolist() == pytest.approx([128, 128 / 0.9])
    assert "128" in figure.alt and "256 runs out of memory" in figure.alt
    nothing = {**SEARCH, "largest": None, "trials": SEARCH["trials"][2:]}
    drawn(plots.search(nothing))
    assert "None" not in plots.search(nothing).alt
    unlimited = {**SEARCH, "fails": None, "trials": SEARCH["trials"][:2]}
    drawn(plots.search(unlimited))
    assert "None" not in plots.search(unlimited).alt


def test_import_stays_light():
    import subprocess
    import sys

    code = "import sys, labs.show.plots, labs.measure.study; print({'matplotlib', 'tensorflow'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"


# Rounds of trainings that took turns


def in_turns(workers, seconds, study="s"):
    has = {"model": "M", "strategy": "mirrored", "workers": workers, "global_batch": 64 * workers, "local_batch": 64}
    epochs = [Epoch(99.0, images=512), *(Epoch(s, images=512, round=n) for n, s in enumerate(seconds, 1))]
    return Run("a", [epochs], configuration=has, steps=8 // workers, study=study)


def test_rounds_show_the_epochs_of_both_and_the_ratio_within_each():
    one, two = in_turns(1, [4.0, 8.0, 6.0]), in_turns(2, [2.0, 4.2, 3.0])
    figure = plots.rounds(two, one)
    times, gain = figure.axes
    assert [list(line.get_ydata()) for line in times.lines] == [[4, 8, 6], [2, 4.2, 3]]
    assert np.allclose(gain.lines[0].get_ydata(), [2, 8 / 4.2, 2])
    low, high = (metrics.speedup(two, one).interval[k] for k in (0, 1))
    assert f"from {low:.3g} to {high:.3g}" in figure.alt and "4, 8, 6" in figure.alt
    assert {text.get_text() for text in gain.get_legend().texts} >= {"its 95 % interval", "ideal"}
    assert hidden(figure) == []
    ideal = gain.lines[-1].get_ydata()[0]
    outside = gain.get_legend().get_window_extent().x0 >= gain.get_window_extent().x1
    assert ideal == 2 < gain.get_ylim()[1] and outside, "the ideal line crosses the whole axis"


def test_a_round_that_is_left_out_is_drawn_otherwise():
    one, two = in_turns(1, [4.0, 4.0, 4.0, 4.0]), in_turns(2, [2.0, 2.1, 2.0, 4.0])
    two.epochs[4].others = 0.5
    figure = plots.rounds(two, one)
    counted, left = figure.axes[1].lines[:2]
    assert list(counted.get_xdata()) == [1, 2, 3] and list(left.get_xdata()) == [4]
    assert np.allclose(left.get_ydata(), [1]) and left.get_markerfacecolor() == "white"
    assert "Left out, since other programs ran: round 4." in figure.alt


def test_rounds_of_runs_that_took_no_turns_are_refused():
    with pytest.raises(MetricsError, match="did not take turns"):
        plots.rounds(in_turns(2, [2.0, 2.1], study="other"), in_turns(1, [4.0, 4.1]))


# Every step


def with_steps(workers, epochs, turns=True, **changed):
    """A run of `in_turns` whose epochs have these steps; the first is warm-up."""
    run = in_turns(workers, [sum(e) for e in epochs[1:]], **changed)
    for epoch, seconds in zip(run.repeats[0], epochs, strict=True):
        epoch.step_seconds = list(seconds)
        epoch.round = epoch.round if turns else None
    return run


ONE = [[9.0, 1.0, 1.0], [1.0, 1.1, 1.2], [1.0, 1.4, 1.2]]
TWO = [[15.0, 1.5], [1.3, 1.6], [1.5, 1.4]]


def test_steps_show_time_distribution_and_what_waiting_would_make_of_one_worker():
    figure = plots.steps(with_steps(1, ONE), with_steps(2, TWO))
    drawn(figure)
    times, shares = figure.axes
    assert times.get_xlabel() == "round (0 = warm-up)" and "seconds" in times.get_ylabel() + shares.get_xlabel()
    assert list(times.get_lines()[0].get_ydata()) == [s for epoch in ONE for s in epoch]
    names = texts(shares.get_legend())
    assert names[0] == "M, 1 worker: half within 1.15 s" and names[2].startswith("slowest of 2 steps on 1 worker: half")
    assert figure.get_supxlabel() == "measured: the dashed curve is computed from the steps of 1 worker"
    assert "M, 1 worker: first step 9 s; of 6 steady steps half take 1.15 s or less" in figure.alt
    assert [line.get_linestyle() for line in shares.get_lines()] == ["-", "-", "--"]
    assert hidden(figure) == []
    assert len({line.get_color() for line in shares.get_lines()}) == 3  # computed: neither run's colour
    assert "(logarithmic)" in shares.get_xlabel() and "(logarithmic)" in times.get_ylabel()


def test_steps_of_runs_that_may_not_be_divided_have_no_dashed_curve():
    figure = plots.steps(with_steps(1, ONE), with_steps(2, TWO, study="other"))
    assert len(figure.axes[1].get_lines()) == 2 and figure.get_supxlabel() == "measured"
    epochs = plots.steps(with_steps(1, ONE, turns=False)).axes[0]
    assert epochs.get_xlabel() == "epoch (0 = warm-up)"


def test_thousands_of_steps_are_drawn_with_few_points():
    draw = np.random.default_rng(0)
    epochs = [draw.lognormal(0, 0.1, 4000) for _ in range(7)]
    epochs[0][0] = 60.0
    figure = plots.steps(with_steps(1, epochs))
    drawn(figure)
    times, shares = figure.axes
    assert len(times.get_lines()[0].get_xdata()) <= 7 * 60 and len(shares.get_lines()[0].get_xdata()) <= 401
    assert times.get_ylim()[1] > 60 and "first step 60 s" in figure.alt


def test_steps_of_a_log_are_refused():
    with pytest.raises(MetricsError, match="no steady steps"):
        plots.steps(in_turns(1, [4.0, 4.1]))


def test_no_value_nor_bar_of_scaling_touches_the_end_of_its_axis():
    alike = {"images_per_second": Estimate(200.0, (199.5, 200.5))}
    figure = plots.scaling([measured(1, **alike), measured(2, **alike)], ("epoch time", "throughput"))
    shares = [axis.dataLim.y1 / axis.get_ylim()[1] for axis in figure.axes]
    assert all(0.8 < share < 0.95 for share in shares), shares
    none = plots.scaling([measured(1, speedup=UNKNOWN)], ("speedup",)).axes[0]
    assert none.get_ylim()[1] > 0
