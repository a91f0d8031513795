"""A student's function on K ranks that exchange, without Horovod or any network: all are played here, in turn.

A rank runs until it asks for what the others have not brought yet; then the next one runs. When all have come there,
the result is known, and each runs again from its beginning, with all results so far. So no rank ever waits for another,
and a call that has no partner is seen at once. What is played must do the same each time: it makes its own state anew.
"""

import contextlib
import sys
import types
from pathlib import Path

import numpy as np

import labs
from labs import blanks
from labs.checks import scripts
from labs.errors import LabsError


class ConnectedError(LabsError):
    """The ranks do not fit together: what they would do with Horovod, as a hint."""


class _Comes(BaseException):
    """A rank has come to a collective that the others have not come to yet. No `except Exception` stops it."""


class Exchange:
    """One collective: its kind, and for each rank the values in what it brings and gets (`values`)."""

    def __init__(self, kind, brought):
        self.kind, self.brought, self.results = kind, brought, None
        self.values = max(sum(array.size for array in each) for each in brought)

    def sent(self):
        """Values that each rank sends for it over a ring, the best of all known ways to do it.

        Source: R. Thakur and others, Optimization of collective communication operations in MPICH, IJHPCA 2005.
        """
        ranks = len(self.brought)
        whole = self.values * (ranks if self.kind == "allgather" else 1)
        return (2 if "allreduce" in self.kind else 1) * whole * (ranks - 1) / ranks


class Players:
    """K ranks, one after the other. `exchanges`: all that were done, in order."""

    each = "rank"  # what one of them is called in hints

    def __init__(self, size):
        self._size, self._rank, self._place = size, 0, 0
        self.exchanges = []

    def rank(self):
        return self._rank

    def size(self):
        return self._size

    def play(self, program):
        """[what program() returns on rank 0, on rank 1, ...]. Raises ConnectedError."""
        while True:
            returned, self._coming = {}, {}
            for rank in range(self._size):
                self._rank, self._place = rank, 0
                with contextlib.suppress(_Comes):
                    returned[rank] = program()
            if len(returned) == self._size:
                return [returned[rank] for rank in range(self._size)]
            self._do(returned)

    def _come(self, kind, option, arrays):
        """What this rank gets in its next exchange, a list of arrays; ends its turn if that is not known yet."""
        self._place += 1
        if self._place <= len(self.exchanges):
            return self.exchanges[self._place - 1].results[self._rank]
        self._coming[self._rank] = kind, option, arrays
        raise _Comes

    def _do(self, returned):
        """The exchange to which all ranks have come."""
        for rank in returned:
            other, (kind, *_) = next(iter(self._coming.items()))
            raise ConnectedError(
                f"Of {self._size} {self.each}s, {self.each} {rank} has ended and {self.each} {other} waits in {kind} "
                f"number {len(self.exchanges) + 1} for ever: all must exchange equally often."
            )
        came = [self._coming[rank] for rank in range(self._size)]
        self._fit(came)
        exchange = Exchange(came[0][0], [arrays for _, _, arrays in came])
        exchange.results = self._results(*came[0][:2], exchange.brought)
        self.exchanges.append(exchange)

    def _fit(self, came):
        """Raise ConnectedError where what the ranks bring, (kind, option, arrays) of each, does not fit together."""


class Ring(Players):
    """A ring of K workers: what one of them passes on, the next one gets."""

    each = "worker"

    def exchange(self, array):
        """Pass an array on to the next worker; returns that of the one before."""
        return self._come("exchange", None, [np.array(array)])[0].copy()

    def _results(self, kind, option, brought):
        return [brought[rank - 1] for rank in range(self._size)]


