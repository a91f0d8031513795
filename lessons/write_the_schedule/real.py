"""A student's program on real processes: the same operations with numbers, and the weights beside those of one process.

    python -m lessons.write_the_schedule.real OPTIONS   OPTIONS: JSON, the arguments of `measure`, file of the result

Each rank is a process of its own; a pipe leads from each rank to each other one. A layer is y = tanh(x W), the loss is
half the squared distance from a target, and the update a step of SGD with momentum.
"""

import json
import multiprocessing
import queue
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from labs import files, jobs
from labs.errors import LabsError
from lessons.write_the_schedule import game
from lessons.write_the_schedule.engine import Case, play, written
from lessons.write_the_schedule.programs import backward, forward, load, program, update
from lessons.write_the_schedule.puzzles import PUZZLES, changed, sizes

WIDTH, SAMPLES, RATE, MOMENTUM = 16, 8, 0.1, 0.9  # of a layer, of a micro-batch, of the update


class RealError(LabsError):
    """A program cannot run on real processes; the message says why."""


def run(id, program, ranks=2, **changes):
    """Run a program that solves a puzzle on `ranks` processes, in a job: prints what came of it, and returns it.

    changes: of the case, as layers=4. Without a word about time: these processes share a few cores and one memory.
    """
    case = changed(PUZZLES[id].case, ranks=ranks, **changes)
    operations = game.recorded(program, case)
    if problem := game.played_of(PUZZLES[id], case, operations)[1]:
        raise RealError(f"The engine says that this program is not right: {problem}")
    name = f"schedule_{id}_on_{ranks}"
    asked, result = ((jobs.folder() / f"{name}.{kind}.json").resolve() for kind in ("operations", "result"))
    files.write(asked, json.dumps(operations))
    result.unlink(missing_ok=True)
    of_case = {"ranks": ranks, "layers": case.layers, "batches": case.batches, "start": case.start}
    options = {"case": of_case, "operations": str(asked), "result": str(result)}
    if jobs.run("-m", "lessons.write_the_schedule.real", json.dumps(options), name=name).state != "finished":
        return None
    found = json.loads(result.read_text(encoding="utf-8"))
    print(f"{ranks} processes, {sizes(case)}: the weights differ by at most {found['difference']:.1e} from those of")
    print("one process. Order of operations as in the engine:", "yes." if found["in order"] else "no.")
    return found


def measure(case, operations):
    """Play operations on real processes: {"difference": of the weights from those of one process, the largest;
    "moved": how far the update has moved these; "in order": whether each rank did what the engine says in its order,
    and nothing arrived before it was sent}."""
    found, alone = _processes(case, operations), Case(1, case.layers, case.batches)
    (one,) = _processes(alone, game.recorded(_alone, alone))
    difference = 0.0
    for row in found:
        for layer, parts in row["weights"].items():
            whole = np.array_split(one["weights"][layer][0], case.ranks)
            difference = max(difference, *(float(np.abs(whole[part] - each).max()) for part, each in parts.items()))
    moved = max(float(np.abs(one["weights"][layer][0] - np.ravel(_first(layer))).max()) for layer in range(case.layers))
    return {"difference": difference, "moved": moved, "in order": _in_order(case, operations, found)}


def _in_order(case, operations, found):
    """Whether what the processes have told fits the engine's events and transfers."""
    played = play(replace(case, update=1.0), operations)  # what takes no time is no event
    for rank, row in enumerate(found):
        told = [(word, text) for word, text, *_ in row["told"] if word in ("forward", "update") or "backward" in word]
        if told != [(e.word, e.text) for e in played.events if e.rank == rank and e.word not in ("wait", "load")]:
            return False
    messages = {}
    for row in found:
        for word, key, begin, end in row["told"]:
            if word in ("sent", "received"):
                messages.setdefault(key, {})[word] = begin if word == "sent" else end
    pairs = [each for each in messages.values() if each["sent"] < each["received"]]
    return len(pairs) == len(messages) and len(pairs) == sum(t.sender is not None for t in played.transfers) + sum(
        case.ranks * (case.ranks - 1) for t in played.transfers if t.sender is None
    )


@program
def _alone(rank, K, L, M):
    for batch in range(M):
        load(batch)
        for layer in range(L):
            forward(layer, batch)
        for layer in reversed(range(L)):
            backward(layer, batch)
    for layer in range(L):
        update(layer)


