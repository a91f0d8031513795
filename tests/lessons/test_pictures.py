"""Pictures of the notebooks show what simulators, records and the cost model say, and say it in words too."""

import json
import re
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex

from labs import checks, devices, recorded
from labs.checks import tasks
from labs.lessons.nb00 import first
from labs.lessons.nb00 import pictures as ZERO
from labs.lessons.nb01 import pictures as ONE
from labs.lessons.nb02 import pictures as TWO
from labs.lessons.nb03 import pictures as THREE
from labs.lessons.nb07 import pictures as SEVEN
from labs.lessons.nb11 import pictures as ELEVEN
from labs.models import counts
from labs.results.run import load_record
from labs.show.figure import png
from labs.simulate import pipeline, reduce, sgd, stragglers
from labs.simulate.given import SimulationError

KINDS = {"imagenet": "recorded", "gap": "computed"}  # all others are simulated
PICTURES = {
    "gap": (
        lambda: ONE.gap(lambda months: 2 ** (12 / months)),
        ["2,370,000 times as much as in 2012", "gap of 296,000 times", "in 2054"],
    ),
    "imagenet": (ONE.imagenet, ["Akiba and others, 1024 P100", "116 times as fast, 128 by the number of devices"]),
    "speedups": (lambda: ONE.speedups(64, 0.05), ["ideal 64", "Amdahl 15.4", "Gustafson 60.8"]),
    "data": (lambda: ONE.parallelism("data", 4), ["Data parallelism, 4 devices", "idle share 0%"]),
    "model": (lambda: ONE.parallelism("model", 4), ["24 units of time", "idle share 75%"]),
    "pipeline": (lambda: ONE.parallelism("pipeline", 4, 8), ["8 micro-batches", "idle share 27%"]),
    "half": (lambda: ONE.parallelism("model", 2, 1, 50), ["After 50 % of it", "busy 50% of the time"]),
    "compare": (lambda: ONE.compare(4, 4), ["Data par", "Model par", "Pipeline par", "idle share 43%"]),
    "memory": (lambda: ONE.memory("VGG16", 16, "Adam"), ["weights 553 MB", "optimizer 1.11 GB", "activations 975 MB"]),
    "sharded": (lambda: ONE.memory("VGG16", 1, devices=8, sharded="everything"), ["8 devices", "weights 69.2 MB"]),
    "minibatches": (lambda: TWO.minibatches(32), ["Batch 32", "56 updates", "from 2.30 to"]),
    "averaging": (lambda: TWO.averaging(3, 4, 6), ["3 workers with 4 digits each", "2 of 4", "all 12 digits"]),
    "barrier": (lambda: TWO.barrier(8, 0.2), ["spread by 20%", "1.00 on 1"]),
    "races": (lambda: TWO.races(4, 4.0, 0.5, 20), ["Synchronous: 5 updates", "Asynchronous: 65 updates"]),
    "ring": (lambda: TWO.ring(4, 2), ["step 2 of 6, reduce-scatter", "worker 0 sends chunk 3 to 1", "0 of 16"]),
    "start": (lambda: TWO.ring(3, 0), ["before the first step: nothing is sent yet", "0 of 9"]),
    "end": (lambda: TWO.ring(3, 99), ["step 4 of 4, all-gather", "9 of 9"]),
    "step": (THREE.step, ["4 replicas", "Replica 3: samples 12 to 15, gradient", "W = 1.00 2.00 3.00, get the sum"]),
    "ranks": (lambda: SEVEN.ranks(2, 4), ["size 8, on every node local size 4", "rank 6 is local rank 2 on GPU 2"]),
    "flawed": (lambda: ELEVEN.flawed(), ["logarithmic axes", "2.6 on 8"]),
    "repaired": (lambda: ELEVEN.flawed(False), ["linear axes", "2.6 on 8"]),
    "costs": (lambda: TWO.costs(), ["On 1024 workers: one server 1.93e+04 ms", "ring 39.2 ms"]),
}


@pytest.mark.parametrize("name", PICTURES)
def test_picture_has_units_a_stamp_and_its_numbers_in_words(name):
    draw, words = PICTURES[name]
    figure = draw()
    assert [word for word in words if word not in figure.alt] == [], figure.alt
    assert figure.get_supxlabel().partition(":")[0] == KINDS.get(name, "simulated")
    assert png(figure).startswith(b"\x89PNG")
    last = [axis for axis in figure.axes if axis.axison][-1:]
    assert all(axis.get_xlabel() for axis in last) and any(axis.get_title() or axis.texts for axis in figure.axes)


