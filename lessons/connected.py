"""A student's function on K ranks that exchange, without Horovod or any network: all are played here, in turn.

Each rank is a thread. One of them runs at a time, until it comes to a collective; then the next one runs. When all have
come there, the result is known, and they go on. So a call that has no partner is seen at once, a rank that computes
without end is stopped, and a play goes the same way each time.
"""

import contextlib
import ctypes
import sys
import threading
import time
import types
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import labs
from labs import blanks
from labs.checks import student_code
from labs.checks.judging import NotDone
from labs.errors import HorovodError, LabsError
from labs.printed import several
from lessons import scripts
from lessons.tryout import horovod_numbers

EXCHANGES = 2000  # of one play: nothing in the course needs a tenth of them
LOOK = 0.2  # seconds from one look at a rank that computes to the next


class ConnectedError(LabsError):
    """The ranks do not fit together: what they would do with Horovod, as a hint."""


class _ConnectedRank(threading.Thread):
    """A program in a thread that runs while it has the turn. `came`: what it brings to the collective it waits in."""

    def __init__(self, program):
        super().__init__(daemon=True)
        self._program, self._turn, self._back = program, threading.Semaphore(0), threading.Semaphore(0)
        self._over = self.ended = False
        self.came: tuple[Any, ...] = ()
        self.gets: Any = None
        self.returned = self.problem = None

    def run(self):
        try:
            self._wait()
            self.returned = self._program()
        except BaseException as problem:  # raised again by whoever plays
            self.problem = problem
        self.ended = True
        self._back.release()

    def _wait(self):
        self._turn.acquire()
        if self._over:
            raise SystemExit  # no `except Exception` stops it, and Python says nothing of a thread that it ends

    def go_on(self, seconds):
        """Give it the turn until it comes to a collective or ends. Raises what it raises, and student_code.Endless."""
        self._turn.release()
        watch = student_code.CallWatch(seconds)
        while not self._back.acquire(timeout=LOOK):
            if endless := watch.look(self._frames()):
                raise endless
        if self.problem is not None:
            raise self.problem

    def come(self, *came):
        """What it gets for what it brings; for its program, also from a thread of TensorFlow's that runs its graph."""
        self.came = came
        self._back.release()
        self._wait()
        return self.gets

    def line(self):
        """Number of the student's line where it is, 0 outside of the student's code, None where it has ended."""
        frames = self._frames()
        return None if self.ended else frames[0].f_lineno if frames else 0

    def _frames(self):
        return student_code.students_frames(sys._current_frames().get(self.ident))

    def end(self):
        """Let it end where it waits, and break it off where it computes; one that holds on for 2 s is left behind."""
        self._over = True
        self._turn.release()
        limit = time.monotonic() + 2
        while self.is_alive() and time.monotonic() < limit:
            self.join(0.02)
            if self.is_alive():
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.ident), ctypes.py_object(SystemExit))


class Exchange:
    """One collective: its kind, and for each rank the values in what it brings and gets (`values`)."""

    def __init__(self, kind, brought):
        self.kind, self.brought = kind, brought
        self.values = max(sum(array.size for array in each) for each in brought)

    def sent(self):
        """Values that each rank sends for it over a ring, the best of all known ways to do it.

        Source: R. Thakur and others, Optimization of collective communication operations in MPICH, IJHPCA 2005.
        """
        ranks = len(self.brought)
        whole = self.values * (ranks if self.kind == "allgather" else 1)
        return (2 if "allreduce" in self.kind else 1) * whole * (ranks - 1) / ranks


