"""The verdict on two efficiencies: against labs.results.intervals, its coverage, its three answers, rounding."""

import math

import numpy as np
import pytest
from scipy.stats import t

from labs import recorded
from labs.results import intervals, verdict
from labs.results.metrics import MetricsError
from labs.results.record import Configuration
from labs.results.run import Epoch, Run, load
from lessons.two_networks import logs


def run(model, workers, times, strategy="mirrored", images=512, resolution=0.0):
    """A run whose epochs took turns with those of others, in a round for each of its times."""
    epochs = [Epoch(t, resolution, images, round=number) for number, t in enumerate(times, 1)]
    repeats = [[Epoch(9.0, resolution, images), *epochs]]
    return Run(
        "x.json",
        kind="measured",
        configuration=Configuration(
            model=model,
            strategy=strategy,
            workers=workers,
            global_batch=64 * workers,
            local_batch=64,
            dataset="digits",
            image_size=32,
            precision="float32",
        ),
        steps=images // (64 * workers),
        machine={"cpu": "core"},
        oversubscribed=False,
        study=model,
        repeats=repeats,
    )


def but(run, repeats=None, **fields):
    """The run with other values of some fields."""
    if repeats is not None:
        fields["epochs"] = Run(repeats=repeats).epochs
    return run.model_copy(update=fields)


def study(small=(8.0, 4.4), large=(13.0, 7.6), noise=(0.99, 1.0, 1.01), images=512):
    """Two networks on 1 and 2 workers; noise: of the rounds of those on 2."""
    configurations = [("A", 1, small[0]), ("A", 2, small[1]), ("B", 1, large[0]), ("B", 2, large[1])]
    return [
        run(name, workers, [t * n if workers > 1 else t for n in noise], images=images)
        for name, workers, t in configurations
    ]


def test_images_that_are_left_over_on_some_numbers_of_workers_make_no_difference():
    """Of 500 images, 1 worker trains on 448 and 2 on 384: per image, both networks scale alike."""
    noise = (0.99, 1.0, 1.01)
    runs = [run(name, 1, [of * n for n in noise], images=448) for name, of in (("A", 4.48), ("B", 8.96))]
    runs += [run(name, 2, [of for _ in noise], images=384) for name, of in (("A", 1.92), ("B", 3.84))]
    found = verdict.compare(runs, "A", "B")
    assert found.ratio == pytest.approx(1) and found.answer != verdict.YES


def apart(runs):
    """The same runs, as if they had been measured one after the other."""
    for one in runs:
        warm, *epochs = one.repeats[0]
        epochs = [e.model_copy(update={"round": None}) for e in epochs]
        yield but(one, study=None, repeats=[[warm, epoch] for epoch in epochs])


def test_four_samples_by_hand():
    samples = [[8.0, 8.2, 8.1], [4.4, 4.3, 4.5], [13.0, 13.3, 12.9], [7.0, 7.2, 7.3]]
    logs = [np.log(s) for s in samples]
    error = math.sqrt(sum(np.var(x, ddof=1) / 3 for x in logs))
    degrees = error**4 / sum((np.var(x, ddof=1) / 3) ** 2 / 2 for x in logs)
    centre = sum(sign * np.mean(x) for sign, x in zip((1, 1, -1, -1), logs, strict=True))
    found = intervals.product(samples[:2], samples[2:])
    means = [np.mean(sample) for sample in samples]
    reach = t.ppf(0.975, degrees) * error
    assert found.interval == pytest.approx((math.exp(centre - reach), math.exp(centre + reach)))
    assert found.value == pytest.approx(means[0] * means[1] / means[2] / means[3])
    smallest, reliable = verdict.power(found)
    assert smallest == pytest.approx(math.expm1(reach))
    assert reliable == pytest.approx(math.expm1(reach + t.ppf(0.8, degrees) * error))


@pytest.mark.parametrize("repeats", [3, 5, 10])
def test_the_interval_covers_the_truth(repeats):
    random, held, count = np.random.default_rng(repeats), 0, 2000
    for _ in range(count):
        samples = [list(t * np.exp(random.normal(0, 0.03, repeats))) for t in (8.0, 7.6, 13.0, 4.4)]
        low, high = intervals.product(samples[:2], samples[2:]).interval
        held += low <= 8.0 * 7.6 / 13.0 / 4.4 <= high
    assert 0.935 <= held / count <= 0.985, held / count


def test_what_reliable_promises():
    """A true difference of `reliable` is called real in about 4 of 5 studies, one of `smallest` in about half."""
    random = np.random.default_rng(0)

    def study_of(shift):
        a, b, c, d = np.exp(random.normal(0, 0.02, (4, 10)))
        return intervals.product([list(shift * a), list(b)], [list(c), list(d)])

    def studies(shift, count=600):
        return [study_of(shift) for _ in range(count)]

    plain = studies(1.0)
    smallest, reliable = np.exp(np.log1p([verdict.power(s) for s in plain]).mean(axis=0))
    found = [
        np.mean([verdict.decide(s.interval, 0) == verdict.YES for s in studies(shift)])
        for shift in (smallest, reliable)
    ]
    assert 0.42 < found[0] < 0.6 and 0.72 < found[1] < 0.88, found


