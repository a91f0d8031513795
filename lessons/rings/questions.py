"""Judges of 02b_rings."""

import math
from functools import partial

import numpy as np

from labs.checks.judging import judges
from labs.checks.reading import CUT
from labs.checks.student_code import tried
from lessons import connected


def _through_server(server):
    """Cases of a wrong first function of rings.2."""
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


@judges("rings.2")
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


@judges("rings.5")
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


@judges("rings.6")
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
