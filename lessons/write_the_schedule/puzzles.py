"""The twelve puzzles: what each is played with, and how good a schedule can be.

A puzzle is judged with its example and with cases of other sizes, by `best`: for each measure that counts the best that
is known, and the bound that nobody can pass, in ms or MB. A schedule must come to within BAR of the best known. How the
best known was found stands beside it; `benchmarks/schedules.py` looks for better ones.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

from labs.checks import tasks
from lessons.reduce import ring_bytes
from lessons.write_the_schedule import observed
from lessons.write_the_schedule.engine import COLLECTIVES, Case

BAR = 1.05  # times the best known
MEASURES = {"time": "ms", "memory": "MB", "bytes": "MB"}
_COMPUTING = ("load", "forward", "backward", "update")


@dataclass(frozen=True)
class Puzzle:
    """One puzzle. case: the example; others: cases of other sizes, the largest first; best: function of a case ->
    {measure: (best known, bound or None)}; shared: do all ranks work on the same micro-batch (see `broken_rule`)?"""

    id: str
    case: Case
    others: list
    best: Callable
    shared: bool

    @property
    def title(self):
        return tasks.task(self.id).title


PUZZLES = {}  # {id: Puzzle}, in the order of the notebooks


def _puzzle(id, make, *shapes, shared=False):
    """Decorator of the function `best` of a puzzle, which adds it to PUZZLES. make: gives a case, without arguments the
    example; shapes: for each of its arguments values other than the example's."""

    def added(best):
        PUZZLES[id] = Puzzle(id, make(), [make(*shape) for shape in product(*shapes)], best, shared)
        return best

    return added


def sizes(case):
    """The arguments of a program besides its rank, in words."""
    return f"K = {case.ranks}, L = {case.layers}, M = {case.batches}"


