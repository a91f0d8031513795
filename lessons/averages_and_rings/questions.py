"""Questions of 02_averages_and_rings."""

import itertools

import numpy as np

from labs.checks.judging import judges
from labs.checks.student_code import tried
from lessons import connected
from lessons.averages_and_rings.sgd import Work
from lessons.forms import Formula, formula, formulas

GRADIENTS = [np.arange(6.0).reshape(2, 3) * k + k**2 for k in (1, 2, 4)]

formula(
    "averages.1",
    right=lambda gradients: np.mean(gradients, axis=0),
    cases=[(GRADIENTS,), (GRADIENTS[1:],)],
    wrong=[
        (np.mean, "This is one number, the mean over all workers *and* all weights. Average only over the workers."),
        (sum, "This is the sum. An update that uses it is K times too large."),
        ([lambda g: sum(g) / 3, lambda g: sum(g) / 4], "You divide by the same number, whatever K is."),
    ],
    otherwise="Add the gradients up. What must you then divide by?",
)

formula(
    "averages.3",
    right=lambda gradients, sizes: np.average(gradients, axis=0, weights=sizes),
    cases=[(GRADIENTS[:2], [4, 12]), (GRADIENTS[::-1], [2, 9, 1])],
    wrong=[
        (lambda g, n: np.mean(g, axis=0), "This is the plain mean: here a sample of a small batch counts more."),
        (lambda g, n: np.tensordot(n, g, 1), "If all gradients are equal, what must the result be?"),
        (lambda g, n: np.tensordot(n, g, 1) / len(g), "Divided by the number of workers. How many samples are there?"),
        (lambda g, n: np.tensordot(n, g, 1) / 16, "You divide by 16, whatever the sizes are."),
        (lambda g, n: sum(g) / sum(n), "Each gradient is the mean of its batch. How many samples does it stand for?"),
    ],
    otherwise="What weight must each gradient get, so that all samples have the same?",
)

formula(
    "averages.5",
    right=lambda times: times.max(axis=1).mean(),
    cases=[
        (np.array([[1.0, 2.0, 7.0], [6.0, 1.0, 2.0]]),),  # 2 steps, 3 workers
        (np.array([[3.0, 2.0, 2.0, 8.0], [1.0, 4.0, 2.0, 1.0], [1.0, 1.0, 1.0, 2.0]]),),
    ],
    wrong=[
        (lambda t: t.max(axis=0).mean(), "You take the slowest step of each worker. Who is the slowest in each step?"),
        (lambda t: t.mean(), "This is the mean time of a worker, as if nobody had to wait."),
        (lambda t: t.max(), "This is the slowest step of all. First find the time of each step; then take the mean."),
        (lambda t: t.mean(axis=0).max(), "This is the mean time of one worker. In another step, another one is last."),
        (lambda t: t.max(axis=1).sum(), "This is the total time of all the steps."),
        (lambda t: t.sum(axis=1).mean(), "This adds up the times of the workers, but they work at the same time."),
    ],
    otherwise="When does each of the steps end?",
)


def _count(applied):
    """A function that counts the gradients that are applied while `one` is computed. applied(begin, end, b, e): whether
    one from b to e is, if `one` takes from begin to end."""
    return lambda work, one: sum(applied(*one[1:3], *other[1:3]) for other in work)


def _other_work(arguments, draw):
    """[gradients, one of them] in place of `arguments`: some workers, each of which computes one after the other."""
    work = []
    for worker in range(draw.randint(2, 4)):
        times = itertools.accumulate(draw.uniform(0.5, 4) for _ in range(draw.randint(3, 5)))
        work += [Work(worker, begin, end, -1) for begin, end in itertools.pairwise(times)]
    work.sort(key=lambda each: each.end)
    return [work, draw.choice(work)]


SPANS = [(0, 0, 2), (1, 0, 3.5), (2, 0.5, 9), (0, 2, 4), (1, 3.5, 5), (0, 4, 8), (1, 5, 6)]  # worker, begin, end
WORK = [Work(*span, staleness=-1) for span in SPANS]

formula(
    "averages.9",
    right=lambda work, one: sum(one.begin < other.end < one.end for other in work),
    cases=[(WORK, one) for one in WORK],
    wrong=[
        (lambda work, one: one.staleness, "The simulator has recorded this. Count for yourself, by `begin` and `end`."),
        (_count(lambda begin, end, b, e: begin < e <= end), "You count `one`, too. But its own update comes after it."),
        (
            [_count(lambda begin, end, b, e: begin <= e < end), _count(lambda begin, end, b, e: begin <= e <= end)],
            "You count an update made when `one` begins. But its weights already contain that update.",
        ),
        (_count(lambda begin, end, b, e: begin < b < end), "These *began* meanwhile. When do they change weights?"),
        (_count(lambda begin, end, b, e: e < end), "You also count updates made before `one` began."),
        (_count(lambda begin, end, b, e: b < end and e > begin), "You count all that overlap. When do they count?"),
    ],
    otherwise="A gradient becomes an update when it ends: which of them end between its begin and its end?",
    varied=_other_work,
)

