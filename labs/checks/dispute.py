"""Disputes: what a student says against the points of a check or an answer; kept beside the runs, and handed in with
the report, for whoever grades to answer."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError

from labs import files, schema
from labs.checks import tasks
from labs.errors import UseError
from labs.printed import printable

FILE = "disputes.json"  # in the folder of the runs
MOST, LONGEST = 50, 2000  # disputes, and characters of a reason


class Dispute(BaseModel, extra="forbid"):
    """Why the points of a check or answer are disputed, and since when (UTC)."""

    reason: Annotated[str, Field(min_length=1, max_length=LONGEST)]
    when: Annotated[str, Field(max_length=40)] = ""


class _DisputesFile(BaseModel, extra="forbid"):
    version: Literal[1] = 1
    disputes: Annotated[dict[Annotated[str, Field(max_length=20)], Dispute], Field(max_length=MOST)] = {}


def read(content):
    """{id: Dispute} in the bytes of a file. Raises ValueError for what is not such a file."""
    try:
        return _DisputesFile.model_validate(json.loads(content)).disputes
    except ValidationError as problem:
        raise ValueError(schema.first_mistake(problem)) from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def kept(runs):
    """{id: Dispute} of a folder of runs. Raises UseError for a file that cannot be read."""
    path = Path(runs, FILE)
    try:
        return read(files.read(path))
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as problem:
        raise UseError(f"{path} is damaged ({problem}). Delete it, and write your disputes again.") from None


def keep(runs, id, reason):
    """Keep a dispute about a check (lesson.k), an answer (a letter and a number), or one item of it; None withdraws it.

    Returns all that are kept. Raises UseError, tasks.TaskError: no such task; nothing or too much is said.
    """
    answer, _, item = id.rpartition(".")
    tasks.task(answer if item.isdecimal() and tasks.handed_in(answer) else id)
    if reason is not None and not reason.strip():
        raise UseError("A dispute needs a reason, for a person to read: what you did, and why it is right.")
    if reason is not None and len(reason) > LONGEST:
        raise UseError(f"The reason has {len(reason)} characters; {LONGEST} are read. Say it in fewer words.")
    path = Path(runs, FILE)
    with files.locked(path):
        every = kept(runs)
        if reason is None:
            every.pop(id, None)
        elif id not in every and len(every) == MOST:
            raise UseError(f"There are {MOST} disputes already, and more are not read. Withdraw one first.")
        else:
            when = datetime.now(UTC).isoformat(timespec="seconds")
            every[id] = Dispute(reason=printable(reason.strip())[:LONGEST], when=when)
        files.write(path, _DisputesFile(disputes=every).model_dump_json(indent=1) + "\n")
    return every
