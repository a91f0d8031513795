"""Notebooks and scripts that try answers out with the kit's own judge, or read what is right where it stands.

The checks are for practice: their answers lie in the students' own tree, since a notebook without a network judges at
once. Nothing stops somebody who looks there, and no point is taken; an instructor is told where it was done.
"""

import ast
import re
from contextlib import suppress
from itertools import islice

from labs.blanks import parse
from labs.printed import few
from teaching.grading import magics, plain
from teaching.grading.finding import Finding

JUDGING = ("check", "judge")
TRIES = 3  # literal answers to one check, and checks with so many: nobody's work looks so by chance
FEW = 4  # places that one finding names
_READS = re.compile(
    r"tasks\.toml|questions\.py|\blessons[./]\w+(?:[./]| import )questions\b"
    r"|\bjudge_of\b|\bJUDGES\b|\btasks\.(task|find|lessons)\("
    r"|labs\.checks\.(judging|tasks|kept)\b|from\s+labs\.checks\s+import[^\n]*\b(judging|judge|tasks?|kept)\b"
)
_AROUND = (ast.For, ast.While, ast.AsyncFor, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_AROUND += (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def findings(contents):
    """A finding for each notebook and script of a submission, {path: bytes}, in which this is done."""
    for name, content in contents.items():
        sources = plain.written(content)[0] if name.endswith(".ipynb") else [content.decode(errors="replace")]
        if name.endswith((".ipynb", ".py")) and (seen := list(tried(sources))):
            more = f"; and {len(seen) - FEW} more places" if len(seen) > FEW else ""
            yield Finding("guessing", "look", name, "; ".join(seen[:FEW]) + more)


def tried(sources):
    """What some code does to find out what is right, a line for each place."""
    answers = {}
    for number, source in enumerate(sources, 1):
        where = f"code cell {number}" if len(sources) > 1 else "it"
        if found := _READS.search(source):
            yield f"{where} reads or imports what judges: {found[0]:.60}"
        with suppress(*magics.UNFIT):
            yield from (f"{where} {how}" for how in islice(_ways(parse(source), answers), 1))
    often = sorted(id for id, given in answers.items() if len(given) >= TRIES)
    if len(often) >= TRIES:
        yield f"it tries {TRIES} or more answers to each of {few(often, FEW)}"


def _ways(tree, answers):
    """How a tree calls a judge otherwise than once for one answer. answers: {id: literal answers}, to be filled."""
    waiting = [(tree, None)]
    while waiting:
        node, around = waiting.pop()
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("labs"):
            if any(alias.name in JUDGING and alias.asname for alias in node.names):
                yield "imports `check` under another name"
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"\bcheck\(['\"]", node.value):
            yield "holds a call of `check` as a text"
        if isinstance(node, ast.Call) and _named(node.func) in JUDGING:
            if around:
                yield f"calls `{_named(node.func)}` within {around}"
            if len(node.args) > 1 and all(isinstance(each, ast.Constant) for each in node.args):
                answers.setdefault(str(node.args[0].value), set()).add(repr(node.args[1].value))
            waiting += [(each, around) for each in (*node.args, *node.keywords)]
            continue
        if isinstance(node, ast.Name) and node.id in JUDGING and isinstance(node.ctx, ast.Load):
            yield f"hands on `{node.id}` as a value"
        if isinstance(node, _AROUND):
            around = "a function" if isinstance(node, _AROUND[3:6]) else "a loop"
        waiting += [(each, around) for each in ast.iter_child_nodes(node)]


def _named(function):
    """The name of what is called, also as an attribute; None for another expression."""
    return getattr(function, "id", None) or getattr(function, "attr", None)
