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
from teaching.author.sources import as_text, label_of, pairs, scripts

FIX = "run `uv run teach build`"


def build(root, names=None, execute=True, force=False, report=print) -> None:
    """Generate what is missing or out of date; `report` gets a line on each thing that is done.

    `names` limits it to some notebooks (`05_resnet50_scaling`, `05`); `force` executes even what did not
    change; without `execute` the solution notebooks stay as they are.
    Raises BuildError; a notebook whose execution fails leaves its old files in place.
    """
    root = Path(root).resolve()
    every = pairs(root)
    chosen = _chosen(every, names)
    _write(root, _texts(root), report)
    for name in sorted(chosen):
        solution, student = every[name]
        path = root / "solutions" / f"{name}.ipynb"
        label, old = label_of(root, path), force or differences(root, path, solution)
        if old and not execute:
            report(f"{label} is out of date and was not executed")
        elif old:
            report(f"executing {label} ({len(solution.cells)} cells)")
            began = time.perf_counter()
            files.write(path, as_text(executed(root, solution, label)))
            report(f"executed {label} in {time.perf_counter() - began:.0f} s")
        _write(root, {f"notebooks/{name}.ipynb": as_text(student)}, report)


def _write(root, made, report):
    """Write those files of `made`, {path below `root`: text}, that are missing or out of date."""
    for name, text in made.items():
        if _text_of(root, name) != text:
            files.write(root / name, text)
            report(f"wrote {name}")


def _text_of(root, name):
    """The text of a file below `root`, or None if there is none."""
    return (root / name).read_text(encoding="utf-8") if (root / name).exists() else None


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
    try:
        every, made = pairs(root), _texts(root)
        for name in sorted(_chosen(every, names)):
            solution, student = every[name]
            problems += differences(root, root / "solutions" / f"{name}.ipynb", solution)
            made[f"notebooks/{name}.ipynb"] = as_text(student)
    except (BuildError, tasks.TaskError) as error:
        return [*problems, str(error).splitlines()[0] + f"; then {FIX}"]
    for name, text in made.items():
        if (there := _text_of(root, name)) != text:
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


def differences(root: Path, path: Path, expected) -> list[str]:
    """Problems of one executed notebook, as `check` says them."""
    import nbformat

    label = label_of(root, path)
    try:
        found = nbformat.read(path, as_version=4)
        code = [cell for cell in found.cells if cell.cell_type == "code"]
        counts = [cell.execution_count for cell in code if cell.source.strip()]
        failed = any(output.output_type == "error" for cell in code for output in cell.outputs)
    except FileNotFoundError:
        return [f"{label}: is missing; {FIX}"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return [f"{label}: is not a notebook ({type(error).__name__}); {FIX}"]
    wrong = []
    if failed or counts != [*range(1, len(counts) + 1)]:
        wrong.append("was not executed from its first cell to its last without an error")
    for cell in code:
        cell.outputs, cell.execution_count = [], None
    if found.metadata.get("labs") != expected.metadata.labs:
        wrong.append("is out of date: its source, or a file that the source uses, has changed")
    elif (found.cells, found.metadata) != (expected.cells, expected.metadata):
        wrong.append("is not what its source gives")
    return [f"{label}: {problem}; {FIX}" for problem in wrong]
