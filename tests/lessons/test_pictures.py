"""Pictures of the notebooks show what simulators, records and the cost model say, and say it in words too."""

import json
import re
from contextlib import nullcontext
from itertools import product

import numpy as np
import pytest
from legends import hidden
from matplotlib.colors import to_hex
from tree import ROOT

from labs import checks, costs, devices, recorded, results
from labs.checks import tasks
from labs.measure import breakdown
from labs.models import counts
from labs.results import metrics
from labs.show import widgets
from labs.show.figure import png
from labs.simulate import reduce, schedule
from labs.simulate.given import SimulationError
from lessons import on_gpu
from lessons.asked import question
from lessons.averages import pictures as TWO
from lessons.averages import sgd, stragglers
from lessons.basic_concepts import pictures as ONE
from lessons.basic_concepts import pipeline
from lessons.horovod_training import pictures as SEVEN
from lessons.mirrored_strategy import pictures as THREE
from lessons.other_engines import pictures as FOURTEEN
from lessons.report import pictures as ELEVEN
from lessons.rings import pictures as RING
from lessons.start_here import first
from lessons.start_here import pictures as ZERO
from lessons.where_a_step_goes import experiments
from lessons.where_a_step_goes import pictures as TWELVE
from lessons.write_the_schedule import pictures as THIRTEEN

GRADIENT = ("gradient", 0, None, ())
SENT = [  # the operations of two ranks
    [("send", (GRADIENT, 1, True), "line 1"), ("receive", (GRADIENT, 1, False, True), "line 2")],
    [("receive", (GRADIENT, 0, True, True), "line 1"), ("send", (GRADIENT, 0, True), "line 2")],
]
KINDS = {"imagenet": "recorded", "batches": "recorded", "gap": "computed", "apart": "measured"}  # others are simulated
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
    "ring": (lambda: RING.ring(4, 2), ["step 2 of 6, reduce-scatter", "worker 0 sends chunk 3 to 1", "0 of 16"]),
    "start": (lambda: RING.ring(3, 0), ["before the first step: nothing is sent yet", "0 of 9"]),
    "end": (lambda: RING.ring(3, 99), ["step 4 of 4, all-gather", "9 of 9"]),
    "step": (THREE.step, ["4 replicas", "Replica 3: samples 12 to 15, gradient", "W = 1.00 2.00 3.00, get the sum"]),
    "ranks": (lambda: SEVEN.ranks(2, 4), ["size 8, on every node local size 4", "rank 6 is local rank 2 on GPU 2"]),
    "flawed": (lambda: ELEVEN.flawed(), ["logarithmic axes", "2.6 on 8"]),
    "repaired": (lambda: ELEVEN.flawed(False), ["linear axes", "2.6 on 8"]),
    "overlap": (
        lambda: TWELVE.overlap(16, 25),
        ["buckets of 16 MiB, 25 Gbit/s", "messages are sent", "After it, by bucket size"],
    ),
    "schedule": (
        lambda: THIRTEEN.moving(schedule.play(schedule.Case(2, 1, 2, "gradients"), SENT), "Messages")[0](1.5),
        [
            "K = 2, L = 1, M = 2: 2 ms",
            "At 1.5 ms: rank 0 waits in receive(gradient(0), source=1); holds 16 MB: gradient 0",
        ],
    ),
    "apart": (
        lambda: FOURTEEN.apart({"MirroredStrategy": 5e-7, "JAX, 2 devices": 3e-7}, 5e-6, 0.05),
        ["JAX, 2 devices 3.0e-07", "is 5.0e-06", "10000 times as much"],
    ),
    "batches": (on_gpu.batches, ["1: 5.8 ms, 174 images/s", "512: 100.5 ms, 5,095 images/s"]),
    "costs": (lambda: RING.costs(), ["On 1024 workers: one server 1.93e+04 ms", "ring 39.2 ms"]),
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
    assert hidden(figure) == [], "a legend lies over it"


@pytest.mark.parametrize(("megabytes", "gigabytes_per_second"), [(0.004, 100.0), (400.0, 1.0)])
def test_at_the_ends_of_its_controls_a_legend_hides_nothing(megabytes, gigabytes_per_second):
    for servers, microseconds in ((2, 1.0), (256, 100.0)):
        assert hidden(RING.costs(megabytes, gigabytes_per_second, microseconds, servers)) == []


