"""Judges of 09_why_scaling_fails."""

import inspect
import threading
import time
from collections.abc import Collection, Mapping

import numpy as np

from labs.checks import scripts, student_code
from labs.checks.judging import judges
from labs.checks.reading import PER_CENT, called, close, near
from labs.lessons.nb09 import equal_ranks
from labs.results import intervals


@judges("09.1")
def times_as_long(ratio):
    yield near(ratio, 443 / 73, 0.02), None
    yield near(ratio, 73 / 443, 0.02), "Upside down: this is below 1, and four processes took longer."
    yield near(ratio, 443 - 73, 0.01), "This is a difference in seconds. How many *times* as long is it?"
    yield near(ratio, 370 / 73, 0.02), "This is how much *longer* it took, in shares of 73 s. As long, in all?"
    yield near(ratio, 8, 0.06), "This is what the text says. Divide the two times yourself."
    yield near(ratio, 4, 0.01), "This is the number of processes. Divide the two times."
    return "Seconds of four processes, divided by seconds of one."


@judges("09.3")
def speedup(function):
    cases = ((2.0, 0.5, 3.0, 2), (1.0, 0.25, 4.0, 8), (0.5, 1.0, 0.0, 1))
    got = [float(function(*case)) for case in cases]

    def are(formula):
        return np.allclose(got, [formula(*case) for case in cases], rtol=1e-6)

    yield are(lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k + e)), None
    yield (
        are(lambda s, c, e, k: (s + 32 * c / k + e) / (s + 32 * c)),
        "Upside down: a faster step must give more than 1.",
    )
    if are(lambda s, c, e, k: (s + 32 * c) / ((s + 32 * c) / k + e)):
        return "The start of the operations is divided by the ranks here: but each rank starts all of them."
    yield (
        are(lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k)),
        "Without the exchange: every rank has to wait for it.",
    )
    yield are(lambda s, c, e, k: 32 * c / (32 * c / k + e)), "The start of the operations is in the steps of both."
    if are(lambda s, c, e, k: (s + 32 * c) / (s + 32 * c + e)):
        return "Each rank computes all 32 images here. How many are left for it if the batch of all stays the same?"
    if are(lambda s, c, e, k: k * (s + 32 * c) / (s + 32 * c + e)):
        return "All of the step is divided by the ranks here, start and exchange too, or the batch grows with them."
    if are(lambda s, c, e, k: (s + 32 * k * c) / (s + 32 * c + e)):
        return "This is for a batch that grows with the ranks. Here all ranks together have 32 images."
    if are(lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k + e / k)):
        return "The exchange is divided by the ranks here: does it get shorter when there are more of them?"
    yield are(lambda s, c, e, k: (s + c) / (s + c / k + e)), "`per_image` is for one image, and a step has 32 of them."
    if are(lambda s, c, e, k: (s + 32 * c + e) / (s + 32 * c / k + e)):
        return "The exchange is in the steps of both here: with whom does a single rank exchange?"
    if any(are(lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k + e * n(k))) for n in (lambda k: k, lambda k: k - 1)):  # noqa: B023
        return "`exchange` is all that the exchange adds to a step: here it is counted several times."
    if are(lambda s, c, e, k: (s + 32 * c) / (32 * c / k + e)) or are(lambda s, c, e, k: 32 * c / (s + 32 * c / k + e)):
        return "The start of the operations is in one of the two steps only. Which of them does without it?"
    yield (
        are(lambda s, c, e, k: s + 32 * c - (s + 32 * c / k + e)),
        "This is a difference in time. A speedup is a ratio.",
    )
    yield (
        are(lambda s, c, e, k: s + 32 * c / k + e),
        "This is the step of several ranks alone. Against what is it faster?",
    )
    yield (
        are(lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k + e) / k),
        "Divided by the ranks, this is the efficiency.",
    )
    yield (
        are(lambda s, c, e, k: s + 32 * c / (s + 32 * c / k + e)),
        "Only the computing is divided by the step of several ranks: the whole step of one rank needs brackets.",
    )
    return "Seconds of a step of one rank over seconds of one on several: start, images of a rank, exchange."


