"""The course as a site, made by `make site`: pages from README.md, docs/ and the notebooks, in two editions.

    students       the notebooks with blanks, with outputs that give no answer away; docs/students
    instructors    the executed solutions, all of docs/, scripts, and the files of the sites

Sphinx builds them as docs/site/conf.py says, which adds pages of the code. No cell is executed.
"""

import ast
import copy
import html
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from labs import files
from labs.blanks import BuildError, parse
from labs.checks import tasks
from teaching.author import hidden, students
from teaching.author.regions import DEFINITION
from teaching.author.sources import as_text, label_of, pairs

EDITIONS = ("students", "instructors")
_IMPORTS = (ast.Import, ast.ImportFrom)
_ASKS = {"check", "predict", "outcome", "reflect", "answered"}  # what a call of these shows is for who has answered
_LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
_TAG = re.compile(r"<(?:br|/p|/tr|/td|/th|/caption|/li)[^>]*>")
_PREDICT = "Predict first, then open this: what a run of the solutions showed"


def build(root, out, editions=EDITIONS, keeps=None):
    """Write the editions as folders of `out`, each with its index.html; what was there goes. keeps: see `pages`.

    Raises BuildError, also for a dead link and whatever else Sphinx warns of.
    """
    every, root = pairs(root), Path(root).resolve()
    with tempfile.TemporaryDirectory(prefix="labs-site-") as folder:
        for edition in editions:
            source, made = Path(folder, edition), Path(folder, "made", edition)
            for name, content in pages(root, edition, keeps, every).items():
                files.write(source / name, content, lasting=False)
            command = [sys.executable, "-m", "sphinx", "-qW", "--keep-going", "-t", edition, "-c", root / "docs/site"]
            ran = subprocess.run([*command, source, made], capture_output=True, text=True, cwd=root)
            if ran.returncode:
                raise BuildError(f"Sphinx could not build the {edition}' edition:\n{ran.stderr}")
            shutil.rmtree(Path(out, edition), ignore_errors=True)
            shutil.rmtree(made / ".doctrees", ignore_errors=True)
            Path(out).mkdir(parents=True, exist_ok=True)
            shutil.move(made, Path(out, edition))


def pages(root, edition, keeps=None, every=None):
    """{path below Sphinx's sources: text or bytes} of an edition.

    keeps: whether a path belongs to it (default: all do); every: what `sources.pairs` gives, if it is known. Raises
    BuildError, as for a solution that was not executed as it stands.
    """
    root, teaching, made = Path(root).resolve(), edition == "instructors", {}
    every = {
        name: pair for name, pair in (every or pairs(root)).items() if not keeps or keeps(f"notebooks/{name}.ipynb")
    }
    secret = {} if teaching else hidden.secrets(root) | criteria()
    for name, (solution, student) in every.items():
        ran = outputs(root, name, solution)
        seen = dict.fromkeys(ran, True) if teaching else shown(solution, student)
        kept = {id: [each for each in ran[id] if not secret.keys() & set(lines(each))] for id in seen}
        made[f"notebooks/{name}.ipynb"] = _page(solution if teaching else student, kept, seen)
    folders = ("docs/students", "docs/instructors", "docs") if teaching else ("docs/students", "docs")
    given = ["README.md", *(["CONTRIBUTING.md"] if teaching else ())]
    given += [label_of(root, path) for folder in folders for path in sorted((root / folder).glob("*.md"))]
    for name in given:
        text = (root / name).read_text(encoding="utf-8")
        made[name] = text if teaching else students.ABOUT_TEACHING.sub("", text)
        for link in _LINK.findall(made[name]):  # pictures, and files to look at
            target = (root / name).parent.joinpath(link).resolve()
            if target.is_file() and target.suffix != ".md":
                made[label_of(root, target)] = target.read_bytes()
    made["index.md"] = made.pop("README.md")
    return made


def criteria():
    """{line: where it stands} of what a good answer contains, and of why an answer is right."""
    items = [item for lesson in tasks.lessons().values() for item in lesson.task]
    told = {item.id: [*getattr(item, "holds", ()), getattr(item, "why", None) or ""] for item in items}
    return {hidden.normal(line): id for id, texts in told.items() for line in texts if line}


