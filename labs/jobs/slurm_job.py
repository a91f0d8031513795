"""A batch script in SLURM's queue, as a job like any other: submitted, followed, cancelled, explained."""

import contextlib
import errno
import os
import signal
import time
from pathlib import Path

from labs import files
from labs.errors import LabsError
from labs.jobs import queue
from labs.jobs.job import GOING, Job

# By SLURM's word for the end of a job; the files say more (labs.results.failures).
_ENDS = {
    "TIMEOUT": "was ended at its time limit (TIMEOUT)",
    "OUT_OF_MEMORY": "used more memory than it may (OUT_OF_MEMORY)",
    "NODE_FAIL": "lost a node (NODE_FAIL): submit it again",
    "CANCELLED": "was cancelled (CANCELLED)",
    queue.UNKNOWN: "is not known to SLURM any more, which forgets jobs after a while",
}
OPTIONS = ("account", "qos")  # of the personal settings (labs.slurm.sites) those that are options of sbatch


class SlurmJob(Job):
    """A job of SLURM's. It goes on when this process ends; an interrupt of `wait` cancels it."""

    job_id: str
    pause = 2.0  # seconds between two questions to SLURM, at the least
    late = 20.0  # seconds to wait for files of another node at the end
    _asked = -1e9
    _seen = queue.State("PENDING")
    _silent = False

    def __init__(self, name, job_id, runs):
        super().__init__(name, Path(runs) / f"{name}_{job_id}", batch=True)
        self.job_id = job_id

    def _label(self):
        return f"{self.name} (job {self.job_id})"

    @property
    def in_queue(self):
        """SLURM's own words on the job (labs.jobs.queue.State), asked for at most every `pause` seconds.

        Where SLURM does not answer, the last ones that are known.
        """
        if self._seen.state in queue.NOT_ENDED and time.monotonic() - self._asked >= self.pause:
            try:
                self._seen, self._silent = queue.state(self.job_id), False
            except LabsError:
                self._silent = True
            self._asked = time.monotonic()
        return self._seen

    @property
    def state(self) -> str:
        word = self.in_queue.state
        if word in queue.NOT_ENDED:
            return "waiting" if word in queue.WAITING else "running"
        return {"COMPLETED": "finished", "CANCELLED": "stopped", queue.UNKNOWN: "unknown"}.get(word, "failed")

    def stop(self, patience: float = 60.0) -> None:
        """Cancel the job (scancel) and wait for its end, at most `patience` seconds. Raises what queue.cancel does."""
        queue.cancel(self.job_id)
        limit = time.monotonic() + patience
        while self.state in GOING and time.monotonic() < limit:
            time.sleep(0.2)
        self._settle()
        self.close_records()

    def _settle(self):
        limit = time.monotonic() + self.late
        while self.state in ("finished", "failed") and time.monotonic() < limit:  # else it may have left none
            with contextlib.suppress(OSError):
                os.listdir(self.stem.parent)  # network file systems then look again
            if self.out.exists() and self.err.exists():
                break
            time.sleep(0.1)

    def _says(self):
        if self._silent:
            return "SLURM does not answer"
        if self.in_queue.state in queue.WAITING:
            return f"waiting: {self.in_queue.reason or self.in_queue.state}"
        return super()._says() or "running"

    def explain(self) -> str:
        if self.state == "waiting":
            return f"{self._label()} is waiting in SLURM's queue ({self.in_queue.reason or self.in_queue.state})."
        return super().explain()

    def _ending(self):
        word, _, code, number = self.in_queue
        if word in _ENDS:
            return _ENDS[word]
        if number:
            return f"was killed by signal {signal.Signals(number).name} ({word})"
        return f"ended with exit code {code} ({word})"


def submit(script, arguments, name, runs, env, root, options):
    """Submit a batch script in the folder `root`, with options of sbatch. Returns the SlurmJob; raises LabsError."""
    try:  # SLURM accepts a job whose output has no folder, and loses it without a word
        runs.mkdir(parents=True, exist_ok=True)
        if not os.access(runs, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as problem:
        raise files.WriteError(problem.errno, problem.strerror, str(runs)) from None
    output = str(runs.resolve()).replace("%", "%%") + "/%x_%j"
    options = [f"--job-name={name}", f"--output={output}.out", f"--error={output}.err", "--export=ALL", *options]
    # What an enclosing job of SLURM's is must not be taken for what this one is.
    outside = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_") or key == "SLURM_CONF"}
    outside.pop("LABS_JOB", None)
    try:
        job_id = queue.submit(script, *arguments, options=options, folder=root, environment=outside | env)
    except queue.SlurmError as problem:
        raise LabsError(
            f"{problem}. SLURM says this about {script.name}, so nothing was submitted; "
            f"`labs slurm check {script}` tells more."
        ) from None
    return SlurmJob(name, job_id, runs)