class Players:
    """K ranks that take turns.

    seconds: how long a call of the student's functions may compute from one exchange to the next
    exchanges: all of a play, in order
    lines: number of the student's line where each rank was when the play ended, 0 outside of the student's code, None
        for a rank that had ended
    """

    each = "rank"  # what one of them is called in hints
    longest = 3  # times `seconds`: how long a whole play may take

    def __init__(self, size, seconds=None):
        self._size, self._rank, self._seconds = size, 0, seconds or student_code.SECONDS
        self.exchanges, self.lines = [], [None] * size

    def rank(self):
        return self._rank

    def size(self):
        return self._size

    def play(self, program):
        """[what program() returns on rank 0, on rank 1, ...]. Raises ConnectedError, and student_code.Endless."""
        self.exchanges, self._ranks = [], [_ConnectedRank(program) for _ in range(self._size)]
        self._end = time.monotonic() + self.longest * self._seconds
        try:
            for rank in self._ranks:
                rank.start()
            while True:
                for number, rank in enumerate(self._ranks):
                    self._rank = number
                    if not rank.ended:
                        rank.go_on(self._seconds)
                if all(rank.ended for rank in self._ranks):
                    return [rank.returned for rank in self._ranks]
                self._exchange()
        finally:
            self.lines = [rank.line() for rank in self._ranks]
            for rank in self._ranks:
                rank.end()

    def _come(self, kind, option, arrays):
        """What this rank gets in its next exchange, a list of arrays, as soon as the others have come there."""
        return self._ranks[self._rank].come(kind, option, arrays)

    def _exchange(self):
        """The exchange to which all ranks have come."""
        count, ended = len(self.exchanges), [rank.ended for rank in self._ranks]
        if any(ended):
            gone, waits = ended.index(True), ended.index(False)
            raise ConnectedError(
                f"Of {self._size} {self.each}s, {self.each} {gone} has ended and {self.each} {waits} waits in "
                f"{self._ranks[waits].came[0]} number {count + 1} for ever: all must exchange equally often."
            )
        if count == EXCHANGES or time.monotonic() > self._end:
            raise ConnectedError(
                f"All {self._size} {self.each}s have exchanged {count} times, and go on: does every loop end?"
            )
        self._fit([rank.came for rank in self._ranks])
        kind, option, _ = self._ranks[0].came
        brought = [rank.came[2] for rank in self._ranks]
        for rank, gets in zip(self._ranks, self._results(kind, option, brought), strict=True):
            rank.gets = gets
        self.exchanges.append(Exchange(kind, brought))

    def _fit(self, came):
        """Raise ConnectedError where what the ranks bring, (kind, option, arrays) of each, does not fit together."""

    def _results(self, kind, option, brought) -> list:
        """What each rank gets in an exchange, a list of arrays. brought: the list of arrays of each rank."""
        raise NotImplementedError


class World(Players):
    """Stands in for `labs.hvd`: its collectives and numbers, seen by one rank after the other, all on one node.

    graphs: a `tf.function` is one, as with Horovod; else it runs eagerly, and its tensors have values everywhere
    """

    Average, Sum = "Average", "Sum"

    def __init__(self, size, seconds=None, graphs=False):
        super().__init__(size, seconds)
        self._graphs = graphs

    def init(self):
        """Nothing is to be done."""

    def __getattr__(self, name):
        if name in horovod_numbers(0, 1, 1):
            return lambda: horovod_numbers(self._rank, self._size, self._size)[name]
        raise AttributeError(f"The ranks that are played here do not have {name}")

    def allreduce(self, tensor, op=Average, name=None):
        return self._meet("allreduce", [tensor], op)[0]

    def grouped_allreduce(self, tensors, op=Average, name=None):
        return self._meet("grouped_allreduce", tensors, op)

    def reducescatter(self, tensor, op=Average, name=None):
        return self._meet("reducescatter", [tensor], op)[0]

    def allgather(self, tensor, name=None):
        return self._meet("allgather", [tensor], None)[0]

    def broadcast(self, tensor, root_rank=0, name=None):
        if not 0 <= root_rank < self._size:
            raise HorovodError(f"There is no rank {root_rank} for weights: give one from 0 to {self._size - 1}.")
        return self._meet("broadcast", [tensor], root_rank)[0]

    def play(self, program):
        import tensorflow as tf

        eagerly = tf.config.functions_run_eagerly()
        tf.config.run_functions_eagerly(not self._graphs)
        try:
            return super().play(program)
        finally:
            tf.config.run_functions_eagerly(eagerly)

    def _meet(self, kind, tensors, option):
        import tensorflow as tf

        tensors = [tf.convert_to_tensor(tensor) for tensor in tensors]
        types = [tensor.dtype for tensor in tensors]
        found = tf.numpy_function(lambda *arrays: self._come(kind, option, arrays), tensors, types)
        results = tf.nest.flatten(found)  # outside of a graph, one tensor is no list
        for result, tensor in zip(results, tensors, strict=True):
            rows = [None] if kind in ("allgather", "reducescatter") else tensor.shape[:1]
            result.set_shape([*rows, *tensor.shape[1:]])
        return results

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
            raise ConnectedError(f"{kind} divides or joins rows, and a scalar has no rows.")

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


