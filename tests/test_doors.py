"""What the doors of rooms offer, and the modules that rooms share: complete types, and a docstring."""

import ast

import pytest
from test_rooms import copy, modules, rooms  # noqa: F401, a fixture
from tree import ROOT


def offered(root):
    """(module, syntax tree) of each function and class that a door offers, or a module beside the rooms shares."""
    trees = {}
    for path in modules(root):
        name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        trees[name] = ast.parse(path.read_text(encoding="utf-8"))
    for room in rooms(root):
        door = ".".join(room.relative_to(root).parts)
        yield from _public(door, trees[door])
        for node in trees[door].body:
            if isinstance(node, ast.ImportFrom) and node.module in trees:
                names = [name.name for name in node.names]
                every = _public(node.module, trees[node.module])
                yield from (found for found in every if names == ["*"] or found[1].name in names)
    for path in sorted(root.glob("labs/[a-z]*.py")):
        if path.stem != "cli":
            yield from _public(f"labs.{path.stem}", trees[f"labs.{path.stem}"])


def _public(module, tree):
    kinds = ast.FunctionDef | ast.ClassDef
    return [(module, each) for each in tree.body if isinstance(each, kinds) and not each.name.startswith("_")]


def untyped(root):
    """{function or method: what it lacks} of what is offered; a method that another class asks for is left out."""
    found = {}
    for module, node in offered(root):
        own = isinstance(node, ast.ClassDef)
        methods = [each for each in node.body if isinstance(each, ast.FunctionDef)] if own else [node]
        if own and not ast.get_docstring(node):
            found[f"{module}.{node.name}"] = ["a docstring"]
        for each in methods:
            if own and (each.name.startswith("_") and each.name != "__init__" or each.name.startswith(("on_", "set_"))):
                continue
            told = each.args
            plain = [*told.posonlyargs, *told.args, *told.kwonlyargs]
            lacks = [arg.arg for arg in plain if not arg.annotation and arg.arg not in ("self", "cls")]
            lacks += [] if each.returns or each.name == "__init__" else ["what it returns"]
            lacks += [] if own or ast.get_docstring(each) else ["a docstring"]
            if lacks:
                found[f"{module}.{f'{node.name}.' if own else ''}{each.name}"] = lacks
    return found


def test_what_is_offered_has_complete_types_and_a_docstring():
    assert untyped(ROOT) == {}


@pytest.mark.parametrize(
    ("module", "code", "lacks"),
    [
        ("files", "def kept(path, *rest) -> None:\n    'Kept.'\n", {"labs.files.kept": ["path"]}),
        ("data/batching", "def load(name: str) -> str: ...\n", {}),  # another module's load is the door's
        (
            "data/datasets",
            "def load(name: str): ...\n",
            {"labs.data.datasets.load": ["what it returns", "a docstring"]},
        ),
        ("jobs/job", "class Job:\n    def wait(self): ...\n", {"labs.jobs.job.Job.wait": ["what it returns"]}),
    ],
)
def test_what_lacks_types_is_found(copy, module, code, lacks):  # noqa: F811
    before = untyped(copy)
    path = copy / f"labs/{module}.py"
    path.write_text(path.read_text() + "\n\n" + code)
    after = untyped(copy)
    assert lacks.items() <= after.items() and (lacks or after == before)
