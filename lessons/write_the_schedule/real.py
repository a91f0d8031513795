"""A student's pipeline on real processes: the same operations with numbers, and the weights beside those of one.

Each rank is a process of its own; a queue leads from each rank to each other one. A layer is y = tanh(x W), the loss is
half the squared distance from a target, and the update a step of SGD with momentum.
"""

import multiprocessing
from itertools import permutations

import numpy as np

from labs.errors import LabsError
from lessons.write_the_schedule.engine import Case
from lessons.write_the_schedule.puzzles import PUZZLES, changed, sizes

WIDTH, SAMPLES, RATE, MOMENTUM = 16, 8, 0.1, 0.9  # of a layer, of a micro-batch, of the update


class RealError(LabsError):
    """A program cannot run on real processes; the message says why."""


def run(id, program, ranks=2):
    """Run a program that solves a pipeline's puzzle on `ranks` processes: prints by how much the weights differ from
    those of one process, and returns it. Without a word about time: these processes share a few cores and one memory.
    """
    from lessons.write_the_schedule import game  # not above: the processes import this module, and draw nothing

    case = changed(PUZZLES[id].case, ranks=ranks)
    operations = game.recorded(program, case)
    if problem := game.played_of(PUZZLES[id], case, operations)[1]:
        raise RealError(f"The engine says that this program is not right: {problem}")
    if case.start != "stages":
        raise RealError("Only pipelines run on real processes here.")
    found = measure(case, operations)
    print(f"{ranks} processes, {sizes(case)}: the weights differ by at most {found:.1e} from those of one process.")
    return found


def measure(case, operations):
    """Play operations on real processes: by how much the weights differ from those of one process, at most."""
    alone = _alone(case)
    return max(float(np.abs(each - alone[tensor]).max()) for tensor, each in _together(case, operations).items())


def _alone(case):
    """What one process holds at the end that computes everything."""
    worker = _Worker(0, Case(1, case.layers, case.batches), {})
    for batch in range(case.batches):
        worker.load(batch)
        for layer in range(case.layers):
            worker.forward(layer, batch)
        for layer in reversed(range(case.layers)):
            worker.backward(layer, batch)
    for layer in range(case.layers):
        worker.update(layer)
    return worker.store


def _together(case, operations):
    """The weights of all layers at the end, {tensor: numbers}, from a process for each rank."""
    started = multiprocessing.get_context("spawn")  # a kernel has threads, and a fork of it may hang
    queues, ends = {pair: started.Queue() for pair in permutations(range(case.ranks), 2)}, started.Queue()
    for rank, own in enumerate(operations):
        started.Process(target=_work, args=(rank, case, own, queues, ends), daemon=True).start()
    weights = {}
    for _ in operations:
        weights |= ends.get(timeout=60)  # they need a few seconds, unless one fails
    return weights


def _work(rank, case, operations, queues, ends):
    worker = _Worker(rank, case, queues)
    worker.play(operations)
    ends.put({tensor: each for tensor, each in worker.store.items() if tensor[0] == "weights"})


class _Worker:
    """One rank: what it holds, {(kind, layer, batch): numbers}, its queues, and what came too early."""

    def __init__(self, rank, case, queues):
        self.rank, self.last, self.queues = rank, case.layers - 1, queues
        self.store, self.early = {}, {}
        for tensor in case.held(rank):
            self.store[tensor] = _first(tensor[1]) if tensor[0] == "weights" else np.zeros((WIDTH, WIDTH))

    def play(self, operations):
        started = {}  # {operation: arguments} of what is still to be received
        for step, (word, arguments, _) in enumerate(operations):
            if word == "receive" and not arguments[-1]:
                started[step] = arguments
            elif word == "wait":
                if arguments[0] in started:  # and it is no `send`, which goes its way
                    self.receive(*started.pop(arguments[0]))
            else:
                getattr(self, word)(*arguments)
        for arguments in started.values():
            self.receive(*arguments)

    def load(self, batch):
        self.store["activation", -1, batch] = _samples(batch)[0]

    def forward(self, layer, batch, split=None):
        given, weights = self.store["activation", layer - 1, batch], self.store["weights", layer, None]
        self.store["activation", layer, batch] = np.tanh(given @ weights)

    def backward(self, layer, batch, split=None):
        self.backward_inputs(layer, batch)
        self.backward_weights(layer, batch)

    def backward_inputs(self, layer, batch):
        if layer:
            slope, weights = self._slope(layer, batch), self.store["weights", layer, None]
            self.store["error", layer - 1, batch] = slope @ weights.T

    def backward_weights(self, layer, batch):
        slope, given = self._slope(layer, batch), self.store.pop(("activation", layer - 1, batch))
        gradient = ("gradient", layer, None)
        self.store[gradient] = self.store.get(gradient, 0) + given.T @ slope
        del self.store["activation" if layer == self.last else "error", layer, batch]

    def _slope(self, layer, batch):
        """The gradient of the loss with respect to what the layer takes the tanh of."""
        y = np.tanh(self.store["activation", layer - 1, batch] @ self.store["weights", layer, None])
        error = y - _samples(batch)[1] if layer == self.last else self.store["error", layer, batch]
        return error * (1 - y**2)

    def update(self, layer):
        weights, state = ("weights", layer, None), ("optimizer", layer, None)
        self.store[state] = MOMENTUM * self.store[state] + self.store.pop(("gradient", layer, None))
        self.store[weights] = self.store[weights] - RATE * self.store[state]

    def send(self, tensor, to, wait):
        self.queues[self.rank, to].put((tensor[:3], self.store[tensor[:3]]))
        if tensor[2] is not None:  # an activation or an error leaves its rank
            del self.store[tensor[:3]]

    def receive(self, tensor, source, add, wait):
        """Others that come before this one are kept."""
        tensor = tensor[:3]
        while (source, tensor) not in self.early:
            came, content = self.queues[source, self.rank].get()
            self.early[source, came] = content
        self.store[tensor] = self.early.pop((source, tensor)) + (self.store[tensor] if add else 0)


def _first(layer):
    """The weights of a layer before the step."""
    return np.random.default_rng(layer).normal(0, WIDTH**-0.5, (WIDTH, WIDTH))


def _samples(batch):
    """(inputs, targets) of a micro-batch."""
    random = np.random.default_rng((1, batch))
    return random.normal(0, 1, (SAMPLES, WIDTH)), random.uniform(-0.5, 0.5, (SAMPLES, WIDTH))