class World(Players):
    """Stands in for `labs.hvd`: its collectives, rank() and size(), seen by one rank after the other."""

    Average, Sum = "Average", "Sum"
    local_rank, local_size = Players.rank, Players.size

    def init(self):
        """Nothing is to be done."""

    def __getattr__(self, name):
        raise AttributeError(f"The ranks that are played here know no {name}")

    def allreduce(self, tensor, op=Average, name=None):
        return self._meet("allreduce", [tensor], op)[0]

    def grouped_allreduce(self, tensors, op=Average, name=None):
        return self._meet("grouped_allreduce", tensors, op)

    def reducescatter(self, tensor, op=Average, name=None):
        return self._meet("reducescatter", [tensor], op)[0]

    def allgather(self, tensor, name=None):
        return self._meet("allgather", [tensor], None)[0]

    def broadcast(self, tensor, root_rank=0, name=None):
        return self._meet("broadcast", [tensor], root_rank)[0]

    def play(self, program):
        import tensorflow as tf

        eagerly = tf.config.functions_run_eagerly()
        tf.config.run_functions_eagerly(True)  # values are needed, also inside a tf.function
        try:
            return super().play(program)
        finally:
            tf.config.run_functions_eagerly(eagerly)

    def _meet(self, kind, tensors, option):
        import tensorflow as tf

        arrays = [np.asarray(tf.convert_to_tensor(tensor)) for tensor in tensors]
        return [tf.constant(array) for array in self._come(kind, option, arrays)]

    def _fit(self, came):
        (kind, option, first), *others = came
        for rank, (other, its_option, arrays) in enumerate(others, 1):
            if (other, its_option) != (kind, option):
                raise ConnectedError(
                    f"Rank 0 calls {kind} ({option}) where rank {rank} calls {other} ({its_option}): all ranks must "
                    "call the same collectives in the same order."
                )
            shapes = [[array.shape[kind == "allgather" :] for array in each] for each in (first, arrays)]
            if shapes[0] != shapes[1]:
                raise ConnectedError(
                    f"Rank 0 brings {_shown(first)} to {kind} and rank {rank} {_shown(arrays)}: they do not fit."
                )
        if kind in ("allgather", "reducescatter") and first[0].ndim == 0:
            raise ConnectedError(f"{kind} divides or joins rows, and a scalar has none.")

    def _results(self, kind, option, brought):
        """What each rank gets, as lists of arrays."""
        size = self._size
        if kind == "allgather":
            return [[np.concatenate([arrays[0] for arrays in brought])]] * size
        if kind == "broadcast":
            return [brought[option]] * size
        sums = [np.sum(arrays, axis=0) for arrays in zip(*brought, strict=True)]
        reduced = [np.asarray(each / size if option == "Average" else each, each.dtype) for each in sums]
        if kind == "reducescatter":
            return [[part] for part in np.array_split(reduced[0], size)]  # as Horovod: the first ranks get one row more
        return [reduced] * size


def _shown(arrays):
    return ", ".join(f"{array.dtype} {array.shape}" for array in arrays[:3])


def defined(path, name, world):
    """What a student's script defines under a name, with `world` in the place of labs.hvd and Horovod; before that the
    cases of a script that cannot be played, as a judge yields them. What else it defines may still be blank."""
    yield from scripts.no_script(path)
    scripts.refuse_blanks(path, lines=_without_others(path, name))
    names = definitions(path, world)
    yield name not in names, f"The script does not define {name} any more: keep its name and arguments."
    return names[name]


def _without_others(path, name):
    """Line numbers of a script, without those of functions and classes that have another name."""
    text = Path(path).read_text(encoding="utf-8")
    lines = set(range(1, text.count("\n") + 2))
    with contextlib.suppress(SyntaxError):  # told when it is run
        for node in blanks.parse(text).body:
            if getattr(node, "name", name) != name:
                lines -= set(range(node.lineno, node.end_lineno + 1))
    return lines


def definitions(path, world):
    """The names that a script defines before its `main` runs, with `world` in the place of labs.hvd and of Horovod."""
    path, missing = Path(path), object()
    horovod = {"horovod": types.SimpleNamespace(tensorflow=world), "horovod.tensorflow": world}
    stand_ins = [(vars(labs), "hvd", world)]
    stand_ins += [(sys.modules, name, module) for name, module in ({"labs.hvd": world} | horovod).items()]
    before = [place.get(name, missing) for place, name, _ in stand_ins]
    for place, name, module in stand_ins:
        place[name] = module
    try:
        names = {"__name__": path.stem, "__file__": str(path)}
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
        return names
    finally:
        for (place, name, _), value in zip(stand_ins, before, strict=True):
            if value is missing:
                place.pop(name, None)
            else:
                place[name] = value