formulas(
    "averages.13",
    server_bytes=Formula(
        lambda workers, size, servers=1: 2 * workers * size / servers,
        cases=[(4, 600), (8, 700, 4), (3, 0.5, 4), (5, 90, 3)],
        wrong=[
            (lambda k, n, s=1: k * n / s, "The server's link carries these bytes in. What must go out again?"),
            (lambda k, n, s=1: 2 * k * n, "Right for one server. How much goes through each of several?"),
            (lambda k, n, s=1: 2 * k * n * s, "More servers, more bytes through each? But they share the gradient."),
            (lambda k, n, s=1: (k + 1) * n / s, "K gradients come in. The sum goes out: to how many workers?"),
            (lambda k, n, s=1: 2 * (k - 1) * n / s, "A server is a process beside the K workers: how many send to it?"),
        ],
        otherwise="What comes in, and what goes out?",
    ),
    ring_bytes=Formula(
        lambda workers, size: 2 * (workers - 1) / workers * size,
        cases=[(3, 600), (4, 50), (7, 90), (100, 8)],
        wrong=[
            (lambda k, n: 2 * (k - 1) * n, "A message is not the whole gradient: how large is a chunk?"),
            (lambda k, n: (k - 1) / k * n, "This counts only the reduce-scatter. What comes after it?"),
            (lambda k, n: 2 * n, "This is close with many workers. Count the steps and the chunks with 2 workers."),
            (lambda k, n: 4 * (k - 1) / k * n, "Count only what a worker sends, not what it receives."),
            ([lambda k, n: 2 * (k - 1) // k * n, lambda k, n: (k - 1) // k * n], "`//` cuts off decimals too early."),
        ],
        otherwise="Is that the number of steps times the size of a chunk?",
    ),
)


# The ring, by a student's functions


@judges("averages.16")
def reduce_scatter(function):
    for ring, workers in _rings():
        begin = [[ring.sum(chunk, [worker]) for chunk in workers] for worker in workers]
        yield from ring.played(function, begin)
        for chunk in workers:
            other = ring.complete(0, chunk) and not ring.complete(0, 1)
            seen = f"{ring.where}, worker 0 ends with the sum of chunk {chunk}, not of chunk 1"
            yield other, f"{seen}. Which chunk does worker w send first?"
        for worker in workers:
            yield from ring.incomplete(worker, (worker + 1) % len(workers))


@judges("averages.17")
def all_gather(function):
    for ring, workers in _rings():
        begin = [[ring.sum(c, range(w - (w - c) % len(workers), w + 1)) for c in workers] for w in workers]
        yield from ring.played(function, begin)
        other = not np.array_equal(ring.exchanges[0].brought[0][0], ring.sum(1, workers))
        yield other, f"{ring.where}, worker 0 begins with the sum of chunk 1, but passes on something else first."
        for worker, chunk in itertools.product(workers, repeat=2):
            yield from ring.incomplete(worker, chunk)


def _rings():
    """Rings in which a function is tried: (Ring, range of its workers)."""
    for workers, longer in ((4, 0), (2, 0), (3, 0), (3, 1)):
        yield Ring(workers, longer), range(workers)


class Ring(connected.Players):
    """A ring of K workers: what one of them passes on, the next one gets. longer: by how many numbers chunk 0 is."""

    each, longest = "worker", 0.5

    def __init__(self, workers, longer):
        super().__init__(workers)
        self.longer, self.where = longer, f"With {workers} workers" + " and chunks of unequal length" * longer

    def exchange(self, array):
        """Pass an array on to the next worker; returns that of the one before."""
        return self._come("exchange", None, [np.array(array)])[0].copy()

    def _results(self, kind, option, brought):
        return [brought[rank - 1] for rank in range(self._size)]

    def sum(self, chunk, workers):
        """A chunk, summed over these workers (-1: the last): the part of each is a 1 in a place of its own."""
        parts = np.zeros((self.size(), self.size()))
        parts[list(workers), chunk] = 1
        return np.resize(parts, parts.size + self.longer * (chunk == 0))

    def played(self, function, begin):
        """Cases of what is passed on and returned. begin: the chunks of each worker."""

        def program():
            chunks = [chunk.copy() for chunk in begin[self.rank()]]
            given = function(self.rank(), self.size(), chunks, self.exchange)
            return chunks if given is None else given

        try:
            with tried(f"{self.size()} workers"):
                self.after = self.play(program)
        except connected.ConnectedError as problem:
            yield True, str(problem)
        most, largest = begin[0][0].size, max((each.values for each in self.exchanges), default=0)
        yield largest > most, f"{self.where}, a worker passes on {largest} numbers at once, but one chunk has {most}."
        count, needed = len(self.exchanges), self.size() - 1
        yield count != needed, f"{self.where}, exchanges: {count}. A chunk reaches all others in {needed}."
        for worker, (after, before) in enumerate(zip(self.after, begin, strict=True)):
            shapes, wanted = type(after).__name__, list(map(np.shape, before))
            if isinstance(after, list | tuple):
                shapes = list(map(np.shape, after))
            seen = f"{self.where}, worker {worker} returns {shapes}"
            yield shapes != wanted, f"{seen}: return the list of its chunks, of shapes {wanted}."

    def complete(self, worker, chunk):
        return np.array_equal(self.after[worker][chunk], self.sum(chunk, range(self.size())))

    def incomplete(self, worker, chunk):
        """Cases of a chunk that is not the sum over all workers."""
        seen = f"{self.where}, chunk {chunk} of worker {worker} contains"
        parts = np.resize(np.asarray(self.after[worker][chunk], float), (self.size(), self.size()))
        foreign = np.delete(parts, chunk, axis=1).any()
        yield foreign, f"{seen} part of another chunk: which one did the previous worker send in that exchange?"
        times = ", ".join(f"{each:.3g}" for each in parts[:, chunk])
        wrong = not self.complete(worker, chunk)
        yield wrong, f"{seen} the parts of workers 0 to {self.size() - 1} as often as {times}: each belongs there once."
