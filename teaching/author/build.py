"""From one source to everything that is generated from it: build, and check for drift.

    solutions/NN_name.py    -> solutions/NN_name.ipynb (executed) and notebooks/NN_name.ipynb (blank)
    solutions/scripts/*.py  -> notebooks/scripts/*.py (blank)
    solutions/slurm/*.sh    -> slurm/<site>/*.sh (blank) and solutions/slurm/<site>/*.sh, for the sites in slurm/sites/
    what these use of labs/ -> docs/students/labs.md (a line for each name)

Both notebooks of a source carry the same cell ids and, in `metadata.labs`, a hash of the source and of all
that it uses: what did not change is not executed again, and `check` sees drift without executing.
"""

import copy
import time
from pathlib import Path

from labs import files
from labs.blanks import BuildError
from labs.checks import tasks
from teaching.author import names as public
from teaching.author import render
from teaching.author.execute import clean
from teaching.author.execute import execute as run_all
from teaching.author.regions import blank
from teaching.author.sources import as_text, label_of, pairs, scripts, sources

FIX = "run `uv run teach build`"


def build(root, names=None, execute=True, force=False, report=print) -> list[str]:
    """Generate what is missing or out of date; returns what was done, one line each.

    `names` limits it to some notebooks (`05_resnet50_scaling`, `05`); `force` executes even what did not
    change; without `execute` the solution notebooks stay as they are. `report` gets lines of progress.
    Raises BuildError; a notebook whose execution fails leaves its old files in place.
    """
    root = Path(root).resolve()
    every = pairs(root)
    chosen = _chosen(every, names)
    done = render.write(root, _texts(root), report)
    for name in sorted(chosen):
        solution, student = every[name]
        path = root / "solutions" / f"{name}.ipynb"
        label, old = label_of(root, path), force or differences(root, path, solution, executed=True)
        if old and not execute:
            report(f"{label} is out of date and was not executed")
        elif old:
            report(f"executing {label} ({len(solution.cells)} cells)")
            began = time.perf_counter()
            files.write(path, as_text(executed(root, solution, label)))
            done.append(f"executed {label}")
            report(f"{label} took {time.perf_counter() - began:.0f} s")
        done += render.write(root, {f"notebooks/{name}.ipynb": as_text(student)}, report)
    return done


def _texts(root) -> dict[str, str]:
    """{path below `root`: text} of all that is generated but notebooks. Raises BuildError, UseError."""
    return student_scripts(root) | public.page(root) | render.scripts(root)


def student_scripts(root) -> dict[str, str]:
    """{path below `root`: text} of the training scripts that students get. Raises BuildError."""
    texts = {name: (path.read_text(encoding="utf-8"), label_of(root, path)) for name, path in scripts(root).items()}
    return {f"notebooks/scripts/{name}": blank(text, label) for name, (text, label) in texts.items()}


def executed(root: Path, notebook, label: str = "notebook"):
    """A copy of a solution notebook with clean outputs, executed in solutions/, where each check must be right.

    Raises BuildError.
    """
    result = copy.deepcopy(notebook)
    run_all(result, root / "solutions", label, env={"LABS_STRICT": "1"})
    clean(result, root)
    if wrong := _not_executed(result):
        raise BuildError(f"{label}: {wrong[0]}")
    result.metadata = copy.deepcopy(notebook.metadata)
    return result


def _chosen(every, names):
    """The notebooks that are meant by `names` (`05_resnet50_scaling`, `05`), without any all. Raises BuildError."""
    chosen = set() if names else set(every)
    for wanted in names or []:
        found = {name for name in every if name == Path(wanted).stem or name.startswith(f"{wanted}_")}
        if not found:
            raise BuildError(f"there is no solutions/{wanted}.py; known are: {', '.join(every) or 'none'}")
        chosen |= found
    return chosen


