"""What report.json holds. Version 1; `schema()` is its JSON schema, which lies beside it in submission.zip.

Times are in seconds, dates are ISO 8601 in UTC. Every number of a table stands as text, as it is printed, and as value.
"""

import json
from typing import Literal

from pydantic import BaseModel

VERSION = 1

# Kinds of findings: what of the evidence does not carry what is said of it.
Kind = Literal[
    "script changed",
    "answer older than its run",
    "output of an older record",
    "not measured by you",
    "counted twice",
    "oversubscribed",
    "different machines",
    "no repeats",
]


class ReportPart(BaseModel, extra="forbid"):
    """A part of a report."""


class Cell(ReportPart):
    """A cell of a table: its text and, where it says a number, the number with its interval."""

    text: str
    value: float | None = None
    interval: tuple[float, float] | None = None


class ReportTable(ReportPart):
    """A table with a header; notes stand below it."""

    caption: str
    columns: list[str]
    rows: list[list[Cell]]
    notes: list[str] = []


class Figure(ReportPart):
    """A figure, its caption, and its text alternative, made from the same data; `runs` are those that it shows."""

    name: str
    caption: str
    alt: str
    runs: list[str]


class Lines(ReportPart):
    """Lines of a file that matter, without what is of no use on paper; `left_out`: how many lines are not shown."""

    file: str
    lines: list[str]
    left_out: int = 0


class ReportScript(ReportPart):
    """A script. `changed` are the numbers (from 1) of its lines that differ from its blank form; None: not compared."""

    file: str
    sha256: str
    lines: list[str]
    changed: list[int] | None = None


class ReportTask(ReportPart):
    """A task with a letter (T1, S1, H1): the question, the student's answer in Markdown, the evidence."""

    id: str
    notebook: str
    kind: Literal["check", "answer"]
    question: str
    state: Literal["open", "wrong", "right", "written"]
    points: int
    answer: str | None = None
    holds: list[str] = []
    runs: list[str] = []
    tables: list[ReportTable] = []
    figures: list[Figure] = []
    scripts: list[ReportScript] = []
    logs: list[Lines] = []


class Main(ReportPart):
    """The main result: what the runs of a task say of scaling, a sentence each, and the name of the figure of it."""

    task: str
    sentences: list[str]
    figure: str


class ReportItem(ReportPart):
    """A check or prediction: its state; of a prediction what was expected and, if it was measured, the outcome."""

    id: str
    notebook: str
    title: str
    kind: Literal["check", "prediction"]
    state: Literal["open", "wrong", "right", "predicted"]
    points: int
    attempts: int
    answer: str = ""
    outcome: Cell | None = None


class ReportRun(ReportPart):
    """A run: what it was, where, when, and with which script. sha256: of the record's file."""

    name: str
    sha256: str
    kind: str
    state: str
    model: str | None
    strategy: str | None
    workers: int | None
    global_batch: int | None
    epochs: int
    hardware: str | None
    cores: int | None
    versions: dict[str, str | None]
    oversubscribed: bool | None
    study: str | None
    job_id: str | None
    started: str | None
    finished: str | None
    script: str | None
    script_sha256: str | None


class ReportFinding(ReportPart):
    """Something that the evidence does not carry, or not any more: its kind, the task, and a sentence."""

    kind: Kind
    task: str
    text: str


class Report(ReportPart):
    """A report on all tasks of a course."""

    version: Literal[1] = VERSION
    kit: str
    name: str | None
    machine: str | None
    hardware: list[str]
    versions: dict[str, list[str]]
    first_run: str | None
    last_run: str | None
    main: Main | None = None
    tasks: list[ReportTask]
    items: list[ReportItem]
    runs: list[ReportRun]
    findings: list[ReportFinding]
    missing: list[str]
    appendix: str | None = None  # Markdown that the student adds


def schema():
    """The JSON schema of report.json, as a dict."""
    return Report.model_json_schema()


def as_json(part):
    """The text of a part, or of a dict, as it is written to a file."""
    data = part.model_dump(mode="json") if isinstance(part, ReportPart) else part
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