def test_each_picture_of_a_notebook_is_drawn_by_a_test():
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    shown = r"(?:plots\.show|widgets\.explore)\(\s*pictures\.(\w+)"
    for source in (ROOT / "solutions").glob("[0-9]*.py"):
        for name in re.findall(shown, source.read_text(encoding="utf-8")):
            assert re.search(rf"\w\.{name}\b", tests), f"{source.stem}: give pictures.{name} a line in PICTURES"


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
    figure = ZERO.course(rows, folder=release)
    optional = {lesson.notebook for lesson in lessons if lesson.optional}
    there = sum(row["kind"] == "check" and row["notebook"] not in optional for row in rows)
    assert f"{len(lessons) - 1} notebooks" in figure.alt and f"0 of {there} checks right, 0 of " in figure.alt
    assert f"{lessons[-1].title} (optional): not in this folder." in figure.alt
    checks.check("start.1", "gpu" if devices.gpus() else "core")
    checks.check("resnet50.9", "c")
    (release / "01_basic_concepts.ipynb").write_text(
        json.dumps({"cells": [{"metadata": {"labs": {"id": "T1", "kind": "answer"}}, "source": "Because."}]})
    )
    figure = ZERO.course(checks.progress(release), folder=release)
    assert f"2 of {there} checks right, 1 of " in figure.alt
    fifth = tasks.lessons()["resnet50_scaling"]
    count = sum(isinstance(item, tasks.Check) for item in fifth.task)
    assert f"{fifth.minutes} minutes, 1 of {count} checks right, T6 open." in figure.alt
    assert "checks right, T1 done." in figure.alt
    (axis,) = figure.axes
    filled = {
        round(bar.get_y() + bar.get_height() / 2): bar.get_width()
        for bar in axis.patches
        if to_hex(bar.get_facecolor()) == "#0072b2"
    }
    place = [*tasks.lessons()].index("resnet50_scaling")
    assert filled[place] == pytest.approx(fifth.minutes / count) and filled[0] == lessons[0].minutes and filled[2] == 0
    assert "\N{CHECK MARK} T1" in [text.get_text() for text in axis.texts]
    assert png(figure).startswith(b"\x89PNG")


@pytest.mark.parametrize("path", tasks.PATHS)
def test_the_map_shows_a_path_and_names_what_it_leaves_out(release, path):
    lessons = list(tasks.lessons().values())
    on = [lesson for lesson in lessons if path == "everything" or path in lesson.paths]
    alt = ZERO.course(checks.progress(release), path, release).alt
    shown = [lesson for lesson in lessons if f" {lesson.title}" in alt]
    assert shown == on and (path == "everything") == ("Not on this path" not in alt)
    hours = round(sum(lesson.minutes for lesson in on if not lesson.optional) / 30) / 2
    text = (ROOT / "solutions/00_start_here.py").read_text(encoding="utf-8")
    assert f" {hours:g} hours" in alt and f'| `"{path}"` | {hours:g} hours |' in text
    more = round(sum(lesson.minutes for lesson in on if lesson.optional) / 30) / 2
    assert path != "everything" or f"optional notebooks: {more:g} hours more" in text
    letters = {item.id for lesson in on for item in lesson.task}
    assert path == "afternoon" or {f"T{number}" for number in range(1, 12)} <= letters


def test_each_shorter_path_lies_on_the_longer_one():
    for lesson in tasks.lessons().values():
        assert "practical" in lesson.paths or lesson.paths == [], lesson.notebook
    with pytest.raises(
        tasks.TaskError, match="There is no path 'weekend'. The paths are: afternoon, practical, everyt"
    ):
        tasks.on_path("weekend")


def test_an_optional_lesson_is_drawn_as_such_and_costs_no_hours(release, monkeypatch):
    found = tasks.lessons()
    whole = ZERO.course([], folder=release)
    own = found["resnet50_scaling"].minutes
    found["resnet50_scaling"] = found["resnet50_scaling"].model_copy(update={"optional": True, "minutes": 600})
    monkeypatch.setattr(tasks, "lessons", lambda: found)
    figure = ZERO.course([], folder=release)
    assert "ResNet50V2? (optional): 600 minutes" in figure.alt and "ResNet50V2? (optional)" not in whole.alt
    hours = [float(re.search(r"([\d.]+) hours", each.alt)[1]) for each in (whole, figure)]
    minutes = sum(lesson.minutes for lesson in tasks.lessons().values() if not lesson.optional)
    assert hours == [round((minutes + own) / 30) / 2, round(minutes / 30) / 2]