def check(root, names=None) -> list[str]:
    """Problems of the generated files, one line each: file, what is wrong, what to run; [] if there are none.

    Nothing is executed, and outputs and timings are not compared. `names` limits the notebooks, as in `build`.
    """
    root, problems = Path(root).resolve(), []
    if not sources(root):
        return ["solutions: holds no NN_name.py, so nothing can be checked; use the instructor's tree"]
    try:
        every = pairs(root)
        for name in sorted(_chosen(every, names)):
            for folder, expected in zip(("solutions", "notebooks"), every[name], strict=True):
                problems += differences(root, root / folder / f"{name}.ipynb", expected, folder == "solutions")
        made = _texts(root)
    except BuildError as error:
        return [*problems, str(error).splitlines()[0] + f"; then {FIX}"]
    for name, text in made.items():
        if (there := render.text_of(root, name)) != text:
            problems.append(f"{name}: {'is missing' if there is None else 'is not what its source gives'}; {FIX}")
    known = {f"{folder}/{name}.ipynb" for name in every for folder in ("solutions", "notebooks")} | made.keys()
    patterns = ("solutions/*.ipynb", "notebooks/*.ipynb", "notebooks/scripts/*.py")
    patterns += ("slurm/*/*.sh", "solutions/slurm/*/*.sh")
    there = (label_of(root, path) for pattern in patterns for path in sorted(root.glob(pattern)))
    alone = (name for name in there if name not in known)
    return problems + [f"{name}: has no source in solutions/; remove it, or write that and {FIX}" for name in alone]


def words(root, path: str) -> int:
    """How many words students read in the text cells of the notebooks on one of labs.checks.tasks.PATHS."""
    every = pairs(Path(root).resolve())
    texts = (every[lesson.notebook][1] for lesson in tasks.on_path(path))
    return sum(len(cell.source.split()) for text in texts for cell in text.cells if cell.cell_type == "markdown")


def differences(root: Path, path: Path, expected, executed: bool) -> list[str]:
    """Problems of one generated notebook, as `check` says them."""
    from nbformat.v4 import reads_json

    label = label_of(root, path)
    if not path.exists():
        return [f"{label}: is missing; {FIX}"]
    try:
        found = reads_json(path.read_text(encoding="utf-8"))
        cells, metadata = found["cells"], dict(found["metadata"])
        labs = metadata.pop("labs", {})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return [f"{label}: is not a notebook ({type(error).__name__}); {FIX}"]
    wrong, keys = [], ("cell_type", "id", "source", "metadata")
    if labs != expected.metadata.labs:
        wrong.append("is out of date: its source, or a file that the source uses, has changed")
    if metadata != {key: value for key, value in expected.metadata.items() if key != "labs"}:
        wrong.append("its metadata are not the generated ones")
    if len(cells) != len(expected.cells):
        wrong.append(f"has {len(cells)} cells, its source {len(expected.cells)}")
    for number, (cell, right) in enumerate(zip(cells, expected.cells, strict=False), 1):
        if len(cells) == len(expected.cells) and (unlike := [key for key in keys if cell.get(key) != right.get(key)]):
            wrong.append(f"cell {number} (id {right.id}) differs from the source in {', '.join(unlike)}")
    if executed:
        wrong += _not_executed(found)
    elif any(cell.get("outputs") or cell.get("execution_count") for cell in cells):
        wrong.append("holds outputs or execution counts, but students get it blank")
    return [f"{label}: {problem}; {FIX}" for problem in wrong]


def _not_executed(notebook) -> list[str]:
    code = [(n, cell) for n, cell in enumerate(notebook.cells, 1) if cell.get("cell_type") == "code"]
    wrong = []
    for count, (number, cell) in enumerate([each for each in code if each[1].get("source", "").strip()], 1):
        found, which = cell.get("execution_count"), f"cell {number} (id {cell.get('id')})"
        if found != count:
            wrong.append(f"{which} has execution count {found} instead of {count}")
        if any(output.get("output_type") == "error" for output in cell.get("outputs", [])):
            wrong.append(f"{which} holds an error")
    return wrong
