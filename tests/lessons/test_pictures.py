"""Pictures of the notebooks show what simulators, records and the cost model say, and say it in words too."""

import re
from contextlib import nullcontext

import numpy as np
import pytest
from figures import lengths, sound
from making import broken_down
from tree import ROOT

from labs import checks, recorded, results
from labs.checks import tasks
from labs.measure import breakdown
from labs.results import metrics
from lessons import compare, counts, reduce
from lessons.asked import question
from lessons.averages_and_rings import pictures as TWO
from lessons.basic_concepts import pictures as ONE
from lessons.horovod_sharding import pictures as SHARDS
from lessons.horovod_training import pictures as SEVEN
from lessons.mirrored_strategy import pictures as THREE
from lessons.report import pictures as ELEVEN
from lessons.resnet50_scaling import pictures as FIVE
from lessons.start_here import first
from lessons.start_here import pictures as ZERO
from lessons.where_a_step_goes import pictures as TWELVE
from lessons.where_a_step_goes import what_if

FIFTY, LARGER = what_if.NAMES
SORTED = np.repeat(np.arange(10), 48)
WAYS = {"blocks": np.arange(480).reshape(2, 240), "shard": np.arange(480).reshape(240, 2).T}
STUDIES = [(1.5, 1.4, 1.7), (1.5, 1.4, 1.55), (1.7, 1.65, 1.8)]
ALONE = recorded.laptop()[0].with_suffix(".json")
PICTURES = [  # the stamp, a function, what it is given, words of the text alternative
    ("simulated", FIVE.coverage, (STUDIES, 1.6), "3 simulated studies; those that miss the true speedup of 1.6: 2, 3."),
    ("computed", ONE.gap, (lambda months: 2 ** (12 / months),), "2,370,000 times as much", "gap of 296,000", "in 2054"),
    ("recorded", compare.losses, ({"1 worker": ALONE},), "1 worker: 2.3450, 1.4465,"),
    ("recorded", ONE.imagenet, (), "Akiba and others, 1024 P100", "116 times as fast, 128 by the number of devices"),
    ("simulated", ONE.parallelism, (), "Data par", "Model par", "24 units", "idle share 75%", "Pipe", "idle share 43%"),
    ("simulated", ONE.memory, ("VGG16", 1, "Adam", "float16", 8, "everything"), "8 devices", "weights 34.6 MB"),
    ("simulated", THREE.step, (), "Replica 3: samples 12 to 15, gradient", "W = 1.00 2.00 3.00, get the sum"),
    ("simulated", SEVEN.ranks, (2, 4), "size 8, on every node local size 4", "rank 6 is local rank 2 on GPU 2"),
    ("simulated", SHARDS.balance, (SORTED, WAYS, 16), "classes seen by each worker 5, 5; 1.0 classes in a batch"),
    ("simulated", ELEVEN.flawed, (), "logarithmic axes", "2.6 on 8"),
    ("measured", TWELVE.breakdown, ([broken_down(), broken_down(LARGER, 2.4)],), "exchange and waiting 100 ms [9"),
    ("simulated", ONE.speedups, (32, 0.1), "ideal 32", "Amdahl 7.8", "Gustafson 28.9"),
    ("simulated", ONE.parallelism, ("model", 2, 4, 50), "After 50 %", "busy 50% of the"),
    ("simulated", TWO.averaging, (2, 5, 1), "2 workers with 5 digits", "all 10 digits"),
    ("simulated", TWO.barrier, (8, 0.2), "spread by 20%", "8 workers compute for"),
    ("simulated", TWO.races, (3, 2.0, 1.0), "Synchronous: 20 updates"),
    ("simulated", TWO.ring, (5, 2), "step 2 of 8, reduce-scatter", "worker 0 sends chunk 4 to 1"),
    ("simulated", TWELVE.overlap, (4, 5, 500), "buckets of 4 MiB, 5"),
    ("computed", TWELVE.scaling, (LARGER, 128, 10), "ResNet152V2: below 0.8 from ", " images fit)"),
]


@pytest.mark.parametrize(("kind", "draw", "given", "words"), [(*row[:3], row[3:]) for row in PICTURES])
def test_picture_has_units_a_stamp_and_its_numbers_in_words(kind, draw, given, words):
    sound(draw(*given), kind, *words)


# Notebook 00: the course, the first measurement, the predictions


