"""A job that was started, wherever it runs: its files, how it is followed to its end, how it ended in a sentence."""

import contextlib
import json
import os
import re
import time
from pathlib import Path
from typing import Any, Self

from labs import files
from labs.errors import LabsError
from labs.jobs import why
from labs.printed import printable
from labs.results import failures
from labs.results import run as records

GOING = ("waiting", "running")


def check_name(name):
    """Raise LabsError for what no job can be called."""
    if problem := files.name_problem(name):
        raise LabsError(f"The name {name!r:.60} {problem}. The job's files get this name, so choose another one.")


class Job:
    """A job and its files: `out`, `err`, and the `records` of its trainings.

    `state` is waiting (not started, as in SLURM's queue), running, finished, failed or stopped; "unknown" where SLURM
    has forgotten the job. `job_id` is SLURM's number as a text, None for a job of this machine. `stem` is the path that
    all its files begin with. Subclasses know where it runs: `state`, `stop()`, `_ending()`.
    """

    state: str
    job_id: str | None = None

    def __init__(self, name: str, stem: str | Path, batch: bool = False):
        """name: by which people call the job; stem: path that its files begin with; batch: a batch script's, whose
        trainings have records <stem>_w<workers>.json."""
        self.name, self.batch, self.stopped = name, batch, False
        self.stem = Path(stem)
        self.out, self.err = self._file(".out"), self._file(".err")

    def __repr__(self):
        return f"<{self._label()}: {self.state}>"

    def _file(self, ending):
        return self.stem.with_name(self.stem.name + ending)

    def _label(self):
        return self.name

    def files_of_trainings(self, ending):
        """Existing files <stem><ending>, or of a batch script <stem>_w<workers><ending>, and those of its study in the
        folder <stem>; the newest is the last."""
        pattern = re.escape(self.stem.name) + (r"_w\d+" if self.batch else "") + re.escape(ending)
        paths = [path for path in self.stem.parent.glob("*") if re.fullmatch(pattern, path.name)]
        times = {}
        for path in [*paths, *(self.stem.glob(f"*{ending}") if self.batch else [])]:
            with contextlib.suppress(OSError):  # it has gone meanwhile
                times[path] = path.stat().st_mtime_ns
        return sorted(times, key=times.__getitem__)

    @property
    def records(self) -> list[Path]:
        """The run records that exist, as a list of paths; the newest is the last."""
        return self.files_of_trainings(".json")

    @property
    def record(self) -> Path:
        """The newest run record; without one yet, the path <stem>.json."""
        return (self.records or [self._file(".json")])[-1]

    @property
    def printed(self) -> str:
        """The text of .out so far. A line of a rank begins with `[1] `, also where horovodrun began it with
        `[1]<stdout>:`. Raises OSError without a file."""
        return self.out.read_text(errors="replace").replace("]<stdout>:", "] ")

    def progress(self) -> dict[str, Any]:
        """Where the training is: {fraction, epochs_done, epochs, step, steps, images_per_second, workers}, or {}.

        The rate is that of the epoch it is in; None in the first one, which holds tracing.
        Of a batch script it is the training that runs now.
        """
        try:
            return json.loads(self.files_of_trainings(".progress")[-1].read_text())
        except (OSError, ValueError, IndexError):
            return {}

    def wait(self, timeout: float | None = None, show: bool = True) -> Self:
        """Follow the job to its end; an interrupt stops it. Returns the job itself.

        timeout: seconds after which the job is stopped (None for no limit)
        show: a progress bar
        """
        from labs.jobs import bar

        begin, shown = time.monotonic(), bar.Bar(self._label(), show)
        try:
            while self.state in GOING:
                seconds = time.monotonic() - begin
                if timeout is not None and seconds > timeout:
                    self.stop()
                    break
                shown.update(self.progress(), seconds, self._says())
                time.sleep(0.05 if seconds < 1 else 0.3)  # one that is over at once keeps nobody waiting
            self._settle()
        except KeyboardInterrupt:
            self.stop()
        finally:
            self.close_records()
            shown.close(self)
        return self

    def _settle(self):
        """Wait for what may come after the end: files of another machine."""

    def _says(self):
        """Last whole line of .out, for jobs that print instead of reporting progress; None in the header of a batch."""
        try:
            with self.out.open("rb") as out:
                out.seek(max(0, out.seek(0, os.SEEK_END) - 400))
                lines = out.read().decode(errors="replace").split("\n")[:-1]
        except OSError:
            return None
        return lines[-1] if lines and not lines[-1].startswith(("Job ", "Versions: ")) else None

    def explain(self) -> str:
        """How the job ended, in one sentence; if it failed, with the line of its .err that says why. Of one that is
        running some lines: where its ranks are, and who waits for whom (`labs why`)."""
        state, name = self.state, self._label()
        if state in GOING:
            seen = ""
            with contextlib.suppress(why.WhyError):  # no rank has written where it is
                seen = f"\n{why.report(self.name, why.ranks(self.stem))}"
            return f"{name} is {state}.{seen}"
        if state == "finished":
            names = [path.name for path in (self.err, *self.records) if path.exists()]
            return f"{name} finished. Its files: {', '.join([str(self.out), *names])}."
        if not self.out.exists() and not self.err.exists():
            return f"{name} {self._ending()}. It left no file in {self.out.parent}."
        reason, line = failures.in_files(self.err, self.out), ""  # mpiexec prints its reason to .out
        if state == "stopped" and reason and reason["kind"] in ("cancelled", "killed", "job error"):
            reason = None  # only what stopping it has caused
        if reason:
            quoted = printable(reason["line"].strip()[:1000])
            where = f"{self.out.with_name(reason['file'])}, line {reason['line_number']}"
            line = f'{reason["kind"]} ({where}: "{quoted}"). {reason["advice"]}'
        if state == "stopped":
            after = f", after this: {line}" if reason else "."
            return f"{name} was stopped{after} What it printed so far is in {self.out}."
        return f"{name} {self._ending()}" + (f": {line}" if reason else f". Read the end of {self.err}.")

    def close_records(self, state: str | None = None) -> None:
        """A process that was killed could not say so: its record says it now. Earlier trainings keep their state.

        state: how the job ended, where another process than the one that started it knows this.
        """
        state = state or self.state
        if state in GOING:
            return
        for path in (*self.files_of_trainings(".progress"), *why.stack_files(self.stem)):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        newest = None
        for path in reversed(self.records):
            with contextlib.suppress(LabsError):
                run = records.load_record(path)
                newest = newest or run
                # A training that was told to end has written "failed" itself. Only the newest one, and those that took
                # turns with it, were running then.
                ran = run is newest or (run.study is not None and run.study == newest.study)
                if run.state == "running" or (run.state == "failed" and state == "stopped" and ran):
                    run.state = "stopped" if state == "stopped" else "failed"
                    records.save_record(path, run)
