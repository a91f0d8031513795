"""The verdict on two efficiencies: against labs.results.intervals, its three answers, rounding, what it promises."""

import math

import numpy as np
import pytest
from epochs import numbered
from made_runs import run
from scipy.stats import t

from labs import recorded
from labs.errors import UseError
from labs.results import intervals, verdict
from labs.results.run import Epoch, load_record
from lessons.two_networks import logs

USUAL, TINY = (0.99, 1.0, 1.01), (0.9999, 1.0, 1.0001)
EQUAL = (13.0, 13.0 * 4.4 / 8.0)
SLIGHT = (13.0, 1.02 * 13.0 * 4.4 / 8.0)


def of(model, workers, times, images=512, apart=False):
    """A run whose epochs took turns with those of others, in a round for each of its times; or so many repeats."""
    how = {"times": [(9.0, seconds) for seconds in times]} if apart else {"rounds": times, "study": model}
    return run(workers, model=model, images=images, **how)


def study(small=(8.0, 4.4), large=(13.0, 7.6), noise=USUAL, apart=""):
    """Two networks on 1 and 2 workers. noise: of the rounds of those on 2; apart: names of those without turns."""
    return [
        of(name, k, [s * n for n in (noise if k > 1 else [1.0] * len(noise))], apart=name in apart)
        for name, pair in (("A", small), ("B", large))
        for k, s in enumerate(pair, 1)
    ]


@pytest.mark.parametrize("repeats", [2, 3, 7])
def test_four_samples_by_hand(repeats):
    random = np.random.default_rng(0)
    samples = [list(s * np.exp(random.normal(0, 0.05, repeats))) for s in (8.0, 4.4, 13.0, 7.0)]
    logs, signs, means = np.log(samples), np.array([1, 1, -1, -1]), np.mean(samples, 1)
    squares = np.var(logs, 1, ddof=1) / repeats
    error, centre = math.sqrt(sum(squares)), signs @ np.mean(logs, 1)
    degrees = error**4 / sum(squares**2 / (repeats - 1))
    reach = t.ppf(0.975, degrees) * error
    a, b, c, d = map(intervals.mean, samples)
    found = intervals.ratio(intervals.ratio(a, c), intervals.ratio(d, b))
    assert found.interval == pytest.approx((math.exp(centre - reach), math.exp(centre + reach)))
    assert found.value == pytest.approx(np.prod(means**signs))
    sure = reach + t.ppf(0.8, degrees) * error
    assert verdict.power(found) == pytest.approx((math.expm1(reach), math.expm1(sure)))


def test_no_needs_an_interval_around_1_within_what_does_not_matter():
    for interval, matters, answer in (
        (None, 0.05, verdict.OPEN),
        ((0.998, 0.999), 0.05, verdict.YES),
        ((0.99, 1.01), 0.05, verdict.NO),
        ((0.99, 1.01), 0.005, verdict.OPEN),
        ((0.6, 1.01), 0.05, verdict.OPEN),  # it reaches far to one side
        ((0.99, 1.6), 0.05, verdict.OPEN),
    ):
        assert verdict.decide(interval, matters) == answer


WARMING = [1 + 0.2 * math.exp(-n / 2) for n in range(6)]


def test_the_answer_and_why():
    for large, noise, options, said, words in (
        ((13.0, 8.6), USUAL, {}, "yes", "yes: B has the lower efficiency. Efficiency of B / A: 0.831 ["),
        ((13.0, 6.6), USUAL, {}, "yes", "yes: B has the higher efficiency"),
        (SLIGHT, TINY, {}, "yes", "by less than what matters"),
        (EQUAL, (0.999, 1.0, 1.001), {}, "no", "no: the efficiencies differ by less than 5%"),
        (EQUAL, (0.999, 1.0, 1.001), {"matters": 0.0005}, "can't tell", "the interval contains 1"),
        (EQUAL, (0.9, 1.0, 1.1), {}, "can't tell", "would have counted as real; a true difference of"),
        ((13.0, 7.6), (0.5, 1.0, 2.0), {}, "can't tell", "not even a factor of 2"),
        ((13.0, 7.6), (1.0,), {}, "can't tell", "measure 3 rounds"),
        ((13.0, 8.6), WARMING, {}, "can't tell (still changing)", "train longer"),
    ):
        runs = [
            each.model_copy(update={"oversubscribed": each.workers == 2}) for each in study(large=large, noise=noise)
        ]
        found = verdict.compare(runs, "B", "A", **options)
        assert found.said == said and str(found).startswith(said) and words in str(found)
        assert "oversubscribed" in str(found)
        third = of("C", 2, [9.0] * len(noise)).model_copy(update={"oversubscribed": True})
        assert "oversubscribed" not in str(verdict.compare([*study(noise=noise), third], "B", "A", **options))
        assert found.ratio == pytest.approx((large[0] / large[1]) / (8.0 / 4.4), rel=1e-3)
        assert (found.interval is None) == (len(noise) == 1) and (found.smallest is None) == (len(noise) == 1)
        other = verdict.compare(study(large=large, noise=noise), "A", "B", **options)  # the other way round
        assert found.ratio == pytest.approx(1 / other.ratio) and found.smallest == pytest.approx(other.smallest)
        if found.interval:
            assert found.interval == pytest.approx((1 / other.interval[1], 1 / other.interval[0]))
            assert found.reliable > found.smallest