def test_the_map_draws_of_each_lesson_what_is_done(tmp_path):
    lessons = tasks.lessons()
    checks.check("resnet50.11", "c")
    fifth, last = lessons["resnet50_scaling"], [*lessons.values()][-1]
    count = sum(isinstance(item, tasks.Check) and not item.title.endswith("(optional)") for item in fifth.task)
    words = f"{len(lessons)} notebooks", f"{last.title} (optional) (not in this folder): "
    words += (f"{fifth.minutes} minutes, 1 of {count} checks right, T6 open.",)
    sound(ZERO.course(checks.progress(tmp_path), folder=tmp_path), "your progress", *words)


@pytest.mark.parametrize("path", tasks.PATHS)
def test_the_map_shows_a_path_and_names_what_it_leaves_out(tmp_path, path):
    on = tasks.on_path(path)
    alt = ZERO.course(checks.progress(tmp_path), path, tmp_path).alt
    assert [lesson for lesson in tasks.lessons().values() if f" {lesson.title}" in alt] == on
    assert (path == "everything") == ("Not on this path" not in alt)
    hours, more = (round(sum(each.minutes for each in on if each.optional is kind) / 30) / 2 for kind in (False, True))
    text = (ROOT / "solutions/00_start_here.py").read_text(encoding="utf-8")
    assert f" {hours:g} hours" in alt and f'| `"{path}"` | {hours:g} hours |' in text
    assert path != "everything" or f"optional notebooks: {more:g} hours more" in text


def test_the_first_measurement_asks_why_or_says_that_there_is_none():
    runs = results.load(path.with_suffix(".json") for path in recorded.laptop())
    figure, (gain, (low, high)) = ZERO.first(runs), first.speedup(runs)
    assert low < gain < high < 2 and figure.alt.startswith("Why not twice as fast? Seconds of an epoch on 1 worker")
    busy = [epoch.model_copy(update={"others": 0.9}) for epoch in runs[1].epochs]
    figure = ZERO.first(metrics.measure([runs[0], runs[1].model_copy(update={"epochs": busy})]))
    assert "numbers of a busy machine" in figure.alt
    for cut in ([], runs[:1], metrics.measure([runs[0], runs[1].model_copy(update={"epochs": []})])):
        assert first.speedup(cut) == (None, None) and "run the cell above" in ZERO.first(cut).alt


def test_the_question_is_the_one_that_the_interval_raises():
    for speedup, interval, asked in (
        (1.5, None, "Faster or slower? These rounds cannot tell."),
        (0.8, (0.7, 0.95), "Why slower?"),
        (1.9, (1.7, 2.1), "Is it twice as fast?"),
        (2.3, (1.9, 2.8), "More than twice as fast? That is noise: measure again when the machine is quiet."),
    ):
        assert question(speedup, interval) == asked


def test_the_first_measurement_hides_one_gpu_from_its_jobs_and_says_so(monkeypatch, capsys):
    class Turns(nullcontext):
        jobs, start = (), lambda self, *_, name, env: started.append((name, env))

    monkeypatch.setattr(first.jobs, "Turns", lambda: Turns(Turns()))
    for gpus, said in ((0, 0), (1, 1), (2, 0)):
        started = []
        monkeypatch.setattr(first.devices, "gpus", lambda gpus=gpus: ["GPU"] * gpus)
        monkeypatch.setattr(first.devices, "cores", lambda: 8)
        env = {"CUDA_VISIBLE_DEVICES": "-1"} if gpus == 1 else {}
        assert first.measure() == [] and started == [("first_w1", env), ("first_w2", env)]
        assert capsys.readouterr().out.count("GPU") == said


def test_predictions_beside_their_outcomes_also_with_half_of_them_missing():
    total = len(checks.predictions())
    for id, said, *found in (
        ("averages.2", "yes", "no"),
        ("batches.16", [0.005, 0.005], [0.005, 0.02]),
        ("resnet50.1", 1.6, 1.7, (1.6, 1.8)),
        ("sharding.5", 0, 0.25),
    ):
        checks.predict(id, said)
        checks.outcome(id, *found)
    checks.predict("resnet152.1", 3)
    words = f"4 of {total} predictions have an outcome; without outcome: 1, not made yet: {total - 5}."
    sound(ZERO.predictions(), "your predictions", words, "outcome / prediction 1, 4.", "outcome / prediction 1.06")


# Drawn numbers are those of the simulators and of the records


