"""What a student has done: runs/progress.json, the written answers of the notebooks, and both over all tasks."""

import json
from datetime import UTC, datetime
from pathlib import Path

from labs import files
from labs.checks import tasks

PLACEHOLDER = "Write your answer here"


def progress_file():
    """Path of progress.json, in the folder of the runs."""
    from labs import jobs

    return jobs.folder() / "progress.json"


def read_progress():
    """{id: {state, points, attempts, when, answer}}; empty if nothing was done yet."""
    try:
        return {id: dict(item) for id, item in json.loads(progress_file().read_text())["items"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        print(f"Warning: {progress_file()} cannot be read ({problem}); progress starts anew.")
        return {}


def keep(item, state, answers):
    """Write the state of one item into progress.json, atomically. What was right stays right, with its answer."""
    items = read_progress()
    before, answer = items.get(item.id, {}), repr(answers[0] if len(answers) == 1 else answers)[:200]
    if before.get("state") in ("right", "predicted") and state in ("open", "wrong"):
        state, answer = before["state"], before.get("answer", answer)
    items[item.id] = {
        "state": state,
        "points": item.points if state == "right" else 0,
        "attempts": before.get("attempts", 0) + 1,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "answer": answer,
    }
    path = progress_file()
    try:
        files.write(path, json.dumps({"version": 1, "items": items}, indent=1))
    except OSError as problem:
        print(f"Warning: cannot keep your progress in {path}: {problem.strerror}. Your answers still count here.")


def answers(notebook):
    """{id: text} of the written answers in a notebook file; text is None where nothing was written yet."""
    found = {}
    for cell in json.loads(Path(notebook).read_text())["cells"]:
        mark = cell["metadata"].get("labs", {})
        if mark.get("kind") == "answer":
            text = "".join(cell["source"])
            found[mark["id"]] = None if PLACEHOLDER in text else text
    return found


def progress(folder="."):
    """All tasks in order with their state, as rows {id, title, notebook, kind, points, state}.

    kind: check (a choice is one), prediction or answer. No judge is imported.
    """
    items, texts = read_progress(), {}
    for notebook in sorted(Path(folder).glob("[0-9][0-9]_*.ipynb")):
        texts |= answers(notebook)
    rows = []
    for lesson in tasks.lessons().values():
        for item in lesson.task:
            state = items.get(item.id, {}).get("state", "open")
            if item.kind == "answer":
                state = "written" if texts.get(item.id) else "open"
            kind = "check" if isinstance(item, tasks.Check) else item.kind
            row = {"id": item.id, "title": item.title, "notebook": lesson.notebook, "kind": kind}
            rows.append(row | {"points": item.points, "state": state})
    return rows