def test_the_first_measurement_asks_why_or_says_that_there_is_none():
    runs = results.load(path.with_suffix(".json") for path in recorded.laptop())
    figure, (gain, (low, high)) = ZERO.first(runs), first.speedup(runs)
    assert low < gain < high < 2 and figure.alt.startswith("Why not twice as fast? Seconds of an epoch on 1 worker")
    assert figure.get_suptitle() == "Why not twice as fast?" and png(figure).startswith(b"\x89PNG")
    busy = [epoch.model_copy(update={"others": 0.9}) for epoch in runs[1].epochs]
    figure = ZERO.first(metrics.measure([runs[0], runs[1].model_copy(update={"epochs": busy})]))
    assert (
        "the speedup on a busy machine" in figure.get_suptitle().replace("\n", " ") and "a busy machine" in figure.alt
    )
    unfinished = runs[1].model_copy(update={"epochs": []})
    for cut in ([], runs[:1], metrics.measure([runs[0], unfinished])):
        assert first.speedup(cut) == (None, None)
        assert "run the cell above" in ZERO.first(cut).alt and png(ZERO.first(cut))


@pytest.mark.parametrize(
    ("speedup", "interval", "workers", "asked"),
    [
        (1.5, (1.3, 1.7), 2, "Why not twice as fast?"),
        (0.8, (0.7, 0.95), 2, "Why slower?"),
        (1.1, (0.9, 1.3), 2, "Faster or slower? These rounds cannot tell."),
        (1.5, None, 2, "Faster or slower? These rounds cannot tell."),
        (1.9, (1.7, 2.1), 2, "Is it twice as fast?"),
        (2.3, (1.9, 2.8), 2, "More than twice as fast? That is noise: measure again when the machine is quiet."),
        (3.0, (2.8, 3.2), 4, "Why not 4 times as fast?"),
    ],
)
def test_the_question_is_the_one_that_the_interval_raises(speedup, interval, workers, asked):
    assert question(speedup, interval, workers) == asked


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
    assert f"0 of {total} predictions have an outcome; without outcome: 0, not made yet: {total}." in figure.alt
    assert png(figure).startswith(b"\x89PNG")
    for id, said, *found in (
        ("concepts.12", 0.5, 0.75),
        ("averages.5", "yes", "no"),
        ("horovod.21", [0.005, 0.005], [0.005, 0.02]),
        ("resnet50.1", 1.6, 1.7, (1.6, 1.8)),
        ("resnet50.2", "lower", "lower"),
        ("sharding.5", 0, 0.25),
    ):
        checks.predict(id, said)
        checks.outcome(id, *found)
    checks.predict("resnet152.1", 3)
    figure = ZERO.predictions()
    assert figure.alt == (
        f"6 of {total} predictions have an outcome; without outcome: 1, not made yet: {total - 7}. "
        "concepts.12: outcome / prediction 1.5. "
        "averages.5: you said yes, found no. resnet50.1: outcome / prediction 1.06. resnet50.2: right: lower. "
        "sharding.5: outcome / prediction inf. horovod.21: outcome / prediction 1, 4."
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
        (RING.ring, {"workers": 5, "step": 1}),
        (RING.costs, {"megabytes": 1.0, "gigabytes_per_second": 1.0, "microseconds": 1.0, "servers": 2}),
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
    circle, axis = RING.ring(4, 3).axes
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


def test_the_all_reduce_is_one_box_with_an_arrow_in_and_out_for_each_replica():
    """Arrows from each replica to each other one would show an all-to-all."""
    (axis,) = THREE.step().axes
    (box,) = axis.patches
    arrows = [(text.xyann, text.xy) for text in axis.texts if getattr(text, "arrow_patch", None)]
    assert all(begin[1] == end[1] for begin, end in arrows), "no arrow leads to another replica"
    left, right = box.get_x(), box.get_x() + box.get_width()
    for row in range(4):
        mine = [(begin[0], end[0]) for begin, end in arrows if begin[1] == row]
        into, out = (one for one in mine if left - 0.2 < sum(one) / 2 < right + 0.2)
        assert into[1] < left and out[0] > right


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
            lambda: RING.ring(0),
            lambda: RING.ring(2, -1),
            lambda: TWO.barrier(spread=-1),
            lambda: TWO.barrier(0),
            lambda: TWO.races(rate=0),
            lambda: TWO.races(slow=0.5),
            lambda: TWO.minibatches(0),
            lambda: TWO.minibatches(5000),
            lambda: TWO.averaging(digit=10),
            lambda: TWO.averaging(0),
            lambda: RING.costs(servers=0),
            lambda: RING.costs(0, 1, 0),
            lambda: RING.costs(gigabytes_per_second=0),
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
        lambda: RING.costs(1.0),
        lambda: TWO.barrier(8, 0.4),
        lambda: RING.ring(3),
    ):
        for _ in range(2):
            fast, slow = (imread(BytesIO(data)) for data in (draw().png(), png(draw())))
            assert fast.shape == slow.shape
            assert np.mean(np.abs(fast - slow).max(axis=-1) > 0.1) < 0.01, "other than where data cross a frame"


