"""What of a notebook need not run in replay: statements as they were given on which no check depends."""

import ast
import builtins
import dis
import re
from contextlib import suppress
from types import CodeType

from teaching.grading import magics
from teaching.grading.plain import binds

_SETS = re.compile(r"(tf|keras)\.")  # how a line begins that sets TensorFlow, for all that follows
_FIXED = (ast.Import, ast.ImportFrom, ast.FunctionDef)  # bind what no later statement changes


def without(sources, given):
    """Sources of cells without their needless statements; all of them where that cannot be told. given: the sources of
    the cells as students got them.

    From the last one on, a statement stays if its cell holds anything of the student's, if it calls `check`, if it
    sets TensorFlow, or if it binds, or may change, what a later one takes.
    """
    left, wanted = [], {"check"}
    with suppress(*magics.UNFIT):
        bodies = [magics.tree(source).body for source in given]
        said = {ast.dump(node) for body in bodies for node in body}
        fixed = {name for body in bodies for node in body if isinstance(node, _FIXED) for name in binds(node)}
        fixed |= {*dir(builtins)}
        for source in reversed(sources):
            body, kept = magics.tree(source).body, []
            new = {node for node in body if ast.dump(node) not in said}
            for node in reversed(body):
                made, taken = set(binds(node)), _taken(compile(ast.Module([node], []), "", "exec"), node in new)
                whole = ast.unparse(node)
                if new or "check" in taken or _SETS.match(whole) or (taken - fixed | made) & wanted:
                    kept.insert(0, whole)
                    wanted = wanted - (made if isinstance(node, (ast.Assign, *_FIXED)) else set()) | taken
            left.insert(0, source if new else "\n".join(kept))
        return left
    return sources


def _taken(code, new):
    """The names that a statement takes from around it; of a student's `new` one, also those that it may bind before."""
    bound, taken = set(), set()
    for each in dis.get_instructions(code):
        if each.opname == "STORE_NAME" and not new:
            bound.add(each.argval)
        elif each.opname in ("LOAD_NAME", "LOAD_GLOBAL") and each.argval not in bound:
            taken.add(each.argval)
    inner = (_taken(each, new) for each in code.co_consts if isinstance(each, CodeType))
    return taken.union(*(names - bound for names in inner))
