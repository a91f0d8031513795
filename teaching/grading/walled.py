"""The sandbox in which notebooks of a submission run, as the judge outside talks with it, and what it shows them."""

import contextlib
import functools
import os
import queue
import sys
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

from labs import models, sandbox
from labs.checks import tasks
from labs.errors import LabsError
from labs.sandbox.walls import WORK
from lessons import counts
from teaching.grading import inside, reference, wire

LIMITS = sandbox.Limits(seconds=300, memory=3 << 30, processes=400, disk=512 << 20, output=16 << 20)
BEGIN_SECONDS = 120  # more, until its first cell begins: nothing of the student's runs yet
# Of the kit besides `labs`, what the sandbox shows: the modules of lessons, and what runs a notebook there.
SHOWN = [tasks.LESSONS, *(Path(__file__).with_name(f"{name}.py") for name in ("__init__", "inside", "wire"))]
SHOWN += [Path(__file__).parents[1] / "__init__.py"]


class Gone(Exception):
    """The sandbox has ended; the text says how."""


class Walled:
    """The sandbox for some notebooks of a Submission, which run one after the other in it (teaching.grading.inside).

    It is made when the first of them begins, and anew after one that has ended it. running: whether one runs.
    """

    def __init__(self, submission, root, notebooks):
        self.submission, self.root, self.notebooks = submission, root, notebooks
        self._open, self._asked, self._alive, self.running = contextlib.ExitStack(), 0, False, False

    def close(self):
        """End all that runs in it."""
        self._alive = self.running = False
        self._open.close()

    def _make(self):
        """Begin anew; its output comes into a queue, None at its end."""
        self.close()
        heard, stop, (stdin, self._say) = queue.Queue(), threading.Event(), os.pipe()
        options = {
            "files": _files(self.submission, self.root), "read_only": sandbox.interpreter(*SHOWN),
            "env": _environment(self.submission), "first": True,
            "limits": replace(LIMITS, seconds=(LIMITS.seconds + BEGIN_SECONDS) * 2 * len(self.notebooks)),
        }  # fmt: skip

        def run():
            argv = [sys.executable, "-P", "-m", "teaching.grading.inside"]
            try:
                with os.fdopen(stdin, "rb") as pipe:
                    done = sandbox.run_walled(argv, stdin=pipe, heard=heard.put, stop=stop, **options)
                self._ended = f"the notebook's process ended, with its sandbox (status {done.status})"
                if done.ended:
                    self._ended = f"the notebook was stopped at its limit of {done.ended}"
            except LabsError as problem:
                self._ended = f"the sandbox could not be made: {problem}"
            finally:
                heard.put(None)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        for end in (thread.join, functools.partial(os.close, self._say), stop.set):  # the last one first
            self._open.callback(end)
        self._heard, self._pieces, self._alive = heard, b"", True
        lessons = [each.name for each in tasks.lessons().values() if each.notebook in self.notebooks]
        self.say([f"lessons.{name}.questions" for name in lessons])

    def begin(self, task):
        """Let a notebook begin, which has LIMITS.seconds. Raises SandboxError if it did not, which is not its own
        fault."""
        if not self._alive:
            self._make()
        self._rest, self.running, self._until = b"", True, time.monotonic() + LIMITS.seconds + BEGIN_SECONDS
        self.say(task)
        try:
            begun = "begun" in self.hear()
        except Gone as end:
            raise sandbox.SandboxError(str(end)) from None
        if not begun:
            raise sandbox.SandboxError("the notebook did not begin")
        self._until = time.monotonic() + LIMITS.seconds

    def say(self, message):
        with contextlib.suppress(OSError):  # it has ended: `hear` says so
            text = wire.line(message)
            while text and self._alive:
                text = text[os.write(self._say, text) :]

    def hear(self):
        """The next message of the notebook, a dict; its questions on networks are answered. Raises Gone, also where its
        time is over."""
        while "count" in (message := self._message()):
            self.say({"facts": _counted(message["count"])})
        return message

    def _message(self):
        while b"\n" not in self._rest:
            (length,) = inside.LENGTH.unpack(self._take(inside.LENGTH.size))
            if not length:
                self.running = False
                raise Gone("the notebook's process ended")
            self._rest += self._take(length)
            if len(self._rest) > 2 * wire.MOST:
                self._rest = b"\n"
        line, _, self._rest = self._rest.partition(b"\n")
        return wire.read(line)

    def _take(self, count):
        """The next bytes of the sandbox, so many."""
        while len(self._pieces) < count:
            try:
                piece = self._heard.get(timeout=max(0, self._until - time.monotonic()))
            except queue.Empty:
                self.close()
                raise Gone("the notebook was stopped at its limit of time") from None
            if piece is None:
                self._alive = self.running = False
                raise Gone(self._ended)
            self._pieces += piece
        taken, self._pieces = self._pieces[:count], self._pieces[count:]
        return taken

    def ask(self, message):
        """The answer to a message, known by its number; whatever else comes meanwhile is ignored. Raises Gone."""
        self._asked += 1
        self.say(message | {"number": self._asked})
        while (answer := self.hear()).get("to") != self._asked:
            pass
        return answer


def _files(submission, root):
    """{path: bytes} of what the notebook finds around itself; a script that was not changed is not handed in."""
    own = reference.scripts(root)
    files = {name: given.encode() for name, (given, _) in own.items()} | {
        name: content
        for name, content in submission.contents.items()
        if not name.startswith("report") and (name in own or not name.startswith("notebooks/scripts/"))
    }  # a script of another name could stand in the place of a module
    for path in Path(root, "slurm/sites").glob("*.toml"):
        if not path.stem.endswith(".local"):
            files[f"slurm/sites/{path.name}"] = path.read_bytes()
    return files


def _environment(submission):
    made = {"PYTHONPATH": str(Path(sandbox.interpreter()[-1]).parent), "MPLBACKEND": "Agg", "PYTHONNOUSERSITE": "1"}
    made |= {"LABS_RUNS": f"{WORK}/{submission.runs.relative_to(submission.root)}", "TF_CPP_MIN_LOG_LEVEL": "3"}
    return made | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"), "1")


def _counted(network):
    """What lessons.counts says of [name, size of the images, classes], which takes seconds and is the same for all; or
    None."""
    with contextlib.suppress(ValueError, TypeError, LabsError):
        name, image_size, classes = network
        if name in models.NAMES and image_size in range(32, 513) and classes in range(1, 1001):
            return asdict(counts.of(name, image_size, classes))
    return None
