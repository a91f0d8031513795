"""A cell as it is run in replay: without what belongs to somebody's own session, as `%matplotlib inline` or `!ls`.

What is run is then pure Python, and so the same as what `plain` looks at. `%time` and `%%capture` leave the
code that they stand before; all other magics, shells and questions leave nothing.
"""

import ast
import re
import textwrap
import warnings
from contextlib import suppress

UNFIT = (SyntaxError, ValueError, RecursionError, MemoryError)
_AROUND = {"time", "capture", "prun"}  # what stands behind them is run
_CELL = re.compile(r"\s*%%(\w+).*\n?")
_LINE = re.compile(  # with the lines that a backslash joins to it
    r"^(?P<indent>[ \t]*)(?:%(?:time|prun)[ \t]+(?P<run>.+)"
    r"|(?P<into>\w[\w, ]*=[ \t]*)?(?:%%?\w|[!?])(?:.*\\\n)*.*|\w[\w.]*\?+[ \t]*)$",
    re.MULTILINE,
)


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
    while cell := _CELL.match(source):
        source = source[cell.end() :] if cell[1] in _AROUND else ""
    try:
        tree(source := _LINE.sub(_left, textwrap.dedent(source)))
        return source
    except UNFIT as problem:
        said = str(problem).encode(errors="replace").decode()
        return f"raise SyntaxError({said[:200]!r})"


def _left(line):
    """What a magic, a shell or a question leaves in its place."""
    return line["indent"] + (line["run"] or (f"{line['into']}[]" if line["into"] else "pass"))