def changed(case, **changes):
    """The case with some of its values changed. Where only the ranks are, there are as many more micro-batches, if each
    rank has its own, and as many more layers in a pipeline."""
    ranks = changes.get("ranks", case.ranks)
    if case.batches % case.ranks == 0:
        changes.setdefault("batches", ranks * case.batches // case.ranks)
    if case.start == "stages":
        changes.setdefault("layers", ranks * case.layers // case.ranks)
    return replace(case, **changes)


def measured(played):
    """What a played schedule takes: its time, the peak of the rank that holds most, the most that a rank sends."""
    return {"time": played.time, "memory": max(played.peaks), "bytes": max(played.sent)}


def bars(puzzle, case):
    """{measure: the most that it may be}."""
    return {measure: BAR * best for measure, (best, _) in puzzle.best(case).items()}


def broken_rule(puzzle, operations):
    """What is computed more than once, in words, or None. The bounds hold under this rule: one rank computes each pass,
    once, unless all share a micro-batch."""
    if puzzle.shared:
        return None
    computed = {}  # {(word, layer, micro-batch): the ranks that compute it}
    for rank, each in enumerate(operations):
        for word, arguments, _ in each:
            if word.startswith(("forward", "backward")):
                computed.setdefault((word, *arguments[:2]), []).append(rank)
    for (word, layer, batch), ranks in computed.items():
        if len(ranks) > 1:
            which = f"rank{'s' * (len(set(ranks)) > 1)} {', '.join(map(str, sorted(set(ranks))))}"
            told = f"`{word}({layer}, {batch})` is computed {len(ranks)} times, on {which}"
            return f"{told}. In this puzzle, each pass is computed once."
    return None


def _layer(case):
    """Milliseconds that one micro-batch takes in one layer, forward and backward."""
    return case.forward + case.inputs + case.weights


# 1 to 3: data parallelism


def _plain(ranks=4, layers=6):
    return Case(ranks, layers, ranks, load=0.2, update=0.1, latency=0.3, words=(*_COMPUTING, "all_reduce"))


@_puzzle("schedule.1", _plain, (6, 5, 3), (8, 7, 5))
def _best_plain(case):
    """Each rank computes one micro-batch, and then all gradients go in one message. This is also the bound: without
    `wait=False` nothing overlaps, and there cannot be fewer than one message."""
    time = case.load + case.layers * (_layer(case) + case.update) + case.ring(case.layers * case.parameters, 2)
    return {"time": (time, time)}


def _buckets(ranks=4, layers=12):
    size = 0.75 * 8 * ranks / (2 * (ranks - 1))  # so that the all-reduce of a layer takes 0.75 ms without its latency
    case = Case(ranks, layers, ranks, forward=0.5, inputs=0.5, weights=0.5, load=0.2, update=0.02)
    words = (*_COMPUTING, "all_reduce", "wait")
    return replace(case, latency=0.45 / (ranks - 1), parameters=size, activation=size / 4, words=words)


def updated_in_buckets(case):
    """Milliseconds from the beginning of the backward pass until the last layer is updated, for the best choice of
    buckets of neighbouring layers, found by searching all choices; each is sent as soon as its last layer is done. All
    buckets but the last one are updated while the next one is on its way, which takes longer."""
    ends = [0.0]  # of the exchange of so many layers, counted from the last one

    def sent(before, layers):
        ready = max(ends[before], layers * (case.inputs + case.weights))
        return ready + case.ring((layers - before) * case.parameters, 2)

    for layers in range(1, case.layers):
        ends.append(min(sent(before, layers) for before in range(layers)))
    return min(sent(before, case.layers) + (case.layers - before) * case.update for before in range(case.layers))


@_puzzle("schedule.2", _buckets, (8, 6, 5, 3), (24, 20, 18, 15))
def _best_buckets(case):
    """Bound: all is computed, and after the last gradient at least its own message is sent, and its layer updated."""
    alone = case.load + case.layers * case.forward
    bound = alone + case.layers * (case.inputs + case.weights) + case.ring(case.parameters, 2) + case.update
    return {"time": (alone + updated_in_buckets(case), bound)}


def _accumulated(ranks=4, layers=6, passes=2):
    size = 1.7 * 8 * ranks / (2 * (ranks - 1))  # the all-reduce of a layer takes little less than its backward pass
    case = Case(
        ranks, layers, passes * ranks, load=0.1, update=0.05, latency=0.02, parameters=size, activation=2.5 * size
    )
    return replace(case, words=(*_COMPUTING, "all_reduce", "wait"))


@_puzzle("schedule.3", _accumulated, (6, 3, 2), (8, 7, 5), (3, 2))
def _best_accumulated(case):
    """Time: all is computed, and the exchange of layer 0 and its update follow, which is the bound, too; the other
    layers are updated during that exchange. Memory: weights, state and gradients of all layers, and the activations of
    one micro-batch when its backward pass begins."""
    passes = case.batches // case.ranks
    time = passes * (case.load + case.layers * _layer(case)) + case.ring(case.parameters, 2)
    time += max(case.update, case.layers * case.update - case.ring(case.parameters, 2))
    memory = 4 * case.layers * case.parameters + (case.layers + 2) * case.activation
    return {"time": (time, time), "memory": (memory, None)}


# 4 to 6: ZeRO


def _zero_1(ranks=4, layers=6):
    case = Case(ranks, layers, ranks, "optimizer parts", load=0.1, update=0.2, latency=0.02, activation=2.0)
    return replace(case, words=(*_COMPUTING, *COLLECTIVES, "wait"))


@_puzzle("zero.1", _zero_1, (6, 3, 2), (8, 7, 5))
def _best_zero_1(case):
    """A reduce-scatter of the gradients and an all-gather of the weights. Each alone is known to need as many bytes."""
    sent = ring_bytes(case.ranks, case.layers * case.parameters)
    return {"bytes": (sent, sent)}


def _zero_2(ranks=4, layers=7):
    """With so few layers that a second whole gradient misses the bar."""
    return replace(_zero_1(ranks, layers), words=(*_COMPUTING, *COLLECTIVES, "free", "wait"))


@_puzzle("zero.2", _zero_2, (8, 6, 5), (8, 7, 6))
def _best_zero_2(case):
    """When the last layer's gradient is made, a rank holds all weights (to gather one again costs bytes), its part of
    the state, all activations (none is computed again), and one gradient. Nothing can be updated before."""
    size = case.parameters
    memory = case.layers * size * (1 + case.slots / case.ranks) + size + (case.layers + 2) * case.activation
    return {"memory": (memory, memory)} | _best_zero_1(case)


def _zero_3(ranks=4, layers=6):
    size = round(0.8 * 8 * ranks / (ranks - 1))  # to gather a layer takes 0.8 of its forward pass
    case = Case(ranks, layers, ranks, "parts", load=0.1, update=0.2, latency=0.01, parameters=size)
    words = (*_COMPUTING, *COLLECTIVES, "free", "wait")
    return replace(case, activation=round(1.2 * size / ranks, 1), words=words)


@_puzzle("zero.3", _zero_3, (8, 6, 3), (8, 7, 5))
def _best_zero_3(case):
    """Time: the first all-gather and the last reduce-scatter cannot be hidden. Memory: parts of all layers, two layers
    gathered, a gradient that is made while the one before is sent."""
    size, half = case.parameters, case.ring(case.parameters)
    time = half + case.layers * _layer(case) + half + case.update / case.ranks
    parts = case.layers * size * (1 + case.slots) / case.ranks
    memory = parts + 2 * size * (case.ranks - 1) / case.ranks + 2 * size + (case.layers + 1) * case.activation
    return {"time": (time, time), "memory": (memory, None)}


# 7 and 8: the all-reduce by hand


def _ring(ranks=4, size=8.0, latency=0.01):
    return Case(ranks, 1, ranks, "gradients", latency=latency, parameters=size, words=("send", "receive", "wait"))


@_puzzle("harder.1", _ring, (8, 6, 5, 3), (10.0, 6.0))
def _best_ring(case):
    """Known bound of the bytes over the busiest link: 2 (K - 1) / K of the gradient (P. Patarasuk and X. Yuan, JPDC 69,
    2009). They need one message at least, and what one rank knows reaches all in log2 K messages at the earliest."""
    sent = ring_bytes(case.ranks, case.parameters)
    bound = max(case.message(sent), math.ceil(math.log2(case.ranks)) * case.latency)
    return {"time": (case.ring(case.parameters, 2), bound), "bytes": (sent, sent)}


def _halves(ranks=4, size=8.0):
    return _ring(ranks, size, 0.2 * size / 8)


@_puzzle("harder.2", _halves, (8, 2), (10.0, 6.0))
def _best_halves(case):
    """As many bytes as in the ring, in 2 log2 K messages (R. Thakur and others, IJHPCA 2005)."""
    best, sent = _best_ring(case), ring_bytes(case.ranks, case.parameters)
    time = 2 * math.log2(case.ranks) * case.latency + sent / case.bandwidth
    return best | {"time": (time, best["time"][1])}


# 9: tensor parallelism


def _tensor(ranks=4, layers=4):
    words = (*_COMPUTING, *COLLECTIVES, "free")
    return Case(ranks, layers, 1, "parts", load=0.1, update=0.1, latency=0.01, activation=2.0, wide=4.0, words=words)


@_puzzle("harder.3", _tensor, (8, 2), (8, 6, 4), shared=True)
def _best_tensor(case):
    """One all-reduce for two layers forward, one backward but for the first two (M. Shoeybi and others, 2019)."""
    time = case.load + case.layers * (_layer(case) + case.update) / case.ranks
    exchanges = case.layers - 1
    time += exchanges * case.ring(case.activation, 2)
    return {"time": (time, None), "bytes": (exchanges * ring_bytes(case.ranks, case.activation), None)}


# 10 to 12: pipelines


def _pipeline(ranks=4, rounds=2, activation=2.0):
    times = {"load": 0.02, "update": 0.1, "bandwidth": 200.0}
    words = (*_COMPUTING, "send", "receive", "wait")
    return Case(ranks, ranks, rounds * ranks, "stages", activation=activation, words=words, **times)


@_puzzle("pipeline.1", _pipeline, (6, 5, 3), (3, 2))
def _best_gpipe(case):
    """Until the last rank has begun and the first one has ended: each computes M times, K - 1 others before it."""
    time = case.load + (case.batches + case.ranks - 1) * _layer(case) + case.update
    time += 2 * (case.ranks - 1) * case.message(case.activation)
    return {"time": (time, time)}


def _1f1b(ranks=4):
    """With activations so large that one micro-batch more than needed misses the bar."""
    return _pipeline(ranks, 3, activation=6.0)


@_puzzle("pipeline.2", _1f1b, (6, 5, 3))
def _best_1f1b(case):
    """Memory: the first rank cannot have fewer than K micro-batches under way without waiting longer."""
    memory = (2 + case.slots) * case.parameters + (case.ranks + 2) * case.activation
    return _best_gpipe(case) | {"memory": (memory, None)}


def _zero_bubble(ranks=4, rounds=2):
    case = _pipeline(ranks, rounds)
    return replace(case, words=(*case.words[:-1], "backward_inputs", "backward_weights", "wait"))


@_puzzle("pipeline.3", _zero_bubble, (6, 5, 3))
def _best_zero_bubble(case):
    """Bound: the last rank can begin after K - 1 forward passes, and computes M times. Memory: of the fastest schedule
    that is known, in which rank r delays each second half until it has handed on r more errors."""
    first = case.load + (case.ranks - 1) * (case.forward + case.message(case.activation))
    time = first + case.batches * _layer(case) + case.update
    memory = (2 + case.slots) * case.parameters + (2 * case.ranks + 1) * case.activation
    return {"time": (time, time), "memory": (memory, None)}


BEYOND = {  # {measure: {puzzle: what to look at where a schedule misses the bar, or a function that says it}}
    "time": {
        "schedule.1": "Look at what the ranks do at the same time, and at how often the latency of a message is paid.",
        "schedule.2": observed.buckets,
        "schedule.3": "Where are the links idle although a sum is complete on this rank?",
        "zero.3": observed.longest_waits,
        "harder.1": "How many links are in use at the same time, and how large is a message?",
        "harder.2": "How many messages follow one another? Each of them pays the latency.",
        "harder.3": "Do you gather weights? Or which exchange moves what the next layer could use in parts?",
        "pipeline.1": "Move the slider to a rank that waits: what for, and which micro-batch could it have worked on?",
        "pipeline.2": "Move the slider to a rank that waits in the middle: which operation could have come first?",
        "pipeline.3": observed.longest_waits,
    },
    "memory": {
        "schedule.3": "Whose activations are kept at the peak, and does a rank need all of them then?",
        "zero.2": "Move the slider to the peak: how many whole gradients lie there, and since when?",
        "zero.3": "Move the slider to the peak: how many layers have gathered weights, and which of them are used?",
        "pipeline.2": "Move the slider to the peak of rank 0: how many micro-batches are under way there?",
        "pipeline.3": "Move the slider to the peak: which second half could have freed memory before?",
    },
    "bytes": {
        "zero.1": "Which part of a gradient does `update` use on this rank, and what else did it receive?",
        "zero.2": "Which part of a gradient does `update` use on this rank, and what else did it receive?",
        "harder.1": "How many parts does one rank send, over all its messages?",
        "harder.2": "Does a rank send parts whose sum it does not need to hand on?",
        "harder.3": "Which activation is the wide one, and does it have to leave its rank? Or do you gather weights?",
    },
}
