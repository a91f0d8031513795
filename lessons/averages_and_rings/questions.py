"""Judges of 02_averages_and_rings: gradients, waiting workers, and the ring."""

import itertools
import math
from functools import partial

import numpy as np

from labs.checks.judging import judges
from labs.checks.reading import CUT, called
from labs.checks.student_code import tried
from lessons import connected


@judges("averages.1")
def averaged(function):
    gradients = [np.arange(6.0).reshape(2, 3) * k + k**2 for k in (1, 2, 4)]
    value, changed = called(function, gradients)
    value = np.asarray(value, float)
    yield (
        value.shape == () and np.isclose(value, np.mean(gradients)),
        "This is a single number, the mean over all workers *and* all weights. Average only over the workers.",
    )
    yield (
        value.shape != (2, 3),
        f"Three gradients of shape (2, 3) give an array of shape {value.shape}: return the shape of a gradient.",
    )
    if np.allclose(value, np.mean(gradients, axis=0)):
        two = np.asarray(called(function, gradients[:2])[0], float)
        yield changed, f"The mean is right. {changed}"
        yield np.allclose(two, np.mean(gradients[:2], axis=0)), None
        yield True, "Right for three gradients, but wrong for two. By what number do you divide?"
    yield np.allclose(value, np.sum(gradients, axis=0)), "This is the sum. An update that uses it is K times too large."
    yield (
        np.allclose(value, np.sum(gradients, axis=0) / 4),
        "You divide by 4, whatever the number of gradients. Here there are three.",
    )
    yield (
        np.allclose(value, np.median(gradients, axis=0)),
        "This is the median. In the gradient for all samples, each sample must have the same weight.",
    )
    yield True, "For three gradients your function gives a different matrix. Add them up. What must you then divide by?"


@judges("averages.3")
def weighted(function):
    gradients, sizes = [np.full((2, 3), 1.0) + np.eye(2, 3), np.full((2, 3), 5.0), np.full((2, 3), -2.0)], [4, 12, 1]
    value, changed = called(function, gradients, sizes)
    value = np.asarray(value, float)
    total = np.tensordot(sizes, gradients, 1)
    yield (
        value.shape != (2, 3),
        f"Three gradients of shape (2, 3) give an array of shape {value.shape}: return the shape of a gradient.",
    )
    if np.allclose(value, total / 17):
        yield changed, changed
        other = np.asarray(called(function, gradients[1:], [2, 6])[0], float)
        yield np.allclose(other, np.tensordot([2, 6], gradients[1:], 1) / 8), None
        yield True, "Right for batches of 4, 12 and 1, but wrong for 2 and 6. What must the weights add up to?"
    yield (
        np.allclose(value, np.mean(gradients, axis=0)),
        "This is the plain mean: a sample in a batch of 4 counts three times as much as one in a batch of 12.",
    )
    yield (
        np.allclose(value, total),
        "The weights are in the right proportion. But if all gradients are equal, what must the result be?",
    )
    yield np.allclose(value, total / 3), "You divide by the number of workers. How many samples are there?"
    yield np.allclose(value, total / 16), "You divide by 16, whatever the sizes. Here they are 4, 12 and 1."
    yield (
        np.allclose(value, np.average(gradients, axis=0, weights=1 / np.array(sizes))),
        "Here the smallest batch has the largest weight. Each *sample* should have the same weight.",
    )
    yield True, "For batches of 4, 12 and 1 your function gives a different matrix. What weight must each gradient get?"


@judges("averages.5")
def step_seconds(function):
    times = np.array([[1.0, 2.0, 7.0], [6.0, 1.0, 2.0]])  # 2 steps, 3 workers
    value, changed = called(function, times)
    value = np.asarray(value, float)
    yield value.shape == (2,), "This is one number for each step. Return their mean."
    yield value.shape, f"This has the shape {value.shape}: return one number, the mean seconds of a step."
    if np.isclose(value, 6.5):
        yield changed, changed
        more = np.array([[1.0, 2.0, 7.0, 3.0], [6.0, 1.0, 2.0, 1.0], [1.0, 1.0, 1.0, 2.0]])
        yield np.isclose(float(called(function, more)[0]), 5), None
        yield True, "Right for 2 steps of 3 workers, but wrong for 3 steps of 4: average over all the steps."
    yield (
        np.isclose(value, times.max(axis=0).mean()),
        "This takes the slowest step of each worker. Take the slowest worker in each step: which axis is that?",
    )
    yield np.isclose(value, times.mean()), "This is the mean time of a worker, as if nobody had to wait."
    yield (
        np.isclose(value, times.max()),
        "This is the slowest step of all. First find the time of each step; then take the mean.",
    )
    yield (
        np.isclose(value, times.mean(axis=0).max()),
        "This is the mean time of the slowest worker. But in each step, a different one may be the slowest.",
    )
    yield np.isclose(value, times.max(axis=1).sum()), "This is the total time of all the steps."
    yield (
        np.isclose(value, times.sum(axis=1).mean()),
        "This adds the times of the workers, but they work at the same time.",
    )
    yield np.isclose(value, times.min(axis=1).mean()), "The step does not end when the fastest worker is done."
    yield True, f"For the steps [1, 2, 7] and [6, 1, 2] your function gives {value:.4g}. When does each of them end?"


