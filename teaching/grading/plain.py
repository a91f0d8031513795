"""Is what a student wrote in a notebook plain code: does it compute, and touch nothing of what judges it?

Code in one process with its judge can change the judge. So where a judge has to run beside it, the code must not import
more than the notebook does, bind no name of the notebook's own, set no attribute, no item but of what it binds, use no
name in REACHING, and reach an attribute only where it is known to compute: the course's own code has it,
or it belongs to a plain value, to the numbers of a run, to numpy's functions or to a figure. So a function of a library
that loads, runs or sets something is not reached, also one that nobody thought of.

What is not plain is not wrong, and may have nothing to do with the answer: the notebook runs once more without it, and
a person looks at an answer that is not right then.
"""

import ast
import builtins
import collections
import fractions
import itertools
import math
import re
import statistics
import tomllib
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from labs.results.intervals import Estimate
from labs.results.run import Configuration, Run
from teaching.grading import cells, magics

_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_NAMES = {kind: set(names) for kind, names in _TABLES.items()}
REACHING, MODULES, _LEADING, _WAYS = (_NAMES[kind] for kind in ("reaching", "modules", "leading", "ways"))


@cache
def known():
    """The names of what computes, and changes nothing but its arguments."""
    import numpy
    from matplotlib import axes, axis, figure, pyplot

    plain = (list, tuple, dict, set, str, int, float, collections.Counter, collections.deque, fractions.Fraction)
    whole = (*plain, math, statistics, itertools, collections, fractions, numpy.ndarray, numpy.random.Generator)
    found = {name for each in (*whole, axes.Axes, axis.Axis, figure.Figure) for name in dir(each)}
    found |= {name for name in dir(numpy) if not isinstance(getattr(numpy, name), type(math))}
    found |= {*Configuration.model_fields, *Estimate.__dataclass_fields__, "rounded", "configuration"}
    found |= {"kind", "steps", "hardware", "scaling", "loss", "accuracy", "xaxis", "yaxis"}
    found |= {name for name, field in Run.model_fields.items() if field.annotation is Estimate}
    found |= {"linalg", "norm", "solve", "polyfit", "random", "default_rng", "reduce", "partial", "lru_cache"}
    found |= {name for name in dir(pyplot) if hasattr(axes.Axes, name)} | {"Figure", "figure", "subplots", "show"}
    return {name for name in found if not name.startswith("_")} - _WAYS


_BUILTINS = set(dir(builtins))


class _Rules(NamedTuple):
    """What a statement must keep to: names that it may not bind, names that it may not use, modules that it may import,
    attributes that it may reach, names of which it may set items."""

    bound: set
    reaching: set
    modules: set
    reached: set
    own: frozenset = frozenset()


class Plain:
    """The code of a student's notebook beside its fresh form.

    fresh: {id of the cell: source}; blanks: names that it leaves open; text: of the student's, as bytes; scripts:
    (name, text, fresh text, complete text) of those that were handed in, which its judges start; complete: the sources
    of the complete notebook's cells.
    """

    def __init__(self, fresh, blanks, text, scripts=(), complete=()):
        self.fresh, self.blanks, self.scripts, self.complete = fresh, blanks, scripts, complete
        self.sources = cells.runnable(text)[0]

    @cached_property
    def _statements(self):
        return list(_compared(self.sources, self.fresh.values(), self.complete, self.blanks))

    def why_not(self):
        """What is not plain, as the end of a sentence; None where all is."""
        try:
            odd = [why for _, why in self._statements if why]
        except magics.UNFIT:
            return "a cell is not Python"
        odd += [f"{name}: {why}" for name, *forms in self.scripts if (why := of_script(*forms))]
        return f"{odd[0]}, so a person must look" if odd else None

    def without(self):
        """(sources of the statements that are plain, {name: the text that students were given} of the scripts that are
        not)."""
        with suppress(*magics.UNFIT):
            statements = [ast.unparse(node) for node, why in self._statements if not why]
            return statements, {name: forms[1] for name, *forms in self.scripts if of_script(*forms)}
        return [], {}


