"""What a student has done: runs/progress.json, the written answers of the notebooks, and both over all tasks."""

import itertools
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError

from labs import files, schema
from labs.checks import tasks

PLACEHOLDER = "Write your answer here"
HEADING = re.compile(r"^[^\S\n]*#+[^\S\n]*(\w+): your answer", re.MULTILINE)


class Kept(BaseModel, strict=True):
    """What progress.json says of one item."""

    state: Literal["open", "wrong", "right", "predicted"]
    points: Annotated[int, Field(ge=0, le=1000)] = 0
    attempts: Annotated[int, Field(ge=0, le=10**9)] = 0
    when: str = ""
    answer: str = ""
    outcome: float | str | list[float] | None = None  # of a prediction
    interval: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None


class _ProgressFile(BaseModel, strict=True):
    version: Literal[1]
    items: dict[str, Kept]


class DamagedError(OSError):
    """A progress.json that is not one; the text says why."""


def progress_file():
    """Path of progress.json, in the folder of the runs."""
    from labs import jobs

    return jobs.folder() / "progress.json"


def read_progress():
    """{id: {state, points, attempts, when, answer, and what the kind of item adds}}; empty if nothing was done yet, or
    with a printed warning where the file cannot be read."""
    path = progress_file()
    try:
        return read(path)
    except OSError as problem:
        cure = "Your next answer begins a new one." if isinstance(problem, DamagedError) else "Is it yours?"
        print(f"Warning: {path} cannot be read ({problem.strerror}). {cure} Your progress is not shown.")
        return {}


def read(path: str | Path) -> dict[str, dict]:
    """{id: item} of the progress.json at `path`; {} where there is none. Raises OSError: DamagedError for a file that
    is no progress.json."""
    try:
        whole = _ProgressFile.model_validate_json(Path(path).read_bytes())
    except FileNotFoundError:
        return {}
    except ValidationError as problem:
        raise DamagedError(0, f"it is damaged: {schema.first_mistake(problem)[:200]}", str(path)) from None
    return {id: item.model_dump() for id, item in whole.items.items()}


def keep(item, state, answers):
    """Save the answer to one item and its state in progress.json, atomically. What was right stays right."""
    answer, when = brief(answers[0] if len(answers) == 1 else answers), datetime.now(UTC).isoformat(timespec="seconds")

    def change(before):
        new_state, new_answer = state, answer
        if before.get("state") in ("right", "predicted") and state in ("open", "wrong"):
            new_state, new_answer = before["state"], before["answer"] or answer
        points, attempts = item.points if new_state == "right" else 0, before.get("attempts", 0) + 1
        return before | {"state": new_state, "points": points, "attempts": attempts, "when": when, "answer": new_answer}

    _change(item, change)


def keep_outcome(item, outcome, interval):
    """Write what came of a prediction beside it: a number, word or list of numbers, and (low, high) or None."""
    came = {"outcome": outcome, "interval": interval and list(interval)}
    _change(item, lambda before: before | came)


def _change(item, change):
    """Replace one item of progress.json by change(what it was); a line is printed where that is not possible.

    A damaged file is kept aside, and another one begun; a file that cannot be read is not replaced.
    """
    path = progress_file()
    try:
        with files.locked(path):
            try:
                items = read(path)
            except DamagedError as problem:
                names = (path.with_name(f"{path.name}.bad-{number}") for number in itertools.count(1))
                aside = next(name for name in names if not name.exists())
                path.rename(aside)
                print(f"Warning: {path} is kept as {aside.name}, and a new one is begun: {problem.strerror}")
                items = {}
            items[item.id] = change(items.get(item.id, {}))
            files.write(path, json.dumps({"version": 1, "items": items}, indent=1))
    except OSError as problem:
        said = problem if isinstance(problem, files.WriteError) else f"{path}: {problem.strerror}. Is it yours?"
        print(f"Warning: cannot keep your progress: {said} Your answers still count here. Run this cell again then.")


def brief(value, text=repr):
    """The first 200 characters of repr(value), or of another text of it; its type where that cannot be had."""
    try:
        return str.__str__(text(value))[:200]
    except KeyboardInterrupt:
        raise
    except BaseException:  # a __repr__ may do anything, also end the program
        return f"<{type(value).__name__} that cannot be shown>"


def answers(notebook: str | Path) -> dict[str, str | None]:
    """{id: text} of the written answers in a notebook file; text is None where nothing was written yet, or no word.

    An answer's cell is known by its mark or its heading; the parts of one that was split or copied are put together.
    A file that is not a notebook gives {} and a printed warning.
    """
    found = {}
    try:
        for cell in json.loads(Path(notebook).read_text(encoding="utf-8"))["cells"]:
            mark, text = cell["metadata"].get("labs", {}), "".join(cell["source"])
            heading = HEADING.match(text)
            if id := str(mark["id"]) if mark.get("kind") == "answer" else heading and heading[1]:
                parts = [found.get(id), None if PLACEHOLDER in text or not written(text) else text]
                found[id] = "\n\n".join(dict.fromkeys(filter(None, parts))) or None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        said = f"Warning: {notebook} cannot be read as a notebook ({type(problem).__name__}: {problem})."
        print(said, "Save it in JupyterLab again; or get a fresh one by `labs reset`, which keeps this one in old/.")
    return found


def written(text):
    """A written answer without its heading, and without what the solutions add below it."""
    text = re.sub(r"\A\s*#+[^\n]*your answer[^\n]*\n?", "", text)
    return text.partition("\n**A good answer contains**")[0].strip()


def progress(folder: str | Path = ".") -> list[dict]:
    """All tasks in order with their state, as rows {id, title, notebook, kind, points, state}.

    kind: check (a choice is one), prediction or answer. No judge is imported.
    """
    texts = {}
    for notebook in sorted(Path(folder).glob("[0-9][0-9]*_*.ipynb")):
        texts |= answers(notebook)
    return rows(read_progress(), texts)


def rows(items: dict[str, dict], texts: dict[str, str | None]) -> list[dict]:
    """The rows of `progress`, of what `read` and `answers` give."""
    rows = []
    for id, (lesson, item) in tasks.items().items():
        state = items.get(id, {}).get("state", "open")
        if item.kind == "answer":
            state = "written" if texts.get(id) else "open"
        kind = "check" if isinstance(item, tasks.Check) else item.kind
        row = {"id": id, "title": item.title, "notebook": lesson.notebook, "kind": kind}
        rows.append(row | {"points": item.points, "state": state})
    return rows
