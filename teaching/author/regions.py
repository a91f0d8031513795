"""Solution regions, as text, and the student's form of a file.

A region stands between two lines, a begin marker and an end marker (BEGIN and END below, any indentation),
in a script or in a cell of a py:percent notebook. In the student's form every name that the region assigns
becomes `name = ...  # your code here`; in a markdown cell the model answer becomes one line. A region with lines
`### GIVEN: CODE` becomes this code instead: no blank, but a program that runs and is for the student to repair.
"""

import ast
import re
from typing import NamedTuple

from labs.blanks import BuildError, parse

WORD = "SOLUTION"  # kept apart, so that this file itself holds no marker
BEGIN, END, GIVEN = f"### BEGIN {WORD}", f"### END {WORD}", "### GIVEN: "
YOUR_ANSWER = "*Write your answer here.*"
YOUR_CODE = "...  # your code here"

_CELL = re.compile(r"\s*#\s*%%+(\s.*)?$")
_MARKER_LIKE = re.compile(rf"(?i:#\s*(begin|end)[ _-]*{WORD})|^\s*(#\s*)?###+\s*(BEGIN|END|GIVEN)\b")
_PART = "the region does not hold whole statements"
_DIRECTIVE = re.compile(r"(\s*#SBATCH\s+--[\w-]+)[= ].*$")
_ASSIGNMENT = re.compile(r"(\s*[A-Za-z_]\w*)=.*$")
DEFINITION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Region(NamedTuple):
    """One solution region: 0-based line numbers of its two markers and of its lines GIVEN; is it a written answer?"""

    begin: int
    end: int
    markdown: bool
    given: tuple[int, ...] = ()


def regions(source: str, name: str = "source") -> list[Region]:
    """Solution regions of a script or py:percent source, in order.

    Raises BuildError (with `name` and line) for markers that are unbalanced, nested, unknown or cross a cell.
    """
    found, begin, markdown, given = [], None, False, ()
    for index, line in enumerate(source.split("\n")):
        if _CELL.match(line):
            if begin is not None:
                break
            markdown = re.search(r"\[(markdown|md)\]", line) is not None
        where = f"{name}:{index + 1}"
        bare = re.sub(r"^# ?(?=###)", "", line.strip()) if markdown else line.strip()
        if bare == BEGIN:
            if begin is not None:
                raise BuildError(f"{where}: a region begins inside that of line {begin + 1}; write '{END}' before it")
            begin, given = index, ()
        elif bare.startswith(GIVEN) and begin is not None and not markdown:
            given += (index,)
        elif bare == END:
            if begin is None:
                raise BuildError(f"{where}: '{END}' without a '{BEGIN}' before it")
            found.append(Region(begin, index, markdown, given))
            begin = None
        elif _MARKER_LIKE.search(line):
            known = f"'{BEGIN}', '{END}' alone on their line, and '{GIVEN}CODE' between"
            raise BuildError(f"{where}: unknown marker '{line.strip()}'; only {known} are known")
    if begin is not None:
        raise BuildError(f"{name}:{begin + 1}: '{BEGIN}' has no '{END}' in the same cell; add it")
    return found


def strip_markers(source: str, name: str = "source") -> str:
    """The source without its marker lines; all code of the solution stays. Errors as in `regions`."""
    markers = {line for region in regions(source, name) for line in (region.begin, region.end, *region.given)}
    return "\n".join(line for index, line in enumerate(source.split("\n")) if index not in markers)


