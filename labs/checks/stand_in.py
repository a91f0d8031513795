"""What takes the place of labs.hvd and Horovod while a student's script is judged: numbers, refusals, modules.

Horovod itself is not needed. lessons.connected plays ranks that exchange; labs.checks.tryout.ranks lets one rank
run up to its `fit`.
"""

import contextlib
import sys
import types

import labs
from labs.errors import HorovodError

NUMBERS = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size")


def numbers(rank, size, local_size=None):
    """{name of each of NUMBERS: what it gives on this rank}; local_size: ranks of each node, all of them by default."""
    local_size = local_size or size
    given = rank, size, rank % local_size, local_size, rank // local_size, -(-size // local_size)
    return dict(zip(NUMBERS, given, strict=True))


def refuse_root(root_rank, size):
    """Raises HorovodError for a rank that does not exist, from which the others are to take weights."""
    if not 0 <= root_rank < size:
        raise HorovodError(f"There is no rank {root_rank} to take weights from. Give one from 0 to {size - 1}.")


def refuse_optimizer(optimizer):
    """Raises HorovodError for what cannot be wrapped, and for an optimizer with the mark `labs_wrapped`."""
    import keras

    if not isinstance(optimizer, keras.Optimizer):
        raise HorovodError(
            f"{type(optimizer).__name__} is not an optimizer of Keras 3: its gradients cannot be averaged."
        )
    if hasattr(optimizer, "labs_wrapped"):
        raise HorovodError("The optimizer is wrapped twice: gradients would be averaged twice. Wrap it once.")


def module(name, **content):
    made = types.ModuleType(name)
    vars(made).update(content)
    return made


def modules(hvd, horovod, **more):
    """{name: module} of labs.hvd, Horovod and `more` of Horovod's own, as a script imports them."""
    return {"labs.hvd": hvd, "horovod": module("horovod", tensorflow=horovod, **more), "horovod.tensorflow": horovod}


def put(modules):
    """Let imports find these modules, {name: module}. Returns what was there before, to be put back; None for none."""
    before = {name: sys.modules.get(name) for name in modules}
    for name, module in modules.items():
        if module is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = module
    return before


@contextlib.contextmanager
def placed(modules):
    """Let imports find these modules inside of the block, labs.hvd also as an attribute of labs."""
    attribute, before = vars(labs).get("hvd"), put(modules)
    labs.hvd = modules["labs.hvd"]
    try:
        yield
    finally:
        put(before)
        if attribute is None:
            del labs.hvd
        else:
            labs.hvd = attribute
