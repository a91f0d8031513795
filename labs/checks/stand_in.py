"""What takes the place of Horovod while a student's script is judged: numbers and modules.

lessons.connected plays ranks that exchange; labs.checks.tryout.ranks lets one rank run up to its `fit`.
"""

import sys
import types

NUMBERS = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size")


def numbers(rank, size, local_size=None):
    """{name of each of NUMBERS: what it gives on this rank}; local_size: ranks of each node, all of them by default."""
    local_size = local_size or size
    values = rank, size, rank % local_size, local_size, rank // local_size, -(-size // local_size)
    return dict(zip(NUMBERS, values, strict=True))


def module(name, **content):
    """A module with this content, which no file has."""
    made = types.ModuleType(name)
    vars(made).update(content)
    return made


def put(modules):
    """Let imports find these modules, {name: module}. Returns what was there before, to be put back; None for none."""
    before = {name: sys.modules.get(name) for name in modules}
    for name, module in modules.items():
        if module is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = module
    return before
