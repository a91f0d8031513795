"""A batch script in SLURM's queue, as a job like any other: submitted, followed, cancelled, explained."""

import contextlib
import os
import re
import signal
import time
from pathlib import Path

from labs import files
from labs.jobs import queue
from labs.jobs.job import GOING, Job, JobError
from labs.jobs.local import unwritable

_ENDS = files.beside(__file__, "ends.toml")
_SCRIPT_FILE_SIGNAL = 53  # SLURM's mark of a job whose output file could not be opened


class SlurmJob(Job):
    """A job of SLURM's. It goes on when this process ends; an interrupt of `wait` cancels it."""

    job_id: str
    pause = 2.0  # seconds between two questions to SLURM, at the least
    late = 20.0  # seconds to wait for files of another node at the end
    _asked = -1e9
    _seen = queue.State("PENDING")
    _ran = False
    _silent = None

    def __init__(self, name, job_id, runs):
        super().__init__(name, Path(runs) / f"{name}_{job_id}", batch=True)
        self.job_id = job_id

    def _label(self):
        return f"{self.name} (job {self.job_id})"

    @property
    def slurm(self):
        """SLURM's own words on the job (labs.jobs.queue.State), asked for at most every `pause` seconds.

        Where SLURM does not answer, the last ones that are known.
        """
        if self._over() or time.monotonic() - self._asked < self.pause:
            return self._seen
        try:
            self._seen, self._silent = queue.state(self.job_id), None
        except queue.SlurmError as problem:
            self._silent = str(problem)
        self._asked = time.monotonic()
        self._ran = self._ran or self._seen.state not in (*queue.WAITING, "CANCELLED", queue.UNKNOWN)
        return self._seen

    def _over(self):
        return self._seen.state not in queue.GOING

    @property
    def state(self) -> str:
        word = self.slurm.state
        if word in queue.GOING:
            return "waiting" if word in queue.WAITING else "running"
        return {"COMPLETED": "finished", "CANCELLED": "stopped", queue.UNKNOWN: "unknown"}.get(word, "failed")

    def stop(self, patience: float = 60.0) -> None:
        """Cancel the job (scancel) and wait for its end, at most `patience` seconds. Raises JobError."""
        try:
            queue.cancel(self.job_id)
        except queue.SlurmError as problem:
            raise JobError(f"{problem}. Job {self.job_id} is not cancelled: try `scancel {self.job_id}`.") from None
        limit, self._asked = time.monotonic() + patience, -1e9
        while self.state in GOING and time.monotonic() < limit:
            time.sleep(0.2)
            self._asked = min(self._asked, time.monotonic() - self.pause + 0.5)
        self._settle()
        self.close_records()

    def _settle(self):
        limit = time.monotonic() + self.late
        while self._ran and self._over() and time.monotonic() < limit:
            with contextlib.suppress(OSError):
                os.listdir(self.stem.parent)  # network file systems then look again
            if self.out.exists() and self.err.exists():
                break
            time.sleep(0.1)

    def _says(self):
        if self._silent:
            return "SLURM does not answer"
        if self.slurm.state in queue.WAITING:
            return f"waiting: {self.slurm.reason or self.slurm.state}"
        return super()._says() or "running"

    def explain(self) -> str:
        if self.state == "waiting":
            return f"{self._label()} is waiting in SLURM's queue ({self.slurm.reason or self.slurm.state})."
        return super().explain()

    def _ending(self):
        word, _, code, sign = self.slurm
        if sign == _SCRIPT_FILE_SIGNAL:
            return f"could not write its output into {self.stem.parent} ({word})"
        if word in _ENDS:
            return _ENDS[word]["ending"] + (f" ({word})" if word != queue.UNKNOWN else "")
        if sign:
            with contextlib.suppress(ValueError):
                return f"was killed by signal {signal.Signals(sign).name} ({word})"
        return f"ended with exit code {code} ({word})" if code is not None else f"ended as {word}"

    def _advice(self):
        return _ENDS.get(self.slurm.state, {}).get("advice") or super()._advice()


def submit(script, arguments, name, runs, env, root, asked, place):
    """Submit a batch script in the folder `root`. Returns the SlurmJob; raises JobError.

    asked: its directives (labs.slurm.directives.Script); place: the labs.slurm.sites.Site
    """
    try:  # SLURM accepts a job whose output has no folder, and loses it without a word
        runs.mkdir(parents=True, exist_ok=True)
        if not os.access(runs, os.W_OK):
            raise PermissionError(13, os.strerror(13))
    except OSError as problem:
        raise unwritable(runs, problem) from None
    output = str(runs.resolve()).replace("%", "%%") + "/%x_%j"
    options = [f"--job-name={name}", f"--output={output}.out", f"--error={output}.err", "--export=ALL"]
    own = {key: place.personal.get(key) for key in ("account", "qos") if not asked.value(key)}
    options += [f"--{key}={value}" for key, value in own.items() if value]
    # What an enclosing job of SLURM's is must not be taken for what this one is.
    outside = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_") or key == "SLURM_CONF"}
    outside.pop("LABS_JOB", None)
    try:
        job_id = queue.submit(script, *arguments, options=options, folder=root, environment=outside | env)
    except queue.SlurmError as problem:
        raise JobError(
            f"{problem}. SLURM says this about {script.name}, so nothing was submitted; "
            f"`labs slurm check {script}` tells more."
        ) from None
    return SlurmJob(name, job_id, runs)


def find(job, runs):
    """The SlurmJob of a job id, or the newest of a name; runs: folder of its files if SLURM has forgotten it."""
    pattern = r"(.+)_(\d+)\.(?:out|err)"
    files = [match for path in runs.glob("*") if (match := re.fullmatch(pattern, path.name))]
    if not job.isdecimal():
        ids = [match[2] for match in files if match[1] == job] + [queue.newest(job) or ""]
        job_id = max(filter(None, ids), key=int, default=None)
        if not job_id:
            raise JobError(f"No job is called {job!r}, neither in {runs} nor in SLURM's queue. Give its job id.")
        job = job_id
    if known := queue.describe(job):
        name, out = known["JobName"], Path(known.get("StdOut", ""))
        return SlurmJob(name, job, out.parent if out.name == f"{name}_{job}.out" else runs)
    for match in files:
        if match[2] == job:
            return SlurmJob(match[1], job, runs)
    raise JobError(f"SLURM does not know job {job}, and none of its files are in {runs}. Check the number.")