# Notebook 00: the course, the first measurement, the predictions


@pytest.fixture
def release(tmp_path, monkeypatch):
    """A folder with the notebooks of all lessons but the last one, in which nothing is done."""
    monkeypatch.setenv("LABS_RUNS", str(tmp_path / "runs"))
    for lesson in list(tasks.lessons().values())[:-1]:
        (tmp_path / f"{lesson.notebook}.ipynb").write_text('{"cells": []}')
    return tmp_path


def test_the_map_draws_of_each_lesson_what_is_done(release):
    lessons = list(tasks.lessons().values())
    rows = checks.progress(release)
    figure = ZERO.course(rows, release)
    there = sum(row["kind"] == "check" and row["notebook"] != lessons[-1].notebook for row in rows)
    assert f"{len(lessons) - 1} notebooks" in figure.alt and f"0 of {there} checks right, 0 of " in figure.alt
    assert f"{lessons[-1].title}: not in this folder." in figure.alt
    checks.check("00.1", "gpu" if devices.gpus() else "core")
    checks.check("05.11", "c")
    (release / "01_basic_concepts.ipynb").write_text(
        json.dumps({"cells": [{"metadata": {"labs": {"id": "T1", "kind": "answer"}}, "source": "Because."}]})
    )
    figure = ZERO.course(checks.progress(release), release)
    assert f"2 of {there} checks right, 1 of " in figure.alt
    count = sum(isinstance(item, tasks.Check) for item in tasks.lessons()["nb05"].task)
    assert f"65 minutes, 1 of {count} checks right, T6 open, T5 open." in figure.alt
    assert "checks right, T1 done." in figure.alt
    (axis,) = figure.axes
    filled = {
        round(bar.get_y() + bar.get_height() / 2): bar.get_width()
        for bar in axis.patches
        if to_hex(bar.get_facecolor()) == "#0072b2"
    }
    assert filled[5] == pytest.approx(65 / count) and filled[0] == lessons[0].minutes and filled[2] == 0
    assert "\N{CHECK MARK} T1" in [text.get_text() for text in axis.texts]
    assert png(figure).startswith(b"\x89PNG")


def test_an_optional_lesson_is_drawn_as_such_and_costs_no_hours(release, monkeypatch):
    found = tasks.lessons()
    whole = ZERO.course([], release)
    found["nb05"] = found["nb05"].model_copy(update={"optional": True, "minutes": 600})
    monkeypatch.setattr(tasks, "lessons", lambda: found)
    figure = ZERO.course([], release)
    assert "ResNet50V2? (optional): 600 minutes" in figure.alt and "(optional)" not in whole.alt
    hours = [int(re.search(r"(\d+) hours", each.alt)[1]) for each in (whole, figure)]
    assert hours[1] == hours[0] - 1


def test_the_first_measurement_asks_why_or_says_that_there_is_none():
    runs = [load_record(path.with_suffix(".json")) for path in recorded.laptop()]
    figure, (gain, (low, high)) = ZERO.first(runs), first.speedup(runs)
    assert low < gain < high < 2 and figure.alt.startswith("Why not twice as fast? Seconds of an epoch on 1 worker")
    assert figure.get_suptitle() == "Why not twice as fast?" and png(figure).startswith(b"\x89PNG")
    unfinished = replace(runs[1], repeats=[])
    for cut in ([], runs[:1], [runs[0], unfinished]):
        assert first.speedup(cut) == (None, None)
        assert "run the cell above" in ZERO.first(cut).alt and png(ZERO.first(cut))


@pytest.mark.parametrize(
    ("gpus", "cores", "words", "env"),
    [
        ([], 2, [], {}),
        ([], 1, ["one core"], {}),
        (["GPU:0"], 8, ["one GPU"], {"CUDA_VISIBLE_DEVICES": "-1"}),
        (["GPU:0"], 1, ["one GPU", "one core"], {"CUDA_VISIBLE_DEVICES": "-1"}),
        (["GPU:0", "GPU:1"], 1, [], {}),
    ],
)
def test_the_first_measurement_says_what_it_does_without_two_workers(monkeypatch, capsys, gpus, cores, words, env):
    started = []

    class Turns(nullcontext):
        jobs = ()

        def __init__(self, patience):
            super().__init__(self)

        def start(self, *asked, name, env):
            started.append((name, env))

    monkeypatch.setattr(first.devices, "gpus", lambda: gpus)
    monkeypatch.setattr(first.devices, "cores", lambda: cores)
    monkeypatch.setattr(first.jobs, "Turns", Turns)
    assert first.measure() == []
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(words) and all(word in line for word, line in zip(words, lines, strict=True))
    assert started == [("first_w1", env), ("first_w2", env)]


