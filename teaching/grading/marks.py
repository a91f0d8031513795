"""What a person has decided: grades/marks.json, {"version": 1, "marks": {number of the submission: Marks}}.

Every change is read, made and written whole under a lock, so that two who grade at once lose nothing of each other's.
"""

import getpass
import hashlib
import os
import re
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from labs import files
from labs.errors import UseError
from labs.printed import printable
from teaching.grading import collect, store

Share = Annotated[float, Field(ge=0, le=1)]
_NUMBER = re.compile(
    r"(?<![\w.,:-])(0\d{2,})(?![\w:]|[.,-]\d)|(?:submission|student|number|no\.|#)\s*(\d{3,})\b", re.IGNORECASE
)
_HELP = "put back a copy of it, or mend it: what people decided stands nowhere else."


class DecidedBy(BaseModel, extra="forbid"):
    """Who decided something, and when (UTC); answer: the digest of the answer or code that was marked; share:
    with which mark."""

    by: str = ""
    when: str = ""
    answer: str | None = None
    share: float | None = None

    def __str__(self):
        return ", ".join(filter(None, (self.by, self.when[:16].replace("T", " "))))


class Decision(DecidedBy):
    """What a person says of all findings of one kind; the sentence is all that the student reads of them.

    about: the places of the findings that there were.
    """

    state: Literal["confirmed", "dismissed"]
    sentence: str = ""
    about: list[str] = []


class Marks(BaseModel, extra="forbid"):
    """The marks of one submission.

    items: {item of the rubric: share from 0 to 1}; checks: {check: share}, which overrule how it was judged;
    comments: ids of the comment bank, or texts; findings: {kind: Decision}; stamps: {item or check: DecidedBy}.
    """

    items: dict[str, Share] = {}
    checks: dict[str, Share] = {}
    comments: list[str] = []
    findings: dict[str, Decision] = {}
    stamps: dict[str, DecidedBy] = {}


class File(BaseModel, extra="forbid"):
    """All marks, {number of the submission: Marks}."""

    version: Literal[1] = 1
    marks: dict[str, Marks] = {}


def load(out):
    """{number: Marks}. Raises UseError for a file that cannot be read."""
    kept = store.load(Path(out, "marks.json"), File.model_validate, _HELP)[1]
    return kept.marks if kept else {}


def grader():
    """Who is at work: $LABS_GRADER, else the name of the account."""
    name = os.environ.get("LABS_GRADER") or os.environ.get("JUPYTERHUB_USER")
    with suppress(OSError, KeyError, ImportError):  # an account without a name, as in containers
        name = name or getpass.getuser()
    return printable(name or "somebody")[:60]


def digest(answer):
    """The mark of a written answer: the same for the same words."""
    return hashlib.sha256(" ".join(answer.split()).encode(errors="replace")).hexdigest()[:16]


@contextmanager
def _changing(out, number):
    """The Marks of a submission, to be changed; they are written where this ends without an error."""
    if number not in collect.submissions(out):
        raise UseError(f"There is no submission {number} in {out}.")
    path = Path(out, "marks.json")
    with files.locked(path):
        marks = load(out)
        yield marks.setdefault(number, Marks())
        _write(path, marks)


def _now(**more):
    return {"by": grader(), "when": datetime.now(UTC).isoformat(timespec="seconds")} | more


def mark(out, number, rubric, id=None, share=None, comments=(), without=()):
    """Keep one mark: a share, from 0 to 1, of an item or check of the Rubric (None takes it back), comments, also
    `without` some that were there.

    Returns the Marks as they are kept. Raises UseError: no such submission; a comment that gives another student away.
    """
    comments = [fit_to_read(out, number, each) for each in comments]
    with _changing(out, number) as kept:
        shares = kept.items if id in rubric.items else kept.checks
        shares.pop(id, None)
        kept.stamps.pop(id, None)
        if share is not None:
            shares[id], kept.stamps[id] = share, _stamp(out, number, rubric, id, share, **_now())
        kept.comments = [each for each in dict.fromkeys([*kept.comments, *comments]) if each not in without]
    return kept


def stamp(out, rubric):
    """Note the answers that marks written by hand are about, as they are now: a later answer is looked at again, until
    the mark is another one."""
    with files.locked(path := Path(out, "marks.json")):
        marks = load(out)
        shares = [(n, own, id, share) for n, own in marks.items() for id, share in (own.items | own.checks).items()]
        new = [each for each in shares if getattr(each[1].stamps.get(each[2]), "share", ...) not in (None, each[3])]
        for number, own, id, share in new:
            own.stamps[id] = _stamp(out, number, rubric, id, share)
        if new:
            _write(path, marks)


def _write(path, marks):
    files.write(path, File(marks=dict(sorted(marks.items()))).model_dump_json(indent=1, exclude_defaults=True))


def _stamp(out, number, rubric, id, share, **by):
    """The DecidedBy of a mark, with what it is about as that is now; without, where nothing was looked at."""
    found = store.read(store.checked(out, number))
    return DecidedBy(answer=digest(answer_of(found, rubric, id)) if found else None, share=share, **by)


def answer_of(found, rubric, id):
    """The text that a mark is about: a written answer, or a check's code; "" where nothing of it was handed in."""
    return (found["answers"] | found["code"]).get(rubric.items[id][0] if id in rubric.items else id, "")


def decide(out, number, kind, state, sentence="", places=()):
    """Keep what a person says of all findings of one kind about a submission: "confirmed", "dismissed", or None, which
    leaves them open. places: where these findings are; sentence: with "confirmed", what the student reads.

    Returns the Marks. Raises UseError: no such submission; a sentence that gives another student away.
    """
    sentence = fit_to_read(out, number, sentence)
    with _changing(out, number) as kept:
        before = kept.findings.pop(kind, None)
        if state:
            text = (sentence or (before.sentence if before else "")) if state == "confirmed" else ""
            about = list(dict.fromkeys(places))
            kept.findings[kind] = Decision(state=state, sentence=text, about=about, **_now())
    return kept


def fit_to_read(out, number, text):
    """A text that the student of submission `number` will read (None: several). Raises UseError where it gives another
    one away."""
    text = printable(text)
    named = {number or word for number, word in _NUMBER.findall(text)}
    if given := sorted(named & (collect.submissions(out).keys() - {number})):
        said = f"The text names submission {given[0]}, and another student would read it: {text[:60]!r}. Nothing was"
        raise UseError(f"{said} changed: write it without the number of anybody else.")
    return text
