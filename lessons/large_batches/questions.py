"""Questions of 23_large_batches."""

import threading
import time
from collections.abc import Collection

import numpy as np

from labs.checks import student_code
from labs.checks.judging import judges
from labs.checks.reading import near
from lessons.forms import formula, value

formula(
    "batches.2",
    right=lambda images, batch, epochs: images // batch * epochs,
    cases=[(1280, 8, 10), (1280, 512, 10), (100, 30, 4), (170, 60, 3)],
    wrong=[
        (lambda n, b, e: n // b, "This is the number of updates in one epoch."),
        ([lambda n, b, e: n * e, lambda n, b, e: n // b * b * e], "These are images. How many are in one update?"),
        (
            [lambda n, b, e: -(-n // b) * e, lambda n, b, e: (n // b + 1) * e, lambda n, b, e: round(n / b) * e],
            "This also counts a batch that is not full. What happens to its images?",
        ),
        (lambda n, b, e: n * e // b, "The images that do not fill a batch are left out at the end of *each* epoch."),
        (lambda n, b, e: n * e / b, "An update takes a whole batch. This gives fractions of updates."),
        (lambda n, b, e: n // (b * e), "You divide by the number of epochs. Does a longer run make fewer updates?"),
    ],
    otherwise="How many whole batches are there in an epoch?",
)


def _fit(batches, steps, power=-1.0, weights=-1.0):
    """(S_min, B_crit) by a straight line against a power of the batches; weights: the power of the steps in them."""
    slope, least = np.polyfit(np.array(batches) ** power, steps, 1, w=np.array(steps) ** weights)
    return least, slope / least


formula(
    "batches.5",
    right=_fit,
    cases=[
        ([2, 8, 32, 128, 512, 1280], [420.0, 120.0, 45.0, 26.25, 21.5625, 20.625]),  # exactly on the curve
        ([2, 8, 32, 128, 512, 1280], [447.0, 113.0, 49.0, 25.0, 22.5, 19.5]),
        ([8, 128, 512, 1280], [61.0, 31.5, 27.0, 29.0]),
    ],
    wrong=[
        (lambda b, s: _fit(b, s)[::-1], "Both are right, but in the wrong order: first S_min, then B_crit."),
        (lambda b, s: (_fit(b, s)[0], np.prod(_fit(b, s))), "The second number is still the slope against 1 / B."),
        (lambda b, s: (np.prod(_fit(b, s)), ...), "The first number is the slope, which `np.polyfit` gives first."),
        (lambda b, s: _fit(b, s, power=1.0), "You plot S against B. Against which quantity is S a straight line?"),
        (
            [lambda b, s, power=power: _fit(b, s, weights=power) for power in (0.0, 1.0, -2.0)],
            "Right if the steps lie exactly on the curve. But which weights does the text ask for?",
        ),
    ],
    otherwise="Against which quantity do you fit a line, and with which weights?",
    tolerance=1e-3,
)

value(
    "batches.6",
    right=(2, 2),
    wrong=[
        ((1, ...), "This is right for an infinite batch. Put B = B_crit into S = S_min (1 + B_crit / B)."),
        ((2, 1), "The first number is right. Only the smallest batches need so few images."),
        ((2, 4), "The first number is right. The images are S x B = S_min (B + B_crit). Where are they fewest?"),
    ],
    otherwise=(
        "Put B = B_crit into S = S_min (1 + B_crit / B). What is the value in brackets?",
        "The first number is right. The images are S x B: divide their number at B_crit by that where B is near 0.",
    ),
)


def _noise_scale(local_square, mean_square, local_batch, workers):
    return local_batch * workers * (local_square - mean_square) / (workers * mean_square - local_square)


formula(
    "batches.13",
    right=_noise_scale,
    cases=[(8.0, 3.5, 5, 4), (13.0, 8.0, 1, 2), (np.array([2.5, 4.1, 9.0]), np.array([1.5, 3.0, 6.0]), 4, 2)],
    wrong=[
        (
            [lambda s, m, b, k: b * k * (s - m) / (k - 1) / m, lambda s, m, b, k: b * (s - m) / m],
            "The square that you divide by still contains noise. Use both equations to remove it.",
        ),
        (lambda s, m, b, k: b * k * (s - m) / (k - 1), "This is the noise alone. Divide it by the signal."),
        (
            [lambda s, m, b, k: k * (s - m) / (k * m - s), lambda s, m, b, k: (k - 1) * (s - m) / (k * m - s)],
            "This is not yet the noise of one image. How much of that does each of the two squares contain?",
        ),
        (lambda s, m, b, k: b * k * (s - m) / (k * m - b * s), "The larger batch is not K: each worker has b images."),
        (lambda *given: np.mean(_noise_scale(*given)), "Right for numbers. But for arrays, it must give an array."),
    ],
    otherwise="Write down both equations. What is left if you subtract one from the other?",
)


class _Runs:
    """Stands for `start`. Whenever somebody waits for a run, or looks at one, the oldest ends if none has started or
    ended for a tenth of a second. Where a core is idle for which there is a run, that run has 2 s to start, once."""

    def __init__(self, count, at_a_time):
        self.count, self.at_a_time, self.started, self.going, self.most, self.idle = count, at_a_time, [], [], 0, 0
        self.lock = threading.RLock()  # students may start runs from several threads

    def __call__(self, rate):
        with self.lock:
            self.started.append(_Job(self, rate))
            self.going.append(self.started[-1])
            self.most, self.moved = max(self.most, len(self.going)), time.monotonic()
            return self.started[-1]

    def look(self):
        with self.lock:
            wasteful = len(self.going) < self.at_a_time and len(self.started) < self.count
            allowed = 2 if wasteful and not self.idle else 0.1
            if self.going and time.monotonic() - self.moved > allowed:
                self.idle = self.idle or wasteful * len(self.going)
                self.going.pop(0)
                self.moved = time.monotonic()


class _Job:
    def __init__(self, runs, rate):
        self._runs, self.rate, self.name = runs, rate, f"rate_{rate}"

    @property
    def state(self):
        self._runs.look()
        return "running" if self in self._runs.going else "finished"

    def wait(self, timeout=None, show=True):
        while self.state == "running":
            time.sleep(0.01)
        return self


@judges("batches.8")
def search(function):
    for rates, at_a_time in (((0.1, 0.2, 0.3, 0.4, 0.5), 2), ((0.1, 0.2, 0.3), 1), ((0.1, 0.2), 4)):
        runs = _Runs(len(rates), at_a_time)
        with student_code.tried(f"rates {rates} and at_a_time {at_a_time}"):
            found = function(runs, rates, at_a_time)  # a tuple, as in the notebook
        asked, started = f"With {len(rates)} rates, {at_a_time} at a time,", [job.rate for job in runs.started]
        wrong = sorted(map(str, started)) != sorted(map(str, rates))
        yield wrong, f"With the rates {rates}, you start runs with {started}: start one run for each rate."
        yield runs.most > at_a_time, f"{asked} {runs.most} runs are active at the same time."
        yield runs.idle, f"{asked} cores are idle: you wait with {runs.idle} active. When can the next run start?"
        yield runs.going, f"{asked} your function returns while runs are still active. Wait for all of them."
        jobs = list(found) if isinstance(found, Collection) else []
        right = jobs == sorted(runs.started, key=lambda job: job.rate)
        yield not right, f"{asked} return a list: what `start` returned for each rate, in the order of the rates."


value(
    "batches.11",
    right=1 - 0.99**64,
    wrong=[
        (0.99**64, "This is the share of the steps in which no rank pauses."),
        (0.64, "64 x 0.01 counts a step twice if two ranks pause in it. With 200 ranks, it would be above 1."),
        (0.01, "This is the share for one rank. All of them wait if *any* of the 64 pauses."),
        (0.01**64, "In this share of the steps, all 64 pause at once."),
        (1, "In nearly all steps, *not all* 64 pause at once. In how many does not a single one pause?"),
        (1 - 0.99**63, "This is the share for 63 ranks. Any of the 64 makes the others wait."),
    ],
    otherwise="What is the probability that one rank does not pause? And that none of the 64 pauses?",
    tolerance=0.01,
)


@judges("batches.17")
def clipnorm(bound, changes):
    yield near(bound, 0.005 / 4, 1e-3), None
    yield bound >= 0.005, f"With clipnorm 0.005, W changed by {changes[4]:.3g} on 4 replicas. How much may it change?"
    yield bound < 0.005 / 4, "W would change by less than it may on 4 replicas. Give the largest clipnorm."
    yield True, "Each replica clips its own gradient. How much of the bound may each use?"