def test_a_speedup_that_still_changes_is_seen_in_either_network():
    runs = [*study(noise=2 * TINY)[:3], of("B", 2, [7.6 * n for n in WARMING])]
    for pair in ("AB", "BA"):
        assert verdict.compare(runs, *pair).said == "can't tell (still changing)"


@pytest.mark.parametrize("apart", ["AB", "A"])
def test_runs_that_did_not_take_turns_are_told_nothing(apart):
    """Whatever their times say: with a linear drift of the machine, "yes" would be wrong in half of such studies."""
    for large in ((13.0, 8.6), EQUAL):
        found = verdict.compare(study(large=large, noise=TINY, apart=apart), "B", "A")
        assert (found.answer, found.said) == ("can't tell", "can't tell (not in turns)") and found.interval is None
        assert found.ratio == pytest.approx((large[0] / large[1]) / (8.0 / 4.4), rel=1e-3)
        assert str(found).startswith("can't tell (not in turns): efficiency of B / A is") and "labs study" in str(found)


def test_the_efficiency_is_one_of_images_a_second_and_not_of_times():
    runs, whole = study(), verdict.compare(study(), "B", "A")
    less = verdict.compare([*runs[:3], of("B", 2, [7.6 * n for n in USUAL], images=480)], "B", "A")
    assert (less.ratio, less.interval[0]) == pytest.approx((whole.ratio * 480 / 512, whole.interval[0] * 480 / 512))


def test_rounding_at_face_value_and_counted():
    def rounded(noise):
        runs = study(large=(13.2, 7.4), noise=noise)
        return [verdict.compare([logs.rounded(r, counted=c) for r in runs], "B", "A") for c in (False, True)]

    naive, counted = rounded(USUAL)
    assert naive.answer == verdict.YES and naive.interval[1] - naive.interval[0] < 1e-9  # no spread is left, wrongly
    assert counted.answer == verdict.OPEN and naive.ratio == pytest.approx(counted.ratio) and not counted.notes
    worst = math.prod((n + 0.5) / (n - 0.5) for n in (8, 4, 13, 7))
    assert worst <= counted.interval[1] / counted.interval[0] < 1.1 * worst  # to one side it is a little more


def test_what_cannot_be_compared():
    first, second, third, last = runs = study()
    single, zero = [Epoch(seconds=9.0, images=512)], [Epoch(seconds=s, images=512) for s in (9.0, 0.0)]
    for given, says in (
        (runs[:3], "no run of B on 2 workers, only A on 1"),
        ([], "no run of B on 2 workers, only none"),
        ([first, second, last], "no 1-worker run"),
        ([*runs, last.model_copy(update={"study": "b"})], "B on 2 workers was measured more than once.*Pass the"),
        ([first, second, third, run(2, model="B", study="B", epochs=numbered(single))], "warm-up"),
        ([first, second, third, run(2, model="B", study="B", epochs=numbered(zero))], "rounded to 0 s"),
        ([first, second, third, of("B", 2, [7.6] * 3, images=None)], "the images in the data set are not known"),
    ):
        with pytest.raises(UseError, match=says):
            verdict.compare(given, "B", "A")


def test_the_ratio_is_the_one_that_the_notebook_teaches():
    """Without round 3 of ResNet152V2, in which other programs took half of the cores."""
    runs, means = [load_record(file) for file in recorded.laptop_two_networks()], {}
    runs[0].repeats[0][3].others = 0.5
    rounds = {(run.model, run.workers): run.rounds for run in runs}
    for name, left_out in (("ResNet50V2", None), ("ResNet152V2", 3)):
        one, two = rounds[name, 1], rounds[name, 2]
        means[name] = np.mean([math.log(one[n] / two[n]) for n in one if n != left_out])
    found = verdict.compare(runs, "ResNet152V2", "ResNet50V2")
    assert found.ratio == pytest.approx(math.exp(means["ResNet152V2"] - means["ResNet50V2"]), rel=1e-12)
    assert any("ResNet152V2: other programs took over 20% of the cores" in note for note in found.notes)
