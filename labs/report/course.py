"""What there is to report: a course's notebooks, answers, progress, scripts, runs. What cannot be read is left out."""

import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from labs import files
from labs.checks import kept, tasks
from labs.course import CourseError, find_course, fresh_files
from labs.course.release import ReleaseStamp, digest, stamp_of
from labs.errors import LabsError
from labs.report.private import Private
from labs.results import metrics
from labs.results import run as records
from labs.results.run import Run
from labs.slurm import sites

MOST_BYTES = 2**20  # of a log that are looked at, half of them at its end


@dataclass
class Held:
    """A run on record: its file, the file's bytes, and the run that it describes."""

    path: Path
    content: bytes
    run: Run

    @property
    def name(self):
        return self.path.stem

    def log(self, ending):
        """Path of its .out or .err: its own, or that of the batch script whose training it was; None without one."""
        stems = (self.name, re.sub(r"_w\d+$", "", self.name))
        paths = (self.path.with_name(stem + ending) for stem in stems)
        return next((path for path in paths if path.is_file()), None)


@dataclass
class Course:
    """A course's work. folder: of the notebooks; runs: of the runs; fresh: {path below root: function that gives the
    bytes that the student began with}, empty where there are none to compare with; stamp: of the release, None where
    there is none, as in a clone; given: the names of the notebooks that were given out, None for all."""

    root: Path
    folder: Path
    runs: Path
    fresh: dict = field(default_factory=dict)
    stamp: ReleaseStamp | None = None
    given: frozenset | None = None
    _together: dict = field(default_factory=dict, repr=False)  # of `measured_together`, by the names of the runs

    def __post_init__(self):
        self._digest = cache(self._digest)  # of thousands of runs, most were made with one script

    def _digest(self, script):
        """SHA-256 of a script as it is there, or None."""
        with suppress(OSError, ValueError):
            return digest(files.read(self.folder / "scripts" / script))
        return None

    @cached_property
    def private(self):
        heads = []
        for path in sorted(self.runs.glob("*.out")):
            with suppress(OSError):
                heads.append(excerpt(path, 4096)[0])
        return Private(self.root, heads)

    @cached_property
    def lessons(self):
        """The lessons that were given out; optional ones where something of them was done."""
        known, given = tasks.lessons().values(), self.given
        known = [each for each in known if given is None or each.notebook in given]
        return [lesson for lesson in known if not lesson.optional or self._begun(lesson)]

    def _begun(self, lesson):
        path = self.folder / f"{lesson.notebook}.ipynb"
        tried = any(self.progress.get(item.id, {}).get("state", "open") != "open" for item in lesson.task)
        return tried or (path.is_file() and any(kept.answers(path).values()))

    @cached_property
    def notebooks(self):
        """{name: path} of the lessons' notebooks that are there."""
        paths = {lesson.notebook: self.folder / f"{lesson.notebook}.ipynb" for lesson in self.lessons}
        return {name: path for name, path in paths.items() if path.is_file()}

    @cached_property
    def answers(self):
        """{id: Markdown} of the written answers that hold something."""
        every = (pair for path in self.notebooks.values() for pair in kept.answers(path).items())
        return {id: self.private.text(kept.written(text)) for id, text in every if text}

    @cached_property
    def progress(self):
        """{id: what progress.json says of it}."""
        try:
            return kept.read(self.runs / "progress.json")[0]
        except OSError:
            return {}

    @cached_property
    def held(self):
        """The runs on record by name; without those that moved aside when a later one took their name."""
        found = {}
        for path in sorted(self.runs.glob("*.json")):
            with suppress(LabsError, OSError):
                run = records.load(path)
                if run.name == path.stem or not files.later(path.stem):
                    found[path.stem] = Held(path, files.read(path), run)
        return found

    @cached_property
    def measured(self):
        """{name: what the file holds} of the searches for the largest batch and of the breakdowns of a step."""
        found = {}
        for path in sorted([*self.runs.glob("*.maxbatch.json"), *self.runs.glob("*.breakdown.json")]):
            with suppress(OSError, ValueError, RecursionError):
                if isinstance(data := json.loads(files.read(path)), dict):
                    found[path.name] = data
        return found

    def measured_together(self, names):
        """These runs with their measures (labs.results.metrics); once for the same ones, which several tasks show."""
        key = tuple(names)
        if key not in self._together:
            self._together[key] = metrics.measure(self.held[name].run for name in names)
        return self._together[key]

    def matching(self, patterns, names):
        """Those of `names` that one of the regular expressions matches as a whole, in the order of the expressions."""
        return list(dict.fromkeys(n for pattern in patterns for n in sorted(names) if re.fullmatch(pattern, n)))

    def outputs(self):
        """(name of the notebook, {file: {kind, started}}) for each output that says which runs it shows."""
        for name, path in self.notebooks.items():
            with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
                for cell in json.loads(files.read(path))["cells"]:
                    for output in cell.get("outputs", ()):
                        yield name, dict(output.get("metadata", {}).get("labs", {}).get("shows", {}))

    def scripts(self, evidence):
        """(path below root, its bytes) of the scripts of some evidence that the student has changed. Where there is
        nothing to compare with, of all of them, and batch scripts of the site in use."""
        site, own = sites.default(), self.folder.name == "solutions"  # the authors' own
        paths = [self.folder / "scripts" / name for name in evidence.scripts]
        paths = [path for path in paths if not self.fresh or self.changed(path)]
        for name in evidence.batch:
            of_sites = {place: (self.folder if own else self.root) / "slurm" / place / name for place in sites.names()}
            paths += [path for place, path in of_sites.items() if (self.changed(path) if self.fresh else place == site)]
        for path in paths:
            with suppress(OSError):
                yield self.label(path), files.read(path)

    def changed(self, path):
        """Whether a file is there and is not as the student got it."""
        with suppress(OSError, LabsError):
            return files.read(path) != self.fresh[self.label(path)]()
        return False

    def label(self, path):
        """A path as it is shown: below the course's folder, of a run that lies elsewhere below runs/."""
        path = Path(path).absolute()
        if path.is_relative_to(self.root):
            return path.relative_to(self.root).as_posix()
        return f"runs/{path.name}"

    def script_of(self, run):
        """(name of the script that a run was made with, SHA-256 of what stands there now), None where not known."""
        if not run.command or run.command[0] == "-m":
            return (run.command[1] if run.command[1:] else None), None
        name = Path(run.command[0]).name
        return name, self._digest(name)


def look(start: str | Path = ".", runs: str | Path | None = None) -> Course:
    """The Course around a folder: its notebooks lie there, or in the course's notebooks/. Raises CourseError."""
    start = Path(start).resolve()
    here = any(start.glob("[0-9][0-9]*_*.ipynb"))
    try:
        root = find_course(start)
    except CourseError:
        if not here:
            raise
        root = start.parent  # notebooks that were copied somewhere
    folder = start if here else root / "notebooks"
    runs = Path(runs or os.environ.get("LABS_RUNS") or folder / "runs").absolute()
    with suppress(CourseError):
        stamp = stamp_of(root)
        return Course(root, folder, runs, fresh_files(root), stamp, frozenset(stamp.notebooks))
    return Course(root, folder, runs)


def excerpt(path, most=MOST_BYTES):
    """(text of a log, whether its middle is left out). Raises OSError."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        data = file.read(most if size <= most else most // 2)
        if size > most:
            file.seek(size - most // 2)
            data += b"\n" + file.read(most // 2)
    return data.decode(errors="replace").replace("\r\n", "\n"), size > most
