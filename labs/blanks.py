"""What is still to fill in a student's file: a Python program, or a batch script."""

import ast
import re
import warnings
from pathlib import Path
from typing import Any

from labs.errors import LabsError

_MAGIC = re.compile(r"^(\s*)([%!?].*)$", re.MULTILINE)
_BATCH = re.compile(r"^\s*(?:#SBATCH\s+--?[\w-]+[= ]*|[A-Za-z_]\w*=)\.\.\.\s*(?:#.*)?$")


class BuildError(LabsError):
    """A student's file that Python cannot read; of authors also a source, a notebook or a tree that cannot be built.
    The message names the file and says what to do."""


def parse(text: str | bytes, flags: int = ast.PyCF_ONLY_AST) -> Any:
    """Syntax tree of Python text that may hold lines of IPython magic and await at top level.

    Raises SyntaxError with line numbers of `text`. With other `flags`, what `compile` gives.
    """
    flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return compile(text, "<source>", "exec", flags, dont_inherit=True)
        except SyntaxError as error:
            try:
                text = _MAGIC.sub(r"\1pass  # \2", text if isinstance(text, str) else text.decode("utf-8-sig"))
                return compile(text, "<source>", "exec", flags, dont_inherit=True)
            except (SyntaxError, UnicodeDecodeError):
                raise error from None


def blanks(path_or_source: Path | str) -> list[tuple[int, str]]:
    """(line number, line) of every unfilled blank in a student's Python file.

    path_or_source: its path or its text. A blank is a name assigned to a bare `...`, or a bare `...` as a statement;
    comments and an empty class do not count. Raises BuildError, in one line for the student, when Python cannot read
    the file.
    """
    name, text = "your code", path_or_source
    if isinstance(path_or_source, Path) or (path_or_source.endswith(".py") and "\n" not in path_or_source):
        # As bytes Python takes it as when it runs it: with a byte-order mark, or in the coding that it names.
        name, text = Path(path_or_source).name, Path(path_or_source).read_bytes()
    try:
        tree = parse(text)
    except SyntaxError as error:
        raise BuildError(
            f"{name}:{error.lineno}: Python cannot read this line ({error.msg}), so nothing in "
            "the file can run; correct the line and try again."
        ) from None
    lines = (text if isinstance(text, str) else text.decode("utf-8-sig", "replace")).split("\n")
    return [(number, lines[number - 1].strip()) for number in sorted(set(_blank_lines(tree)))]


def _blank_lines(node: ast.AST):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and _is_blank(child.value) and not isinstance(node, ast.ClassDef):
            yield child.lineno
        elif isinstance(child, ast.Assign) and isinstance(child.targets[0], (ast.Tuple, ast.List)):
            if any(map(_is_blank, [child.value, *getattr(child.value, "elts", [])])):
                yield child.lineno
        elif isinstance(child, (ast.Assign, ast.AnnAssign)) and _is_blank(child.value):
            yield child.lineno
        yield from _blank_lines(child)


def _is_blank(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is Ellipsis


def blanks_of_batch(text: str) -> list[tuple[int, str]]:
    """(line number, line) of every blank that is left in the text of a batch script."""
    return [(number, line.strip()) for number, line in enumerate(text.split("\n"), 1) if _BATCH.match(line)]