_LIKE = {
    "nothing": "The weights end as they began: no step is taken. Go through the batches, one step for each.",
    "never": "The ranks' weights are never brought together: each trains a network of its own.",
    "every step": "With k = 3 the ranks exchange at every step: that is synchronous SGD, whatever k is.",
    "early": "The mean is taken after the steps 1, 1 + k, ...: which number has the first batch, and is it a k-th one?",
    "one early": "The mean is taken one step before each k-th: which number has the first batch?",
    "not at k": "The mean is taken after all steps but each k-th: look at the condition again.",
    "at the end": "The mean is taken once, at the end. `k` says how often.",
    "first mean": "The training ends with its first mean: there are more batches.",
    "only k-th": "Of k batches one is trained on: each rank makes a step for every batch, and a mean after k of them.",
    "repeated": "Each batch is trained on k times, and then the mean is taken: a step is one batch, once.",
    "collected": "One step is made for k batches, by the mean of their gradients. Each rank makes one for each.",
    "collected sum": "One step is made for k batches, by the sum of their gradients. Each rank makes one for each.",
    "sum": "The weights are added up over the ranks, and not divided by how many there are.",
    "by k": "The sum over the ranks is divided by k. How many numbers were added?",
    "by all": "The sum over the ranks is divided by ranks and k. How many numbers were added?",
    "twice": "The mean over the ranks is divided by their number once more.",
    "gradients at k": "At every k-th step the gradients are averaged. By then the weights differ: average these.",
    "rank 0": "After every k-th step all ranks have the weights of rank 0: what the other has learned is lost.",
    "weights alone": "With momentum the weights alone are averaged: each rank goes on at a speed of its own.",
    "momentum alone": "The momentum is averaged, and the weights are not: each rank keeps its own.",
    "momentum sum": "The weights are averaged, but the momenta of the ranks are added up, and not divided by how many.",
    "momentum of rank 0": "At every mean all ranks take the momentum of rank 0: a mean is asked for there as well.",
    "momentum lost": "The momentum is set to 0 at every mean: it belongs to what a step changes, so take its mean.",
    "no momentum": "The steps are those without momentum, also where the optimizer has one: let it make the update.",
    "before": "At every k-th step the mean is taken before the update, and the ranks leave it with unequal weights.",
    "rate": "The steps are as many times too long as there are ranks: the rate is the optimizer's, and stays.",
    "uphill": "The steps go up the loss: is the sign of the gradient changed on its way to the update?",
}


@judges("09.5")
def local_sgd(path):
    yield from scripts.no_script(path)
    scripts.refuse_blanks(path)
    facts = equal_ranks.facts(path)
    if "local_sgd" in str((facts["error"] or {}).get("says")) and not facts["error"]["line"]:
        return "The script has no function `local_sgd` any more. What it is called, and its arguments, must stay."
    yield from scripts.stops(facts, "On 2 ranks")
    cases = facts["cases"]
    yield any(case["moved_frozen"] for case in cases), "A layer that is not to be trained has changed."
    wrong = [case for case in cases if case["like"] != ["right"]]
    if not wrong:
        yield (
            any(case["ahead"] == equal_ranks.STEPS for case in cases),
            "The weights are right, but all batches are taken before the first step: take one, make its step, take the "
            "next. The script times each of them until the next one is taken.",
        )
        return None
    for mistake, hint in _LIKE.items():
        if all(mistake in case["like"] for case in wrong):
            return hint
    first = wrong[0]
    momentum = f" and momentum {first['momentum']}" if first["momentum"] else ""
    after = "are equal" if first["equal"] else "differ"
    return (
        f"With k = {first['k']}{momentum} the weights are not those of local SGD; those of the two ranks {after} after "
        "the last step. One step: gradient of this rank's batch, update; after every k-th: the mean."
    )


@judges("09.7")
def exchanges(count, size, parameters):
    whole = 4 * parameters
    if float(count) != 4:
        yield float(count) == 512, "That many with k = 1. How often do 128 steps fit into 512?"
        yield float(count) == 128, "This is k: so many steps lie between two exchanges."
        yield float(count) == 384, "512 - 128: but every 128th step is one with an exchange."
        return "One exchange after every k-th of 512 steps: how many is that?"
    yield close(size, 4 * whole), None
    yield close(size, whole), "These are the bytes of one exchange. How many are there?"
    yield close(size, 4 * parameters / 4), "These are the weights of the network, as a number. How many bytes has each?"
    yield close(size, 512 * whole), "So many bytes with k = 1, where all 512 steps exchange."
    yield any(close(size, 4 * whole / unit) for unit in (1e6, 2**20)), "Give the bytes, not megabytes."
    return "The exchanges are right. Each is of all weights, and a float32 has 4 bytes."


