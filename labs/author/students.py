"""What students get: the tree without its solutions, and the test that none is left in it."""

import ast
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from labs import files
from labs.author import render
from labs.author.regions import BEGIN, DEFINITION, blank, first_line, regions, statements_of
from labs.author.sources import as_text, label_of, pairs, scripts, sources, student_tasks
from labs.blanks import BuildError

# A solution in one of these is an error; other files that show one are left out.
_STAYS = re.compile(r"(README\.md|Makefile|environment\.yml|pyproject\.toml|uv\.lock)$|(labs|notebooks|slurm)/")
_ANSWERS = re.compile(r"\b(solutions|checks)\b")  # what tests of answers mention
_SKIPPED = {"__pycache__", "runs", "build", "dist", "node_modules"}


def normal(line: str) -> str:
    """A line as it is compared between files: without indentation and comment sign."""
    return line.strip().lstrip("#").strip()


def solution_lines(source: str, name: str = "source", longer_than: int = 12) -> list[tuple[int, str]]:
    """(line number, text) of what a student must not see: lines of regions longer than `longer_than`
    characters that stand nowhere outside a region and are no signature or docstring."""
    lines, inside, kept = source.split("\n"), set(), set()
    for region in regions(source, name):
        inside.update(range(region.begin, region.end + 1))
        kept.update((region.begin, region.end))
        statements = [] if region.markdown else statements_of(lines, region, name)[0]
        for node in ast.walk(ast.Module(statements, [])):
            if isinstance(node, DEFINITION) and node.body[0].lineno > node.lineno:
                documented = ast.get_docstring(node, clean=False) is not None
                stop = node.body[0].end_lineno if documented else first_line(node.body[0]) - 1
                kept.update(range(first_line(node) - 1, stop))
    outside = {normal(line) for index, line in enumerate(lines) if index not in inside}
    hidden = [(index + 1, normal(lines[index])) for index in sorted(inside - kept)]
    return [(number, line) for number, line in hidden if len(line) > longer_than and line not in outside]


def student_tree(root, destination, report=print) -> list[str]:
    """Write what students get into an empty or new folder; returns the relative paths, sorted.

    All files that git tracks (without git: all but hidden and generated folders), except solutions/, .ci/
    and other files that show solutions, which `report` names; tests that read solutions/ or hold the answers
    that self-checks accept are among them. Notebooks and scripts are generated afresh from their sources.
    Raises BuildError if the folder is not empty or a file that students need shows a solution.
    """
    root, destination = Path(root).resolve(), Path(destination).resolve()
    if destination.exists() and (not destination.is_dir() or any(destination.iterdir())):
        raise BuildError(
            f"{destination} is not an empty folder, so files of two trees would mix; "
            "name a new folder or empty this one"
        )
    generated = {f"notebooks/{name}.ipynb": as_text(student) for name, (_, student) in pairs(root).items()}
    hidden, visible = {}, set()
    for path in [*sources(root).values(), *scripts(root).values()]:
        label, text = label_of(root, path), path.read_text(encoding="utf-8")
        student = blank(text, label)
        name = label.replace("solutions/", "notebooks/")
        if path.parent.name == "scripts":
            generated[name] = student
        else:
            name = name.removesuffix(".py") + ".ipynb"
        hidden[name] = {line for _, line in solution_lines(text, label)}
        visible.update(map(normal, student.split("\n")))
    every = render.scripts(root) if render.sources(root) else {}
    for name, text in every.items():
        if name.startswith("slurm/"):
            generated[name] = text
            seen, complete = (set(map(normal, form.split("\n"))) for form in (text, every[f"solutions/{name}"]))
            hidden[name] = {line for line in complete - seen if len(line) > 12}
            visible.update(seen)
    for path in root.glob("labs/lessons/nb*/tasks.toml"):
        generated[label_of(root, path)] = student_tasks(path.read_text(encoding="utf-8"))
    secret = set().union(*hidden.values()) - visible
    destination.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{destination.name}.", dir=destination.parent))
    try:
        for name in _tracked(root):
            if name in generated or name.startswith(("solutions/", ".ci/")) or not (root / name).is_file():
                continue
            reason = _shows(root / name, name, secret)
            if reason and _STAYS.match(name):
                raise BuildError(f"{name}: {reason}, and students need this file; take it out of there")
            if reason:
                report(f"left out {name}: {reason}")
                continue
            (partial / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, partial / name)
        for name, text in generated.items():
            files.write(partial / name, text)
        written = sorted(label_of(partial, path) for path in partial.rglob("*") if path.is_file())
        for name in written:
            reason = _shows(partial / name, name, hidden.get(name, secret))
            if reason:
                raise BuildError(f"{name}: {reason} although it is meant for students; nothing was written")
        partial.chmod(0o755)
        os.replace(partial, destination)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return written


def _tracked(root: Path) -> list[str]:
    try:
        listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True, check=True)
        names = [name for name in listed.stdout.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        names = []
    if names:
        return names
    files = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return sorted(
        path.as_posix()
        for path in files
        if not any(part.startswith(".") or part in _SKIPPED for part in path.parts[:-1])
    )


def _shows(path: Path, name: str, secret: set[str]) -> str | None:
    """What of the solutions a file shows, or None."""
    from nbformat.v4 import reads_json

    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            text = "\n".join(cell.get("source", "") for cell in reads_json(text).cells)
    except UnicodeDecodeError:
        return None
    if BEGIN.lstrip("# ") in text:
        return "holds a solution marker"
    if name.startswith("tests/") and _ANSWERS.search(text):
        return "tests solutions or self-checks"
    if not name.startswith("labs/"):
        for number, line in enumerate(text.split("\n"), 1):
            if normal(line) in secret:
                return f"shows line {number} of a solution ({normal(line)})"
    return None
