"""The items of the course, as data: lessons/NAME/tasks.toml, one file for each lesson.

    notebook = "NN_name"
    title = "How much faster ..."   # of the notebook, as its first cell has it, with the minutes that it states
    minutes = 65
    optional = true         # for a lesson that the others do not need
    paths = ["afternoon", "practical"]  # the shorter ways through the course on which it lies

    [[task]]                # in the order of the notebook, in which the numbers of ids rise
    id = "lesson.6"         # a word for the lesson; of what is handed in a letter, as T6
    kind = "check"          # judged by a function of the lesson's questions.py
    title = "Speedup"
    points = 1
    why = "..."             # shown when the answer is right

A "choice" has besides `right`, a letter, and `[task.wrong]`: for each other letter, why it is wrong. `proof` names what
shows that the right one is true: a test (`tests/keys/test_NAME.py::test_WHAT`), a line with `assert` or `check(` of the
solution's source, or `none: ` and the reason. An "answer" is written in a text cell; `holds` lists what a good one
holds, a point for each. A "prediction" is kept and not judged. It says what it may be:

    number = [0, 1]                     # a number in this range
    words = ["higher", "lower"]         # one of these
    count = 2                           # a list of two numbers, or two of the words, which are letters then;
                                        # "any": one or more different letters, in any order

`[task.evidence]` names what the report shows beside a task.
`given` names what a notebook computes for a check from its runs: grading computes it again, and believes no notebook.
"""

import difflib
import functools
import re
from pathlib import Path
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import BaseModel, Field

from labs import schema
from labs.errors import UseError

LESSONS = Path(__file__).parents[2] / "lessons"

ShorterPath = Literal["afternoon", "practical"]
PATHS = (*get_args(ShorterPath), "everything")  # ways through the course; all lessons lie on the last one


class TaskError(UseError):
    """An id that no lesson has, or a tasks.toml that cannot be used; the text names the file and the id."""


class Evidence(BaseModel, extra="forbid", frozen=True):
    """What a report shows beside a task.

    runs: their names, as regular expressions; a search for the largest batch and a breakdown have names, too
    scripts, batch: files below notebooks/scripts, and of each site
    figures: drawn from the runs
    pictured: the function of a lesson that draws them, from the folder of the runs: "lesson.module.function"
    networks: two of them, whose efficiencies are compared
    """

    runs: list[str] = []
    scripts: list[str] = []
    batch: list[str] = []
    figures: list[Literal["scaling", "rounds", "learning", "steps"]] = []
    pictured: str = ""
    networks: tuple[str, str] | None = None


class Task(BaseModel, extra="forbid", frozen=True):
    """What all items have; besides these, each has `kind` and `points`."""

    id: str = Field(min_length=1)
    title: str = Field(min_length=1)
    evidence: Evidence = Evidence()


def handed_in(id: str) -> bool:
    """Is this the id of one of the tasks that a report shows, as T6, and not of a numbered item of its lesson?"""
    return re.fullmatch(r"[A-Z]\d+", id) is not None


class FromRuns(BaseModel, extra="forbid", frozen=True):
    """What a notebook computes for a check from its runs, and grading computes again: a run's log, or the mean of each
    part of a breakdown; otherwise: in place of these where nothing was measured."""

    log: str | None = None
    means: str | None = None
    otherwise: dict[str, float] = {}


class Check(Task, frozen=True):
    """An item that `check` judges.

    several: whether a right function may give other numbers than the solution's, as a fit with other weights or
        another schedule does; then grading does not compare the two on other inputs (teaching.grading.judge)
    """

    kind: Literal["check"]
    points: int = Field(ge=1)
    why: str = Field(min_length=1)
    several: bool = False
    given: FromRuns = FromRuns()


class Choice(Check, frozen=True):
    """A check whose judge is data: one letter is right, and each wrong one has its hint."""

    kind: Literal["choice"]
    right: str = Field(min_length=1)
    proof: str = Field("", max_length=200)
    wrong: dict[str, str] = Field(min_length=1)


class PredictionTask(Task, frozen=True):
    """An expectation before a run: kept, not judged."""

    kind: Literal["prediction"]
    number: tuple[float, float] | None = None
    words: list[str] | None = Field(None, min_length=2)
    count: Annotated[int, Field(ge=1)] | Literal["any"] = 1
    points: ClassVar[int] = 0


class Answer(Task, frozen=True):
    """A written answer, in the text cell of the notebook that carries its id."""

    kind: Literal["answer"]
    holds: list[str] = Field(min_length=1)

    @property
    def points(self):
        return len(self.holds)

    @property
    def shown(self):
        """The lines of `holds`, without those that the instructor keeps back, which are blank."""
        return [line for line in self.holds if line != "..."]


Item = Check | Choice | PredictionTask | Answer


class Lesson(BaseModel, extra="forbid", frozen=True):
    """One notebook: its title, the minutes that it takes, and its items in their order.

    replay: the preset with which grading runs it, where that changes how much is simulated, and no answer
    """

    notebook: str
    title: str = Field(min_length=1)
    minutes: int = Field(ge=1)
    optional: bool = False
    paths: list[ShorterPath] = []
    replay: str | None = None
    task: list[Annotated[Item, Field(discriminator="kind")]]

    @property
    def name(self):
        """That of its folder: resnet50_scaling of 05_resnet50_scaling."""
        return self.notebook.partition("_")[2]


@functools.cache
def load(path: Path) -> Lesson:
    """The Lesson in a tasks.toml. Raises TaskError, with the file and the mistake, for what cannot be used."""
    return schema.read(Lesson, path, path, TaskError)


def lessons() -> dict[str, Lesson]:
    """{name of the folder, as resnet50_scaling: Lesson} of all lessons, in the order of their notebooks. Raises
    TaskError, also for an id of two."""
    found, owner = [(path, load(path)) for path in sorted(LESSONS.glob("*/tasks.toml"))], {}
    for path, item in ((path, item) for path, lesson in found for item in lesson.task):
        if item.id in owner:
            raise TaskError(f"{path}: the id {item.id} is taken already, in {owner[item.id]}")
        owner[item.id] = path
    return {path.parent.name: lesson for path, lesson in sorted(found, key=lambda pair: pair[1].notebook)}


def items() -> dict[str, tuple[Lesson, Item]]:
    """{id: (Lesson, item)} of all lessons, in order. Raises TaskError."""
    return {item.id: (lesson, item) for lesson in lessons().values() for item in lesson.task}


def on_path(path: str) -> list[Lesson]:
    """The lessons of one of PATHS, in order. Raises TaskError."""
    if path not in PATHS:
        raise TaskError(f"There is no path {path!r}. The paths are: {', '.join(PATHS)}.")
    return [lesson for lesson in lessons().values() if path == PATHS[-1] or path in lesson.paths]


def find(id: str) -> tuple[Lesson, Item]:
    """The Lesson and the item of an id. Raises TaskError, which names ids that are like it."""
    every = items()
    if id not in every:
        near = difflib.get_close_matches(str(id), every, 3, cutoff=0)
        raise TaskError(f"There is no task {id!r}. The nearest: {', '.join(near)}.")
    return every[id]


def task(id: str) -> Item:
    """The item of any lesson with this id. Raises TaskError."""
    return find(id)[1]