@judges("09.11")
def updates(function):
    cases = ((1280, 8, 10), (1280, 512, 10), (100, 30, 4), (170, 60, 3))
    got = [float(function(*case)) for case in cases]

    def are(formula):
        return np.allclose(got, [formula(*case) for case in cases])

    yield are(lambda n, b, e: n // b * e), None
    yield are(lambda n, b, e: n // b), "These are the updates of one epoch."
    yield are(lambda n, b, e: n * e), "These are the images of all epochs. How many of them are in one update?"
    yield are(lambda n, b, e: -(-n // b) * e), "This counts a last batch that is not full: here it is left out."
    yield are(lambda n, b, e: n * e // b), "What fills no batch is left out at the end of *each* epoch."
    yield (
        are(lambda n, b, e: (n // b + 1) * e),
        "There is one update more in each epoch than there are whole batches, also where nothing is left over.",
    )
    yield (
        are(lambda n, b, e: round(n / b) * e),
        "Rounded to the nearest: a batch that is half full or more counts here.",
    )
    yield are(lambda n, b, e: n // b * b * e), "These are the images that are read. How many updates do they make?"
    if are(lambda n, b, e: n // (b * e)):
        return "The epochs divide the updates here: does a longer training make fewer of them?"
    yield are(lambda n, b, e: n * e / b), "An update takes a whole batch: this gives parts of updates."
    yield are(lambda n, b, e: b // n * e), "Upside down: images of an epoch over images of a batch."
    return "Whole batches in an epoch, times the epochs."


@judges("09.14")
def fit(function):
    batches = [2, 8, 32, 128, 512, 1280]
    rows = ((20.0, 40.0), (50.0, 6.0))
    asked = [[least * (1 + size / batch) for batch in batches] for least, size in rows]
    given = []
    for steps in asked:
        value, changed = called(function, list(batches), steps)
        yield changed is not None, str(changed)
        yield value is not None and np.shape(value) != (2,), "Return two numbers: S_min and B_crit."
        given.append(tuple(float(number) for number in value))

    def are(formula):
        return np.allclose(given, [formula(*row) for row in rows], rtol=1e-3)

    yield are(lambda least, size: (size, least)), "The two are exchanged: first S_min, then B_crit."
    yield (
        are(lambda least, size: (least, least * size)),
        "The second number is the slope over 1 / B, S_min times B_crit.",
    )
    yield are(lambda least, size: (least, 1 / size)), "The second number is upside down: how many images is it?"
    yield are(lambda least, size: (least, -size)), "The second number is right but for its sign."
    if are(lambda least, size: (least * size, 1 / size)) or are(lambda least, size: (least * size, least)):
        return "The first number is the slope over 1 / B. In which order does your fit return slope and value at 0?"
    if not are(lambda least, size: (least, size)):
        for degree in (1, -1):
            lines = [np.polyfit(np.array(batches, float), steps, 1)[::degree] for steps in asked]
            straight = np.allclose(given, lines, rtol=1e-3) or np.allclose(
                [v[0] for v in given], [v[-1] for v in lines]
            )
            yield straight, "This is a line over B. In the formula stands 1 / B: over what is it a straight line?"
        powers = [np.polyfit(np.log(batches), np.log(steps), 1) for steps in asked]
        power = np.allclose([value[0] for value in given], [np.exp(v[1]) for v in powers], rtol=1e-3)
        yield power, "This is a line over the logarithm of B: a power of B, and no such curve bends towards a limit."
        smallest = np.allclose([value[0] for value in given], [min(steps) for steps in asked], rtol=1e-3)
        yield (
            smallest,
            "The first number is the fewest steps that were measured. The limit lies below: what is it at 1 / B = 0?",
        )
        return "For steps that lie on the curve exactly, your function gives other parameters than those of the curve."
    for place in range(len(batches)):  # every one of the measurements counts
        steps = list(asked[0])
        steps[place] *= 1.1
        value, _ = called(function, list(batches), steps)
        alike = np.allclose([float(number) for number in value], given[0], rtol=1e-6)
        yield (
            alike,
            f"Right for exact steps, but the steps at batch {batches[place]} do not count at all: fit all of them.",
        )


@judges("09.15")
def at_critical(steps, examples):
    got = float(steps), float(examples)
    yield got == (2, 2), None
    yield got[0] == 1, "This is where the batch is endless. Put B = B_crit into S = S_min (1 + B_crit / B)."
    yield got[0] != 2, "Put B = B_crit into S = S_min (1 + B_crit / B): what stands in the brackets?"
    yield got[1] == 1, "The steps are right. So few examples are needed only by the smallest batches."
    yield got[1] == 4, "The steps are right. Examples are S x B = S_min (B + B_crit): fewest where B is near 0."
    return "The steps are right. Examples are S x B: divide those at B_crit by those where B is near 0."


@judges("09.17")
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
        return _of_windows(function, lambda *a: trace(*a) / signal(*a))
    yield are(lambda *a: np.round(trace(*a) / signal(*a))), "Right, but rounded: leave the number as it is."
    yield max(got) < 0, "This is below 0. Which of the two squares holds more noise, and is the larger one?"
    yield are(lambda *a: signal(*a) / trace(*a)), "Upside down: noise over signal, which is a number of images."
    if are(lambda s, m, b, k: trace(s, m, b, k) / m):
        return (
            "The square of the *mean* gradient still holds the noise of b K images: use both equations to take it out."
        )
    if are(lambda s, m, b, k: trace(s, m, b, k) / s):
        return "The squares of the local gradients hold the noise of b images: take it out with the two equations."
    yield are(trace), "This is the noise alone. Divide it by the square of the true gradient."
    yield are(signal), "This is the signal alone, the square of the true gradient: which noise belongs to it?"
    if are(lambda s, m, b, k: (s - m) / (1 - 1 / k) / signal(s, m, b, k)):
        return "The noise is that of a batch of b here; of one image it is b times as large."
    if are(lambda s, m, b, k: (s - m) / (1 / b - 1 / k) / ((k * m - b * s) / (k - b)) if k != b else np.nan):
        return "The larger batch is not K: all workers together have b K images."
    yield (
        are(lambda s, m, b, k: (s - m) / signal(s, m, b, k)),
        "The difference of the squares is not yet the noise of one image: what of it is left in each of the two?",
    )
    if are(lambda s, m, b, k: (s - m) / (1 / b - 1 / k) / signal(s, m, b, k) if k != b else np.nan):
        return "The larger batch is not K: all workers together have b K images."
    if any(are(lambda s, m, b, k: n(b, k) * (s - m) / m) for n in (lambda b, k: b, lambda b, k: 1)):  # noqa: B023
        return "This takes the mean gradient for free of noise: it holds the noise of b K images. Use both equations."
    yield are(lambda *a: np.sqrt(trace(*a) / signal(*a))), "This is the root of it: the formula has squares already."
    yield (
        are(lambda s, m, b, k: s / m),
        "The ratio of the two squares is no number of images yet. Solve the two equations.",
    )
    return "Write down both equations, subtract them to get the noise, then put it into one of them to get the signal."


def _of_windows(function, right):
    """Hint for a function that is right for numbers and not for the arrays that the notebook gives it; else None."""
    rows = np.array([2.5, 4.0, 9.0]), np.array([1.5, 3.0, 6.0])
    with student_code.tried("arrays, a number for each of 3 windows of steps, as the cell below gives them"):
        found = np.asarray(function(*rows, 4, 2), float)
    if found.shape != (3,) or not np.allclose(found, right(*rows, 4, 2), rtol=1e-4):
        return "Right for numbers. The cell below gives it arrays, a number for each window of steps: not right there."
    return None


class _Job:
    """Stands for a job: it runs until somebody has waited for it, or has looked at its state a few times.

    By the clock of the log all of them would last equally long, 1: that tells who waits while cores are idle.
    """

    def __init__(self, log, rate):
        self._log, self.rate, self._looks, self.going = log, rate, 2, True
        self.name = f"rate_{rate}"
        with log["begun"]:
            self.end = log["clock"] + 1
            log["jobs"].append(self)
            log["most"] = max(log["most"], sum(job.going for job in log["jobs"]))
            log["begun"].notify_all()

    @property
    def state(self):
        self._looks -= 1
        if self.going and self._looks < 0:
            self._ends()
        return "running" if self.going else "finished"

    def wait(self, timeout=None, show=True):
        time.sleep(0.05)  # time for other threads, if the search has some, to start theirs
        if threading.current_thread() is not self._log["thread"]:
            with self._log["begun"]:  # more time on a busy machine, until it has passed once in vain
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


@judges("09.20")
def search(function):
    for rates, at_a_time in (((0.1, 0.2, 0.3, 0.4, 0.5), 2), ((0.1, 0.2, 0.3), 1), ((0.1, 0.2), 4)):
        log = {"begun": threading.Condition(), "jobs": [], "most": 0, "clock": 0, "waits": []}
        log |= {"thread": threading.current_thread(), "wanted": min(at_a_time, len(rates)), "wait": 5.0}
        with student_code.tried(f"rates {rates} and at_a_time {at_a_time}"):
            found = function(lambda rate, log=log: _Job(log, rate), rates, at_a_time)  # a tuple, as in the notebook
        yield (
            inspect.isgenerator(found),
            "Your function gives a generator: what is in it is not done before somebody asks for it. Return a list.",
        )
        going = sum(job.going for job in log["jobs"])
        asked = f"With {len(rates)} rates, {at_a_time} at a time,"
        started = [job.rate for job in log["jobs"]]
        yield not started, f"{asked} no training is started: `start(rate)` starts one."
        several = [rate for rate in started if np.ndim(rate)]
        yield several, f"{asked} `start` is given {several and several[0]}: it takes one rate, and starts one training."
        yield len(started) > len(rates), f"{asked} {len(started)} trainings are started: one for each rate is enough."
        missing = [rate for rate in rates if rate not in started]
        yield missing, f"{asked} rate {missing and missing[0]} is never tried."
        all_at_once = log["most"] == len(rates) > at_a_time
        yield all_at_once, f"{asked} all are started at once: they would share the cores."
        yield log["most"] > at_a_time, f"{asked} {log['most']} run at the same time."
        idle = log["most"] < min(at_a_time, len(rates))
        yield idle, f"{asked} never more than {log['most']} runs: whoever waits for each at once leaves cores idle."
        for of_them, begun in log["waits"]:
            yield (
                of_them < at_a_time and begun < len(rates),
                f"{asked} it waits for a training when, if all last equally long, {of_them} of them still goes on and "
                f"{len(rates) - begun} are left to be started: for which one?",
            )
        yield going, f"{asked} {going} still run when your function returns: wait for all of them."
        listed = isinstance(found, Collection) and not isinstance(found, Mapping)
        jobs = list(found) if listed else []
        given = f"yours has {len(jobs)}" if listed else f"{type(found).__name__} comes back"
        yield len(jobs) != len(rates), f"{asked} return the list of the {len(rates)} jobs: {given}."
        strange = [job for job in jobs if not isinstance(job, _Job)]
        yield (
            strange,
            f"{asked} your list holds {type(strange[0]).__name__ if strange else ''}: return what `start` gave.",
        )
        yield tuple(job.rate for job in jobs) != rates, f"{asked} the jobs come back in another order than the rates."


@judges("09.21")
def epochs(count):
    yield float(count) == 81, None
    yield float(count) == 27 * 27, "So many if none is stopped."
    yield (
        float(count) == 108,
        "Each rung counted from the start: but a training that goes on has its first epochs already.",
    )
    yield float(count) == 40, "These are the trainings that stand at the rungs, added up. Each goes on for some epochs."
    yield float(count) < 40, "27 trainings have one epoch each to begin with. What do the 9 that go on add?"
    return "At each rung: how many go on, times the epochs from this rung to the next. Add them up."


@judges("09.26")
def better_search(told, gains):
    low, high = intervals.plain([float(gain) for gain in gains])
    given = str(told).strip().lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    yield given not in ("better", "worse", "can't tell"), f"{told!r} is none of the three; spell them as the text does."
    yield given == ("better" if low > 0 else "worse" if high < 0 else "can't tell"), None
    seen = f"The interval of the mean difference reaches from {low:.3f} to {high:.3f}"
    yield low <= 0 <= high, f"{seen}: no difference at all is in it."
    yield given == "can't tell", f"{seen}, and 0 is not in it: the spread of the seeds does not explain that."
    return f"{seen}: on which side of 0 is that?"


@judges("09.24")
def waiting(share):
    yield near(share, 1 - 0.99**64, 0.01), None
    yield near(share, 100 * (1 - 0.99**64), 0.01), PER_CENT
    yield near(share, 0.99**64, 0.01), "In this share of the steps nobody pauses."
    yield (
        near(share, 0.64, 0.01),
        "64 x 0.01 counts steps twice in which two ranks pause: with 200 ranks it would be above 1.",
    )
    yield near(share, 0.01, 0.01), "That is one rank. All wait if *any* of the 64 pauses."
    yield near(share, 0.01**64, 0.01) or float(share) == 0, "That is the share in which all 64 pause at once."
    return "With which probability does a rank not pause? And all 64 of them, independently?"