def test_predictions_beside_their_outcomes_also_with_half_of_them_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    figure, total = ZERO.predictions(), len(checks.predictions())
    assert f"0 of {total} predictions have an outcome; 0 wait for theirs, {total} are not made." in figure.alt
    assert png(figure).startswith(b"\x89PNG")
    for id, said, *found in (
        ("01.13", 0.5, 0.75),
        ("02.5", "yes", "no"),
        ("03.10", [0.005, 0.005], [0.005, 0.02]),
        ("05.1", 1.6, 1.7, (1.6, 1.8)),
        ("05.2", "lower", "lower"),
        ("06.7", 0, 0.25),
    ):
        checks.predict(id, said)
        checks.outcome(id, *found)
    checks.predict("08.1", 3)
    figure = ZERO.predictions()
    assert figure.alt == (
        f"6 of {total} predictions have an outcome; 1 wait for theirs, {total - 7} are not made. "
        "01.13: outcome / prediction 1.5. "
        "02.5: you said yes, found no. 03.10: outcome / prediction 1, 4. 05.1: outcome / prediction 1.06. "
        "05.2: right: lower. 06.7: outcome / prediction inf."
    )
    (axis,) = figure.axes
    drawn = {(line.get_marker(), *(round(x, 3) for x in line.get_xdata())) for line in axis.get_lines()[:-1]}
    assert drawn == {("o", 1.5), ("o", 1.0), ("o", 4.0), ("o", 1.062), ("None", 1.0, 1.125), (">", 100)}
    assert axis.get_xscale() == "log" and axis.get_xlabel() == "outcome / prediction (1: as you said)"
    assert png(figure).startswith(b"\x89PNG")


def test_a_picture_depends_on_each_of_its_values():
    for draw, changes in (
        (ONE.speedups, {"workers": 32, "serial": 0.1}),
        (ONE.parallelism, {"kind": "model", "device_count": 2, "now": 30}),
        (ONE.memory, {"network": "VGG16", "batch": 8, "optimizer": "SGD", "precision": "float16", "devices": 2}),
        (TWO.minibatches, {"batch": 8, "rate": 0.1}),
        (TWO.averaging, {"workers": 2, "batch": 5, "digit": 1}),
        (TWO.barrier, {"workers": 8, "spread": 0.5}),
        (TWO.races, {"workers": 3, "slow": 2.0, "rate": 1.0}),
        (TWO.ring, {"workers": 5, "step": 1}),
        (TWO.costs, {"megabytes": 1.0, "gigabytes_per_second": 1.0, "microseconds": 1.0, "servers": 2}),
    ):
        first = draw()
        for name, value in changes.items():
            other = draw(**{name: value})
            assert other.alt != first.alt and png(other) != png(first), (draw.__name__, name)


@pytest.mark.parametrize("now", (100, 40))
def test_timeline_draws_every_block_that_began_once(now):
    blocks, length = pipeline.pipelined(2, 8, 4), None
    length = pipeline.length(blocks)
    axis = ONE.parallelism("pipeline", 2, 4, now).axes[0]
    drawn = sorted(
        (path.vertices[0][0], path.vertices[2][0], path.vertices[0][1] + 0.42)
        for collection in axis.collections
        for path in collection.get_paths()
        if len(path)
    )
    clock = length * now / 100
    expected = sorted((b.begin, min(b.end, clock), b.device) for b in blocks if b.begin < clock)
    assert np.allclose(drawn, expected)


def test_ring_shows_how_many_gradients_each_chunk_holds():
    circle, axis = TWO.ring(4, 3).axes
    assert (axis.images[0].get_array() == reduce.ring([[1] * 4] * 4)[2].vectors).all()
    told = sorted(text.get_text() for text in circle.texts if text.get_text())
    assert told == ["0", "1", "2", "3", "chunk 0", "chunk 1", "chunk 2", "chunk 3"]