def test_other_ticks_are_other_frames():
    first, other = RING.ring(3, 1), RING.ring(3, 1)
    other.axes[1].set_xticks([0, 1])
    before = first.png()
    assert other.png() != before and RING.ring(3, 1).png() == before


# Notebook 26: the parts of a measured step


def measured(model="ResNet50V2", factor=1.0):
    """A breakdown in which a step takes 813 ms alone and 973 ms at last, times `factor`."""
    kinds = zip(breakdown.KINDS, (0.8133, 0.8633, 0.9633, 0.9733), strict=True)
    seconds = {"64": {kind: [[factor * end], [factor * end]] for kind, end in kinds}}
    return {"kind": "measured", "model": model, "ranks": 2, "local_batch": 64, "seconds": seconds}


def test_breakdown_draws_every_part_with_its_interval_also_below_0():
    results = [measured(), measured("ResNet152V2", 2.4)]
    results[0]["seconds"]["64"]["input"] = [[0.95], [0.94]]  # shorter than without the pipeline
    drawn = TWELVE.breakdown(results)
    names = [text.get_text() for text in drawn.axes[0].get_yticklabels()]
    assert names == [f"{model}: {part}" for model in TWELVE.NAMES for part in breakdown.PARTS]
    widths = [bar.get_width() for bar in drawn.axes[0].patches]
    assert widths[0] == pytest.approx(813.3) and widths[3] == pytest.approx(-18.3) and len(widths) == 8
    assert [bar.get_width() for bar in drawn.axes[1].patches] == pytest.approx([widths[k] for k in (1, 2, 3, 5, 6, 7)])
    assert "exchange and waiting 100 ms [100, 100]" in drawn.alt and "input -18.3 ms [" in drawn.alt
    assert drawn.get_supxlabel().startswith("measured") and png(drawn)[:4] == b"\x89PNG"


def test_a_long_whisker_leaves_the_bars_their_size():
    results = measured()
    results["seconds"]["64"]["exchange"] = [[0.5], [1.4]]  # a part of 0.087 s, known to seconds
    small = TWELVE.breakdown([results]).axes[1]
    longest = max(abs(bar.get_width()) for bar in small.patches)
    low, high = small.get_xlim()
    assert high - low <= 4.01 * longest


def test_the_parts_sum_beside_a_whole_step_leaves_a_residual():
    told = experiments.whole_step(measured(), [1.0, 1.04])
    drawn = TWELVE.whole({"ResNet50V2": told}, "measured", "recorded")
    widths = [bar.get_width() for bar in drawn.axes[0].patches]
    assert widths == pytest.approx([973.3, 1020.0, 46.7])
    assert "residual 46.7 ms [" in drawn.alt and drawn.get_supxlabel().startswith("measured and recorded")


def test_predicted_steps_stand_beside_measured_ones():
    rows = [{"name": "a, 2 workers x 16", "predicted": (0.30, (0.28, 0.33)), "measured": (0.36, (0.35, 0.37))}]
    rows.append({"name": "b, 2 workers x 64", "predicted": (1.0, None), "measured": (0.9, None)})
    drawn = TWELVE.held_out(rows)
    assert "predicted 300 ms [280, 330], measured 360 ms [350, 370], residual +20.0%" in drawn.alt
    assert "b, 2 workers x 64: predicted 1,000 ms, measured 900 ms, residual -10.0%" in drawn.alt
    assert [text.get_text() for text in drawn.axes[0].get_legend().get_texts()] == ["predicted", "measured"]
    assert "+20.0%" in [text.get_text() for text in drawn.axes[0].texts]


# Notebook 26: overlap


