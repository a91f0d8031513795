"""The words in which a student writes what each rank does in a training step: a program is recorded here, and played by
labs.simulate.schedule.

    @program
    def alone(rank, K, L, M):
        for batch in range(M):
            load(batch)
            for layer in range(L):
                forward(layer, batch)
            for layer in reversed(range(L)):
                backward(layer, batch)
        for layer in range(L):
            update(layer)

Each rank runs the same function with its own number `rank`, from 0 to K - 1; L and M are the numbers of layers and of
micro-batches. Calling a program gives its operations as data, [(word, arguments, line)], without playing them.

Tensors. `weights(layer)`, `gradient(layer)` and `optimizer(layer)` (its state) have K parts, and may be held in parts:
`gradient(layer, 2, 3)` is its parts 2 and 3. `activation(layer, batch)` is what a layer hands on for a micro-batch, and
`error(layer, batch)` the gradient of the loss with respect to it.

Computing. `load(batch)` reads a micro-batch. `forward` needs the weights and the activation of the layer before.
`backward` needs the weights, the error of the layer (of the last layer: its activation), and the activation of the
layer before. It computes the error of the layer before, adds its micro-batch to the gradient, and frees the error and
the activation that it has used. `backward_inputs` and `backward_weights` are its two halves: first the error, later the
gradient. With `split="columns"` or `split="rows"`, `forward` and `backward` work with the part of the weights that has
the rank's number. `update` needs weights, state and the sum over all micro-batches, and frees the gradient.

Exchanging. A `send` waits until the other rank receives, and ends when everything has arrived there. An activation or
an error that is sent leaves its rank; of another tensor, a copy is sent. `receive(..., add=True)` adds to what the rank
already holds. All ranks call `all_reduce`, `reduce_scatter` and `all_gather` in the same order; several tensors in a
call are one message. After `reduce_scatter` and before `all_gather`, rank r holds part r. With `wait=False`, an
exchange is only started: the call returns a number for `wait`, and nobody may use its tensors until then. At its end, a
program waits for all that it has started. `free(tensor, keep=2)` frees all parts but part 2.
"""

import functools
import linecache
import sys

from labs.simulate.given import SimulationError
from labs.simulate.schedule import OPERATIONS

_recorded = []  # the operations of each program that runs now: one may call another


class ProgramError(SimulationError):
    """A program that cannot be recorded; the text says what to do."""


def program(function):
    """The function as a program: called with (rank, K, L, M), it gives the operations that it has called."""

    @functools.wraps(function)
    def recorded(*arguments, **named):
        _recorded.append([])
        try:
            if function(*arguments, **named) is not None:
                raise ProgramError("A program calls its operations one after the other, without `yield` or `return`.")
            return _recorded[-1]
        finally:
            _recorded.pop()

    return recorded


def _add(word, *arguments):
    """Record an operation with the line that calls it; returns its place in the program."""
    if not _recorded:
        raise ProgramError(f"{word}(...) is called outside of a program. Does @program stand above its function?")
    frame = sys._getframe(2)
    text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    line = f"line {frame.f_lineno}" + (f": `{text[:80]}`" if text else "")
    if len(_recorded[-1]) == OPERATIONS:
        raise ProgramError(f"The program has {OPERATIONS} operations and goes on ({line}). Does every loop end?")
    _recorded[-1].append((word, arguments, line))
    return len(_recorded[-1]) - 1


def weights(layer, *parts):
    return "weights", layer, None, parts


def gradient(layer, *parts):
    return "gradient", layer, None, parts


def optimizer(layer, *parts):
    return "optimizer", layer, None, parts


def activation(layer, batch):
    return "activation", layer, batch, ()


def error(layer, batch):
    return "error", layer, batch, ()


def load(batch):
    _add("load", batch)


def forward(layer, batch, split=None):
    _add("forward", layer, batch, split)


def backward(layer, batch, split=None):
    _add("backward", layer, batch, split)


def backward_inputs(layer, batch):
    _add("backward_inputs", layer, batch)


def backward_weights(layer, batch):
    _add("backward_weights", layer, batch)


def update(layer):
    _add("update", layer)


def free(*tensors, keep=None):
    _add("free", tensors, keep)


def send(tensor, to, wait=True):
    return _add("send", tensor, to, wait)


def receive(tensor, source, add=False, wait=True):
    return _add("receive", tensor, source, add, wait)


def all_reduce(*tensors, wait=True):
    return _add("all_reduce", tensors, wait)


def reduce_scatter(*tensors, wait=True):
    return _add("reduce_scatter", tensors, wait)


def all_gather(*tensors, wait=True):
    return _add("all_gather", tensors, wait)


def wait(started):
    _add("wait", started)
