"""A job that a test submitted to a cluster: its state, its files, its processes."""

import re
import sys
import time
from pathlib import Path

from tree import NO_GREETING
from waiting import until

from setup.cluster.practice import ROOT

OVER = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL", "DEADLINE")


def end_soon(cluster, job_id):
    """Move a job's time limit, which SLURM counts in minutes, to the next moment at which SLURM looks."""
    when = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 1))
    assert cluster.run("scontrol", "update", f"JobId={job_id}", f"EndTime={when}").returncode == 0


class Job:
    """Submits `script` in the top folder, its files go to `runs`; `options` are sbatch's, `arguments` the script's."""

    def __init__(self, cluster, script, *arguments, runs, options=(), **environment):
        self.cluster, self.runs, self.script = cluster, Path(runs), Path(script)
        self.runs.mkdir(parents=True, exist_ok=True)
        files = [f"--output={runs}/%x_%j.out", f"--error={runs}/%x_%j.err"]
        environment = {
            "LABS_PYTHON": sys.executable,
            **NO_GREETING,
            **environment,
            "LABS_RUNS": str(runs),
            "TMPDIR": str(runs),
        }
        environment["MPIR_CVAR_POLLS_BEFORE_YIELD"] = "1"  # waiting ranks leave the core to others
        done = cluster.run("sbatch", "--parsable", *files, *options, script, *arguments, cwd=ROOT, env=environment)
        assert done.returncode == 0, done.stderr
        self.id = done.stdout.strip()
        self.name = self.show("JobName")

    def show(self, key):
        """A value of `scontrol show job`."""
        text = self.cluster.run("scontrol", "show", "job", "-o", self.id).stdout
        return re.search(rf"\b{key}=(\S*)", text)[1]

    @property
    def state(self):
        return self.show("JobState")

    @property
    def out(self):
        return self.runs / f"{self.name}_{self.id}.out"

    @property
    def err(self):
        return self.out.with_suffix(".err")

    @property
    def records(self):
        """Its run records, by the order of workers."""
        return sorted(self.runs.glob(f"*_{self.id}_w*.json"))

    def until(self, condition, seconds=300):
        """Wait until the condition holds; fails if the job is over before, or after `seconds`."""
        assert until(lambda: condition() or self.state in OVER, seconds) and condition(), self.said()

    def end(self, seconds=600):
        """Wait until the job is over; returns SLURM's state."""
        until(lambda: self.state in OVER, seconds)
        assert self.state in OVER, self.said()
        return self.state

    def left(self, seconds=120):
        """What is left of the ended job after at most `seconds`: its command lines, and its line in the queue."""

        def left():
            processes = [str(process) for process in self.cluster.processes(self.id)]
            return processes + self.cluster.run("squeue", "-h", "-j", self.id).stdout.splitlines()

        until(lambda: not left(), seconds)
        return left()

    def said(self):
        """Its state and the ends of its files, for a message."""
        ends = (path.read_text()[-1500:] for path in (self.out, self.err) if path.exists())
        return " | ".join([self.script.name, self.state, self.show("Reason"), *ends])