def blank(source: str, name: str = "source") -> str:
    """The student's form of a script or py:percent source.

    A region becomes `name = ...` for every name that it binds (also inside its with, if and try blocks, since later
    cells use those names), in order and once; imports and loops leave nothing; a `return` at the end stays, as
    `return ...`; where nothing is left, a bare `...` stands. Lines GIVEN stand in its place, such as the signature of a
    function that the region defines.
    Raises BuildError with `name` and line for wrong markers and for text that is not valid Python.
    """
    starts = {node.lineno for node in ast.walk(_parsed(source, name)) if isinstance(node, ast.stmt)}

    def filled(region, lines):
        if region.markdown:
            return [lines[region.begin].replace(BEGIN, YOUR_ANSWER).rstrip()]
        statements, indent = _statements_of(lines, region, name)
        if split := [node.lineno for node in statements if node.lineno not in starts]:
            raise BuildError(f"{name}:{split[0]}: {_PART}; move its markers")
        given = [lines[index].replace(GIVEN, "", 1).rstrip() for index in region.given]
        return given or _render(statements, indent)

    student = _with_regions(source, name, filled)
    _parsed(student, name, "after blanking, ")
    return student


def _with_regions(source, name, filled):
    """The source with the lines that filled(region, lines of the source) gives in the place of each region."""
    lines, made, position = source.split("\n"), [], 0
    for region in regions(source, name):
        made += [*lines[position : region.begin], *filled(region, lines)]
        position = region.end + 1
    return "\n".join(made + lines[position:])


def _parsed(text: str, name: str, when: str = "") -> ast.Module:
    """The syntax tree. Raises BuildError with the line of this text."""
    try:
        parse(text, 0)  # also finds what is no mistake of syntax alone, as `return` outside of a function
        return parse(text)
    except SyntaxError as error:
        raise BuildError(f"{name}:{error.lineno or 1}: {when}the file is not valid Python: {error.msg}") from None


def _statements_of(lines: list[str], region: Region, name: str) -> tuple[list[ast.stmt], str]:
    """Top-level statements of a region, with line numbers of the source, and their indentation."""
    inside = lines[region.begin + 1 : region.end]
    code = [line for line in inside if line.strip() and not line.lstrip().startswith("#")]
    first = (code or lines[region.begin :])[0]
    indent = first[: len(first) - len(first.lstrip())]
    opener = "if True:" if indent and code else ""  # in the place of the marker
    try:
        body = parse("\n".join([""] * region.begin + [opener, *inside])).body
    except SyntaxError as error:
        raise BuildError(f"{name}:{error.lineno}: {_PART} ({error.msg}); move its markers") from None
    if opener and len(body) > 1:
        raise BuildError(f"{name}:{body[1].lineno}: {_PART} of one block; move its markers")
    return (body[0].body if opener else body), indent


def _render(statements: list[ast.stmt], indent: str) -> list[str]:
    names = dict.fromkeys(name for node in statements for name in _assigned(node))
    ends = [f"{indent}return {YOUR_CODE}"] if names and isinstance(statements[-1], ast.Return) else []
    return [f"{indent}{name} = {YOUR_CODE}" for name in names] + ends or [indent + YOUR_CODE]


def _assigned(node: ast.AST):
    """The names that a statement binds and that later code may use."""
    if isinstance(node, DEFINITION):
        yield node.name
    elif isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and node.value is not None:
        for part in (part for target in getattr(node, "targets", [node]) for part in ast.walk(target)):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                yield part.id
    elif isinstance(node, (ast.With, ast.AsyncWith, ast.If, ast.Try, ast.TryStar, ast.ExceptHandler)):
        for child in ast.iter_child_nodes(node):
            yield from _assigned(child)


def blank_batch(source, name="script"):
    """The student's form of a batch script with markers. Raises BuildError for wrong markers, and for a line in a
    region that is neither a directive with a value nor an assignment."""

    def filled(region, lines):
        for number, line in enumerate(lines[region.begin + 1 : region.end], region.begin + 2):
            if directive := _DIRECTIVE.match(line):
                yield f"{directive[1]}=..."
            elif assignment := _ASSIGNMENT.match(line):
                yield f"{assignment[1]}={YOUR_CODE}"
            else:
                known = "a region of a batch script holds directives with a value and assignments only"
                raise BuildError(f"{name}:{number}: {known}; move its markers")

    return _with_regions(source, name, filled)