def test_all_reduce_within_the_backward_pass_and_after_it():
    row = {"allreduce_seconds": 0.30, "within_seconds": 0.27, "behind_seconds": 0.03}
    drawn = TWELVE.hidden({"fusion on": [row, row], "fusion off": [row]})
    assert "fusion on: 270 ms within the backward pass, 30 ms after it; together 300 ms [300, 300]." in drawn.alt
    assert "fusion off: 270 ms within the backward pass, 30 ms after it; together 300 ms." in drawn.alt
    assert [bar.get_width() for bar in drawn.axes[0].patches] == pytest.approx([270, 30, 270, 30])


def test_messages_go_when_their_bucket_is_full_and_the_link_is_free():
    sizes = TWELVE.networks()["ResNet50V2"].tensor_bytes
    for bucket, bandwidth in product(TWELVE.BUCKETS, (5, 100)):
        found = TWELVE.messages(bucket, bandwidth)
        assert sum(size for *_, size in found) == sum(sizes)
        ready, begin, end, _ = map(np.array, zip(*found, strict=True))
        assert (begin >= ready).all() and (begin[1:] >= end[:-1]).all() and (np.diff(ready) > 0).all()
        assert ready[-1] == pytest.approx(TWELVE.STEP["backward"]) and begin[0] == ready[0]
    assert len(TWELVE.messages(0, 25)) == len(sizes) and len(TWELVE.messages(128, 25)) == 1


def test_neither_the_smallest_nor_the_largest_bucket_hides_most():
    end = [TWELVE.messages(bucket, 25)[-1][2] for bucket in TWELVE.BUCKETS]
    assert min(end) not in (end[0], end[-1])
    one = TWELVE.messages(128, 25)[0]
    assert one[2] - one[1] == pytest.approx(reduce.ring_seconds(8, one[3], 50e-6, 25e9 / 8))


def test_the_moving_step_shows_what_is_sent_by_then():
    drawn = TWELVE.overlap(16, 25, 50, 50)
    found = TWELVE.messages(16, 25)
    sent = sum(end <= 0.5 * max(0.1, found[-1][2]) for _, _, end, _ in found)
    assert f"{sent} of {len(found)} messages are sent" in drawn.alt and drawn.get_supxlabel() == "simulated"
    assert list(drawn.axes[1].lines[0].get_ydata()) == pytest.approx(
        [1e3 * max(0.0, TWELVE.messages(bucket, 25)[-1][2] - 0.1) for bucket in TWELVE.BUCKETS]
    )
    assert TWELVE.overlap(0, 5, 200, 0).png()[:4] == b"\x89PNG"
    with pytest.raises(SimulationError, match="time"):
        TWELVE.overlap(time=101)


def test_the_threshold_is_where_both_lines_meet():
    thresholds = {"float32": 12.0, "float16": 6.0}
    drawn = TWELVE.threshold(0.01, 1e9, {"float32": 80e6, "float16": 40e6}, thresholds)
    backward, *_ = drawn.axes[0].lines
    took = np.interp(12.0, backward.get_xdata(), backward.get_ydata())
    assert took == pytest.approx(80.0, rel=0.01) and "float16: 40 MB take 40 ms" in drawn.alt
    assert "hidden from 6 images on" in drawn.alt and drawn.get_supxlabel().startswith("predicted")


# Notebook 26: up to 4096 workers


def test_it_is_the_cost_model():
    """As `labs predict` tells it for the same machine, but for the rate of one worker."""
    found = TWELVE.steps("ResNet50V2", batch=64)
    machine = TWELVE.machine()
    facts = TWELVE.networks()["ResNet50V2"]
    told = costs.predict_from_machine("ResNet50V2", facts, machine, 64, 64, rate=405.0)
    assert found[1].computation == pytest.approx(64 / 405, rel=0.1)  # V2 does not cost the same as what was measured
    assert TWELVE.efficiencies("ResNet50V2", batch=64)[64] == pytest.approx(told.efficiency.value, abs=0.05)
    assert list(found) == [2**k for k in range(13)]


def test_each_control_moves_the_efficiency_its_own_way():
    for network, (name, worse, better) in product(
        TWELVE.NAMES,
        (
            ("batch", 16, 64),
            ("bandwidth", 10, 100),
            ("latency", 100, 2),
            ("fusion", 0, 128),
            ("accumulation", 1, 4),
            ("precision", "float16", "float32"),
        ),
    ):
        low, high = (TWELVE.efficiencies(network, **{name: value})[1024] for value in (worse, better))
        assert low < high, (network, name)


def test_efficiency_is_1_alone_and_never_more():
    for network in TWELVE.NAMES:
        values = TWELVE.efficiencies(network, batch=32, bandwidth=10)
        assert values[1] == 1.0 and max(values.values()) <= 1.0


