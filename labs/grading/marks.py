"""What a person has decided: grades/marks.json. Every change is read, made and written whole under a lock, so that two
who grade at once lose nothing of each other's."""

import json
import math
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from labs import files, schema
from labs.errors import UseError
from labs.grading import collect, term


class Marks(BaseModel, extra="forbid"):
    """The marks of one submission.

    items: {item of the rubric: share from 0 to 1}; checks: {check: share}, which overrule how it was judged;
    comments: ids of the comment bank, or texts; confirmed: kinds of findings that take points off; of: {item: digest of
    the answer that was marked}.
    """

    items: dict[str, float] = {}
    checks: dict[str, float] = {}
    comments: list[str] = []
    confirmed: list[str] = []
    of: dict[str, str] = {}


class File(BaseModel, extra="forbid"):
    """All marks, {number of the submission: Marks}."""

    version: int = Field(1, ge=1, le=1)
    marks: dict[str, Marks] = {}


def load(out):
    """{number: Marks}. Raises UseError for a file that cannot be read."""
    path = Path(out, "marks.json")
    try:
        return File.model_validate(json.loads(files.read(path))).marks
    except FileNotFoundError:
        return {}
    except ValidationError as problem:
        raise UseError(f"{path}: {schema.first_mistake(problem)}") from None
    except ValueError as problem:
        raise UseError(f"{path} cannot be read as JSON: {problem}. Its last whole state may be in a backup.") from None


def mark(out, number, rubric, id=None, share=None, comments=(), without=(), confirm=()):
    """Keep one mark: a share of an item or check (None takes it back), comments, also `without` some that were there,
    confirmed kinds of findings.

    Raises UseError: no such submission, item or share.
    """
    collect.submission(out, number)
    if share is not None and not (math.isfinite(share) and 0 <= share <= 1):
        raise UseError(f"{share} is no share of the points: give a number from 0 to 1.")
    if id is not None and id not in rubric.items and id not in rubric.checks:
        raise UseError(f"The rubric has no item and no check {id!r}: items are as T5.1, checks as 05.6.")
    path = Path(out, "marks.json")
    with files.locked(path):
        marks = load(out)
        of_one = marks.setdefault(number, Marks())
        if id is not None:
            kept = of_one.items if id in rubric.items else of_one.checks
            kept.pop(id, None)
            if share is not None:
                kept[id] = share
            if id in rubric.items:
                answers = collect.kept(Path(out, f"checked/{number}.json")).get("answers", {})
                of_one.of[id] = term.digest(answers.get(rubric.items[id][0]))
        kept = [each for each in of_one.comments if each not in without]
        of_one.comments = kept + [each for each in comments if each not in kept]
        of_one.confirmed += [each for each in confirm if each not in of_one.confirmed]
        files.write(path, File(marks=dict(sorted(marks.items()))).model_dump_json(indent=1))
