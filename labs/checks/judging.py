"""Self-checks: compare an answer, give a hint, and keep what was done in runs/progress.json.

The questions themselves stand in labs/tasks, one module for each notebook. A question gets the student's answer
and returns None if it is right, else a hint that names the likely mistake and not the answer.
"""

import html
import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from labs import files

REGISTRY = {}


class NotDone(Exception):
    """Raised by a question's function for an answer that still holds blanks; the text says where."""


@dataclass(frozen=True)
class Task:
    """One item of the course. kind: check (self-checked), prediction (kept, not judged), answer (written)."""

    id: str
    title: str
    notebook: str
    kind: str
    points: int = 0
    judge: Callable | None = field(default=None, repr=False)
    why: str = ""


def _register(task):
    if task.id in REGISTRY:
        raise ValueError(f"Two tasks have the id {task.id}.")
    REGISTRY[task.id] = task
    return task


def question(id, title, notebook, points=1, why=""):
    """Decorator: register a function `judge(*answer) -> hint or None` as question `id`; why: shown when right."""

    def decorate(judge):
        _register(Task(id, title, notebook, "check", points, judge, why))
        return judge

    return decorate


def choice(id, title, notebook, right, wrong, why="", points=1):
    """Register a question with choices. right: letter; wrong: {letter: why this choice is wrong}."""

    def judge(answer):
        letter = str(answer).strip().lower().strip(".()")
        if letter == right:
            return None
        return wrong.get(letter) or f"{answer!r} is none of the choices: {', '.join(sorted([right, *wrong]))}."

    _register(Task(id, title, notebook, "check", points, judge, why))


def prediction(id, title, notebook):
    """Register a prediction: what you expect before the run; kept, not judged."""
    _register(Task(id, title, notebook, "prediction"))


def written(id, title, notebook, points):
    """Register a written task: its answer stands in the markdown cell of the notebook that carries this id."""
    _register(Task(id, title, notebook, "answer", points))


def load_lessons():
    """Register the questions of all lessons."""
    folder = Path(__file__).parents[1] / "lessons"
    for path in sorted([*folder.glob("nb*/questions.py"), *folder.glob("nb*/more.py")]):
        importlib.import_module(f"labs.lessons.{path.parent.name}.{path.stem}")


def task(id):
    """The task with this id. Raises KeyError with the ids that exist."""
    load_lessons()

    if id not in REGISTRY:
        raise KeyError(f"There is no task {id!r}. The tasks are: {', '.join(REGISTRY)}.")
    return REGISTRY[id]


def _does_nothing(function):
    """True for a function whose body is still blank: it consists of the instructions of `def f(): ...`."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_code[::2] != (lambda: None).__code__.co_code[::2]:
        return False
    return all(const in (None, ..., function.__doc__) for const in code.co_consts)


def unfilled(answers):
    """True if any answer is still blank: `...`, None, a function without a body, or a container that holds `...`."""
    for answer in answers:
        if answer is ... or answer is None or _does_nothing(answer):
            return True
        if isinstance(answer, list | tuple | dict | set):
            values = answer.values() if isinstance(answer, dict) else answer
            if any(value is ... for value in values):
                return True
    return False


def judge(id, *answers):
    """(state, text) of an answer, without showing or keeping it; state: right, wrong or open."""
    item = task(id)
    if unfilled(answers):
        return "open", "not done yet. Fill the blank above (`...`) and run the cell again."
    try:
        hint = item.judge(*answers)
    except NotDone as problem:
        return "open", f"not done yet. {problem}"
    except Exception as problem:  # a student's answer may be anything; the check must outlive it
        return "wrong", f"your answer cannot be read ({type(problem).__name__}: {problem}). What type does it have?"
    return ("wrong", hint) if hint else ("right", item.why)


class Verdict:
    """What `check` returns: true only if the answer is right. A notebook shows nothing for it at a cell's end."""

    def __init__(self, state):
        self.state = state

    def __bool__(self):
        return self.state == "right"

    def _ipython_display_(self):
        pass


def check(id, *answers):
    """Check an answer, show the result, and keep it. Returns a Verdict: true only if the answer is right."""
    state, text = judge(id, *answers)
    keep(id, state, answers)
    _show(id, state, text)
    return Verdict(state)


def predict(id, value):
    """Keep a prediction before you run anything. A blank one is asked for again."""
    item = task(id)
    state = "open" if unfilled([value]) else "predicted"
    keep(id, state, [value])
    _show(
        id,
        state,
        f"{item.title}: {value}. Kept; now find out."
        if state == "predicted"
        else "not done yet. Commit yourself before you look: a wrong prediction teaches more than none.",
    )


WORDS = {"right": "right.", "wrong": "not yet.", "open": "", "predicted": "prediction."}
COLOURS = {"right": "#009E73", "wrong": "#D55E00", "open": "#6b6b6b", "predicted": "#0072B2"}


def _show(id, state, text):
    line = f"{id}: {WORDS[state]} {text}".replace(":  ", ": ").rstrip()
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        get_ipython = lambda: None  # noqa: E731
    if get_ipython() is None:
        print(line)
        return
    box = (
        f'<div role="status" style="border-left:5px solid {COLOURS[state]};padding:.3em .8em">'
        f"<b>{html.escape(id)}</b>: <b>{WORDS[state]}</b> {html.escape(text)}</div>"
    )
    display({"text/html": box, "text/plain": line}, raw=True)


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


def keep(id, state, answers):
    """Write the state of one item into progress.json, atomically. What was right stays right, with its answer."""
    item, items = task(id), read_progress()
    before, answer = items.get(id, {}), repr(answers[0] if len(answers) == 1 else answers)[:200]
    if before.get("state") in ("right", "predicted") and state in ("open", "wrong"):
        state, answer = before["state"], before.get("answer", answer)
    items[id] = {
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


PLACEHOLDER = "Write your answer here"


def answers(notebook):
    """{id: text} of the written answers in a notebook file; text is None where nothing was written yet."""
    found = {}
    for cell in json.loads(Path(notebook).read_text())["cells"]:
        mark = cell["metadata"].get("labs", {})
        if mark.get("kind") == "answer":
            text = "".join(cell["source"])
            found[mark["id"]] = None if PLACEHOLDER in text else text
    return found


def _order(item):
    """By notebook, then 05.2 before 05.10, then what is handed in (T5, S1)."""
    return item.notebook, item.id[0].isalpha(), [int(n) for n in item.id.lstrip("THS").split(".")]


def progress(folder="."):
    """All tasks in order with their state, as rows {id, title, notebook, kind, points, state}."""
    load_lessons()

    items, texts = read_progress(), {}
    for notebook in sorted(Path(folder).glob("[0-9][0-9]_*.ipynb")):
        texts |= answers(notebook)
    rows = []
    for item in sorted(REGISTRY.values(), key=_order):
        state = items.get(item.id, {}).get("state", "open")
        if item.kind == "answer":
            state = "written" if texts.get(item.id) else "open"
        rows.append(
            {
                "id": item.id,
                "title": item.title,
                "notebook": item.notebook,
                "kind": item.kind,
                "points": item.points,
                "state": state,
            }
        )
    return rows
