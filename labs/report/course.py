"""What there is to report: a course's notebooks, answers, progress, scripts, runs. What cannot be read is left out."""

import json
import os
import re
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from labs import files
from labs.checks import kept, tasks
from labs.course import CourseError, find_course, fresh_files
from labs.course.release import stamp_of
from labs.errors import LabsError
from labs.files import digest
from labs.report.private import Private
from labs.results import metrics
from labs.results import run as records
from labs.results.run import Run
from labs.slurm import sites

MOST_BYTES = 2**20  # of a log that are looked at, half of them at its end


@dataclass
class Course:
    """A course's work. folder: of the notebooks; runs: of the runs; fresh: {path below root: function that gives the
    bytes that the student began with}, empty where there are none to compare with; released: the names of the notebooks
    of the release, None without one, as in a clone."""

    root: Path
    folder: Path
    runs: Path
    fresh: dict = field(default_factory=dict)
    released: Collection[str] | None = None

    @cached_property
    def private(self):
        return Private(self.root, [excerpt(path.read_bytes(), 4096)[0] for path in self.runs.glob("*.out")])

    @cached_property
    def lessons(self):
        """The lessons that were given out; optional ones where something of them was done."""
        begun = {row["notebook"] for row in kept.rows(self.progress, self.answers) if row["state"] != "open"}
        known = tasks.lessons().values()
        there = [lesson for lesson in known if self.released is None or lesson.notebook in self.released]
        return [lesson for lesson in there if not lesson.optional or lesson.notebook in begun]

    @cached_property
    def notebooks(self):
        """{name: path} of the lessons' notebooks that are there."""
        paths = {lesson.notebook: self.folder / f"{lesson.notebook}.ipynb" for lesson in self.lessons}
        return {name: path for name, path in paths.items() if path.is_file()}

    @cached_property
    def answers(self):
        """{id: Markdown} of the written answers that hold something."""
        paths = [self.folder / f"{lesson.notebook}.ipynb" for lesson in tasks.lessons().values()]
        every = (pair for path in paths if path.is_file() for pair in kept.answers(path).items())
        return {id: self.private.text(kept.written(text)) for id, text in every if text}

    @cached_property
    def progress(self):
        """{id: what progress.json says of it}."""
        with suppress(OSError):
            return kept.read(self.runs / "progress.json")
        return {}

    @cached_property
    def rows(self):
        """{id: row of labs.checks.progress} of the items of its lessons."""
        notebooks = {lesson.notebook for lesson in self.lessons}
        return {r["id"]: r for r in kept.rows(self.progress, self.answers) if r["notebook"] in notebooks}

    @cached_property
    def runs_on_record(self) -> dict[str, Run]:
        """The runs on record by name; without those that moved aside when a later one took their name."""
        found = {}
        for path in sorted(self.runs.glob("*.json")):
            with suppress(LabsError, OSError):
                run = records.load_record(path)
                if run.name == path.stem or not files.newer_names(path.stem):
                    found[path.stem] = run
        return found

    def log(self, name, ending):
        """Path of a run's .out or .err: its own, or that of the batch script whose training it was; None without."""
        paths = [self.runs / (stem + ending) for stem in (name, re.sub(r"_w\d+$", "", name))]
        return next((path for path in paths if path.is_file()), None)

    @cached_property
    def searches_and_breakdowns(self):
        """{name: what the file holds} of the searches for the largest batch and of the breakdowns of a step."""
        found = {}
        for path in sorted([*self.runs.glob("*.maxbatch.json"), *self.runs.glob("*.breakdown.json")]):
            with suppress(OSError, ValueError, RecursionError):
                if isinstance(data := json.loads(path.read_bytes()), dict):
                    found[path.name] = data
        return found

    def with_measures(self, names):
        """These runs with their measures (labs.results.metrics)."""
        return metrics.measure(self.runs_on_record[name] for name in names)

    def matching(self, patterns, names):
        """Those of `names` that one of the regular expressions matches as a whole, in the order of the expressions."""
        return list(dict.fromkeys(n for pattern in patterns for n in sorted(names) if re.fullmatch(pattern, n)))

    def outputs(self):
        """(name of the notebook, file, kind, when it started) of each run that an output of a notebook shows."""
        for name, path in self.notebooks.items():
            with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
                for cell in json.loads(path.read_bytes())["cells"]:
                    for output in cell.get("outputs", ()):
                        for file, run in output.get("metadata", {}).get("labs", {}).get("shows", {}).items():
                            yield name, file, run["kind"], run["started"]

    def scripts(self, evidence):
        """(path below root, its bytes) of the scripts of some evidence that the student has changed."""
        paths = [self.folder / "scripts" / name for name in evidence.scripts]
        paths += [self.root / "slurm" / site / name for name in evidence.batch for site in sites.names()]
        there = [(self.label(path), path.read_bytes()) for path in paths if path.is_file()]
        return [(label, content) for label, content in there if self.before(label) != content]

    def before(self, label):
        """The bytes that the student began with, of a path below root; None where they are not known."""
        with suppress(LabsError, KeyError):
            return self.fresh[label]()
        return None

    def label(self, path):
        """A path as it is shown: below the course's folder, of a run that lies elsewhere below runs/."""
        path = Path(path).absolute()
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else f"runs/{path.name}"

    def script_of(self, run):
        """(name of the script that a run was made with, SHA-256 of what stands there now), None where not known."""
        if not run.command or run.command[0] == "-m":
            return (run.command[1] if run.command[1:] else None), None
        path = self.folder / "scripts" / Path(run.command[0]).name
        return path.name, digest(path.read_bytes()) if path.is_file() else None


def course_around(start: str | Path = ".") -> Course:
    """The Course around a folder: its notebooks lie there, or in the course's notebooks/; its runs in $LABS_RUNS, or in
    `runs` beside the notebooks. Raises CourseError."""
    start = Path(start).resolve()
    here = any(start.glob("[0-9][0-9]*_*.ipynb"))
    try:
        root = find_course(start)
    except CourseError:
        if not here:
            raise
        root = start.parent  # notebooks that were copied somewhere
    folder = start if here else root / "notebooks"
    course = Course(root, folder, Path(os.environ.get("LABS_RUNS") or folder / "runs").absolute())
    with suppress(CourseError):
        course.fresh = fresh_files(root)
        course.released = stamp_of(root).notebooks
    return course


def stem_of(file):
    """The name of a search or breakdown, as its log has it, from that of its file (NAME.maxbatch.json)."""
    return file.rsplit(".", 2)[0]


def excerpt(content, most=MOST_BYTES):
    """(text of a log's bytes, whether its middle is left out)."""
    cut = len(content) > most
    if cut:
        content = content[: most // 2] + b"\n" + content[-most // 2 :]
    return content.decode(errors="replace").replace("\r\n", "\n"), cut
