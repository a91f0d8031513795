"""A student's pipeline on real processes: the same operations with numbers, and the weights beside those of one.

    python -m lessons.write_the_schedule.real OPTIONS   OPTIONS: JSON, puzzle, ranks, files of operations and result

Each rank is a process of its own; a queue leads from each rank to each other one. A layer is y = tanh(x W), the loss is
half the squared distance from a target, and the update a step of SGD with momentum.
"""

import json
import multiprocessing
import sys
import time
from itertools import permutations
from pathlib import Path

import numpy as np

from labs import files, jobs
from labs.errors import LabsError
from lessons.write_the_schedule import game
from lessons.write_the_schedule.engine import Case, play, written
from lessons.write_the_schedule.puzzles import PUZZLES, changed, sizes

WIDTH, SAMPLES, RATE, MOMENTUM = 16, 8, 0.1, 0.9  # of a layer, of a micro-batch, of the update


class RealError(LabsError):
    """A program cannot run on real processes; the message says why."""


def run(id, program, ranks=2):
    """Run a program that solves a pipeline's puzzle on `ranks` processes, in a job: prints what came of it, and returns
    it. Without a word about time: these processes share a few cores and one memory.
    """
    case = changed(PUZZLES[id].case, ranks=ranks)
    operations = game.recorded(program, case)
    if problem := game.played_of(PUZZLES[id], case, operations)[1]:
        raise RealError(f"The engine says that this program is not right: {problem}")
    if case.start != "stages":
        raise RealError("Only pipelines run on real processes here.")
    name = f"schedule_{id}_on_{ranks}"
    asked, result = ((jobs.folder() / f"{name}.{kind}.json").resolve() for kind in ("operations", "result"))
    files.write(asked, json.dumps(operations))
    result.unlink(missing_ok=True)
    options = json.dumps([id, ranks, str(asked), str(result)])
    if jobs.run("-m", "lessons.write_the_schedule.real", options, name=name).state != "finished":
        return None
    found = json.loads(result.read_text(encoding="utf-8"))
    print(f"{ranks} processes, {sizes(case)}: the weights differ by at most {found['difference']:.1e} from those of")
    print("one process. Order of operations as in the engine:", "yes." if found["in order"] else "no.")
    return found


def measure(case, operations):
    """Play operations on real processes: {"difference": of the weights from those of one process, the largest; "in
    order": whether each rank did what the engine says in its order, and nothing arrived before it was sent}."""
    rows, alone = _processes(case, operations), _alone(case)
    weights = {tensor: each for row in rows for tensor, each in row["weights"].items()}
    difference = max(float(np.abs(each - alone[tensor]).max()) for tensor, each in weights.items())
    return {"difference": difference, "in order": _in_order(case, operations, rows)}


def _in_order(case, operations, rows):
    """Whether what the processes have told fits the engine's events and transfers."""
    played = play(case, operations)
    computed = [[e.text for e in played.events if e.rank == rank and e.word != "wait"] for rank in range(case.ranks)]
    sent = {message: moment for row in rows for message, moment in row["sent"].items()}
    received = {message: moment for row in rows for message, moment in row["received"].items()}
    return (
        computed == [row["computed"] for row in rows]
        and len(played.transfers) == len(sent) == len(received)
        and all(moment < received[message] for message, moment in sent.items())
    )


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


def _processes(case, operations):
    """What each process tells at its end, by rank."""
    forked = multiprocessing.get_context("fork")
    queues, told = {pair: forked.Queue() for pair in permutations(range(case.ranks), 2)}, forked.Queue()
    processes = [
        forked.Process(target=_work, args=(rank, case, operations[rank], queues, told), daemon=True)
        for rank in range(case.ranks)
    ]
    for process in processes:
        process.start()
    rows = dict(told.get(timeout=60) for _ in processes)  # they need a second, unless one fails
    return [rows[rank] for rank in range(case.ranks)]


def _work(rank, case, operations, queues, told):
    worker = _Worker(rank, case, queues)
    worker.play(operations)
    weights = {tensor: each for tensor, each in worker.store.items() if tensor[0] == "weights"}
    row = {"weights": weights, "computed": worker.computed, "sent": worker.sent, "received": worker.received}
    told.put((rank, row))


class _Worker:
    """One rank: what it holds, {(kind, layer, batch): numbers}, its queues, and what it tells: what it has computed,
    and {message: moment} of what it has sent and received, where a message is (sender, receiver, tensor)."""

    def __init__(self, rank, case, queues):
        self.rank, self.last, self.queues = rank, case.layers - 1, queues
        self.store, self.early, self.computed, self.sent, self.received = {}, {}, [], {}, {}
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
                if word not in ("send", "receive"):
                    self.computed.append(written(word, arguments))
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
        tensor = tuple(tensor[:3])
        self.sent[self.rank, to, tensor] = time.monotonic_ns()
        self.queues[self.rank, to].put((tensor, self.store[tensor]))
        if tensor[2] is not None:  # an activation or an error leaves its rank
            del self.store[tensor]

    def receive(self, tensor, source, add, wait):
        """Others that come before this one are kept."""
        tensor = tuple(tensor[:3])
        while (source, tensor) not in self.early:
            came, content = self.queues[source, self.rank].get()
            self.early[source, came] = content
        self.received[source, self.rank, tensor] = time.monotonic_ns()
        self.store[tensor] = self.early.pop((source, tensor)) + (self.store[tensor] if add else 0)


def _first(layer):
    """The weights of a layer before the step."""
    return np.random.default_rng(layer).normal(0, WIDTH**-0.5, (WIDTH, WIDTH))


def _samples(batch):
    """(inputs, targets) of a micro-batch."""
    random = np.random.default_rng((1, batch))
    return random.normal(0, 1, (SAMPLES, WIDTH)), random.uniform(-0.5, 0.5, (SAMPLES, WIDTH))


def main():
    id, ranks, asked, result = json.loads(sys.argv[1])
    operations = json.loads(Path(asked).read_text(encoding="utf-8"))
    found = measure(changed(PUZZLES[id].case, ranks=ranks), operations)
    files.write(Path(result), json.dumps(found))
    print(found)


if __name__ == "__main__":
    main()
