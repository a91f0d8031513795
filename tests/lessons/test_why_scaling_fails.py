"""The experiments of notebook 22: they compute what they say, and its pictures say what they show."""

import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest
from legends import hidden
from making import SOLUTIONS, swapped

from labs import jobs
from labs.show.figure import png
from lessons.large_batches import late_workers
from lessons.when_workers_do_not_help import compared, equal_ranks, pictures, questions, small, steps, trials
from teaching.author import regions

PROGRAMS = Path(__file__).parents[1] / "programs"


# Local SGD on real ranks


@pytest.fixture(scope="module")
def on_2_ranks(tmp_path_factory):
    """What each of 2 ranks found."""
    folder = tmp_path_factory.mktemp("local_sgd")
    options = {"name": "local_sgd", "ranks": 2, "launcher": "mpiexec", "runs": folder, "show": False}
    job = jobs.run(PROGRAMS / "local_sgd_ranks.py", folder, **options, env={"CUDA_VISIBLE_DEVICES": ""})
    assert job.state == "finished", job.explain()
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize("case", ["plain", "momentum"])
def test_local_sgd_with_k_1_is_synchronous_sgd(needs_horovod, on_2_ranks, case):
    assert on_2_ranks[0]["drawn"] != on_2_ranks[1]["drawn"], "the seeds are to differ"
    for found in (rank["cases"][case] for rank in on_2_ranks):
        assert found["moved"] > 0.05 and not found["frozen_moved"] and found["identical"]
        assert found["against_averaged_gradients"] < 1e-5 and found["against_one_process"] < 1e-5


def test_with_k_3_it_is_another_training_that_ends_in_one_network(needs_horovod, on_2_ranks):
    for found in (rank["cases"]["every 3rd"] for rank in on_2_ranks):
        assert found["against_averaged_gradients"] > 1e-4 and found["identical"] and not found["frozen_moved"]


def test_played_ranks_train_as_real_ones_do(needs_horovod, on_2_ranks):
    played = equal_ranks.on_ranks(str(SOLUTIONS / "scripts/local_sgd.py"))["cases"]
    for real, case in zip(zip(*(rank["check"] for rank in on_2_ranks), strict=True), played, strict=True):
        for one, other in zip(real, case, strict=True):
            assert np.allclose(one.pop("weights"), other.pop("weights"), rtol=1e-5, atol=1e-6) and one == other


def test_each_mistake_that_a_hint_names_leads_to_other_weights():
    """The judge of workers.5 tells them apart by their weights, and each by one case or more from the right ones."""
    seen = {}
    for mistake in (None, *equal_ranks.MISTAKES):
        weights = [equal_ranks.trained(**case, mistake=mistake) for case in equal_ranks.CASES]
        for other, those in seen.items():
            assert not all(map(equal_ranks.alike, weights, those)), (mistake, other)
        seen[mistake] = weights


@pytest.mark.slow
@pytest.mark.parametrize(
    ("instead", "code", "says", "seconds"),
    [
        ("if number % k == 0 and hvd.rank() == 0:", "allreduce", "rank 1 has ended and rank 0 waits in allreduce", 60),
        ("while number % k == 0:", "allreduce", "have exchanged 2000 times, and go on", 60),
        ("while hvd.rank(): pass\n        if True:", "pass", "rank 1 is still here, and rank 0 waits in line", 1),
    ],
    ids=["one rank alone exchanges", "all exchange without end", "one rank computes without end"],
)
def test_ranks_that_would_never_end_are_told_where(tmp_path, instead, code, says, seconds):
    (path,) = swapped("scripts/local_sgd.py", ("if number % k == 0:", instead))(tmp_path)
    error = equal_ranks.on_ranks(str(path), seconds=seconds)["error"]
    assert code in error["code"] and says in error["says"]


