"""What counts how much: grades/rubric.toml, written from the tasks of the course, for the instructor to change.

Checks are for practice: what is right lies in the students' tree. So in the first form, what takes work that can be
seen has the larger part: each item of a written answer counts WRITTEN points, beside scripts and plots of own runs.
What later notebooks ask for is put in when they first count; nothing else in the file is touched.

[notebook.05]             # points of each check; 0 leaves it out. What is deleted of a notebook stays deleted
"lesson.6" = 1

[[answer]]                # a written answer; each item is marked from 0 to 1, which allows partial credit
id = "T5"
items = [ { id = "T5.1", points = 1, text = "..." } ]

[[comment]]               # of the comment bank: an item's id and a letter
id = "T5.1a"
text = "The script and the batch script disagree about the batch: which one made this run?"

[findings]                # points off for each finding of a kind that a person has confirmed
copy = 0

[[pin]]                   # from the desk: a comment on a mistake, for all who made it
check = "NN.5"
hint = "Upside down: ..."
comment = "Which of the two is the baseline?"
share = 0.5               # of the check's points, for all of them; without it 0
"""

import json
import string
from collections import Counter
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, field_validator

from labs import files, schema
from labs.checks import tasks
from labs.errors import UseError
from labs.printed import printable
from teaching.grading import store
from teaching.grading.pins import Pin

WRITTEN = 5  # points of an item of a written answer
_HEAD = """\
# What counts how much. Points are computed anew from this file each time.
# What is right in checks and choices lies in the students' tree: they are practice.
# A notebook is put in once, below its own [notebook.NN]; what you delete there stays deleted.

[findings]
# copy = 5
"""

Points = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Criterion(BaseModel, extra="forbid"):
    """A part of a written answer, and its points."""

    id: str
    points: Points
    text: str


class MarkedAnswer(BaseModel, extra="forbid"):
    """A written answer and what it is marked by."""

    id: str
    items: list[Criterion]


class Comment(BaseModel, extra="forbid"):
    """A comment of the bank, on the item that its id begins with."""

    id: str
    text: str


class Rubric(BaseModel, extra="forbid"):
    """A rubric as the file holds it; notebook: {number: {check: points}}. `most` are the points that can be had."""

    notebook: dict[str, dict[str, Points]] = {}
    answer: list[MarkedAnswer] = []
    comment: list[Comment] = []
    findings: dict[str, Points] = {}
    pin: list[Pin] = []

    @field_validator("answer")
    @classmethod
    def _each_once(cls, answers):
        counted = Counter(item.id for each in answers for item in each.items)
        if twice := [id for id, count in counted.items() if count > 1]:
            raise schema.wrong(twice[0], "is the id of two items: give one of them another one")
        return answers

    @property
    def checks(self):
        """{id: points} of the checks of all notebooks."""
        return {id: points for of_one in self.notebook.values() for id, points in of_one.items()}

    @property
    def comments(self):
        """{id: text} of the comment bank."""
        return {each.id: each.text for each in self.comment}

    @property
    def most(self):
        return sum(self.checks.values()) + sum(item.points for each in self.answer for item in each.items)

    @property
    def items(self):
        """{id: (id of the answer, Criterion)}."""
        return {item.id: (each.id, item) for each in self.answer for item in each.items}

    def question(self, id):
        """The id of the question that an id belongs to: that of the written answer of an item, else itself."""
        return self.items[id][0] if id in self.items else id


def load(out) -> Rubric:
    """The Rubric of a grading. Raises UseError for a file that is missing or cannot be used."""
    if rules := _read(path := Path(out, "rubric.toml")):
        return rules
    raise UseError(f"{path} is missing: run `teach in` first, which writes it.")


def _read(path):
    return store.load(path, Rubric.model_validate, "mend that line: it holds what you decided.", "TOML")[1]


def most_of(notebooks):
    """(points that can be had in the first form of the rubric, those of them for written answers) of notebooks, by
    their names. Optional ones do not count."""
    counted = [each for each in tasks.lessons().values() if each.notebook in notebooks and not each.optional]
    items = [item for lesson in counted for item in lesson.task]
    written = sum(WRITTEN * len(item.holds) for item in items if item.kind == "answer")
    return written + sum(item.points for item in items if item.kind != "answer"), written


def add(out, notebooks):
    """Put what these notebooks ask for at the end of rubric.toml, and write it where there is none. Of a notebook that
    was put in before, all stays as it is now. Returns the names of those that are new in it.

    Raises UseError where the file is written in a form that takes nothing more.
    """
    path = Path(out, "rubric.toml")
    with files.locked(path):
        rules, lines = _read(path) or Rubric(), []
        known = {*rules.checks, *(each.id for each in rules.answer)}
        lessons = {lesson.notebook.partition("_")[0]: lesson for lesson in tasks.lessons().values()}
        new = {n: of for n, of in lessons.items() if of.notebook in notebooks and n not in rules.notebook}
        for number, lesson in new.items():
            items = [item for item in lesson.task if item.kind != "prediction" and item.id not in known]
            lines += ["", f"[notebook.{number}]"]
            lines += [f"{json.dumps(item.id)} = {item.points}" for item in items if item.kind != "answer"]
            for item in (item for item in items if item.kind == "answer"):
                lines += ["", "[[answer]]", f"id = {json.dumps(item.id)}", "items = ["]
                for place, held in enumerate(item.holds, 1):
                    said = json.dumps(held, ensure_ascii=False)
                    lines.append(f'  {{ id = "{item.id}.{place}", points = {WRITTEN}, text = {said} }},')
                lines.append("]")
        if new:
            store.append_toml(path, lines, _HEAD)
    return [lesson.notebook for lesson in new.values()]


def add_comment(out, item, text):
    """Put a comment on an item into the comment bank; returns its id: the item's, and the first letter that is free."""
    path = Path(out, "rubric.toml")
    with files.locked(path):
        kept = load(out).comments
        id = next(f"{item}{letter}" for letter in string.ascii_letters if f"{item}{letter}" not in kept)
        said = json.dumps(printable(text), ensure_ascii=False)
        store.append_toml(path, ["", "[[comment]]", f"id = {json.dumps(id)}", f"text = {said}"])
    return id
