"""Judges of 23_large_batches."""

import inspect
import threading
import time
from collections.abc import Collection, Mapping

import numpy as np

from labs.checks import student_code
from labs.checks.judging import judges
from labs.checks.reading import PER_CENT, called, near
from labs.printed import an, several
from labs.results import intervals
from lessons.asked import ROUNDED, rounded, told


@judges("batches.2")
def updates(function):
    cases = ((1280, 8, 10), (1280, 512, 10), (100, 30, 4), (170, 60, 3))
    got = [float(function(*case)) for case in cases]

    def are(formula):
        return np.allclose(got, [formula(*case) for case in cases])

    yield are(lambda n, b, e: n // b * e), None
    yield are(lambda n, b, e: n // b), "This is the number of updates in one epoch."
    yield are(lambda n, b, e: n * e), "This is the number of images in all epochs. How many of them are in one update?"
    yield are(lambda n, b, e: -(-n // b) * e), "This counts a last batch that is not full. Here it must be left out."
    yield (
        are(lambda n, b, e: n * e // b),
        "At the end of *each* epoch, the images that do not fill a batch are left out.",
    )
    yield (
        are(lambda n, b, e: (n // b + 1) * e),
        "This gives one update too many per epoch, even if no images are left over.",
    )
    yield (
        are(lambda n, b, e: round(n / b) * e),
        "This rounds to the nearest number, so it also counts a batch that is more than half full.",
    )
    yield (
        are(lambda n, b, e: n // b * b * e),
        "This is the number of images that are read. How many updates are made with them?",
    )
    yield (
        are(lambda n, b, e: n // (b * e)),
        "Here you divide by the number of epochs. Does a longer run make fewer updates?",
    )
    yield are(lambda n, b, e: n * e / b), "An update takes a whole batch. This gives fractions of updates."
    yield are(lambda n, b, e: b // n * e), "This is upside down: divide the images of an epoch by those of a batch."
    yield True, "Multiply the number of whole batches in an epoch by the number of epochs."


@judges("batches.5")
def fit(function):
    batches = [2, 8, 32, 128, 512, 1280]
    rows = ((20.372, 40.813), (50.427, 6.194))
    asked = [[least * (1 + size / batch) for batch in batches] for least, size in rows]
    given = []
    for steps in asked:
        value, changed = called(function, list(batches), steps)
        yield changed is not None, str(changed)
        yield value is not None and np.shape(value) != (2,), "Return two numbers: S_min and B_crit."
        given.append(tuple(float(number) for number in value))

    def are(formula):
        return np.allclose(given, [formula(*row) for row in rows], rtol=1e-3)

    yield not are(lambda *row: row) and rounded(given, rows), ROUNDED
    yield are(lambda least, size: (size, least)), "The two numbers are in the wrong order: first S_min, then B_crit."
    yield (
        are(lambda least, size: (least, least * size)),
        "The second number is the slope against 1 / B, which is S_min times B_crit.",
    )
    yield are(lambda least, size: (least, 1 / size)), "The second number is upside down. How many images is it?"
    yield are(lambda least, size: (least, -size)), "The second number has the wrong sign."
    yield (
        are(lambda least, size: (least * size, 1 / size)) or are(lambda least, size: (least * size, least)),
        "The first number is the slope against 1 / B. Does your fit return the slope or the value at 0 first?",
    )
    if not are(lambda *row: row):
        for degree, weights in ((1, np.ones_like), (-1, np.ones_like), (1, np.reciprocal), (-1, np.reciprocal)):
            lines = [np.polyfit(batches, steps, 1, w=weights(np.array(steps)))[::degree] for steps in asked]
            straight = np.allclose(given, lines, rtol=1e-3) or np.allclose(
                [v[0] for v in given], [v[-1] for v in lines]
            )
            yield straight, "You plot S against B. Against which quantity is S a straight line?"
        powers = [np.polyfit(np.log(batches), np.log(steps), 1) for steps in asked]
        power = np.allclose([value[0] for value in given], [np.exp(v[1]) for v in powers], rtol=1e-3)
        yield (
            power,
            "This fits a power of B, a straight line in logarithms. Such a curve falls towards 0: it has no S_min.",
        )
        smallest = np.allclose([value[0] for value in given], [min(steps) for steps in asked], rtol=1e-3)
        yield (
            smallest,
            "The first number is the smallest measured number of steps. S_min is below it: what is the value of your "
            "line at 1 / B = 0?",
        )
        yield (
            True,
            "For numbers of steps exactly on such a curve, your function does not return the curve's parameters.",
        )
    exact = np.array(asked[0])
    influence = []  # of 1 % more steps at each batch, as shares of S_min and of B_crit
    for place in range(len(batches)):
        value, _ = called(function, list(batches), list(exact * (1 + 0.01 * (np.arange(len(batches)) == place))))
        moved = np.array([float(number) for number in value]) / given[0] - 1
        influence.append(moved)

    def weighted(weights):
        """The same for a line over 1 / B with these weights."""
        for place in range(len(batches)):
            steps = exact * (1 + 0.01 * (np.arange(len(batches)) == place))
            slope, least = np.polyfit(1 / np.array(batches), steps, 1, w=weights(steps))
            yield np.array([least, slope / least]) / rows[0] - 1

    def weighs(weights):
        return np.allclose(influence, list(weighted(weights)), atol=5e-4)

    yield weighs(lambda steps: 1 / steps), None
    yield (
        weighs(lambda steps: 1 / np.array(batches)),
        "This is right for exact numbers of steps, but your weights are not 1 / steps: large batches hardly count.",
    )
    for batch, moved in zip(batches, influence, strict=True):
        alike = np.allclose(moved, 0, atol=1e-6)
        yield alike, f"This is right for exact numbers of steps, but it ignores batch size {batch}: fit all of them."
    yield (
        weighs(np.ones_like),
        "This is right for exact numbers of steps. But large measured numbers scatter more: without weights, the many "
        "steps at the smallest batch size decide the fit almost alone. Which weights make all of them count equally?",
    )
    yield (
        weighs(lambda steps: steps),
        "This is right for exact numbers of steps, but the largest numbers count most: are your weights upside down?",
    )
    yield (
        weighs(lambda steps: 1 / steps**2),
        "This is right for exact numbers of steps, but small numbers count too much. Do not square `w`: `np.polyfit` "
        "multiplies each deviation by it.",
    )
    yield (
        True,
        "This is right for exact numbers of steps, but your weights are not those in the text: 1 % more steps at one "
        "batch size does not change your parameters by as much.",
    )


@judges("batches.6")
def at_critical(steps, examples):
    got = float(steps), float(examples)
    yield got == (2, 2), None
    yield got[0] == 1, "This is right for an infinite batch. Put B = B_crit into S = S_min (1 + B_crit / B)."
    yield got[0] != 2, "Put B = B_crit into S = S_min (1 + B_crit / B). What is the value in brackets?"
    yield got[1] == 1, "The first number is right. Only the smallest batches need so few images."
    yield got[1] == 4, "The first number is right. The images are S x B = S_min (B + B_crit). Where are they fewest?"
    yield (
        True,
        "The first number is right. The images are S x B: divide their number at B_crit by that where B is near 0.",
    )


@judges("batches.13")
def noise_scale(function):
    cases = ((2.0, 30.0, 5, 4), (0.5, 100.0, 16, 8), (3.0, 10.0, 1, 2))  # |G|^2, trace, local batch, workers
    asked = [(g + t / b, g + t / (b * k), b, k) for g, t, b, k in cases]
    got = [float(function(*arguments)) for arguments in asked]

    def are(formula):
        return np.allclose(got, [formula(*arguments) for arguments in asked], rtol=1e-4)

    def signal(s, m, b, k):
        return (k * m - s) / (k - 1)

    def trace(s, m, b, k):
        return (s - m) / (1 / b - 1 / (b * k))

    if are(lambda *a: trace(*a) / signal(*a)):
        yield from _of_windows(function, lambda *a: trace(*a) / signal(*a))
        yield True, None
    wanted = [trace(*arguments) / signal(*arguments) for arguments in asked]
    yield rounded(got, wanted), ROUNDED
    yield max(got) < 0, "This is below 0. Which of the two squares contains more noise, and so is larger?"
    yield (
        are(lambda *a: signal(*a) / trace(*a)),
        "This is upside down: divide the noise by the signal, which gives a number of images.",
    )
    yield (
        are(lambda s, m, b, k: trace(s, m, b, k) / m),
        "The square of the *mean* gradient still contains the noise of b K images: use both equations to remove it.",
    )
    yield (
        are(lambda s, m, b, k: trace(s, m, b, k) / s),
        "The squares of the local gradients contain the noise of b images: remove it with the two equations.",
    )
    yield are(trace), "This is the noise alone. Divide it by the square of the true gradient."
    yield are(signal), "This is the signal alone, the square of the true gradient. Divide the noise by it."
    yield (
        are(lambda s, m, b, k: (s - m) / (1 - 1 / k) / signal(s, m, b, k)),
        "This is the noise of a batch of b images. The noise of one image is b times as large.",
    )
    yield (
        are(lambda s, m, b, k: (s - m) / (1 / b - 1 / k) / ((k * m - b * s) / (k - b)) if k != b else np.nan),
        "The larger batch is not K: all workers together have b K images.",
    )
    yield (
        are(lambda s, m, b, k: (s - m) / signal(s, m, b, k)),
        "The difference of the squares is not yet the noise of one image. How much of this noise does each contain?",
    )
    yield (
        are(lambda s, m, b, k: (s - m) / (1 / b - 1 / k) / signal(s, m, b, k) if k != b else np.nan),
        "The larger batch is not K: all workers together have b K images.",
    )
    yield (
        any(are(lambda s, m, b, k: n(b, k) * (s - m) / m) for n in (lambda b, k: b, lambda b, k: 1)),  # noqa: B023
        "This assumes that the mean gradient has no noise. It has the noise of b K images: use both equations.",
    )
    yield (
        are(lambda *a: np.sqrt(trace(*a) / signal(*a))),
        "This is the square root. The formula already contains squares.",
    )
    yield (
        are(lambda s, m, b, k: s / m),
        "The ratio of the two squares is not a number of images. Solve the two equations.",
    )
    yield (
        True,
        "Write down both equations. Subtract one from the other to get the noise, then put it into one of them to get "
        "the signal.",
    )


def _of_windows(function, right):
    """Case of a function that is right for numbers, but not for the arrays that the notebook gives it."""
    rows = np.array([2.5, 4.0, 9.0]), np.array([1.5, 3.0, 6.0])
    with student_code.tried("arrays with one number for each of 3 windows of steps, as the cell below passes them"):
        found = np.asarray(function(*rows, 4, 2), float)
    yield (
        found.shape != (3,) or not np.allclose(found, right(*rows, 4, 2), rtol=1e-4),
        "This is right for numbers but not for arrays. The cell below passes an array, a number for each window.",
    )


IDLE = 4  # looks at each job that a search may take while a core is idle: it starts the next job within two rounds


class _Job:
    """Stands for a job: it runs until somebody has waited for it, or has looked at its state a few times.

    By the log's clock, each job lasts 1, but the second 1.5. So they end in the order in which they began, and a search
    that waits for a whole group leaves a core idle.
    """

    def __init__(self, log, rate):
        self._log, self.rate, self.going = log, rate, True
        self.name = f"rate_{rate}"
        with log["begun"]:
            second = len(log["jobs"]) == 1
            self.end, self._looks = log["clock"] + (1.5 if second else 1), 8 if second else 2
            self._idle = IDLE
            log["jobs"].append(self)
            log["most"] = max(log["most"], sum(job.going for job in log["jobs"]))
            log["begun"].notify_all()

    @property
    def state(self):
        self._looks -= 1
        if self.going and self._looks < 0:
            self._ends()
        going = sum(job.going for job in self._log["jobs"])
        if self.going and going < self._log["wanted"]:  # a core is idle meanwhile
            self._idle -= 1
            if self._idle < 0:
                self._log["waits"].append((going, len(self._log["jobs"])))
        return "running" if self.going else "finished"

    def wait(self, timeout=None, show=True):
        time.sleep(0.05)  # time for other threads, if the search has some, to start theirs
        if threading.current_thread() is not self._log["thread"]:
            with self._log["begun"]:  # on a busy machine they need longer; after one wait in vain, do not wait again
                came = self._log["begun"].wait_for(lambda: self._log["most"] >= self._log["wanted"], self._log["wait"])
                self._log["wait"] = self._log["wait"] if came else 0
        going = sum(job.end > self._log["clock"] for job in self._log["jobs"])
        if threading.current_thread() is self._log["thread"] and self.end > self._log["clock"]:
            self._log["waits"].append((going, len(self._log["jobs"])))
        self._ends()
        return self

    def _ends(self):
        self.going = False
        self._log["clock"] = max(self._log["clock"], self.end)


@judges("batches.8")
def search(function):
    for rates, at_a_time in (((0.1, 0.2, 0.3, 0.4, 0.5), 2), ((0.1, 0.2, 0.3), 1), ((0.1, 0.2), 4)):
        log = {"begun": threading.Condition(), "jobs": [], "most": 0, "clock": 0, "waits": []}
        log |= {"thread": threading.current_thread(), "wanted": min(at_a_time, len(rates)), "wait": 5.0}
        with student_code.tried(f"rates {rates} and at_a_time {at_a_time}"):
            found = function(lambda rate, log=log: _Job(log, rate), rates, at_a_time)  # a tuple, as in the notebook
        yield (
            inspect.isgenerator(found),
            "Your function returns a generator, which does nothing until somebody reads it. Return a list.",
        )
        going = sum(job.going for job in log["jobs"])
        asked = f"With {len(rates)} rates, {at_a_time} at a time,"
        started = [job.rate for job in log["jobs"]]
        yield not started, f"{asked} no run is started: `start(rate)` starts one."
        for rate in started:
            yield np.ndim(rate), f"{asked} `start` gets {rate}: it takes one rate and starts one run."
        yield len(started) > len(rates), f"{asked} you start {len(started)} runs: one for each rate is enough."
        for rate in rates:
            yield rate not in started, f"{asked} you never try rate {rate}."
        all_at_once = log["most"] == len(rates) > at_a_time
        yield all_at_once, f"{asked} you start all the runs at once: they would share the cores."
        yield log["most"] > at_a_time, f"{asked} {log['most']} runs are active at the same time."
        idle = log["most"] < min(at_a_time, len(rates))
        yield idle, f"{asked} you never have more than {log['most']} active: cores are idle while you wait."
        for of_them, begun in log["waits"]:
            yield (
                of_them < at_a_time and begun < len(rates),
                f"{asked} your function waits with {of_them} active and {len(rates) - begun} not yet started, so cores "
                "are idle. As soon as one run has ended, the next can start: do you wait for the one that ends first?",
            )
        active = f"{several(going, 'run')} {'is' if going == 1 else 'are'} still active"
        yield going, f"{asked} {active} when your function returns: wait for all the runs."
        listed = isinstance(found, Collection) and not isinstance(found, Mapping)
        jobs = list(found) if listed else []
        given = f"has {several(len(jobs), 'job')}" if listed else f"is of type {type(found).__name__}"
        yield len(jobs) != len(rates), f"{asked} return the list of the {len(rates)} jobs: what you return {given}."
        for job in jobs:
            kind = an(type(job).__name__)
            yield not isinstance(job, _Job), f"{asked} your list contains {kind}: return what `start` returned."
        yield tuple(job.rate for job in jobs) != rates, f"{asked} the jobs are not returned in the order of the rates."


@judges("batches.15")
def epochs(count):
    yield float(count) == 81, None
    yield float(count) == 27 * 27, "This is right if no run is stopped early."
    yield (
        float(count) == 108,
        "You count every rung from the start. But a run that continues has already completed its first epochs.",
    )
    yield float(count) == 40, "This is the number of runs at all the rungs. How many epochs does each of them add?"
    yield float(count) < 40, "All 27 runs take one epoch each to begin with. How many do the 9 that continue add?"
    yield True, "For each rung, multiply the runs that continue by the epochs up to the next rung. Add up the products."


@judges("batches.16")
def better_search(sentence, gains):
    low, high = intervals.plain([float(gain) for gain in gains])
    given = told(sentence)
    unknown = given not in ("better", "worse", "can't tell")
    yield unknown, f"{sentence!r} is not one of the three answers. Spell it as in the text."
    yield given == ("better" if low > 0 else "worse" if high < 0 else "can't tell"), None
    seen = f"The interval of the mean difference extends from {low:.3f} to {high:.3f}"
    yield low <= 0 <= high, f"{seen}, so there may also be no difference at all."
    yield given == "can't tell", f"{seen}, and 0 is not in it: the spread among the seeds does not explain that."
    yield True, f"{seen}: on which side of 0 is that?"


@judges("batches.11")
def waiting(share):
    yield near(share, 1 - 0.99**64, 0.01), None
    yield near(share, 100 * (1 - 0.99**64), 0.01), PER_CENT
    yield near(share, 0.99**64, 0.01), "This is the share of the steps in which no rank pauses."
    yield (
        near(share, 0.64, 0.01),
        "64 x 0.01 counts a step twice if two ranks pause in it. With 200 ranks, the result would be above 1.",
    )
    yield near(share, 0.01, 0.01), "This is the share for one rank. All of them wait if *any* of the 64 pauses."
    yield near(share, 0.01**64, 0.01) or float(share) == 0, "In this share of the steps, all 64 pause at once."
    yield float(share) == 1, "In nearly all steps, *not all* 64 pause at once. In how many does not a single one pause?"
    yield near(share, 1 - 0.99**63, 1e-3), "This is the share for 63 ranks. Any of the 64 makes the others wait."
    yield (
        True,
        "What is the probability that one rank does not pause? And that all 64 ranks, independently, do not pause?",
    )


@judges("batches.19")
def clipnorm(bound, changes):
    clipped, on_4 = 0.005, changes[4]  # what the notebook clipped with, and the change of W that it saw
    farther = on_4 / changes[1]
    yield near(bound, clipped / 4, 1e-3), None
    yield near(bound, clipped, 1e-3), f"With this clipnorm, W changed by {on_4:.3g} on 4 replicas in your run above."
    yield (
        bound > clipped,
        f"With a smaller clipnorm, {clipped:g}, W changed by {on_4:.3g} on 4 replicas. Which way must you go?",
    )
    yield bound <= 0, "A clipnorm is a length above 0. With 0, the weights would never change."
    yield (
        bound < clipped / 4,
        "W would stay within the bound, but the updates would be smaller than necessary. Give the largest clipnorm.",
    )
    yield (
        True,
        f"On 4 replicas, W changed {farther:.3g} times as much as on 1. How much of the bound may each replica use?",
    )


@judges("batches.20")
def rules(function):
    cases = ((0.01, 1), (0.01, 16), (0.02, 8))
    values = [function(rate, ranks) for rate, ranks in cases]
    yield (
        any(not hasattr(value, "__len__") or isinstance(value, dict | str) or len(value) != 3 for value in values),
        "Return three rates: by the linear, the square-root and the 2/3-power rule, in this order.",
    )
    values = [list(map(float, value)) for value in values]
    for rule, rate in zip(("linear", "square-root", "2/3-power"), values[0], strict=True):
        alone = f"For a single rank no rule changes the rate, but your {rule} rule turns 0.01 into {rate:.4g}."
        yield not abs(rate - 0.01) <= 1e-9, alone
    rows = [(value, rate, ranks) for value, (rate, ranks) in zip(values[1:], cases[1:], strict=True)]

    def wrong(place, power):
        return any(not abs(value[place] / (rate * ranks**power) - 1) <= 1e-6 for value, rate, ranks in rows)

    yield wrong(0, 1), "The first rate is wrong. By the linear rule, multiply the rate by the number of ranks."
    yield (
        wrong(1, 0.5),
        "The linear rule is right. The second rule uses the square root of the number of ranks as its factor.",
    )
    yield (
        wrong(2, 2 / 3),
        "Two are right. The third factor is the number of ranks to the power 2/3: put brackets around 2/3.",
    )