def test_what_raises_in_the_first_step_is_told_with_the_innermost_line_of_the_script(tmp_path, monkeypatch):
    # no other test misspells it like this: TensorFlow would name the file in which it has seen the same code before
    (path,) = swapped("scripts/local_sgd.py", ("weights), weights)", "weights), wights)"))(tmp_path)
    monkeypatch.setattr(equal_ranks.scripts, "tried", lambda *_: pytest.fail("ranks were tried out: half a minute"))
    error = equal_ranks.facts(path)["error"]
    assert error["code"].startswith("optimizer.apply(") and "'wights' is not defined" in error["says"]


def test_the_blanks_of_local_sgd_are_on_the_algorithm():
    """The step and the exchange are the student's: nothing of either is given."""
    text = regions.blank((SOLUTIONS / "scripts/local_sgd.py").read_text())
    (function,) = (n for n in ast.parse(text).body if getattr(n, "name", "") == "local_sgd")
    (step,) = (n for n in function.body if isinstance(n, ast.FunctionDef))
    assert [ast.unparse(each) for each in (step.body[-1], function.body[-1])] == ["...", "..."]
    assert not {"GradientTape", "apply", "allreduce"} & {n.attr for n in ast.walk(function) if hasattr(n, "attr")}


def test_a_step_that_is_checked_again_and_again_brings_no_warning_of_tensorflow(monkeypatch):
    import tensorflow as tf

    logger, said = tf.get_logger(), []
    monkeypatch.setattr(logger, "handle", said.append)
    for _ in range(7):  # it would warn at the fifth
        assert equal_ranks.first_step(str(SOLUTIONS / "scripts/local_sgd.py")) is None
        assert questions._right_on_1_rank(str(SOLUTIONS / "scripts/local_sgd.py"))
    assert said == []


# The small network


def test_gradient_is_the_slope_of_the_loss():
    train = small.digits().train
    part = small.DigitsPart(train.images[:20].astype(float), train.labels[:20])
    weights = small.begin(0).astype(float)
    slope = small.gradient(weights[None], part.images[None], part.labels[None])[0]
    for place in np.argsort(-np.abs(slope))[:200:25]:
        step = np.zeros_like(weights)
        step[place] = 1e-6
        rise = small.loss(weights + step, part) - small.loss(weights - step, part)
        assert rise / 2e-6 == pytest.approx(slope[place], rel=1e-4)


def test_digits_are_divided_without_overlap():
    parts = small.digits()
    images = {image.tobytes() for part in parts for image in part.images}
    assert [len(part.labels) for part in parts] == [1280, 250, 267]
    assert len(images) >= 1795  # nearly all are different, so none stands in two parts


def test_workers_that_average_at_every_step_are_one_training():
    """k = 1 on 8 workers with 8 images each is one training with the 64 images together."""
    of_workers = trials.shards(8, "shuffled")
    together = [small.batches(8, (0, worker), numbers) for worker, numbers in enumerate(of_workers)]
    weights, train = small.begin(0), small.digits().train
    for _ in range(40):
        numbers = np.concatenate([next(source) for source in together])
        weights = weights - 0.2 * small.gradient(weights, train.images[numbers], train.labels[numbers])
    accuracy = trials.local_sgd(1, of_workers, steps=40, rate=0.2)
    assert accuracy == pytest.approx(float(small.accuracy(weights, small.digits().test)), abs=0.005)


def test_sorted_shards_hold_few_labels_and_shuffled_ones_all():
    labels = small.digits().train.labels
    counts = {
        order: [len(set(labels[numbers])) for numbers in trials.shards(8, order)] for order in ("shuffled", "sorted")
    }
    assert min(counts["shuffled"]) == 10 and max(counts["sorted"]) <= 3


