"""Run a training program as a job: a process of its own that leaves .out, .err and .json.

A job that crashes, is stopped or is killed takes nothing with it: the kernel that started it goes on,
and the three files can be read.
"""

import contextlib
import html
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from labs import blanks, files, launch

# Linux ends the job when the process that started it dies; the setting survives exec.
_START = (
    "import ctypes, os, signal, sys; "
    "ctypes.CDLL(None).prctl(1, signal.SIGTERM); "
    "os.execvp(sys.argv[1], sys.argv[1:])"
)


class JobError(RuntimeError):
    """A job cannot be started."""


def folder():
    """Folder of the runs: $LABS_RUNS, or `runs` beside the notebook."""
    return Path(os.environ.get("LABS_RUNS", "runs"))


@dataclass
class Job:
    """A started job. `out`, `err`, `record` are its three files; `state` is running, finished, failed or stopped."""

    name: str
    command: list
    out: Path
    err: Path
    record: Path
    process: subprocess.Popen = field(repr=False)
    stopped: bool = False

    @property
    def state(self):
        code = self.process.poll()
        if code is None:
            return "running"
        return "stopped" if self.stopped else "finished" if code == 0 else "failed"

    def stop(self, patience=5.0):
        """End the job and all processes that it started; kill them after `patience` seconds."""
        if self.process.poll() is None:
            self.stopped = True
        for sign in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, sign)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(patience)
                if sign == signal.SIGKILL:
                    break
        self._close_record()

    def wait(self, timeout=None, show=True):
        """Follow the job to its end with a progress bar; an interrupt stops it. Returns the job itself.

        timeout: seconds after which the job is stopped (None: no limit).
        """
        bar = _Bar(self.name) if show else None
        begin = time.monotonic()
        try:
            while self.process.poll() is None:
                if timeout is not None and time.monotonic() - begin > timeout:
                    self.stop()
                    break
                if bar:
                    bar.update(self.progress(), time.monotonic() - begin, self._last_line())
                time.sleep(0.05 if time.monotonic() - begin < 1 else 0.3)
        except KeyboardInterrupt:
            self.stop()
        finally:
            self._close_record()
            if bar:
                bar.close(self)
        return self

    def progress(self):
        """Where the training is: {fraction, epochs_done, epochs, step, steps, images_per_second}, or {}."""
        try:
            return json.loads(self.record.with_suffix(".progress").read_text())
        except (OSError, ValueError):
            return {}

    def _last_line(self):
        """Last whole line of .out, for jobs that print instead of reporting progress."""
        try:
            lines = self.out.read_bytes()[-400:].decode(errors="replace").split("\n")[:-1]
        except OSError:
            return None
        return lines[-1] if lines else None

    def explain(self):
        """One sentence: how the job ended and, if it failed, the line of its .err that says why."""
        if self.state == "running":
            return f"{self.name} is running."
        if self.state == "finished":
            return f"{self.name} finished. Its files: {self.out}, {self.err.name}, {self.record.name}."
        if self.state == "stopped":
            return f"{self.name} was stopped. What it printed so far is in {self.out}."
        from labs import logs

        files = [path for path in (self.err, self.out) if path.exists()]  # mpiexec prints its reason to .out
        found = {path: reason for path in files if (reason := logs.failure(path))}
        where, reason = next(iter(found.items()), (None, None))
        code = self.process.returncode
        ended = f"was killed by signal {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        if reason:
            where = f"{where}, line {reason['line_number']}"
            return f"{self.name} {ended}: {reason['kind']} ({where}: \"{reason['line'].strip()}\"). {reason['advice']}"
        return f"{self.name} {ended}. Read the end of {self.err}."

    def _close_record(self):
        """A process that was killed could not say so: the record says it now."""
        with contextlib.suppress(OSError, ValueError):
            self.record.with_suffix(".progress").unlink(missing_ok=True)
            record = json.loads(self.record.read_text())
            ended = self.process.poll() is not None and isinstance(record, dict)
            if ended and (record.get("state") == "running" or self.stopped):
                record["state"] = self.state
                files.write(self.record, json.dumps(record, indent=1))


