"""The words in which a student writes what each rank does in a training step: a program is recorded here, and played by
lessons.write_the_schedule.engine.

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
program waits for everything that it has started. `free(tensor, keep=2)` frees all parts but part 2.
"""

import functools
import inspect
import linecache
import sys
from collections.abc import Iterator

from labs.errors import UseError

OPERATIONS = 2000  # of one rank: no puzzle needs a tenth of them

_recorded = []  # the operations of each program that runs now: one may call another


class ProgramError(UseError):
    """A program that cannot be recorded; the text says what to do."""


def program(function):
    """The function as a program: called with (rank, K, L, M), it gives the operations that it has called."""

    @functools.wraps(function)
    def recorded(*arguments, **named):
        try:
            inspect.signature(function).bind(*arguments, **named)
        except TypeError:
            raise ProgramError(f"A program takes (rank, K, L, M): `def {function.__name__}(rank, K, L, M):`.") from None
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
    line = _line(sys._getframe(2))
    if len(_recorded[-1]) == OPERATIONS:
        raise ProgramError(f"The program has {OPERATIONS} operations and goes on ({line}). Does every loop end?")
    _recorded[-1].append((word, arguments, line))
    return len(_recorded[-1]) - 1


def _line(frame):
    """The line that a frame is at, as it is told."""
    text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    return f"line {frame.f_lineno}" + (f": `{text[:80]}`" if text else "")


def _named(word, tensors):
    """The tensors of a call. Raises ProgramError for a list of them, and for a word without its layer."""
    for each in tensors:
        if each in (weights, gradient, optimizer, activation, error):
            of = "layer, batch" if each in (activation, error) else "layer"
            wrong = f"`{each.__name__}` without its {of.replace(',', ' and')}: write `{each.__name__}({of})`."
        elif isinstance(each, list | Iterator) or isinstance(each, tuple) and each and isinstance(each[0], tuple):
            what = "call it for each tensor" if word in ("send", "receive") else "write `*` before it"
            wrong = f"a list: {what}."
        else:
            continue
        raise ProgramError(f"{_line(sys._getframe(2))}: `{word}` got {wrong}")
    return tensors


def weights(layer, *parts):
    """The weights of a layer, or some of their K parts: weights(0, 2) is part 2."""
    return "weights", layer, None, parts


def gradient(layer, *parts):
    """The gradient of a layer's weights, or some of its K parts: gradient(0, 2, 3) is parts 2 and 3."""
    return "gradient", layer, None, parts


def optimizer(layer, *parts):
    """The state of the optimizer for a layer, or some of its K parts."""
    return "optimizer", layer, None, parts


def activation(layer, batch):
    """What a layer hands to the next layer, for a micro-batch."""
    return "activation", layer, batch, ()


def error(layer, batch):
    """The gradient of the loss with respect to this activation; each layer computes it for the layer before."""
    return "error", layer, batch, ()


def load(batch):
    """Read a micro-batch."""
    _add("load", batch)


def forward(layer, batch, split=None):
    """The forward pass of one layer; needs its weights and the activation of the layer before. split: "columns" or
    "rows", to work with the part of the weights that has the rank's number."""
    _add("forward", layer, batch, split)


def backward(layer, batch, split=None):
    """The backward pass of one layer; adds this micro-batch to gradient(layer), and frees the activation that it used.
    split: as in the forward pass."""
    _add("backward", layer, batch, split)


def backward_inputs(layer, batch):
    """The first half of a backward pass: gives the error of the layer before, and frees nothing yet."""
    _add("backward_inputs", layer, batch)


def backward_weights(layer, batch):
    """The second half of a backward pass: adds to the gradient, and frees the activation and the error."""
    _add("backward_weights", layer, batch)


def update(layer):
    """Update a layer's weights; needs the gradient summed over all micro-batches, and frees it. A rank that holds parts
    of the optimizer state updates these parts."""
    _add("update", layer)


def free(*tensors, keep=None):
    """Free all parts but part `keep`; without `keep`, free everything."""
    _add("free", _named("free", tensors), keep)


def send(tensor, to, wait=True):
    """Send a tensor to rank `to`; returns when all of it has arrived there. wait=False: returns a number for `wait`."""
    return _add("send", *_named("send", [tensor]), to, wait)


def receive(tensor, source, add=False, wait=True):
    """Wait for this tensor from rank `source`; it replaces what is there. add=True: it is added to what is there.
    wait=False: returns a number for `wait`."""
    return _add("receive", *_named("receive", [tensor]), source, add, wait)


def all_reduce(*tensors, wait=True):
    """All ranks get the sums; the tensors in one call form one message. wait=False: returns a number for `wait`."""
    return _add("all_reduce", _named("all_reduce", tensors), wait)


def reduce_scatter(*tensors, wait=True):
    """Rank r gets part r of the sum, and frees all other parts. wait=False: returns a number for `wait`."""
    return _add("reduce_scatter", _named("reduce_scatter", tensors), wait)


def all_gather(*tensors, wait=True):
    """Rank r contributes part r, and all ranks get all parts. wait=False: returns a number for `wait`."""
    return _add("all_gather", _named("all_gather", tensors), wait)


def wait(started):
    """Wait for an exchange that was started with wait=False; started: what its call returned."""
    if isinstance(started, list | tuple):
        raise ProgramError(f"{_line(sys._getframe(1))}: `wait` takes one exchange; call it for each in the list.")
    _add("wait", started)