def test_steps_to_the_target_are_those_of_a_training_on_its_own():
    rate, (counted, *_) = trials.steps_to(64, (0.2, 0.8), seeds=(0, 1), most=300)
    assert trials.train(64, rate, steps=counted, seed=0)["validation"] >= trials.TARGET
    assert trials.train(64, rate, steps=counted - 1, seed=0)["validation"] < trials.TARGET
    assert trials.steps_to(64, (0.001,), seeds=(0,), most=5) == (None, [])


def test_squares_of_local_and_mean_gradients_obey_the_formula():
    """At fixed weights (rate 0) noise and signal are those of the gradients of all single images."""
    found = trials.squares(workers=8, batch=16, rate=0.0, steps=400)
    train = small.digits().train
    single = small.gradient(
        np.broadcast_to(small.begin(0), (small.TRAIN, small.SIZE)), train.images[:, None], train.labels[:, None]
    )
    signal = (single.mean(0) ** 2).sum()
    noise = ((single - single.mean(0)) ** 2).sum(1).mean()
    assert found["local"].mean() == pytest.approx(signal + noise / 16, rel=0.05)
    assert found["mean"].mean() == pytest.approx(signal + noise / 128, rel=0.05)


def test_a_search_that_stops_trainings_spends_fewer_epochs():
    rates = [0.001, 0.01, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0, 5.0]
    whole, all_epochs = trials.search(rates, (9,))
    halved, epochs = trials.search(rates, (1, 3, 9))
    assert (all_epochs, epochs) == (81, 9 * 1 + 3 * 2 + 1 * 6)
    assert halved > 0.9 and whole >= halved


# Late workers, steps of ranks


def test_a_barrier_waits_and_a_backup_worker_does_not():
    waits = late_workers.train(steps=12, late_ms=40)
    goes_on = late_workers.train(steps=12, late_ms=400, backup=1)
    assert waits["used"] == [12] * 4 and min(waits["seconds"]) >= 0.04
    assert sum(goes_on["used"]) == 12 * 3 and goes_on["used"][3] < min(goes_on["used"][:3])


FOUND = {
    "ranks": 2,
    "launcher": "mpiexec",
    "oversubscribed": False,
    "tensor_bytes": {2: [100, 20], 64: [9000, 400]},
    "seconds": {
        2: {
            "alone 32": [0.004, 0.0042],
            "alone 16": [0.003] * 2,
            "together": [0.0032] * 2,
            "exchange": [0.006, 0.0061],
        },
        64: {"alone 32": [0.06] * 2, "alone 16": [0.034] * 2, "together": [0.036] * 2, "exchange": [0.04, 0.041]},
    },
}
ALONE = {
    "ranks": 1,
    "tensor_bytes": FOUND["tensor_bytes"],
    "seconds": {
        2: {"alone 32": [0.004, 0.0041], "alone 16": [0.003] * 2, "alone 8": [0.0025] * 2},
        64: {"alone 32": [0.06, 0.061], "alone 16": [0.034] * 2, "alone 8": [0.021] * 2},
    },
}
LINK = {"latency": {"value": 1e-4, "unit": "s"}, "bandwidth": {"value": 1e9, "unit": "bytes/s"}}


NOISY = json.loads(
    json.dumps(FOUND), object_pairs_hook=lambda pairs: {int(k) if k.isdigit() else k: v for k, v in pairs}
)
NOISY["seconds"][64]["together"] = [0.030, 0.031]  # shorter than a step alone
FOUR = FOUND | {"ranks": 4, "launcher": "horovodrun", "oversubscribed": True}
FOUR["seconds"] = {
    filters: {"alone 8" if kind == "alone 16" else kind: rounds for kind, rounds in kinds.items()}
    for filters, kinds in FOUND["seconds"].items()
}


def speedup(start, per_image, exchange, ranks):
    return (start + 32 * per_image) / (start + 32 * per_image / ranks + exchange)


def test_parts_of_a_step_add_up_to_it_in_each_round():
    parts = steps.parts(FOUND)[64]
    assert [sum(each) for each in zip(*parts.values(), strict=True)] == pytest.approx([0.04, 0.041])
    assert parts["computing"] == pytest.approx([0.026] * 2) and parts["start of operations"] == pytest.approx(
        [0.008] * 2
    )


