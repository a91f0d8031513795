"""What counts how much: grades/rubric.toml, written from the tasks of the course, for the instructor to change.

Checks are for practice: what is right lies in the students' tree. So in the first form, what takes work that can be
seen has the larger part: each item of a written answer counts WRITTEN points, beside scripts and plots of own runs.
What later notebooks ask for is put in when they first count; nothing else in the file is touched.

notebooks = ["04", "05"]  # whose checks and answers were put in: what is deleted of them stays deleted

[checks]                  # points of each check; 0 leaves it out
"lesson.6" = 1

[[answer]]                # a written answer; each item is marked from 0 to 1, which allows partial credit
id = "T5"
items = [ { id = "T5.1", points = 1, text = "..." } ]

[comments]                # the comment bank: an item's id and a letter
"T5.1a" = "The script and the batch script disagree about the batch: which one made this run?"

[findings]                # points off for each finding of a kind that a person has confirmed
copy = 0

[[pin]]                   # what `teach pin` keeps: a comment on a mistake, for all who made it
check = "NN.5"
hint = "Upside down: ..."
comment = "Which of the two is the baseline?"
share = 0.5               # of the check's points, for all of them; without it 0
"""

import json
import re
import string
import tomllib
from collections import Counter
from contextlib import suppress
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
_KINDS = ("written answers", "scripts and plots of own runs", "choices", "other checks")

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


class Rubric(BaseModel, extra="forbid"):
    """A rubric as the file holds it. `most` are the points that can be had."""

    notebooks: list[str] = []
    checks: dict[str, Points]
    answer: list[MarkedAnswer] = []
    comments: dict[str, str] = {}
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
    def most(self):
        return sum(self.checks.values()) + sum(item.points for each in self.answer for item in each.items)

    @property
    def questions(self):
        """The ids of all checks and written answers."""
        return {*self.checks, *(each.id for each in self.answer)}

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
    raise UseError(f"{path} is missing: run `teach check` first, which writes it.")


def _read(path):
    return store.load(path, Rubric.model_validate, "mend that line: it holds what you decided.", "TOML")[1]


def add(out, notebooks):
    """Put what these notebooks ask for into rubric.toml, and write it where there is none. Of a notebook that was put
    in before, all stays as it is now. Returns the names of those that are new in it.

    Raises UseError where the file is written in a form that takes nothing more.
    """
    path, every = Path(out, "rubric.toml"), tasks.lessons()
    with files.locked(path):
        if rules := _read(path):
            text = files.read(path).decode()
        else:
            rules = Rubric(checks={})
            text = _head({folder: each for folder, each in every.items() if each.notebook in notebooks})
        there, held = rules.questions, rules.notebooks
        new = [each for each in every.values() if each.notebook in notebooks and _number(each) not in held]
        items = [item for each in new for item in each.task if item.kind != "prediction" and item.id not in there]
        if new:
            numbers, made = [_number(each) for each in new], None
            text = _with(text, numbers, items)
            with suppress(ValueError):
                made = Rubric.model_validate(tomllib.loads(text))
            if not made or made.notebooks != numbers + held or made.questions != there.union(item.id for item in items):
                names = ", ".join(each.notebook for each in new)
                form = "Write its notebooks = [], [checks] and [[answer]] as at first"
                raise UseError(f"{path} takes nothing more, so {names} would not count. {form}. Nothing was changed.")
            files.write(path, text)
    return [each.notebook for each in new]


def _number(lesson):
    return lesson.notebook.partition("_")[0]


def _with(text, numbers, items):
    """The text of a rubric with more numbers of notebooks and items of the course in it, and all else as it is."""
    first, more = re.compile(r"^(notebooks\s*=\s*\[)(?=\s*(\])?)", re.MULTILINE), ", ".join(map(json.dumps, numbers))
    text = first.sub(lambda found: found[1] + more + ("" if found[2] else ", "), text, count=1)
    lines, at = text.split("\n"), 0
    for place, line in enumerate(lines, 1):
        if re.match(r"\s*\[\s*checks\s*\]", line) or (at and re.match(r"\s*[^\s#\[]", line)):
            at = place  # behind what stands in [checks]
        elif at and re.match(r"\s*\[", line):
            break
    lines[at:at] = [f"{json.dumps(item.id)} = {item.points}" for item in items if at and item.kind != "answer"]
    for item in (item for item in items if item.kind == "answer"):
        lines += ["[[answer]]", f"id = {json.dumps(item.id)}", "items = ["]
        for number, held in enumerate(item.holds, 1):
            said = json.dumps(held, ensure_ascii=False)
            lines.append(f'  {{ id = "{item.id}.{number}", points = {WRITTEN}, text = {said} }},')
        lines += ["]", ""]
    return "\n".join(lines)


def add_comment(out, item, text):
    """Put a comment on an item into the comment bank; returns its id: the item's, and the first letter that is free.

    Raises UseError where all letters are taken.
    """
    path = Path(out, "rubric.toml")
    with files.locked(path):
        kept = load(out).comments
        id = next((f"{item}{letter}" for letter in string.ascii_lowercase if f"{item}{letter}" not in kept), None)
        if id is None:
            raise UseError(f"{path} has {len(string.ascii_lowercase)} comments on {item} already.")
        line = f"{json.dumps(id)} = {json.dumps(printable(text), ensure_ascii=False)}\n"
        text = files.read(path).decode()
        head = re.search(r"^[ \t]*\[[ \t]*comments[ \t]*\].*\n", text, re.MULTILINE)
        text = text[: head.end()] + line + text[head.end() :] if head else f"{text}\n[comments]\n{line}"
        store.write_toml(path, text, f"{path}: no [comments] is found where it could stand; write there {line.strip()}")
    return id


def _head(lessons):
    """The text of a rubric before anything is put in, with the shares of these lessons, {folder: Lesson}."""
    shares = _shares(lessons)
    lines = ["# What counts how much. Points are computed anew from this file each time. As it was written first:", "#"]
    lines += [f"# {kind:<30}{of:4g} points, {of / (sum(shares.values()) or 1):.0%}" for kind, of in shares.items()]
    lines += ["#", "# What is right in checks and choices lies in the students' tree: they are practice.", ""]
    lines += ["# Whose checks and answers were put in; what you delete of them stays deleted.", "notebooks = []"]
    lines += ["", "[checks]", "", "[findings]", "# copy = 5", "", "[comments]", '# "T5.1a" = "..."']
    return "\n".join(lines) + "\n"


def _shares(lessons):
    """{kind: points} of the items of some lessons, {folder: Lesson}, in the first form of a rubric."""
    shares = Counter(dict.fromkeys(_KINDS, 0))
    for folder, lesson in lessons.items():
        path = tasks.LESSONS / folder / "questions.py"
        judges = path.read_text(encoding="utf-8").split('@judges("')[1:] if path.exists() else ()
        about = {each.partition('"')[0] for each in judges if re.search(r"scripts\.", each)}
        for item in lesson.task:
            if item.kind == "answer":
                shares[_KINDS[0]] += WRITTEN * len(item.holds)
            elif isinstance(item, tasks.Check):
                work = item.id in about or item.evidence != tasks.Evidence()
                shares[_KINDS[1 if work else 2 if item.kind == "choice" else 3]] += item.points
    return shares