def lines(output):
    """The lines of an output as a reader sees them."""
    data = [output.get("text", ""), *(text for kind, text in output.get("data", {}).items() if kind[:5] == "text/")]
    plain = html.unescape(re.sub(r"<[^>]*>", "", _TAG.sub("\n", "\n".join(data))))
    return [hidden.normal(line) for line in plain.split("\n")]


def outputs(root, name, solution):
    """{id of a code cell: its outputs} of an executed solution. Raises BuildError where its code is another one now."""
    import nbformat

    path = Path(root, "solutions", f"{name}.ipynb")
    ran = {cell.id: cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"}
    for cell in solution.cells:
        if cell.cell_type == "code" and (cell.id not in ran or ran[cell.id].source != cell.source):
            raise BuildError(f"solutions/{name}.ipynb was not executed as its source stands; run `uv run teach build`")
    return {id: cell.outputs for id, cell in ran.items()}


def _page(notebook, kept, seen):
    """The notebook with the outputs `kept`; those that are not open in `seen` are folded."""
    page = copy.deepcopy(notebook)
    for cell in page.cells:
        if kept.get(cell.id):
            cell.outputs = kept[cell.id]
            if not seen[cell.id]:
                cell.metadata |= {"tags": ["hide-output"], "mystnb": {"code_prompt_show": _PREDICT}}
    return as_text(page)


def shown(solution, student):
    """{id of a code cell: whether its outputs stand open} of those outputs that students may see.

    Left out: a cell with a blank, a check, a prediction or an outcome, one for those who have answered, and what comes
    from a blank. Closed until the reader opens it: what stands between a prediction and its outcome, or shows that.
    """
    cells = [pair for pair in zip(solution.cells, student.cells, strict=True) if pair[0].cell_type == "code"]
    trees = [parse(full.source) for full, _ in cells]
    told = {call for tree in trees for call in _calls(tree, {"outcome"})}
    telling = {name for call in told for part in (*call.args[1:], *call.keywords) for name in _names(part)}
    telling -= {alias.asname or alias.name for tree in trees for node in _of(tree, _IMPORTS) for alias in node.names}
    secret = {
        alias.name
        for tree in trees
        for node in _of(tree, ast.ImportFrom)
        for alias in node.names
        if alias.name == "report"
    }
    waiting, predicted, found = set(), False, {}
    for (full, seen), tree in zip(cells, trees, strict=True):
        waiting |= {ast.dump(call.args[0]) for call in _calls(tree, {"predict"})}
        predicted = predicted or bool(waiting)
        if full.source != seen.source:
            secret |= _blank(parse(seen.source)) - {name for name in _names(tree, ast.Store) if _is_script(tree, name)}
        elif _names(tree) & secret:
            secret |= _names(tree, ast.Store)
        elif not _calls(tree, _ASKS):
            found[full.id] = not (waiting or (predicted and _names(tree) & telling))
        waiting -= {ast.dump(call.args[0]) for call in _calls(tree, {"outcome"})}
    return found


def _of(tree, kinds) -> list[Any]:
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


def _names(tree, context=ast.expr_context):
    """Names in a tree; with ast.Store those that it binds."""
    defined = {node.name for node in _of(tree, DEFINITION)} if context is ast.Store else set()
    return defined | {node.id for node in _of(tree, ast.Name) if isinstance(node.ctx, context)}


def _calls(tree, names):
    return [node for node in _of(tree, ast.Call) if getattr(node.func, "id", None) in names]


def _blank(tree):
    """Names that a student's cell leaves blank; all that it binds if it has code to be repaired instead."""
    left = [node for node in tree.body if any(child.value is ... for child in _of(node, ast.Constant))]
    return {name for node in left or tree.body for name in _names(node, ast.Store)}


def _is_script(tree, name):
    """Is it the path of a script? What a run of it measured is no answer."""
    values = [ast.unparse(node.value) for node in _of(tree, ast.Assign) if name in _names(node, ast.Store)]
    return any(value.startswith("'scripts/") for value in values)