def _other_work(arguments, draw):
    """[gradients, one of them] in place of `arguments`: some workers, each of which computes one after the other."""
    work = []
    for worker in range(draw.randint(2, 4)):
        times = itertools.accumulate(draw.uniform(0.5, 4) for _ in range(draw.randint(3, 5)))
        work += [(worker, begin, end) for begin, end in itertools.pairwise(times)]
    made = [type(arguments[1])(*each, -1) for each in sorted(work, key=lambda each: each[2])]
    return [made, draw.choice(made)]


@judges("averages.9", varied=_other_work)
def staleness(function):
    from lessons.averages_and_rings.sgd import Work

    spans = [(0, 0, 2), (1, 0, 3.5), (2, 0.5, 9), (0, 2, 4), (1, 3.5, 5), (0, 4, 8), (1, 5, 6)]
    work = [Work(worker, begin, end, -1) for worker, begin, end in spans]
    got = [function(list(work), one) for one in work]
    yield (
        any(isinstance(value, list | tuple | set | np.ndarray) for value in got),
        "These are the gradients themselves: return how many there are.",
    )
    got, one = [float(value) for value in got], work[5]
    yield got == [sum(one.begin < other.end < one.end for other in work) for one in work], None
    yield (
        all(value == -1 for value in got),
        "This is what the simulator recorded. Count for yourself, using `begin` and `end` of the others.",
    )
    yield (
        got == [sum(one.begin < other.end <= one.end for other in work) for one in work],
        "Your count includes `one` itself, but its own update was not made while it was being computed.",
    )
    yield (
        got == [sum(one.begin <= other.end < one.end for other in work) for one in work],
        "An update at the moment when `one` begins is already in its weights, so it does not make `one` staler.",
    )
    yield (
        got == [sum(one.begin <= other.end <= one.end for other in work) for one in work],
        "This also counts an update at the moment when `one` begins, and `one` itself when it ends.",
    )
    yield (
        got == [sum(one.begin < other.begin < one.end for other in work) for one in work],
        "This counts the gradients that *began* in between. A gradient changes the weights when it ends.",
    )
    yield (
        got == [sum(other.end < one.end for other in work) for one in work],
        "This counts all updates made before `one` ended. Those made before it began are already in its weights.",
    )
    yield (
        got == [sum(other.begin < one.end and other.end > one.begin for other in work) - 1 for one in work],
        "This counts all gradients that overlap with `one`. Which of them were applied before `one` ended?",
    )
    ends = ", ".join(f"{other.end:g}" for other in work if other is not one)
    asked = f"a gradient from {one.begin} s to {one.end} s, and others that end at {ends} s"
    yield True, f"For {asked}, your function gives {got[5]:g}. Which of these ends lie in between?"


# Servers and the ring


