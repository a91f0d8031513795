"""What a student has done: runs/progress.json, the written answers of the notebooks, and both over all tasks."""

import json
import re
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import from_json

from labs import files
from labs.checks import tasks

PLACEHOLDER = "Write your answer here"


class Kept(BaseModel, strict=True, extra="forbid"):
    """What progress.json says of one item."""

    state: Literal["open", "wrong", "right", "predicted"]
    points: Annotated[int, Field(ge=0, le=1000)] = 0
    attempts: Annotated[int, Field(ge=0, le=10**9)] = 0
    when: str = ""
    answer: str = ""
    outcome: float | str | list[float] | None = None  # of a prediction
    interval: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    ticked: list[str] | None = None  # of what a good written answer contains


def progress_file():
    """Path of progress.json, in the folder of the runs."""
    from labs import jobs

    return jobs.folder() / "progress.json"


def read_progress():
    """{id: {state, points, attempts, when, answer}}; empty if nothing was done yet.

    A damaged file gives what can be recovered, with a printed warning.
    """
    path = progress_file()
    try:
        found, damage, _ = read(path)
    except OSError as problem:
        print(f"Warning: {path} cannot be read: {problem.strerror}. Your progress is not shown.")
        return {}
    if damage:
        print(f"Warning: {path} is damaged ({damage}); {len(found)} items of it can be read.")
    return found


def read(path: str | Path) -> tuple[dict[str, dict], str | None, bytes | None]:
    """({id: item}, None, bytes) of the progress.json at `path`; ({}, None, None) where there is none.

    A damaged one gives what can be recovered, and what is wrong in place of None. Raises OSError.
    """
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        return {}, None, None
    return *_items(data), data


def _items(data: bytes) -> tuple[dict[str, dict], str | None]:
    text = data.decode("utf-8-sig", errors="replace")
    try:
        data.decode()
        whole = json.loads(text)["items"]
        found, damage = {id: _item(item) for id, item in whole.items()}, None
    except (ValueError, RecursionError) as problem:
        found, damage = {}, f"{problem}"[:80]
        try:
            for match in islice(re.finditer(r'"([^"\\]{1,20})":\s*(?=\{)', text), 1000):
                found[match[1]] = _scan(text, match.end())
        except RecursionError:
            pass
    except (KeyError, TypeError, AttributeError):
        return {}, "it holds no items"
    good = {id: item for id, (item, _) in found.items() if item}
    odd = [id for id, (_, whole) in found.items() if not whole]
    if odd and not damage:
        damage = f"its entry {odd[0]!r:.30} is not valid"
    return good, damage


def _scan(text, position):
    """What `_item` says of the item that begins here, also of one that the end of the text cuts off."""
    try:
        return _item(json.JSONDecoder().raw_decode(text, position)[0])
    except ValueError:
        pass
    try:
        return _item(from_json(text[position:], allow_partial=True))
    except ValueError:
        return None, False


def _item(found):
    """(item as a dict, or None without a state; whether all of it was as it must be)."""
    for whole in (True, False):
        try:
            return Kept.model_validate(found).model_dump(), whole
        except ValidationError as problem:
            wrong = {error["loc"][0] for error in problem.errors() if error["loc"]}
            if not wrong or "state" in wrong:
                break
            found = {key: value for key, value in found.items() if key not in wrong}
    return None, False


def _keep_aside(path, data):
    """Copy a damaged file to <name>.bad-1, or the next number; returns that path. Raises OSError."""
    number = 1
    while (bad := path.with_name(f"{path.name}.bad-{number}")).exists():
        if bad.read_bytes() == data:
            return bad
        number += 1
    files.write(bad, data)
    return bad


def keep(item, state, answers):
    """Write the state of one item into progress.json, atomically. What was right stays right, with its answer.

    A damaged file is kept aside first; a file that cannot be read is not replaced.
    """
    answer = shown(answers[0] if len(answers) == 1 else answers)
    _change(item, lambda before: _judged(item, before, state, answer))


