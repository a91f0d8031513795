"""From one source to everything that is generated from it: build, and check for drift.

    solutions/NN_name.py    -> solutions/NN_name.ipynb (executed) and notebooks/NN_name.ipynb (blank)
    solutions/scripts/*.py  -> notebooks/scripts/*.py (blank)

Both notebooks of a source carry the same cell ids and, in `metadata.labs`, a hash of the source and of all
that it uses: what did not change is not executed again, and `check` sees drift without executing.
"""

import copy
from pathlib import Path

from labs import files
from labs.blanks import BuildError
from teaching.author import computing, render
from teaching.author.execute import clean
from teaching.author.execute import execute as run_all
from teaching.author.regions import blank
from teaching.author.sources import as_text, label_of, pair, pairs, scripts, sources

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
    done = render.write(root, student_scripts(root), report)
    for name in sorted(chosen):
        solution, student = every[name]
        path = root / "solutions" / f"{name}.ipynb"
        label, old = label_of(root, path), force or differences(root, path, solution, executed=True)
        if old and not execute:
            report(f"{label} is out of date and was not executed")
        elif old:
            report(f"executing {label} ({len(solution.cells)} cells)")
            with computing.Stopwatch() as watch:
                made = executed(root, solution, label)
            why_not = watch.why_not()
            if not why_not and computing.state(root, name, watch.seconds):
                solution, student = pair(root, sources(root)[name])  # with the time that was just taken
                made = _with_outputs(solution, made)
            files.write(path, as_text(made))
            done.append(f"executed {label}")
            report(f"{label} took {watch}" + (f": not stated, since {why_not}" if why_not else ""))
        done += render.write(root, {f"notebooks/{name}.ipynb": as_text(student)}, report)
    return done


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


def _with_outputs(notebook, made):
    """A copy of a notebook with the outputs of another one that has the same code."""
    result, found = copy.deepcopy(notebook), {cell.id: cell for cell in made.cells}
    for cell in result.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = found[cell.id].outputs, found[cell.id].execution_count
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
        problems += render.differing(root, student_scripts(root), "is not the blank form of its source", FIX)
    except BuildError as error:
        return [*problems, str(error).splitlines()[0] + f"; then {FIX}"]
    for pattern in ("solutions/*.ipynb", "notebooks/*.ipynb", "notebooks/scripts/*.py"):
        for path in sorted(root.glob(pattern)):
            source = f"solutions/{'scripts/' if path.suffix == '.py' else ''}{path.stem}.py"
            if not (root / source).exists():
                problems.append(f"{label_of(root, path)}: has no source {source}; remove it, or write that and {FIX}")
    return problems


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