def _processes(case, operations):
    """What each process tells at its end, by rank."""
    forked = multiprocessing.get_context("fork")
    pipes = {(a, b): forked.Pipe(duplex=False) for a in range(case.ranks) for b in range(case.ranks) if a != b}
    told = forked.SimpleQueue()
    processes = [
        forked.Process(target=_work, args=(rank, case, operations[rank], pipes, told), daemon=True)
        for rank in range(case.ranks)
    ]
    for process in processes:
        process.start()
    rows = {}
    while len(rows) < case.ranks:
        if told.empty() and any(process.exitcode for process in processes):
            raise RealError("A process has failed, and the others would wait for it: its line stands above.")
        if told.empty():
            time.sleep(0.01)
        else:
            rank, row = told.get()
            rows[rank] = row
    for process in processes:
        process.join()
    return [rows[rank] for rank in range(case.ranks)]


def _work(rank, case, operations, pipes, told):
    worker = _Worker(rank, case, pipes)
    worker.play(operations)
    weights = {layer: parts for (kind, layer, _), parts in worker.store.items() if kind == "weights"}
    told.put((rank, {"weights": weights, "told": worker.told}))


class _Worker:
    """One rank: what it holds, {tensor: {part: numbers}}, and its pipes."""

    def __init__(self, rank, case, pipes):
        self.rank, self.case, self.told, self.started, self.early = rank, case, [], {}, {}
        self.store, self.into = {}, {a: pipe[0] for (a, b), pipe in pipes.items() if b == rank}
        self.out = {b: queue.Queue() for a, b in pipes if a == rank}
        self.posting = [
            threading.Thread(target=self._post, args=(waiting, pipes[rank, b][1]), daemon=True)
            for b, waiting in self.out.items()
        ]
        for thread in self.posting:
            thread.start()
        for tensor, parts in case.held(rank).items():
            whole = {"weights": _first(tensor[1]), "optimizer": np.zeros(WIDTH * WIDTH)}
            self._put(tensor, {p: each for p, each in enumerate(self._cut(whole[tensor[0]])) if p in parts})

    def _post(self, waiting, pipe):
        while (message := waiting.get()) is not None:
            pipe.send(message)

    def _cut(self, whole):
        return [each.copy() for each in np.array_split(np.ravel(whole), self.case.ranks)]

    def _put(self, tensor, parts):
        self.store.setdefault(tensor, {}).update(parts)

    def _matrix(self, kind, layer, batch=None):
        parts = self.store[kind, layer, batch]
        rows = SAMPLES if batch is not None else WIDTH
        return np.concatenate([parts[part] for part in range(self.case.ranks)]).reshape(rows, WIDTH)

    def play(self, operations):
        for step, (word, arguments, _) in enumerate(operations):
            begin = time.monotonic_ns()
            if word in ("send", "receive", "all_reduce", "reduce_scatter", "all_gather"):
                self.started[step] = self._begin(step, word, *arguments)
                if arguments[-1]:
                    self.started.pop(step)()
            elif word == "wait":
                self.started.pop(arguments[0])()
            elif word == "free":
                for kind, layer, batch, parts in arguments[0]:
                    held = self.store[kind, layer, batch]
                    for part in parts or list(held):
                        if part != arguments[1]:
                            held.pop(part)
            else:
                self._compute(word, *arguments)
                self.told.append((word, written(word, arguments), begin, time.monotonic_ns()))
        for end in self.started.values():
            end()
        for waiting, thread in zip(self.out.values(), self.posting, strict=True):
            waiting.put(None)
            thread.join()

    def _compute(self, word, layer, batch=None, split=None):
        if split:
            raise RealError("Layers that are split do not run on real processes here.")
        if word == "load":
            self._put(("activation", -1, layer), dict(enumerate(self._cut(_samples(layer)[0]))))
        elif word == "update":
            slopes, state, weights = (self.store[kind, layer, None] for kind in ("gradient", "optimizer", "weights"))
            for part in slopes.keys() & state.keys():
                state[part] = MOMENTUM * state[part] + slopes[part]
                weights[part] = weights[part] - RATE * state[part]
            del self.store["gradient", layer, None]
        elif word == "forward":
            given = np.tanh(self._matrix("activation", layer - 1, batch) @ self._matrix("weights", layer))
            self._put(("activation", layer, batch), dict(enumerate(self._cut(given))))
        else:
            self._backward(word, layer, batch)

    def _backward(self, word, layer, batch):
        x, weights = self._matrix("activation", layer - 1, batch), self._matrix("weights", layer)
        y, last = np.tanh(x @ weights), layer == self.case.layers - 1
        error = y - _samples(batch)[1] if last else self._matrix("error", layer, batch)
        slope = error * (1 - y**2)
        if word != "backward_weights" and layer:
            self._put(("error", layer - 1, batch), dict(enumerate(self._cut(slope @ weights.T))))
        if word != "backward_inputs":
            there = self.store.setdefault(("gradient", layer, None), {})
            for part, each in enumerate(self._cut(x.T @ slope)):
                there[part] = there.get(part, 0) + each
            for gone in (("activation", layer - 1, batch), ("activation" if last else "error", layer, batch)):
                del self.store[gone]

    # Exchanging

    def _begin(self, step, word, *arguments):
        """Begin an exchange; returns the function that ends it."""
        if word == "send":
            (*tensor, parts), to, _ = arguments
            held = self.store[tuple(tensor)]
            self._send(to, (*tensor, tuple(parts)), {part: held[part].copy() for part in parts or held})
            if tensor[0] in ("activation", "error"):
                del self.store[tuple(tensor)]
            return lambda: None
        if word == "receive":
            (*tensor, parts), source, add, _ = arguments
            return lambda: self._add(tuple(tensor), self._receive(source, (*tensor, tuple(parts))), add)
        place = self.exchanged = getattr(self, "exchanged", 0) + 1
        names, own = [tuple(each[:3]) for each in arguments[0]], self.rank
        for other in self.out:
            brought = {name: self.store[name] for name in names}
            if word == "all_gather":
                brought = {name: {own: parts[own]} for name, parts in brought.items()}
            self._send(other, ("all", place), brought)
        return lambda: self._meet(word, place, names)

    def _meet(self, word, place, names):
        came = {other: self._receive(other, ("all", place)) for other in self.into}
        came[self.rank] = {name: self.store[name] for name in names}
        for name in names:
            if word == "all_gather":
                self.store[name] = {part: came[part][name][part] for part in range(self.case.ranks)}
            else:
                parts = range(self.case.ranks) if word == "all_reduce" else (self.rank,)
                self.store[name] = {p: sum(came[each][name][p] for each in sorted(came)) for p in parts}

    def _add(self, tensor, parts, add):
        there = self.store.setdefault(tensor, {})
        for part, each in parts.items():
            there[part] = there[part] + each if add else each

    def _send(self, to, tag, content):
        key = self._numbered("sent", self.rank, to, tag)
        self.told.append(("sent", key, time.monotonic_ns(), 0))
        self.out[to].put((tag, content))

    def _receive(self, source, tag):
        """The message with this tag; others that come before it are kept."""
        waiting = self.early.setdefault((source, tag), [])
        while not waiting:
            came, content = self.into[source].recv()
            self.early.setdefault((source, came), []).append(content)
        key = self._numbered("received", source, self.rank, tag)
        self.told.append(("received", key, 0, time.monotonic_ns()))
        return waiting.pop(0)

    def _numbered(self, word, sender, receiver, tag):
        count = sum(each[0] == word and each[1][:3] == (sender, receiver, tag) for each in self.told)
        return sender, receiver, tag, count


def _first(layer):
    """The weights of a layer before the step."""
    return np.random.default_rng(layer).normal(0, WIDTH**-0.5, (WIDTH, WIDTH))


def _samples(batch):
    """(inputs, targets) of a micro-batch."""
    random = np.random.default_rng((1, batch))
    return random.normal(0, 1, (SAMPLES, WIDTH)), random.uniform(-0.5, 0.5, (SAMPLES, WIDTH))


def main():
    options = json.loads(sys.argv[1])
    operations = json.loads(Path(options["operations"]).read_text(encoding="utf-8"))
    found = measure(Case(**options["case"]), operations)
    files.write(Path(options["result"]), json.dumps(found))
    print(found)


if __name__ == "__main__":
    main()