def test_pictures_of_the_average_are_those_of_the_step():
    step, axes = sgd.one_step(2, 4), TWO.averaging(2, 4, 6).axes
    shown = np.asarray(axes[0].images[-1].get_array())  # 8x8 each, one column of nothing between them
    expected = [values[:64, 6].reshape(8, 8) for values in (*step["gradients"], step["mean"], step["whole"])]
    for place, picture in enumerate(expected):
        assert np.allclose(shown[:, 9 * place : 9 * place + 8], picture)
    batch = np.asarray(axes[0].images[0].get_array())
    assert np.allclose(batch[:8, 9:17], sgd.digits()[0][step["rows"][0][1], :64].reshape(8, 8))


def test_one_step_adds_up_as_it_is_shown():
    """What a student adds up in the picture, with two digits, is what stands there."""
    figure = THREE.step()
    boxes = [text.get_text() for text in figure.axes[0].texts if re.fullmatch(r"(-?\d\.\d\d ?){3}", text.get_text())]
    starts, gradients, sums, ends = (np.array([box.split() for box in boxes[k::4]], float) for k in range(4))
    assert np.allclose(sums, gradients.sum(0)) and len(sums) == 4
    assert (starts == starts[0]).all() and np.allclose(ends, starts - 0.1 * sums, atol=0.0051)


def test_barrier_curve_is_the_simulators():
    curve = TWO.barrier(16, 0.3).axes[1].lines[0]
    times = stragglers.draws(16, 200, spread=0.3)
    assert np.allclose(curve.get_ydata(), [stragglers.efficiency(times[:, : int(k)]) for k in curve.get_xdata()])


def test_error_of_a_gradient_follows_the_square_root():
    far = TWO._noise()
    slope = np.polyfit(np.log(TWO._BATCHES), np.log(far), 1)[0]
    assert -0.55 < slope < -0.45


def test_imagenet_factors_multiply_to_the_whole():
    rows = [row for row in recorded.imagenet() if row["devices"]]
    widths = [bar.get_width() + 1 for bar in ONE.imagenet().axes[1].patches]
    products = np.array(widths).reshape(-1, 2).prod(axis=1)
    assert np.allclose(products, [rows[0]["minutes"] / row["minutes"] for row in rows])


@pytest.mark.parametrize("name", ["MobileNetV2", "ResNet50V2", "VGG16"])
def test_recorded_networks_are_what_keras_builds(name):
    counted = counts.of(name)
    assert recorded.networks()[name] == (counted.parameters, counted.activation_bytes)


def test_wrong_values_are_named():
    for number, draw in enumerate(
        (
            lambda: ONE.speedups(0),
            lambda: ONE.parallelism("tensor"),
            lambda: ONE.parallelism("data", now=101),
            lambda: ONE.parallelism("pipeline", 3),
            lambda: ONE.compare(0),
            lambda: ONE.memory("ResNet"),
            lambda: ONE.memory(optimizer="Adagrad"),
            lambda: ONE.memory(precision="int8"),
            lambda: ONE.memory(batch=0),
            lambda: ONE.memory(sharded="weights"),
            lambda: ONE.memory(devices=0),
            lambda: TWO.ring(0),
            lambda: TWO.ring(2, -1),
            lambda: TWO.barrier(spread=-1),
            lambda: TWO.barrier(0),
            lambda: TWO.races(rate=0),
            lambda: TWO.races(slow=0.5),
            lambda: TWO.minibatches(0),
            lambda: TWO.minibatches(5000),
            lambda: TWO.averaging(digit=10),
            lambda: TWO.averaging(0),
            lambda: TWO.costs(servers=0),
            lambda: TWO.costs(0, 1, 0),
            lambda: TWO.costs(gigabytes_per_second=0),
        )
    ):
        with pytest.raises(SimulationError, match=r"\.$"):
            draw()
            pytest.fail(f"value {number} was taken")


def test_a_fast_picture_is_the_slow_one_also_with_frames_from_before():
    from io import BytesIO

    from matplotlib.image import imread

    for draw in (
        lambda: ONE.speedups(64, 0.1),
        lambda: TWO.costs(1.0),
        lambda: TWO.barrier(8, 0.4),
        lambda: TWO.ring(3),
    ):
        for _ in range(2):
            fast, slow = (imread(BytesIO(data)) for data in (draw().png(), png(draw())))
            assert fast.shape == slow.shape
            assert np.mean(np.abs(fast - slow).max(axis=-1) > 0.1) < 0.01, "other than where data cross a frame"


def test_other_ticks_are_other_frames():
    first, other = TWO.ring(3, 1), TWO.ring(3, 1)
    other.axes[1].set_xticks([0, 1])
    before = first.png()
    assert other.png() != before and TWO.ring(3, 1).png() == before