def start(script, *arguments, name, runs=None, env=None, ranks=None, launcher=None):
    """Start `python SCRIPT ARGUMENTS` as a job and return at once.

    script: path of a Python file, or "-m" (then the first argument is a module)
    name: the job's files are <runs>/<name>.out, .err and .json
    env: further environment variables, as a dict
    ranks: start this many connected processes with a launcher of Horovod's (see labs.launch), also for 1
    Raises JobError: no such script, blanks in it, a folder that cannot be written.
    """
    runs = Path(runs) if runs is not None else folder()
    if script != "-m":
        if not Path(script).is_file():
            raise JobError(f"There is no script {script}, so nothing was started. Check the path.")
        try:
            open_lines = blanks.blanks(Path(script))
        except blanks.BuildError as problem:
            raise JobError(f"{problem}. Nothing was started.") from None
        for line, text in open_lines:
            raise JobError(f"Not done yet: {script}, line {line} is still blank ({text.strip()}). Nothing was started.")
    files = {kind: runs / f"{name}.{kind}" for kind in ("out", "err", "json")}
    command = [sys.executable, str(script), *map(str, arguments)]
    if ranks is not None:
        command = [*launch.command(ranks, launcher), sys.executable, "-c", _START, *command]
    try:
        runs.mkdir(parents=True, exist_ok=True)
        for old in (files["json"], files["json"].with_suffix(".progress")):
            old.unlink(missing_ok=True)  # a run that fails early must not leave an older run's record
        out, err = files["out"].open("wb"), files["err"].open("wb")
    except OSError as problem:
        raise JobError(
            f"Cannot write into {runs}: {problem.strerror}. The job would leave no log, so it was not started. "
            "Check that the folder is yours and that the disk has room."
        ) from None
    environment = {
        **os.environ, "LABS_RUN": name, "LABS_RUNS": str(runs), "PYTHONUNBUFFERED": "1",
        "TF_CPP_MIN_LOG_LEVEL": "2", **(env or {}),
    }  # fmt: skip
    if launcher == "mpiexec":
        environment["PYTHONUNBUFFERED"] = ""  # it forwards pieces of lines as they come, of all ranks in a jumble
    with out, err:
        process = subprocess.Popen(
            [sys.executable, "-c", _START, *command],
            stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, start_new_session=True,
        )  # fmt: skip
    return Job(name, command, files["out"], files["err"], files["json"], process)


def run(script, *arguments, timeout=None, show=True, **options):
    """start(script, *arguments, **options), follow it to the end, and say how it ended. Returns the Job."""
    job = start(script, *arguments, **options).wait(timeout, show)
    if show or job.state != "finished":
        print(job.explain())
    return job


def _in_notebook():
    """True in a kernel that can show HTML; that a package of Jupyter's was imported says nothing."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)
    return hasattr(get_ipython(), "kernel")


class _Bar:
    """Progress in a notebook as one line of HTML, in a terminal as tqdm's bar."""

    def __init__(self, name):
        self.name, self.handle, self.tqdm, self.rate = name, None, None, None
        if _in_notebook():
            from IPython.display import HTML, display

            self.html = HTML
            self.handle = display(HTML(self._line(0.0, "starting")), display_id=True)
        else:
            from tqdm import tqdm

            form = "{desc}: {percentage:3.0f}%|{bar}| {elapsed} {postfix}"
            self.tqdm = tqdm(total=1.0, desc=name, bar_format=form, disable=not sys.stderr.isatty())

    def _line(self, fraction, text):
        return (
            f'<div style="display:flex;gap:.8em;align-items:center"><code>{html.escape(self.name)}</code>'
            f'<progress max="1" value="{fraction:.3f}" aria-label="progress of {html.escape(self.name)}"></progress>'
            f"<span>{html.escape(text)}</span></div>"
        )

    def update(self, progress, seconds, last=None):
        if not progress:
            text, fraction = f"{last or 'starting TensorFlow'} ({seconds:.0f} s)", 0.0
        else:
            fraction, self.rate = progress["fraction"], progress["images_per_second"]
            if not hasattr(self, "begin"):
                self.begin, self.first = seconds, fraction
            left = ""
            if fraction - self.first > 0.02:
                left = f", {(seconds - self.begin) * (1 - fraction) / (fraction - self.first):.0f} s left"
            text = (f"epoch {progress['epochs_done'] + 1} of {progress['epochs']}, step {progress['step']} of "
                    f"{progress['steps'] or '?'}, {self.rate:.0f} images/s{left}")  # fmt: skip
        self._show(fraction, text)

    def _show(self, fraction, text):
        if self.handle:
            self.handle.update(self.html(self._line(fraction, text)))
        else:
            self.tqdm.n = min(fraction, 1.0)
            self.tqdm.set_postfix_str(text, refresh=True)

    def close(self, job):
        rate = f", {self.rate:.0f} images/s" if self.rate else ""
        self._show(1.0 if job.state == "finished" else 0.0, f"{job.state}{rate}")
        if self.tqdm is not None:
            self.tqdm.close()