def of_script(changed, fresh, complete=""):
    """What is not plain in a script, or None: its text beside those of its fresh and its complete form."""
    try:
        return next(filter(None, (why for _, why in _compared([changed], [fresh], [complete]))), None)
    except magics.UNFIT:
        return "it is not Python"


def _compared(sources, fresh, complete, blanks=None):
    """(statement, what is not plain in it or None) of each statement of some sources beside their fresh and complete
    form. blanks: names that a notebook leaves open; None for a script, a program with names and files of its own."""
    given, whole = (list(map(magics.tree, form)) for form in (fresh, complete))
    said = {ast.dump(node) for tree in given for node in tree.body}
    bound = {name for tree in given for name in binds(tree)}
    used = {node.id for tree in given for node in ast.walk(tree) if isinstance(node, ast.Name)}
    reached = {name for tree in given + whole for name in _reached(tree)}
    own = {name for tree in whole for node in tree.body if ast.dump(node) not in said for name in binds(node)}
    rules = _Rules(
        bound=set() if blanks is None else (bound | _BUILTINS & used) - own.union(blanks),
        reaching=REACHING | _LEADING & bound,
        modules={name for tree in given for name in _imported(tree)},
        reached=reached - _WAYS | known() | (reached & {"replace", "save"} if blanks is None else set()),
    )
    nodes = [node for source in sources for node in magics.tree(source).body]
    new = {node for node in nodes if ast.dump(node) not in said}
    if blanks is not None:
        rules = rules._replace(own={name for node in new for name in binds(node)} - rules.bound)
    for node in nodes:
        yield node, _odd(node, rules) if node in new else None


def _imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _reached(tree):
    """The attributes that code reads."""
    return (node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and not node.attr.startswith("_"))


def binds(tree):
    """The names that code binds where it stands: not those within its functions and comprehensions."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, _SCOPES):
            waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)


_SCOPES = (ast.FunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _odd(tree, rules):
    """What in a statement is not plain, or None."""
    for name in (*binds(tree), *_bound_by_text(tree)):
        if name in rules.bound:
            return f"it binds the notebook's own name {name!r:.40}"
    if _sets_item(tree, rules.own):
        return "it sets an item of what it did not make"
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and (node.id in rules.reaching or node.id.startswith("__")):
            return f"it uses {node.id!r:.40}"
        if isinstance(node, ast.Attribute) and not _formats(node):
            if node.attr not in rules.reached or isinstance(node.ctx, ast.Store | ast.Del):
                return f"it reaches or sets the attribute {node.attr!r:.40}"
        if isinstance(node, ast.Global | ast.Nonlocal | ast.ClassDef | ast.Match | ast.AsyncFunctionDef):
            return f"it holds `{type(node).__name__.lower()}`"
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in _imported(node):
                module, _, last = name.rpartition(".")
                offered = isinstance(node, ast.ImportFrom) and module in MODULES and last in known()  # what computes
                if name not in rules.modules | MODULES and not offered:
                    return f"it imports {name!r:.40}"
    return None


def _formats(node):
    """Whether an attribute is `format` of a text that is written there, and reaches no attribute or item."""
    written = isinstance(node.value, ast.Constant) and node.attr == "format"
    return written and not re.search(r"\{[^}:]*[.[{]|:[^}]*\{", str(node.value.value))


def _bound_by_text(tree):
    """The names that `:=`, which binds outside of a comprehension, and `except ... as` bind, wherever they stand."""
    for node in ast.walk(tree):
        if isinstance(node, ast.NamedExpr):
            yield node.target.id
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name


def _sets_item(node, own):
    """Whether an item is set of anything but `own` names, and the arguments and names of the function around it."""
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        own |= {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
        own |= {name for part in (node.body if isinstance(node.body, list) else ()) for name in binds(part)}
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        base = node.value
        while isinstance(base, ast.Subscript):
            base = base.value
        if not isinstance(base, ast.Name) or base.id not in own:
            return True
    return any(_sets_item(child, own) for child in ast.iter_child_nodes(node))