def test_yes_the_efficiencies_differ():
    found = verdict.compare(study(large=(13.0, 8.6)), "B", "A")
    assert found.answer == verdict.YES and found.interval[1] < 1
    assert found.ratio == pytest.approx((13.0 / 8.6) / (8.0 / 4.4))
    assert str(found).startswith("yes: B has the lower efficiency") and found.answer == "yes"


def test_the_other_way_round_is_the_inverse():
    one, other = (verdict.compare(study(), *names) for names in (("A", "B"), ("B", "A")))
    assert one.ratio == pytest.approx(1 / other.ratio)
    assert one.interval == pytest.approx((1 / other.interval[1], 1 / other.interval[0]))
    assert one.smallest == pytest.approx(other.smallest)


def test_no_needs_a_narrow_interval_around_1():
    equal = study(large=(13.0, 13.0 * 4.4 / 8.0), noise=(0.999, 1.0, 1.001))
    assert verdict.compare(equal, "B", "A").answer == verdict.NO
    assert verdict.compare(equal, "B", "A", matters=0.0005).answer == verdict.OPEN
    noisy = study(large=(13.0, 13.0 * 4.4 / 8.0), noise=(0.9, 1.0, 1.1))
    found = verdict.compare(noisy, "B", "A")
    assert found.answer == verdict.OPEN and found.smallest > 0.05 and found.reliable > found.smallest
    assert str(found).startswith("can't tell")


def test_an_interval_that_reaches_far_to_one_side_is_no_evidence_of_no_difference():
    for interval in ((0.6, 1.01), (0.99, 1.6)):
        assert verdict.decide(interval) == verdict.OPEN, interval
    assert verdict.decide((0.99, 1.01)) == verdict.NO


def test_real_but_small_is_said():
    found = verdict.compare(study(large=(13.0, 1.02 * 13.0 * 4.4 / 8.0), noise=(0.9999, 1.0, 1.0001)), "B", "A")
    assert found.answer == verdict.YES and "less than what matters" in str(found)


def test_a_huge_spread_is_said_in_words():
    told = str(verdict.compare(study(noise=(0.5, 1.0, 2.0)), "B", "A"))
    assert "not even a factor of 2" in told and "%" not in told.split("Efficiency")[1]


def test_one_repeat_cannot_tell():
    found = verdict.compare(study(noise=(1.0,)), "B", "A")
    assert found.answer == verdict.OPEN and found.interval is None and "measure 3 rounds" in str(found)


@pytest.mark.parametrize("which", [(0, 1, 2, 3), (0, 1)])
def test_runs_that_did_not_take_turns_are_told_nothing(which):
    """Whatever their times say: with a linear drift of the machine, "yes" would be wrong in half of such studies."""
    for large in ((13.0, 8.6), (13.0, 13.0 * 4.4 / 8.0)):
        runs = study(large=large, noise=(0.9999, 1.0, 1.0001))
        assert verdict.compare(runs, "B", "A").answer != verdict.OPEN
        loose = [one if n not in which else next(apart([one])) for n, one in enumerate(runs)]
        found = verdict.compare(loose, "B", "A")
        assert (found.answer, found.said) == ("can't tell", "can't tell (not in turns)") and found.interval is None
        assert found.ratio == pytest.approx((large[0] / large[1]) / (8.0 / 4.4), rel=1e-3)
        assert str(found).startswith("can't tell (not in turns): efficiency of B / A is") and "labs study" in str(found)


def test_a_ratio_that_still_changes_is_told_nothing():
    warming = [1 + 0.2 * math.exp(-n / 2) for n in range(6)]
    found = verdict.compare(study(large=(13.0, 8.6), noise=warming), "B", "A")
    assert (found.answer, found.said) == (verdict.OPEN, "can't tell (still changing)")
    assert "train longer" in str(found) and found.interval
    assert verdict.compare(study(large=(13.0, 8.6), noise=warming[:3]), "B", "A").why is None  # too few to see it


def test_no_difference_below_that_of_one_configuration_from_itself_is_believed():
    runs = study(large=(13.0, 1.02 * 13.0 * 4.4 / 8.0), noise=(0.9999, 1.0, 1.0001))
    assert verdict.compare(runs, "B", "A", floor=0.019).answer == verdict.YES
    found = verdict.compare(runs, "B", "A", floor=0.021)
    assert found.answer == verdict.OPEN and "below 2.1%, by which one configuration differed from itself" in str(found)
    same = study(large=(13.0, 13.0 * 4.4 / 8.0), noise=(0.9999, 1.0, 1.0001))
    assert verdict.compare(same, "B", "A", floor=0.021).answer == verdict.NO  # nothing to disbelieve