def _through_server(server):
    """Cases of a wrong first function of averages.13."""
    trials = [(2, 600, 1), (4, 600, 1), (8, 600, 4), (4, 1200, 2), (3, 0.5, 4)]
    got = [float(server(*trial)) for trial in trials]
    (k, size, servers), are = np.array(trials).T, partial(np.allclose, got)
    default = math.isclose(float(server(4, 600)), got[1])
    yield not default, "Your server_bytes gives a different number if `servers` is omitted: its default should be 1."
    if are(2 * k * size / servers):
        return
    yield are(2 * k * size // servers), f"With 0.5 bytes your server_bytes gives {got[4]:g}. {CUT}"
    yield are(k * size / servers), "The server's link carries these bytes in. What must go out again?"
    yield are(2 * k * size), "Right for one server. If several servers share the gradient, how much goes through each?"
    more = are(2 * k * size * servers)
    yield more, "With this formula, adding servers means more bytes through each. But they share the gradient."
    yield are((k + 1) * size / servers), "K gradients come in. The sum goes out: to how many workers?"
    own = are(2 * (k - 1) * size / servers)
    yield own, "Here, the server is a separate process: the gradients of all K workers go through its link."
    yield True, f"With 4 workers and 600 bytes your server_bytes gives {got[1]:g}. What comes in, and what goes out?"


@judges("averages.13")
def bytes_moved(server, ring):
    yield from _through_server(server)
    k = np.array([1, 2, 4, 7, 100])
    got = [float(ring(workers, 600)) for workers in k.tolist()]
    are = partial(np.allclose, got)
    if are(2 * (k - 1) / k * 600):
        yield math.isclose(float(ring(4, 50)), 75), None
        yield True, "The server is right. The ring is right for 600 bytes, but wrong for 50. Does it use `size`, uncut?"
    yield (
        are(2 * (k - 1) * 600 // k) or are(2 * ((k - 1) * 600 // k)) or not any(got),
        f"The server is right. Ring: {CUT}",
    )
    yield (
        are(2 * (k - 1) * 600),
        "The server is right. In the ring, a message is not the whole gradient: how large is a chunk?",
    )
    yield are((k - 1) / k * 600), "The server is right. For the ring, this counts only the reduce-scatter."
    yield (
        are(2 * 600),
        "The server is right. The ring is close with many workers. Count the steps and chunks with 2 workers.",
    )
    yield (
        are(4 * (k - 1) / k * 600),
        "The server is right. For the ring, count only what a worker sends, not what it receives.",
    )
    yield (
        True,
        f"The server is right. For the ring, 4 workers and 600 bytes give {got[2]:g}. Is that steps times chunk size?",
    )


# The ring, by a student's functions


@judges("averages.16")
def reduce_scatter(function):
    for workers in (4, 2, 3):
        begin = [[_part(workers, w, c) for c in range(workers)] for w in range(workers)]
        ring, after = yield from _played(function, begin)
        yield from _exchanged(ring, workers)
        sums = [_sum(workers, c) for c in range(workers)]
        for ahead in range(workers):
            ends = [(worker + ahead) % workers for worker in range(workers)]
            there = all(np.array_equal(after[worker][chunk], sums[chunk]) for worker, chunk in enumerate(ends))
            yield (
                there and ahead != 1,
                f"With {workers} workers, each ends with the sum of one chunk, as it should. But worker 0 has the "
                f"sum of chunk {ahead}, and `all_gather` begins with chunk 1. Which chunk does worker w send first?",
            )
        for worker in range(workers):
            chunk = (worker + 1) % workers
            if not np.array_equal(after[worker][chunk], sums[chunk]):
                yield True, _holds(after[worker][chunk], workers, worker, chunk)
    yield from _with_unequal_chunks(function, 0)


@judges("averages.17")
def all_gather(function):
    for workers in (4, 2, 3):
        begin = [[_gathered(workers, w, c) for c in range(workers)] for w in range(workers)]
        ring, after = yield from _played(function, begin)
        yield from _exchanged(ring, workers)
        yield (
            not np.array_equal(ring.exchanges[0].brought[0][0], _sum(workers, 1)),
            f"With {workers} workers, worker 0 begins with the whole sum of chunk 1, but the first thing it passes "
            "on is something else.",
        )
        for worker in range(workers):
            for chunk in range(workers):
                if not np.array_equal(after[worker][chunk], _sum(workers, chunk)):
                    yield True, _holds(after[worker][chunk], workers, worker, chunk)
    yield from _with_unequal_chunks(function, 1)


def _part(workers, worker, chunk):
    """One worker's part of a chunk: a vector that is 1 in the place of just this part, and 0 elsewhere."""
    return np.eye(workers * workers)[worker * workers + chunk]


def _sum(workers, chunk):
    return sum(_part(workers, worker, chunk) for worker in range(workers))


def _gathered(workers, worker, chunk):
    """A chunk of a worker after the reduce-scatter: the sum over those from whom it has come."""
    return sum(_part(workers, (worker - back) % workers, chunk) for back in range((worker - chunk) % workers + 1))


class Ring(connected.Players):
    """A ring of K workers: what one of them passes on, the next one gets."""

    each, longest = "worker", 0.5

    def exchange(self, array):
        """Pass an array on to the next worker; returns that of the one before."""
        return self._come("exchange", None, [np.array(array)])[0].copy()

    def _results(self, kind, option, brought):
        return [brought[rank - 1] for rank in range(self._size)]


def _played(function, begin):
    """(Ring, [chunks of each worker after the function]), after the cases of chunks that cannot be compared."""
    workers = len(begin)
    ring = Ring(workers)

    def program():
        chunks = [chunk.copy() for chunk in begin[ring.rank()]]
        given = function(ring.rank(), workers, chunks, ring.exchange)
        return chunks if given is None else given

    try:
        with tried(f"{workers} workers"):
            after = ring.play(program)
    except connected.ConnectedError as problem:
        yield True, str(problem)
    for worker, chunks in enumerate(after):
        if not isinstance(chunks, list | tuple) or len(chunks) != workers:
            kind = f"{len(chunks)} of them" if isinstance(chunks, list | tuple) else type(chunks).__name__
            yield True, f"With {workers} workers, worker {worker} returns {kind}: return the list of {workers} chunks."
        for number, chunk in enumerate(chunks):
            before = begin[worker][number].shape
            yield (
                np.shape(chunk) != before,
                f"With {workers} workers, chunk {number} of worker {worker} has the shape {np.shape(chunk)} "
                f"afterwards: it had {before}.",
            )
    return ring, after


def _exchanged(ring, workers):
    """Cases of what was passed on, and how often."""
    sizes = {array.size for exchange in ring.exchanges for (array,) in exchange.brought} or {0}
    whole = workers * workers
    yield (
        max(sizes) > whole,
        f"With {workers} workers, a worker passes on {max(sizes)} numbers at once, but one chunk has {whole}.",
    )
    count = len(ring.exchanges)
    yield (
        count > workers - 1,
        f"With {workers} workers, each makes {count} exchanges: {workers - 1} are enough to reach all the others.",
    )
    yield (
        count < workers - 1,
        f"With {workers} workers, each makes {count} exchanges: a chunk needs {workers - 1} to reach the others.",
    )


def _holds(vector, workers, worker, chunk):
    """Hint: what a chunk holds that should be the whole sum."""
    where = f"With {workers} workers, chunk {chunk} of worker {worker}"
    parts = np.asarray(vector, float).reshape(workers, workers)
    own = parts[:, chunk]
    foreign = np.flatnonzero(np.any(parts, axis=0) & (np.arange(workers) != chunk))
    if len(foreign):
        return (
            f"{where} contains part of chunk {foreign[0]}: which chunk did the previous worker send in that exchange?"
        )
    if np.allclose(own, 1 / workers):
        return (
            f"{where} is the sum divided by {workers}, but the ring gives the sum. Take the mean once, after the ring."
        )
    for other in np.flatnonzero(own > 1):
        return f"{where} contains worker {other}'s part {own[other]:g} times: did you add a sum to what was there?"
    if missing := [str(other) for other in np.flatnonzero(own == 0)]:
        return f"{where} lacks the part{'s' * (len(missing) > 1)} of worker {', '.join(missing)}."
    times = ", ".join(f"{each:.3g}" for each in own)
    return f"{where} contains the parts of workers 0 to {workers - 1} {times} times: each belongs there once."


def _with_unequal_chunks(function, judged):
    """Cases of a function that fails with chunks of unequal length (4, 3 and 3 numbers, on 3 workers). judged: which
    function, 0 for the reduce-scatter or 1 for the all-gather."""
    random = np.random.default_rng(3)
    own = [[random.integers(-9, 9, size).astype(float) for size in (4, 3, 3)] for _ in range(3)]
    sums = [np.sum([own[worker][chunk] for worker in range(3)], axis=0) for chunk in range(3)]
    begin = [[sums[c] if judged and c == (w + 1) % 3 else own[w][c] for c in range(3)] for w in range(3)]
    _, after = yield from _played(function, begin)
    for worker in range(3):
        for chunk in range(3) if judged else [(worker + 1) % 3]:
            yield (
                not np.array_equal(after[worker][chunk], sums[chunk]),
                f"Right if all chunks have the same length. But if they have 4, 3 and 3 numbers, chunk {chunk} of "
                f"worker {worker} is not the sum.",
            )