def test_one_step_adds_up_as_it_is_shown():
    """What a student adds up in the picture, with two digits, is what stands there."""
    texts = [text.get_text() for text in THREE.step().axes[0].texts]
    boxes = np.array([text.split() for text in texts if re.fullmatch(r"(-?\d\.\d\d ?){3}", text)], float)
    starts, gradients, sums, ends = (boxes[k::4] for k in range(4))
    assert np.allclose(sums, gradients.sum(0)) and len(sums) == 4
    assert (starts == starts[0]).all() and np.allclose(ends, starts - 0.1 * sums, atol=0.0051)


def test_curves_and_counts_are_those_of_the_records():
    over_epochs, over_updates = (axis.lines[0].get_xdata() for axis in compare.losses({"1 worker": ALONE}).axes)
    assert list(over_updates) == [results.load([ALONE])[0].steps * epoch for epoch in over_epochs]
    rows = [row for row in recorded.imagenet() if row["devices"]]
    products = (np.array(lengths(ONE.imagenet().axes[1])) + 1).reshape(-1, 2).prod(axis=1)
    assert np.allclose(products, [rows[0]["minutes"] / row["minutes"] for row in rows])
    for name in ("MobileNetV2", "ResNet50V2", "VGG16"):
        counted = counts.of(name)
        assert recorded.networks()[name] == (counted.parameters, counted.activation_bytes)


# Notebook 26: the parts of a measured step, overlap, up to 4096 workers


def test_bars_of_a_step_are_its_parts_also_below_0():
    shorter = broken_down(input=[[0.95], [0.945], [0.94]])  # than without it
    drawn = TWELVE.breakdown([shorter, broken_down(LARGER, 2.4)])
    names = [text.get_text() for text in drawn.axes[0].get_yticklabels()]
    assert names == [f"{model}: {part}" for model in what_if.NAMES for part in breakdown.PARTS]
    widths = lengths(drawn.axes[0])
    assert widths[:4] == pytest.approx([813.3, 50, 100, -18.3]) and "input -18.3 ms [" in drawn.alt
    assert lengths(drawn.axes[1]) == pytest.approx([widths[k] for k in (1, 2, 3, 5, 6, 7)])


def test_messages_go_when_their_bucket_is_full_and_neither_the_smallest_nor_the_largest_hides_most():
    """That a message waits for the link: test_where_a_step_goes.py."""
    sizes, found = what_if.networks()[FIFTY].tensor_bytes, {size: TWELVE.messages(size, 25) for size in TWELVE.BUCKETS}
    for messages in found.values():
        ready, begin, _, sent = zip(*messages, strict=True)
        assert sum(sent) == sum(sizes) and begin[0] == ready[0] and ready[-1] == pytest.approx(0.1)
        assert [*ready] == sorted({*ready})
    assert len(found[0]) == len(sizes)
    ((_, begin, end, size),) = found[128]
    assert end - begin == pytest.approx(reduce.ring_seconds(8, size, 50e-6, 25e9 / 8))
    last = [messages[-1][2] for messages in found.values()]
    assert min(last) not in (last[0], last[-1])
    shown = TWELVE.overlap(16, 25, 50).axes[1].lines[0].get_ydata()
    assert shown == pytest.approx([1e3 * max(0.0, end - 0.1) for end in last])


def test_what_the_text_says_of_both_networks():
    """At each network's own largest batch and 10 Gbit/s the smaller one gets further, at an equal batch not so; and
    their ratio knows more than two intervals. (Without fusion: tests/keys/test_deeper.py.)"""
    own, equal = (
        [what_if.first_below(name, batch=batch, bandwidth=10) for name, batch in zip(what_if.NAMES, of, strict=True)]
        for of in ((128, 64), (64, 64))
    )
    assert None not in own and own[0] > own[1] and equal[0] <= equal[1]
    assert 128 <= what_if.fits(FIFTY) < 256 and 64 <= what_if.fits(LARGER) < 128  # the powers of two in the text
    for batches, name in (((64, 64), "can't tell"), ((128, 64), FIFTY)):
        found = what_if.order(64, batches, 10)
        (small, span), (large, other), (ratio, interval) = (found[name] for name in (*what_if.NAMES, "ratio"))
        assert ratio == pytest.approx(large / small)
        assert name == (LARGER if interval[0] > 1 else FIFTY if interval[1] < 1 else "can't tell")
        assert span[0] < small < span[1] and span[0] < other[1], "their own intervals overlap"
        assert small == pytest.approx(what_if.efficiencies(FIFTY, batch=batches[0], bandwidth=10)[64], rel=0.01)
