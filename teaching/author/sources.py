"""The sources of the course, what each depends on, and the pair of notebooks that each one gives.

solutions/NN_name.py (jupytext py:percent) -> a notebook with solutions and a blank one, same cell ids
solutions/scripts/*.py                     -> scripts with blanks (see blanks)
"""

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from labs.blanks import BuildError, parse
from labs.checks import tasks
from teaching.author.regions import BEGIN, END, blank, strip_markers

VERSION = 1
KIT = ("labs", "lessons")  # packages that notebooks import
KERNEL = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}


def label_of(root: Path, path: Path) -> str:
    """A file's name in messages: its path below `root`, with forward slashes."""
    return Path(path).relative_to(root).as_posix()


def sources(root: Path) -> dict[str, Path]:
    """Notebook sources by name (`05_resnet50_scaling`), in order."""
    return {path.stem: path for path in sorted(Path(root, "solutions").glob("*.py"))}


def scripts(root: Path) -> dict[str, Path]:
    """Complete training scripts by file name (`ResNet50.py`), in order."""
    return {path.name: path for path in sorted(Path(root, "solutions", "scripts").glob("*.py"))}


def lesson_of(root: Path, source: Path) -> Path:
    """Folder of a source's lesson: lessons/resnet50_scaling of 05_resnet50_scaling.py. It need not be there."""
    return Path(root, "lessons", Path(source).stem.partition("_")[2])


@lru_cache(maxsize=512)
def _kit_names(text: str, package: str) -> frozenset[str]:
    """Dotted names below `labs` and `lessons` that a Python text imports or names (`labs.x`, also in a string)."""
    names = set()
    for node in ast.walk(parse(text)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: 1 - node.level or None] if node.level else []
            base = ".".join(filter(None, [*above, node.module]))
            names.update([base, *(f"{base}.{alias.name}" for alias in node.names)])
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in KIT:
            names.add(f"{node.value.id}.{node.attr}")
        elif isinstance(node, ast.Constant) and re.fullmatch(rf"({'|'.join(KIT)})(\.\w+)+", str(node.value)):
            names.add(node.value)
    return frozenset(name for name in names if name.split(".")[0] in KIT)


def kit_files(root: Path, paths: list[Path], left_out: Callable[[Path], bool] = lambda path: False) -> set[Path]:
    """Some Python files below `root`, and the modules of KIT that they import, directly or through others; none for
    which left_out(path) holds. Raises BuildError for a file that is no Python."""
    waiting, found = list(paths), set()
    while waiting:
        path = waiting.pop()
        if path in found or left_out(path):
            continue
        found.add(path)
        try:
            names = _kit_names(path.read_text(encoding="utf-8"), ".".join(path.relative_to(root).parent.parts))
        except SyntaxError as error:
            where = f"{label_of(root, path)}:{error.lineno}"
            raise BuildError(f"{where}: the file is not valid Python: {error.msg}") from None
        for parts in (name.split(".") for name in names):
            stems = [root.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1)]
            waiting += [p for stem in stems for p in (stem.with_suffix(".py"), stem / "__init__.py") if p.is_file()]
    return found


def source_files(root: Path, source: Path) -> list[Path]:
    """All files below `root` that the outputs of a source depend on, found without importing anything.

    The source; the tasks and the judges of its lesson, and the tasks of all lessons if it shows the progress; the
    scripts that it names as `scripts/NAME.py`; the modules of KIT which all these import, directly or through others;
    the recorded data of labs; the batch scripts that it names (`NAME.sh`), with the sites.
    Raises BuildError for a script that is not there.
    """
    root, lesson = Path(root), lesson_of(root, source)
    text = Path(source).read_text(encoding="utf-8")
    items = lesson.parent.glob("*/tasks.toml") if "progress(" in text else lesson.glob("tasks.toml")
    batch = [root / "solutions" / "slurm" / name for name in re.findall(r"[\"/]([\w-]+\.sh)\"", text)]
    programs = [root / "solutions" / "scripts" / name for name in re.findall(r"\bscripts/([\w-]+\.py)\b", text)]
    if missing := [path for path in [*batch, *programs] if not path.exists()]:
        names = f"names {missing[0].name}, but there is no {label_of(root, missing[0])}; write it or correct the name"
        raise BuildError(f"{label_of(root, source)}: {names}")
    found = kit_files(root, [Path(source), *lesson.glob("questions.py"), *programs])
    recorded = (path for path in (root / "labs" / "recorded").rglob("*") if "__pycache__" not in path.parts)
    if batch:  # and what a batch script says at every site
        batch += [path for path in (root / "slurm" / "sites").glob("*.toml") if not path.stem.endswith(".local")]
    return sorted(found.union(path for path in [*items, *recorded, *batch] if path.is_file()))


