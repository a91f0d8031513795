"""Pins: a comment on a mistake that many make. It reaches all whose check got the same hint, now and later.

A pin stands in rubric.toml, below [[pin]], so the points of all who made the mistake follow a change of its `share`.
Hints are the same where only their numbers and quoted words differ, which come from what a student wrote.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from labs import files
from labs.printed import grouped, printable
from teaching.grading import marks, store
from teaching.grading.finding import by_id

_OWN = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|[-+]?\d[\d.,]*(?:e[-+]?\d+)?", re.IGNORECASE)


class Pin(BaseModel, extra="forbid"):
    """A comment on the mistake that got this hint at this check; share: of the check's points, from 0 to 1."""

    check: str
    hint: str
    comment: str
    share: Annotated[float, Field(ge=0, le=1)] = 0.0

    def is_about(self, check, hint):
        """Whether it is about the mistake that got such a hint at a check."""
        return check == self.check and form(hint) == form(self.hint)


@dataclass(frozen=True)
class Mistake:
    """A mistake at a check: its hint, as the first one got it, and the numbers of all submissions that have it."""

    check: str
    hint: str
    numbers: tuple


def form(hint):
    """A hint without what is one student's own in it: numbers, and what stands in quotes."""
    return " ".join(_OWN.sub("#", hint).split())


def _is_mistake(judged):
    return judged["state"] == "wrong" and judged["how"] != "person"


def mistakes(found):
    """All Mistakes in {number: what was found}, the most frequent first."""
    every = {number: by_id(of_one["checks"]) for number, of_one in sorted(found.items())}
    wrong = [(id, of["text"], n) for n, checks in every.items() for id, of in checks.items() if _is_mistake(of)]
    alike = grouped(((id, form(text)), (text, number)) for id, text, number in wrong)
    made = [Mistake(id, of[0][0], tuple(number for _, number in of)) for (id, _), of in alike.items()]
    return sorted(made, key=lambda each: -len(each.numbers))


def pinned(pins, found):
    """{check: Pin} of what was found about one submission; of several pins on a mistake the last one counts."""
    hints = {id: judged["text"] for id, judged in by_id(found["checks"]).items() if _is_mistake(judged)}
    return {pin.check: pin for pin in pins if pin.check in hints and pin.is_about(pin.check, hints[pin.check])}


def add(out, mistake, comment, share=0.0):
    """Pin a comment to a Mistake, with a share of the check's points, from 0 to 1. Raises UseError where the comment
    gives a student away."""
    comment = marks.fit_to_read(out, None, comment)
    pin = Pin(check=mistake.check, hint=printable(mistake.hint), comment=comment, share=share)
    path = Path(out, "rubric.toml")
    with files.locked(path):
        lines = (f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in pin.model_dump().items())
        store.append_toml(path, ["", "[[pin]]", *lines])