def test_shares_are_of_the_step_in_the_same_round_so_that_a_slow_round_changes_none():
    shares = steps.shares(FOUND)[64]
    assert sum(share for share, _ in shares.values()) == pytest.approx(1)
    share, (low, high) = shares["exchange and waiting"]
    assert share == pytest.approx((0.004 / 0.04 + 0.005 / 0.041) / 2) and low < share < high
    slow = {kind: [rounds[0], 3 * rounds[1]] for kind, rounds in FOUND["seconds"][64].items()}
    for part, (share, span) in steps.shares(FOUND | {"seconds": {64: slow}})[64].items():
        assert (share, *span) == pytest.approx((shares[part][0], *shares[part][1]))


def test_a_part_below_0_is_not_cut_off_but_too_noisy():
    assert steps.shares(NOISY)[64]["sharing the machine"][0] < 0
    assert steps.speedups(NOISY, speedup, 8)[64] == steps.NOISY == "too noisy: measure again"
    value, low, high = map(float, re.findall(r"[\d.]+", steps.speedups(FOUND, speedup, 8)[64]))
    assert low < value < high and value == pytest.approx(0.06 / 0.021, rel=0.01)
    growing = FOUND | {"seconds": {2: FOUND["seconds"][2] | {"alone 32": [0.002] * 2}}}  # fewer images took longer
    assert steps.parts(growing)[2]["computing"] == pytest.approx([-0.001] * 2)
    assert steps.speedups(growing, speedup, 8)[2] == steps.NOISY


def test_a_measured_speedup_has_its_interval_and_is_never_above_the_ranks():
    assert steps.measured(FOUND)[64].startswith("1.48 [1.")
    fast = FOUND["seconds"][64] | {"exchange": [0.028, 0.029]}
    assert steps.measured(FOUND | {"seconds": {64: fast}}) == {64: steps.NOISY}


