"""A collected submission, opened: its files in a folder of their own, its run records and logs, and the course that
labs.report sees in them."""

import json
import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from pathlib import Path

import psutil

import labs
from labs import files
from labs.checks import tasks
from labs.errors import LabsError
from labs.files import digest
from labs.printed import grouped
from labs.report import evidence
from labs.report.course import Course
from labs.results import log as logs
from labs.results.run import NoRecordError, load_record
from teaching.grading import collect

ROOT = Path(labs.__file__).resolve().parents[1]


class Submission:
    """The files of a submission, {path: bytes}, and below `root` as files; `course` is the report's view of them."""

    def __init__(self, number, contents, root):
        self.number, self.contents, self.root = number, contents, Path(root)
        self.logged = cache(self._logged)  # many records share one log
        for name, content in self.contents.items():
            files.write(self.root / name, content, lasting=False)
        self.runs = self.root / ("notebooks/runs" if not any(n.startswith("runs/") for n in contents) else "runs")
        self.course = Course(self.root, self.root / "notebooks", self.runs, released=self._given)

    @cached_property
    def records(self):
        """{name of the run: Run} of the records that can be read; earlier runs of the same name among them."""
        return {name: read for name, read in self._read.items() if not isinstance(read, str)}

    @cached_property
    def broken(self):
        """{name of the run: why} of the records that cannot be read."""
        return {name: read for name, read in self._read.items() if isinstance(read, str)}

    @cached_property
    def _read(self):
        """{name of the run: the Run, or why its record cannot be read}."""
        found = {}
        for path in sorted(self.runs.glob("*.json")):
            held = self.course.runs_on_record.get(path.stem)
            try:
                found[path.stem] = held or load_record(path)
            except NoRecordError:
                continue
            except LabsError as problem:
                found[path.stem] = str(problem).replace(str(self.root), "")
        return found

    def _logged(self, path):
        """{workers: Runs} of a log. Empty where it holds no epochs."""
        with suppress(LabsError):
            return grouped((run.workers, run) for run in logs.read(path))
        return {}

    def digests(self, name):
        """SHA-256 of a file that was handed in, and of the same before paths were taken out of it, or None."""
        return digest(self.contents[name]), self.manifest.get(name, {}).get("sha256_before_cleaning")

    @cached_property
    def speedups(self):
        """Its runs on more than one worker that have a speedup, measured together."""
        runs = self.course.with_measures(self.course.runs_on_record)
        return [run for run in runs if run.speedup.value and (run.workers or 1) > 1]

    @property
    def tables(self):
        """{task: [[caption, columns, *rows], ...]}, in texts, of all tables that the report has, from the records."""
        course, made = self.course, []
        for item in (item for lesson in course.lessons for item in lesson.task if tasks.handed_in(item.id)):
            for table in evidence.tables(course, item, evidence.runs_of(course, item)):
                made.append((item.id, [table["caption"], table["columns"], *table["rows"]]))
        return grouped(made)

    @cached_property
    def manifest(self):
        """{path: {sha256, ...}} as the manifest says; {} where there is none."""
        named = _json(self.contents, "manifest.json").get("files")
        entries = named.items() if isinstance(named, dict) else ()
        return {name: entry for name, entry in entries if type(entry) is dict}

    @cached_property
    def _given(self):
        """The names of the notebooks that the student was given, as the manifest says from the release's stamp; None
        where it does not. What was handed in was given, whatever it says."""
        handed_in = {Path(name).stem for name in self.contents if name.endswith(".ipynb")}
        named = released(self.contents)
        return None if named is None else handed_in.union(named)


def released(contents):
    """The names of the notebooks in the release that a student had, as the manifest says; None where it does not."""
    with suppress(KeyError, TypeError):
        return tuple(map(str, _json(contents, "manifest.json")["release"]["notebooks"]))
    return None


def _json(contents, name):
    """The dict that a file holds; {} where there is none."""
    with suppress(KeyError, ValueError, RecursionError):
        data = json.loads(contents[name])
        return data if isinstance(data, dict) else {}
    return {}


_OPENED = "labs-grading-"


@contextmanager
def opened(number, path):
    """The Submission in a collected zip, while this holds."""
    with tempfile.TemporaryDirectory(prefix=f"{_OPENED}{os.getpid()}-") as folder:
        yield Submission(number, collect.contents(path), folder)


def remove_what_was_left():
    """Remove the folders of submissions that were open when their process was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_OPENED}*-*"):
        owner = folder.name.removeprefix(_OPENED).partition("-")[0]
        if owner.isdecimal() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)