def test_first_below():
    values = TWELVE.efficiencies("ResNet50V2", bandwidth=10)
    first = TWELVE.first_below("ResNet50V2", bandwidth=10)
    assert values[first] < 0.8 <= values[first // 2]
    assert TWELVE.first_below("ResNet50V2", limit=0.0) is None


def test_answers_of_the_notebook():
    """step.6: at each network's own largest batch and 10 Gbit/s the smaller one gets further, at an equal batch not so.
    12.7: without fusion the one with more tensors falls behind."""
    below = TWELVE.first_below
    own = below("ResNet50V2", batch=128, bandwidth=10), below("ResNet152V2", batch=64, bandwidth=10)
    equal = below("ResNet50V2", batch=64, bandwidth=10), below("ResNet152V2", batch=64, bandwidth=10)
    assert None not in own and own[0] > own[1] and equal[0] <= equal[1]
    fits = {name: TWELVE.fits(name) for name in TWELVE.NAMES}
    assert 128 <= fits["ResNet50V2"] < 256 and 64 <= fits["ResNet152V2"] < 128  # the powers of two in the text
    fused = [TWELVE.efficiencies(name)[64] for name in TWELVE.NAMES]
    alone = [TWELVE.efficiencies(name, fusion=0)[64] for name in TWELVE.NAMES]
    assert fused[1] > fused[0] and alone[1] < alone[0]
    assert [len(TWELVE.networks()[name].tensor_bytes) for name in TWELVE.NAMES] == [174, 514]


def test_the_order_of_two_predictions_is_that_of_their_ratio():
    """What the machine's file leaves open moves both networks: the ratio knows more than two intervals."""
    equal, own = (TWELVE.order(64, batches, 10) for batches in ((64, 64), (128, 64)))
    for found in (equal, own):
        efficiencies = [found[name] for name in TWELVE.NAMES]
        assert found["ratio"][0] == pytest.approx(efficiencies[1][0] / efficiencies[0][0])
        for value, (low, high) in found.values():
            assert low < value < high
        assert efficiencies[0][1][0] < efficiencies[1][1][1], "their own intervals overlap"
    assert equal["ratio"][0] > 1 and TWELVE.told(equal["ratio"][1]) == "can't tell"
    assert TWELVE.told(own["ratio"][1]) == "ResNet50V2" and TWELVE.told((1.01, 1.2)) == "ResNet152V2"
    assert own["ResNet50V2"][0] == pytest.approx(
        TWELVE.efficiencies("ResNet50V2", batch=128, bandwidth=10)[64], rel=0.01
    )


def test_float16_computes_faster_at_a_lower_efficiency():
    slow, fast = (TWELVE.steps("ResNet152V2", precision=p)[64] for p in ("float32", "float16"))
    assert fast.step < slow.step and fast.computation / fast.step < slow.computation / slow.step


def test_the_picture_says_what_it_draws():
    figure = TWELVE.scaling("ResNet50V2", batch=128, bandwidth=10)
    first = TWELVE.first_below("ResNet50V2", batch=128, bandwidth=10)
    assert f"ResNet50V2: below 0.8 from {first}" in figure.alt and "Predicted" in figure.alt
    assert f"(about {TWELVE.fits('ResNet152V2')} images fit)" in figure.alt
    assert "1 pass per update" in figure.alt and "2 passes per" in TWELVE.scaling("ResNet50V2", accumulation=2).alt
    lines = {len(line.get_xdata()): line for line in figure.axes[0].get_lines()}
    assert list(lines[13].get_ydata()) == list(TWELVE.efficiencies("ResNet152V2", batch=128, bandwidth=10).values())
    assert lines[13].get_linestyle() == ":"  # batch 128 of ResNet152V2 does not fit
    assert figure.axes[1].get_title().startswith("ResNet50V2") and png(figure)[:4] == b"\x89PNG"
    assert figure._supxlabel.get_text() == "predicted"


def test_as_a_widget_it_begins_at_its_defaults():
    box = widgets.explore(
        TWELVE.scaling,
        network=list(TWELVE.NAMES),
        batch=[8, 16, 32, 64, 128, 256],
        fusion=[0, 8, 128],
        accumulation=(1, 8),
    )
    assert [child.value for child in box.children[:-1]] == ["ResNet152V2", 64, 128, 1]
    assert "<img" in box.children[-1].value


def test_another_network_is_refused():
    with pytest.raises(costs.CostError, match="not in this picture"):
        TWELVE.steps("VGG16")