def keep_outcome(item, outcome, interval):
    """Write what came of a prediction beside it: a number, word or list of numbers, and (low, high) or None."""
    came = {"outcome": outcome, "interval": interval and list(interval)}
    _change(item, lambda before: before | came)


def keep_tick(item, line, ticked):
    """Write whether a student has ticked this line of what a good answer contains; ticks at other lines stay."""

    def change(before):
        others = [each for each in before.get("ticked") or () if each != line]
        return {"state": "open"} | before | {"ticked": others + [line] * ticked}

    _change(item, change)


def _change(item, change):
    """Replace one item of progress.json by change(what it was); a line is printed where that is not possible."""
    path = progress_file()
    try:
        with files.locked(path):
            items, damage, data = read(path)
            if damage:
                bad = _keep_aside(path, data)
                print(f"Warning: {path} was damaged ({damage}); kept as {bad.name}, with {len(items)} items recovered.")
            items[item.id] = change(items.get(item.id, {}))
            _write(path, items)
    except OSError as problem:
        print(f"Warning: cannot keep your progress in {path}: {problem.strerror}. Your answers still count here.")


def _judged(item, before, state, answer):
    """The item as a dict after an answer; before: as it was, or {}."""
    if before.get("state") in ("right", "predicted") and state in ("open", "wrong"):
        state, answer = before["state"], before["answer"] or answer
    points, attempts = item.points if state == "right" else 0, before.get("attempts", 0) + 1
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return before | {"state": state, "points": points, "attempts": attempts, "when": when, "answer": answer}


def forget(path, ids, keep_old):
    """Take the items `ids` out of the progress.json at `path`; returns how many of them it held.

    keep_old: function that keeps the bytes of the file as it was; called before anything is changed. Raises OSError.
    """
    with files.locked(path):
        items, _, data = read(path)
        left = {id: item for id, item in items.items() if id not in ids}
        if len(left) < len(items):
            keep_old(data)
            _write(path, left)
    return len(items) - len(left)


def _write(path, items):
    files.write(path, json.dumps({"version": 1, "items": items}, indent=1))


def shown(value, text=repr):
    """The first 200 characters of repr(value), or of another text of it; its type where that cannot be had."""
    try:
        return str.__str__(text(value))[:200]
    except KeyboardInterrupt:
        raise
    except BaseException:  # a __repr__ may do anything, also end the program
        return f"<{type(value).__name__} that cannot be shown>"


def answers(notebook: str | Path) -> dict[str, str | None]:
    """{id: text} of the written answers in a notebook file; text is None where nothing was written yet, or no word.

    A file that is not a notebook gives {} and a printed warning.
    """
    found = {}
    try:
        for cell in json.loads(Path(notebook).read_text(encoding="utf-8"))["cells"]:
            mark = cell["metadata"].get("labs", {})
            if mark.get("kind") == "answer":
                text = "".join(cell["source"])
                found[str(mark["id"])] = None if PLACEHOLDER in text or not written(text) else text
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        print(f"Warning: {notebook} cannot be read as a notebook ({type(problem).__name__}: {problem}).")
    return found


def written(text):
    """A written answer without its heading, and without what the solutions add below it."""
    text = re.sub(r"\A\s*#+[^\n]*your answer[^\n]*\n?", "", text)
    return re.split(r"\n\*\*A good answer (?:contains|holds)\*\*", text)[0].strip()  # "holds": of older solutions


def progress(folder: str | Path = ".") -> list[dict]:
    """All tasks in order with their state, as rows {id, title, notebook, kind, points, state}.

    kind: check (a choice is one), prediction or answer. No judge is imported.
    """
    items, texts = read_progress(), {}
    for notebook in sorted(Path(folder).glob("[0-9][0-9]*_*.ipynb")):
        texts |= answers(notebook)
    rows = []
    for id, (lesson, item) in tasks.items().items():
        state = items.get(id, {}).get("state", "open")
        if item.kind == "answer":
            state = "written" if texts.get(id) else "open"
        kind = "check" if isinstance(item, tasks.Check) else item.kind
        row = {"id": id, "title": item.title, "notebook": lesson.notebook, "kind": kind}
        rows.append(row | {"points": item.points, "state": state})
    return rows
