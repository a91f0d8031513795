"""Trainings that are compared, started together, computing in turns: an epoch of one, an epoch of the other.

A machine's speed drifts, by a factor of two within minutes. What is measured one after the other then differs for that
reason alone; within a round of a few seconds, the drift is nearly the same for all.

Each training gives back its turn when its next epoch begins (labs.training.recorder), and all its processes are stopped
until its next turn comes (labs.waiting). Round 0 is warm-up. The order in each round is drawn at random (`orders`): an
order that repeats itself (A B, B A, A B, ...) takes whatever the machine repeats every two rounds for a difference. A
round begins when other programs leave the cores alone, or when the patience for that has run out.
"""

import contextlib
import json
import os
import random
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from labs import devices
from labs.jobs import anywhere
from labs.jobs.job import GOING, Job, JobError
from labs.results.metrics import OTHERS
from labs.waiting import VARIABLE

LONG = str(30 * 24 * 3600)  # seconds: Gloo ends ranks that do not answer for 30 s, and these are stopped
LOOK = 0.25  # seconds, at least, over which it is seen what other programs take
LONGEST = 4096  # bytes of a line; whoever sends more is a stranger
# Of a GPU each training takes the memory that it needs, not all there is.
_ENV = {"HOROVOD_GLOO_TIMEOUT_SECONDS": LONG, "HOROVOD_STALL_CHECK_DISABLE": "1", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}


@dataclass
class _Process:
    """A process of a training, as its keeper tells of it: begin of a line, its training, whether it has left."""

    said: bytes = b""
    training: object = None
    left: bool = False


@dataclass(eq=False)
class _Training:
    """One of the trainings: its job, its processes by their sockets, and how many of them wait for a turn."""

    job: Job
    ranks: int | None = None
    processes: dict = field(default_factory=dict)
    waiting: int = 0
    going: bool = True

    @property
    def ready(self):
        return self.going and self.waiting > 0 and self.waiting == self.ranks


def _patience():
    """Seconds that the environment gives to rounds for waiting, or 60. Raises JobError."""
    said = os.environ.get("LABS_PATIENCE") or "60"
    with contextlib.suppress(ValueError):
        if (seconds := float(said)) >= 0:
            return seconds
    raise JobError(f"LABS_PATIENCE={said!r} is not a number of seconds: set it to 0 or more, or unset it.")


def orders(seed: int, count: int) -> Iterator[list[int]]:
    """The order of `count` trainings in each round, without end: lists of their numbers from 0, drawn independently
    by a generator with this seed.

    Simulated studies (tests/results/test_drift.py) chose pure chance over orders that are balanced within some rounds:
    those cancel a steady drift, but again have a period.
    """
    draw = random.Random(seed)
    while True:
        yield draw.sample(range(count), count)