def source_hash(root: Path, source: Path) -> str:
    """SHA-256 (hex) over names and bytes of `source_files`."""
    digest = hashlib.sha256()
    for path in source_files(root, source):
        digest.update(label_of(root, path).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def pair(root: Path, source: Path):
    """(solution notebook without outputs, student's notebook) of a source; nbformat 4.5, same cell ids.

    A cell with metadata `labs={"id": "lesson.k"}` has the id `labs-lesson-k`; the id of any other cell is a hash
    of the name of the notebook and of what the student sees in the cell, so it survives changes elsewhere. A written
    answer gets its points, and behind the solution what a good answer contains, from the tasks.toml of its lesson; a
    cell behind it lets students go through that list.
    Raises BuildError for wrong markers or metadata, and for a written answer that the tasks.toml does not know or that
    has no solution; TaskError for a wrong tasks.toml.
    """
    import jupytext
    import nbformat

    label, text = label_of(root, source), source.read_text(encoding="utf-8")
    parsed = [jupytext.reads(form(text, label), fmt="py:percent") for form in (strip_markers, blank)]
    solution, student = parsed
    if len(solution.cells) != len(student.cells):
        counts = f"{len(solution.cells)} cells with solutions, but {len(student.cells)} without"
        raise BuildError(f"{label}: {counts}; keep every region inside one cell")
    seen: Counter = Counter()
    labs = {"source_hash": source_hash(root, source), "version": VERSION}
    toml = lesson_of(root, source) / "tasks.toml"
    written = {item.id: item for item in tasks.load(toml).task if item.kind == "answer"} if toml.exists() else {}
    for number, (full, seen_cell) in enumerate(zip(solution.cells, student.cells, strict=True), 1):
        identifier = _cell_id(source.stem, seen_cell, seen, f"{label}: cell {number}")
        for cell in (full, seen_cell):
            cell.id = identifier
            for key in ("lines_to_next_cell", "cell_marker"):
                cell.metadata.pop(key, None)
        if full.metadata.get("labs", {}).get("kind") == "answer":
            _complete(full, seen_cell, written, f"{label}: cell {number}")
    for notebook in parsed:
        notebook.cells = [each for cell in notebook.cells for each in (cell, *_reflection(cell))]
        notebook.nbformat, notebook.nbformat_minor = 4, 5
        metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}, "labs": labs}
        notebook.metadata = nbformat.from_dict(metadata)
        nbformat.validate(notebook)
    return solution, student


def _complete(full, seen_cell, written: dict[str, tasks.Answer], label: str) -> None:
    """Add to both forms of a written answer its points, and to the solution what a good answer contains, in place."""
    id = full.metadata["labs"]["id"]
    if id not in written:
        raise BuildError(f"{label}: {id} is no written task of the lesson's tasks.toml; add it there, as kind answer")
    shared = seen_cell.source.split("\n")
    if not any(line.strip(" .") for line in full.source.split("\n") if line not in shared):
        raise BuildError(f"{label}: {id} has no solution; write one between '{BEGIN}' and '{END}'")
    for cell in (full, seen_cell):
        cell.metadata["labs"]["points"] = written[id].points
    holds = "\n".join(f"- {line}" for line in written[id].holds)
    full.source += f"\n\n**A good answer contains** (1 point each):\n{holds}"


def _reflection(cell):
    """The code cell that follows a written answer, if the cell is one."""
    from nbformat.v4 import new_code_cell

    mark = cell.metadata.get("labs", {})
    if mark.get("kind") == "answer":
        yield new_code_cell(f'from labs.checks import reflect\n\nreflect("{mark["id"]}")', id=f"{cell.id}-reflect")


def _cell_id(name: str, cell, seen: Counter, label: str) -> str:
    labs = cell.metadata.get("labs", {})
    if not isinstance(labs, dict) or {"id", "incorrectly_encoded_metadata"} & set(cell.metadata):
        form = '`# %% labs={"id": "lesson.k"}`'
        raise BuildError(f"{label}: its metadata cannot be read; write them as {form}")
    if "id" in labs:
        return "labs-" + re.sub(r"[^A-Za-z0-9_-]", "-", str(labs["id"]))[:59]
    lines = [line.rstrip() for line in cell.source.splitlines() if line.strip()]
    text = "\0".join([name, cell.cell_type, *lines])
    seen[text] += 1
    return hashlib.sha256(f"{text}\0{seen[text]}".encode()).hexdigest()[:12]


def pairs(root: Path) -> dict[str, tuple]:
    """`pair` for every source by name; a task's id may stand in one cell only (else BuildError)."""
    made, owner = {name: pair(root, source) for name, source in sources(root).items()}, {}
    for name, cell in ((name, cell) for name, (solution, _) in made.items() for cell in solution.cells):
        if task := cell.metadata.get("labs", {}).get("id"):
            if task in owner:
                used = f"the id {task} is already used in solutions/{owner[task]}.py; give each task its own"
                raise BuildError(f"solutions/{name}.py: {used}")
            owner[task] = name
    return made


def as_text(notebook) -> str:
    """The file's text; the same notebook always gives the same text."""
    import nbformat

    return nbformat.writes(notebook, version=4).rstrip("\n") + "\n"
