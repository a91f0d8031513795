"""A cell as it is run in replay: without what belongs to somebody's own session, as `%matplotlib inline` or `!ls`.

What is run is then pure Python, and so the same as what `plain` looks at. `%time` and `%%capture` leave the
code that they stand before; all other magics, shells and questions leave nothing.
"""

import ast
import warnings
from contextlib import suppress

LONGEST = 20_000  # characters of a cell with magics: to find them takes time that grows with its square
_AROUND = {"time", "capture", "prun"}  # what stands behind them is run
UNFIT = (SyntaxError, ValueError, RecursionError, MemoryError)


def tree(source):
    """The syntax tree of pure Python. Raises SyntaxError and others of UNFIT."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def without(source):
    """The source of a cell without its magics. Where the rest is not Python: a line that raises SyntaxError."""
    with suppress(*UNFIT):
        tree(source)
        return source
    from IPython.core.inputtransformer2 import TransformerManager

    said = f"it has magics, and is longer than {LONGEST} characters"
    if len(source) <= LONGEST:
        try:
            made = tree(TransformerManager().transform_cell(source))
            return ast.unparse(ast.fix_missing_locations(_Leave().visit(made)))
        except Exception as problem:  # of IPython's transformations anything: they get what students hand in
            said = str(problem).partition("\n")[0].encode(errors="replace").decode()
    return f"raise SyntaxError({said[:200]!r})"


class _Leave(ast.NodeTransformer):
    """Replaces what IPython makes of magics."""

    def visit_Expr(self, node):
        kind, words = _magic(node.value)
        if kind is None:
            return node
        if kind in ("run_line_magic", "run_cell_magic") and words[0] in _AROUND:
            inner = words[2] if kind == "run_cell_magic" else "" if words[0] == "capture" else words[1]
            return tree(without(inner)).body or ast.Pass()
        return ast.Pass()

    def visit_Call(self, node):
        kind, _ = _magic(node)
        return self.generic_visit(node) if kind is None else ast.List([], ast.Load())


def _magic(node) -> tuple[str | None, list]:
    """(method of get_ipython(), its words) of a call that IPython writes for a magic or shell; (None, []) of others."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Call(func=ast.Name(id="get_ipython"), args=[]), attr=kind), args=[*words]
        ) if kind in ("run_line_magic", "run_cell_magic", "system", "getoutput") and all(
            isinstance(word, ast.Constant) for word in words
        ):
            return kind, [word.value for word in words]
    return None, []