class Turns:
    """Trainings in turns: `start` each of them, then `wait` for all. As a context manager it waits at its end.

    `begin` gives the turns in the background: a notebook goes on, and `wait` collects later. `print(turns)` says where
    they are. What is computed meanwhile takes from the cores: rounds wait for it as for other programs, as far as
    patience goes. The trainings end with this process, also where nobody waited.

    Inside a job of SLURM's they may be steps over its nodes (launcher="srun"); who gives the turns is then heard by all
    of them, and asks each for the secret that it got at its start.

    What is measured before an interrupt, a crash or a kill is on record; then the others end, too, since they have
    nothing to be compared with. The records of all of them hold `study`, a new identifier, and the seed.

    show: a progress bar
    explain: a printed line on how each ended, at the end
    patience: seconds of the wall clock, in all, for which rounds wait while other programs take more than the share
        OTHERS of this node's cores (default: $LABS_PATIENCE, or 60); `waited` is what was spent of it
    seed: of `orders` (default: a new one)
    """

    def __init__(self, show: bool = True, explain: bool = True, patience: float | None = None, seed: int | None = None):
        self.study, self.show, self.explain, self.jobs = secrets.token_hex(8), show, explain, list[Job]()
        self.seed, self._orders = secrets.randbelow(2**31) if seed is None else seed, None
        self.patience, self.waited = _patience() if patience is None else patience, 0.0
        self._at = {}  # what `progress` said last
        self._seen, self._disturbed = None, False  # (busy seconds, moment) of the last look; others were busy at it
        self._token, self._trainings = secrets.token_hex(16), {}
        self._listener = socket.create_server(("" if os.environ.get("SLURM_JOB_ID") else "127.0.0.1", 0))
        self._select = selectors.DefaultSelector()
        self._select.register(self._listener, selectors.EVENT_READ)
        self._round, self._place, self._order, self._turn = -1, 0, [], None
        # From `_begun` on, one thread alone touches the sockets and ends trainings. Others ask for the end, and wait
        # for it: by events, since an interrupted Thread.join takes the thread for dead (Python 3.11).
        self._begun, self._asked, self._over, self._problem = 0.0, threading.Event(), threading.Event(), None

    def __repr__(self):
        from labs.jobs.bar import where

        at = ""
        if self.state == "running":
            now, turn = self.progress(), self._turn
            if now:
                at = f", {now['fraction']:.0%} done; now {now['name']}: {where(now)}"
            elif turn and turn.job.state in GOING:
                at = f"; round {self._round}: {turn.job.name} has its turn, and has reported no step yet"
            elif self._begun:
                at = "; starting, and no training has had a turn yet" if self._round < 0 else "; between two turns"
        return f"<{', '.join(job.name for job in self.jobs) or 'no training'}: {self.state}{at}>"

    def start(self, script: str | Path, *arguments, name: str, env: dict[str, str] | None = None, **options) -> Job:
        """Start a training as `labs.jobs.start` does, which says what the arguments are; returns the Job.

        All are started before the first turn: later it raises JobError, and the others go on.
        """
        self._not_begun()
        if str(script).endswith(".sh"):
            raise JobError("A batch script cannot take turns: start the training programs themselves.")
        if name in self._trainings:
            raise JobError(f"Two trainings are called {name!r} and would overwrite each other: name them differently.")
        host, port = self._listener.getsockname()
        if host != "127.0.0.1":  # all addresses: ranks of a launcher may be on other nodes
            host = socket.gethostname() if options.get("ranks") else "127.0.0.1"
        settings = {"address": (host, port), "token": self._token, "job": name}
        settings |= {"study": self.study, "order_seed": self.seed, "sharing": "stopped between turns"}
        env = {VARIABLE: json.dumps(settings)} | _ENV | (env or {})
        job = anywhere.start(script, *arguments, name=name, env=env, **options)
        self._trainings[name] = _Training(job)
        self.jobs.append(job)
        return job

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.stop()
        else:
            self.wait()

    def _not_begun(self):
        if self._begun or self._asked.is_set():
            raise JobError(
                "These trainings have begun, and only those that begin together can be compared. wait() collects them, "
                "stop() ends them. For others make a new jobs.Turns(), start all of them, then begin."
            )

    def begin(self) -> Self:
        """Give turns in the background from now on, and return at once; `wait` collects. Returns this object.

        Raises JobError: begun before, or without a training.
        """
        self._not_begun()
        if not self.jobs:
            raise JobError("No training was started, so none can have a turn. Call start(...) for each, then begin().")
        self._launch()
        return self

    def _launch(self):
        self._begun = time.monotonic()
        threading.Thread(target=self._run, name="turns", daemon=True).start()

    def _run(self):
        """Give turns until all trainings have ended, one of them without success, or somebody asks for the end."""
        try:
            try:
                while any(training.going for training in self._trainings.values()) and not self._asked.is_set():
                    self._listen(0.3)
                    if any(job.state in ("failed", "stopped") for job in self.jobs):
                        break
            finally:
                self._end()
        except BaseException as problem:  # for the one who waits
            self._problem = problem
        self._over.set()

    def wait(self, timeout: float | None = None) -> list[Job]:
        """Wait until all trainings have ended, with a progress bar; an interrupt stops them. Returns the jobs.

        Without `begin` before it, turns are given from now on. timeout: seconds from now after which they are stopped
        (None for no limit). What went wrong in giving turns is raised here; the trainings have ended then.
        """
        from labs.jobs import bar

        if not self._begun:
            self._launch()
        begin = time.monotonic()
        with bar.shown(", ".join(self._trainings), self, self.show and self.jobs) as update:
            try:
                while not self._over.is_set() and (timeout is None or time.monotonic() - begin <= timeout):
                    update(self.progress(), time.monotonic() - self._begun)
                    self._over.wait(0.3)
                if self._problem:
                    raise self._problem
            except KeyboardInterrupt:
                pass
            finally:
                self.stop()  # what has not ended, however the waiting ended
        if self.explain:
            print(*filter(None, [*(job.explain() for job in self.jobs), self.explain_waiting()]), sep="\n")
        return self.jobs

    def explain_waiting(self) -> str | None:
        """A line on what rounds waited for, or None."""
        if self.waited < 1:
            return None
        left = "" if self.waited < self.patience else ", and then went on beside them"
        return f"Rounds waited {self.waited:.0f} s for other programs to leave the cores{left}."

    @property
    def state(self) -> str:
        """The state of them all: running while one is, finished when all are, else failed or stopped."""
        states = [job.state for job in self.jobs]
        return next((s for s in ("running", "waiting", "failed", "stopped", "unknown") if s in states), "finished")

    def progress(self) -> dict[str, Any]:
        """Where the trainings are together, as `Job.progress` says it of the one whose turn it is or was; or {}."""
        every = [(job, job.progress()) for job in self.jobs]
        turn = self._turn  # of another thread's: it may have changed on the next line
        done = [1.0 if job.state == "finished" else now.get("fraction", 0.0) for job, now in every]
        if turn and (now := turn.job.progress()):  # between two turns nobody says anything
            self._at = now | {"fraction": sum(done) / len(done), "name": turn.job.name}
        return self._at

    def stop(self) -> None:
        """End all trainings that are not over, and wait for that; what they have measured is on record."""
        self._asked.set()
        if self._begun:
            self._over.wait()
        else:
            self._end()

    def _end(self):
        """Give no turns any more, end all trainings that are not over, and close all records."""
        going = [job for job in self.jobs if job.state in GOING]
        for job in going:
            job.stopped = True  # and not failed, though its keeper ends it before we do
        self._close()
        for job in going:
            job.stop()
        for job in self.jobs:
            job.close_records()

    def _close(self):
        """Give no turns any more: what waits for one is ended by its keeper."""
        for training in self._trainings.values():
            training.going = False
        for key in list(self._select.get_map().values()):
            self._drop(key.fileobj)

    def _drop(self, connection):
        self._select.unregister(connection)
        connection.close()

    def _listen(self, seconds):
        """Hear what keepers say, for at most so many seconds, and give the next turn if it is time."""
        for key, _ in self._select.select(seconds):
            if key.fileobj is self._listener:
                self._accept()
            else:
                self._hear(key.fileobj, key.data)
        for training in self._trainings.values():
            if training.going and training.job.state not in GOING:
                training.going = False
        self._give()

    def _accept(self):
        with contextlib.suppress(OSError):  # it has gone again, or there are too many of them
            connection, _ = self._listener.accept()
            self._select.register(connection, selectors.EVENT_READ, _Process())

    def _hear(self, connection, process):
        try:
            data = connection.recv(4096)
        except OSError:
            data = b""
        *lines, process.said = (process.said + data).split(b"\n")
        for line in lines:
            if line == b"bye":
                process.left = True
            elif process.training:
                process.training.waiting += 1
            elif not self._introduce(line, connection, process):
                self._drop(connection)
                return
        if not data or len(process.said) > LONGEST:
            self._drop(connection)
            if process.training:
                process.training.processes.pop(connection)
                if not process.left:  # its keeper was killed, so it may stand still for ever
                    process.training.job.stop()

    def _introduce(self, line, connection, process):
        """Note to which training a process belongs, from what it says; False for a stranger."""
        with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
            who = json.loads(line)
            if secrets.compare_digest(who["token"], self._token):
                training = process.training = self._trainings[who["job"]]
                training.ranks = who["ranks"]
                training.processes[connection] = process
                return True
        return False

    def _calm(self):
        """False while a round should wait: other programs compute, all trainings being stopped, or it is not yet seen.

        By what they take, never by how fast a round was: times do not choose what is measured.
        """
        if self.waited >= self.patience or (spent := devices.busy()) is None:
            return True
        now = time.monotonic()
        if self._seen is None:
            self._seen = spent, now
        busy, since = spent - self._seen[0], now - self._seen[1]
        if since < LOOK:
            return False
        calm = busy / since / devices.cores() <= OTHERS
        if self._disturbed or not calm:  # each look begins where the last one ended, so all of the wait is counted
            self.waited += since
        self._seen, self._disturbed = None if calm else (spent, now), not calm
        return calm or self.waited >= self.patience

    def _give(self):
        """Give the next turn, if nobody has one."""
        if self._turn and self._turn.going and not self._turn.ready:
            return  # still computing
        self._turn = None
        if not self._order:
            going = [training for training in self._trainings.values() if training.going]
            if not going or not all(training.ready for training in going):
                return  # a round begins with all of them
            if len(going) > 1 and not self._calm():
                return
            every = list(self._trainings.values())
            self._orders = self._orders or orders(self.seed, len(every))
            self._round, self._place = self._round + 1, 0
            self._order = [every[number] for number in next(self._orders)]
        while self._order and not self._order[0].going:
            self._order.pop(0)
        if not self._order:
            return
        turn = self._turn = self._order.pop(0)
        said = json.dumps({"round": self._round, "order": self._place}).encode() + b"\n"
        self._place += 1
        turn.waiting = 0
        for connection in turn.processes:
            with contextlib.suppress(OSError):  # seen at its end
                connection.sendall(said)
