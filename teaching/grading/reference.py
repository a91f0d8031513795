"""What the solutions say of a check: which of its arguments a student writes, and the right functions among them."""

import ast
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from labs.blanks import parse
from teaching.author import regions, sources


@dataclass(frozen=True)
class AskedCheck:
    """A check of a notebook: the names of its arguments (None for what is no name), and which of them are blanks.

    batch: the file name of the batch script that it is about, or None; report: it is about the report as it was made.
    """

    names: tuple
    own: tuple
    batch: str | None
    report: bool = False


@cache
def pair(root, notebook):
    """(the complete notebook, the student's)."""
    return sources.pair(Path(root), Path(root, "solutions", f"{notebook}.py"))


@cache
def forms(root, notebook):
    """(cells of the complete notebook, cells of the student's), {id of the cell: source} of code, in order."""
    both = pair(root, notebook)
    return tuple({cell.id: cell.source for cell in form.cells if cell.cell_type == "code"} for form in both)


@cache
def asked(root, notebook):
    """{id: AskedCheck} of the checks of a notebook."""
    found, blank, scripts = {}, blanks(root, notebook), {}
    complete, nodes = ([n for text in form.values() for n in ast.walk(parse(text))] for form in forms(root, notebook))
    assigned = [node for node in complete if isinstance(node, ast.Assign)]
    reports = [ast.unparse(node.targets[0]) for node in assigned if ast.unparse(node.value).startswith("report.make(")]
    for node in nodes:
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("sites.script("):
            scripts[node.targets[0].id] = node.value.args[0].value
    for node in nodes:
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "check":
            names = tuple(each.id if isinstance(each, ast.Name) else None for each in node.args[1:])
            batch = scripts.get(names[0]) if names else None
            own, report = tuple(name in blank for name in names), bool({*names} & {*reports})
            found[node.args[0].value] = AskedCheck(names, own, batch, report)
    return found


@cache
def blanks(root, notebook):
    """The names that a student's notebook leaves open."""
    found = set()
    for source in forms(root, notebook)[1].values():
        for node in ast.walk(parse(source)):
            if isinstance(node, ast.Assign) and _is_blank(node.value):
                found |= {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
            elif isinstance(node, regions.DEFINITION) and _is_blank(getattr(node.body[-1], "value", None)):
                found.add(node.name)
    return frozenset(found)


def _is_blank(node):
    return isinstance(node, ast.Constant) and node.value is ...


@cache
def scripts(root):
    """{path below the course: (text, complete text)} of the training scripts: as students get them, and complete."""
    found = {}
    for name, path in sources.scripts(Path(root)).items():
        text = path.read_text(encoding="utf-8")
        found[f"notebooks/scripts/{name}"] = regions.blank(text, name), regions.strip_markers(text, name)
    return found


@cache
def functions(root, notebook):
    """The names that the complete notebook's imports and functions define; nothing else of it is run."""
    names = {"__name__": "reference"}
    for source in forms(root, notebook)[0].values():
        for node in parse(source).body:
            if isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef):
                with suppress(ImportError):  # as of Horovod, where it is missing: what needs it is not compared
                    exec(compile(ast.Module([node], []), notebook, "exec"), names)
    return names