class Horovod:
    """Stands in for `horovod.tensorflow`: a World whose reductions take Horovod's own options, too."""

    def __init__(self, world):
        self._world = world

    def __getattr__(self, name):
        return getattr(self._world, name)

    def allreduce(self, tensor, **options):
        return self._reduced("allreduce", [tensor], **options)[0]

    def grouped_allreduce(self, tensors, **options):
        return self._reduced("grouped_allreduce", tensors, **options)

    def _reduced(self, kind, tensors, average=None, op=World.Average, name=None, prescale_factor=1, postscale_factor=1):
        if average is not None:
            op = World.Average if average else World.Sum
        tensors = tensors if prescale_factor == 1 else [prescale_factor * tensor for tensor in tensors]
        reduced = self._world._meet(kind, tensors, op)
        return reduced if postscale_factor == 1 else [postscale_factor * tensor for tensor in reduced]


@contextlib.contextmanager
def placed(world):
    """Inside of the block, imports of labs.hvd and of Horovod find `world`."""
    horovod = Horovod(world)
    modules = {"horovod": types.SimpleNamespace(tensorflow=horovod), "horovod.tensorflow": horovod, "labs.hvd": world}
    before = {name: sys.modules[name] for name in modules if name in sys.modules}
    sys.modules.update(modules)
    try:
        with mock.patch.object(labs, "hvd", world, create=True):
            yield
    finally:  # what else was imported meanwhile stays
        for name in modules:
            del sys.modules[name]
        sys.modules.update(before)


def _shown(arrays):
    return ", ".join(f"{array.dtype} {array.shape}" for array in arrays[:3])


def defined(path, name, world):
    """What a student's script defines under a name, with `world` in the place of labs.hvd and Horovod; before that the
    cases of a script that cannot be played, as a judge yields them. What else it defines may still be blank."""
    yield from scripts.whole(path, lambda path: _without_others(path, name))
    try:
        names = definitions(path, world)
    except SyntaxError as problem:
        raise NotDone(f"Python cannot read line {problem.lineno} of {Path(path).name}: {problem.msg}.") from None
    yield name not in names, f"The script does not define {name} any more: keep its name and arguments."
    return names[name]


def played(path, name, size, program, beside=""):
    """(World, what program(world, what the script defines under this name) gives on each rank); before that the cases
    of a script that cannot be played, and of ranks that do not fit together. beside: what an error in it tells besides
    the number of ranks."""
    world = World(size)
    function = yield from defined(path, name, world)

    def on_a_rank():
        with student_code.tried(several(size, "rank") + beside):
            return program(world, function)

    try:
        with placed(world):  # also for what the function itself imports
            return world, world.play(on_a_rank)
    except ConnectedError as problem:
        yield True, str(problem)


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
    with placed(world):
        names = {"__name__": Path(path).stem, "__file__": str(path)}
        exec(compile(Path(path).read_text(encoding="utf-8"), str(path), "exec"), names)
        return names