def test_rounds_in_which_other_programs_ran_are_left_out(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    kinds = {kind: [1.0, 2.0, 3.0, 4.0] for kind in FOUND["seconds"][2]}
    written = FOUND | {"seconds": {2: kinds}, "others": [0.0, 0.5, 0.1, None]}

    class Done:
        state = "finished"

        def wait(self, show):
            (tmp_path / "steps_2.steps.json").write_text(json.dumps(written))

    monkeypatch.setattr(jobs, "start", lambda *_, **__: Done())
    found = steps.measure(2, [2], rounds=4, steps=1)
    assert set(map(tuple, found["seconds"][2].values())) == {(1.0, 3.0, 4.0)} and found["launcher"] == "horovodrun"
    assert "in 1 of 4 rounds, which are left out" in capsys.readouterr().out


def test_a_batch_whose_rate_is_too_high_ends_worse_than_guessing():
    """Notebook 22 says why batch 512 by the linear rule lies at or below 0.1."""
    diverged, fine = (trials.train(512, rate, epochs=10) for rate in (3.2, 0.4))
    assert diverged["test"] < 0.2 < 0.5 < fine["test"] and fine["loss"] < np.log(10) < 0.2 * diverged["loss"]


def test_the_prediction_is_a_share_of_the_computing_and_an_exchange():
    seconds = steps.predicted(ALONE, LINK, 2)
    assert 0.034 < seconds[64] < 0.045 and 0.003 < seconds[2] < 0.008
    assert steps.predicted(ALONE, LINK | {"latency": {"value": 1e-2, "unit": "s"}}, 2)[2] > 0.02


def test_a_network_whose_steps_do_not_grow_with_the_batch_is_left_out(capsys):
    busy = {kind: [0.01 - int(kind.split()[1]) / 1e4] * 3 for kind in ALONE["seconds"][2]}
    noisy = ALONE | {"seconds": ALONE["seconds"] | {2: busy}}
    seconds = steps.predicted(noisy, LINK, 2)
    assert 2 not in seconds and 64 in seconds and "Nothing is predicted for 2 filters" in capsys.readouterr().out
    assert "at 2 filters" not in pictures.pays(noisy, [FOUND], {2: seconds}).alt.partition("predicted by")[2]
    assert "predicted by" not in pictures.pays(noisy, [FOUND], {2: {}}).alt


def test_programs_on_ranks_give_what_the_notebook_takes(needs_horovod, tmp_path, monkeypatch):
    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    found = steps.measure(2, [2], rounds=2, steps=2, launcher="mpiexec", show=False)
    assert list(found["seconds"][2]) == ["alone 32", "alone 16", "together", "exchange"]
    assert all(len(rounds) == 2 and min(rounds) > 0 for rounds in found["seconds"][2].values())
    assert found["tensor_bytes"][2] == [216, 8, 288, 16, 1152, 32, 320, 40]
    assert steps.named(found) == "2 ranks over MPI" + ", oversubscribed" * found["oversubscribed"]
    assert len(found["others"]) == 2


# Tables


def test_the_table_of_local_sgd_pairs_the_repeats_of_each_k(tmp_path, capsys):
    rest = '"means": 1, "accuracy": 0.9, "identical": true}'
    lines = [
        f'rank 0: {{"k": {k}, "step_seconds": {s}, {rest}' for k, s in ((1, 0.02), (4, 0.01), (1, 0.05), (4, 0.02))
    ]
    (tmp_path / "log").write_text("\n".join(["Rank 0 of 2", *lines]))
    gains = compared.by_k(tmp_path / "log")
    assert list(gains) == [4] and gains[4].value == pytest.approx((2 * 2.5) ** 0.5)
    assert "2.24 [" in capsys.readouterr().out
    (tmp_path / "log").write_text("it failed")
    assert compared.by_k(tmp_path / "log") == {}


def test_an_accuracy_that_all_seeds_have_gets_no_interval(capsys):
    run = {"seconds": 1.0, "steps": 20, "loss": 0.5}
    best = compared.by_batch({8: [run | {"test": 0.978}] * 3, 32: [run | {"test": t} for t in (0.9, 0.92, 0.94)]})
    shown = capsys.readouterr().out
    assert best == 8 and "0.978 (the same with all seeds)" in shown and "0.920 [0." in shown and "640" in shown


def test_outcomes_of_these_notebooks_are_shown_with_their_intervals(monkeypatch, capsys):
    row = {"notebook": "09_why", "title": "ratio", "outcome": 1.9123, "interval": [0.7, 5.27]}
    other = row | {"notebook": "05_resnet50", "title": "elsewhere"}
    word = row | {"title": "word", "outcome": "lower", "interval": None}
    open_yet = row | {"title": "open yet", "outcome": None}
    monkeypatch.setattr(compared, "predictions", lambda: [other, row, word, open_yet])
    compared.outcomes("09_why", "09b_large")
    shown = capsys.readouterr().out
    assert "1.91 [0.7, 5.27]" in shown and "lower" in shown and "elsewhere" not in shown and "open yet" not in shown
    compared.outcomes("09b_large")
    assert "no outcomes yet" in capsys.readouterr().out


# Pictures

LATE = {"seconds": [0.02] * 5, "used": [5] * 4, "accuracy": 0.9}
BY = {
    "shuffled": {1: [0.97, 0.96, 0.97], 128: [0.96, 0.97, 0.95]},
    "sorted": {1: [0.9, 0.91, 0.9], 128: [0.6, 0.5, 0.7]},
}
ROWS = [
    {"batch": b, "rate": r, "steps": s}
    for b, r, s in ((2, 0.1, [340, 350]), (128, 0.8, [30, 28]), (512, 1.6, [26, 27]))
]
PICTURES = {
    "pays": (lambda: pictures.pays(ALONE, [FOUND], {2: {2: 0.004, 64: 0.04}}), "measured and predicted", ["1.48"]),
    "step_parts": (
        lambda: pictures.step_parts([FOUND, FOUR]),
        "measured",
        [
            "64 filters on 2 ranks over MPI: start of operations 20% (",
            "64 filters on 4 ranks over Gloo, oversubscribed",
        ],
    ),
    "too noisy": (
        lambda: pictures.step_parts([NOISY]),
        "measured",
        [
            "64 filters on 2 ranks over MPI: too noisy to tell 'sharing the machine'",
            "2 filters on 2 ranks over MPI: st",
        ],
    ),
    "accuracy_by": (
        lambda: pictures.accuracy_by(BY, xlabel="k", title="local SGD", note=pictures.ONE_PROCESS),
        "simulated",
        ["sorted: 0.903", "0.600", "3 seeds"],
    ),
    "critical": (lambda: pictures.critical(ROWS, (27.0, 24.0)), "measured", ["345", "B_crit 24 images", "1.6 at 512"]),
    "no fit": (lambda: pictures.critical(ROWS, None), "measured", ["345"]),
    "noise": (
        lambda: pictures.noise([25, 75], [1.2, 0.1], [[80, 90, 70], [300, -1, 400]], 24),
        "simulated",
        ["from 1.2 to 0.1", "80 (", "350 (", "Critical batch of the fit: 24"],
    ),
    "schedule": (
        lambda: pictures.schedule({"one": [("rate 1", 0, 8), ("rate 2", 8, 16)], "two": [("rate 1", 0, 9)]}),
        "measured",
        ["rate 2 from 8.0 to 16.0 s"],
    ),
    "stopping": (
        lambda: pictures.stopping({"all": [(0.97, 729)] * 3, "a third": [(0.96, 81)] * 3}),
        "measured",
        ["81 epochs"],
    ),
    "stopping apart": (
        lambda: pictures.stopping({"a third": [(0.96, 21)] * 3, "3 rates": [(0.95, 27)] * 3}),
        "measured",
        ["21 epochs", "27 epochs"],
    ),
    "late": (lambda: pictures.late({"barrier": LATE, "left out": LATE}), "measured", ["20 ms", "accuracy 0.900"]),
}


@pytest.mark.parametrize("name", PICTURES)
def test_picture_of_why_scaling_fails_has_its_stamp_and_numbers_in_words(name):
    draw, kind, words = PICTURES[name]
    figure = draw()
    assert figure.get_supxlabel().partition(":")[0] == kind
    assert [word for word in words if word not in figure.alt] == [], figure.alt
    assert png(figure).startswith(b"\x89PNG") and figure.axes[-1].get_xlabel()
    assert hidden(figure) == [], "a legend lies over it"
    ticks = [text.get_text() for axis in figure.axes for text in (*axis.get_xticklabels(), *axis.get_yticklabels())]
    assert not [text for text in ticks if re.search(r"\de[+-]?\d", text)], "numbers as students write them"


def test_searches_stand_beside_each_other_only_if_they_cost_the_same():
    def places(**epochs):
        (axis,) = pictures.stopping({name: [(0.9, count), (0.95, count)] for name, count in epochs.items()}).axes
        return [float(bars.lines[0].get_xdata()[0]) for bars in axis.containers]

    assert places(all=81, third=21, three=27) == [81, 21, 27]
    whole, third, three = places(all=729, third=81, three=81)
    assert whole == 729 and third < 81 < three


def test_a_picture_without_bars_has_no_legend_of_their_parts():
    noisy = NOISY | {"seconds": {64: NOISY["seconds"][64]}}
    assert pictures.step_parts([NOISY]).axes[-1].get_legend() and not pictures.step_parts([noisy]).axes[-1].get_legend()