def test_dropped_images_count():
    """480 of 512 images in an epoch of 2 workers: the efficiency is one of images/s, not of epoch times."""
    runs = study()
    short = [[but(e, images=480) for e in repeat] for repeat in runs[3].repeats]
    less = verdict.compare([*runs[:3], but(runs[3], repeats=short)], "B", "A")
    whole = verdict.compare(runs, "B", "A")
    assert less.ratio == pytest.approx(whole.ratio * 480 / 512)
    assert less.interval[0] == pytest.approx(whole.interval[0] * 480 / 512)


def test_rounding_at_face_value_and_counted():
    runs = study(large=(13.2, 7.4))
    told = [logs.rounded(r) for r in runs]
    assert [r.repeats[0][1].seconds for r in told] == [8.0, 4.0, 13.0, 7.0]
    assert [r.repeats[0][1].resolution for r in told] == [1.0] * 4
    naive = verdict.compare([logs.rounded(r, counted=False) for r in runs], "B", "A")
    counted = verdict.compare(told, "B", "A")
    assert naive.answer == verdict.YES and naive.interval[1] - naive.interval[0] < 1e-9  # no spread is left, wrongly
    assert counted.answer == verdict.OPEN and counted.interval[0] < naive.ratio < counted.interval[1]
    worst = [(n + 0.5) / (n - 0.5) for n in (8, 4, 13, 7)]
    widened = counted.interval[1] / counted.interval[0]
    assert math.prod(worst) <= widened < 1.1 * math.prod(worst)


CONFIGURATIONS = [("A", 1, 8.0), ("A", 2, 4.4), ("B", 1, 13.2), ("B", 2, 7.4)]


def test_rounding_is_counted_where_runs_took_turns_too():
    runs = [run(name, k, [t * n for n in (0.9, 1.0, 1.1)]) for name, k, t in CONFIGURATIONS]
    exact = verdict.compare(runs, "B", "A")
    naive, counted = (verdict.compare([logs.rounded(r, counted=c) for r in runs], "B", "A") for c in (False, True))
    assert not counted.notes and exact.interval[1] - exact.interval[0] < 1e-9  # the rounds' own noise cancels
    assert naive.ratio == pytest.approx(counted.ratio)
    worst = math.prod((n + 0.5) / (n - 0.5) for n in (8, 4.33, 13, 7.33))
    widened = counted.interval[1] / counted.interval[0] / (naive.interval[1] / naive.interval[0])
    assert worst < widened < 1.1 * worst  # half a second of a mean; to one side it is a little more


def test_what_cannot_be_compared():
    runs = study()
    with pytest.raises(MetricsError, match="no run of B on 2 workers, only A on 1"):
        verdict.compare(runs[:3], "B", "A")
    with pytest.raises(MetricsError, match="no 1-worker run"):
        verdict.compare([runs[0], runs[1], runs[3]], "B", "A")
    with pytest.raises(MetricsError, match="B on 2 workers was measured more than once.*Pass the runs of one"):
        verdict.compare([*runs, but(runs[3], study="of another day")], "B", "A")
    with pytest.raises(MetricsError, match="warm-up"):
        verdict.compare([*runs[:3], but(runs[3], repeats=[[Epoch(9.0, 0.0, 512)]])], "B", "A")
    zero = [[Epoch(9.0, 0.0, 512), Epoch(0.0, 0.0, 512)]]
    with pytest.raises(MetricsError, match="rounded to 0 s"):
        verdict.compare([*runs[:3], but(runs[3], repeats=zero)], "B", "A")


def test_a_shared_machine_is_told():
    runs = [but(r, oversubscribed=r.workers == 2) for r in study()]
    assert "oversubscribed" in str(verdict.compare(runs, "B", "A"))


def test_the_ratio_is_the_one_that_the_notebook_teaches():
    runs = [load(file) for file in recorded.laptop_two_networks()]
    rounds = {(run.model, run.workers): run.rounds for run in runs}
    runs[0].repeats[0][3].others = 0.5  # in round 3 of ResNet152V2, other programs took half of the cores
    d = {
        name: [math.log(rounds[name, 1][n] / rounds[name, 2][n]) for n in rounds[name, 1] if (name, n) != left]
        for name, left in (("ResNet50V2", None), ("ResNet152V2", ("ResNet152V2", 3)))
    }
    means = {name: sum(values) / len(values) for name, values in d.items()}
    found = verdict.compare(runs, "ResNet152V2", "ResNet50V2")
    assert found.ratio == pytest.approx(math.exp(means["ResNet152V2"] - means["ResNet50V2"]), rel=1e-12)
    assert math.log(found.ratio) == pytest.approx(sum(map(math.log, found.interval)) / 2)
