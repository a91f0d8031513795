"""Trainings that are compared, started together, computing in turns: an epoch of one, an epoch of the other.

A machine's speed drifts, by a factor of two within minutes. What is measured one after the other then differs for that
reason alone; within a round of a few seconds, the drift is nearly the same for all.

Each training gives back its turn when its next epoch begins (labs.training.recorder), and all its processes are stopped
until its next turn comes (labs.waiting). Round 0 is warm-up. The order in each round is drawn at random (`orders`): an
order that repeats itself (A B, B A, A B, ...) takes whatever the machine repeats every two rounds for a difference.
Rounds in which other programs took the cores are left out afterwards (labs.results.metrics).
"""

import contextlib
import json
import os
import random
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from labs.errors import LabsError
from labs.jobs import anywhere, launch
from labs.jobs.job import GOING, Job
from labs.waiting import TURNS_VARIABLE

LONG = str(30 * 24 * 3600)  # seconds: Gloo ends ranks that do not answer for 30 s, and these are stopped
# Of a GPU each training takes the memory that it needs, not all there is.
_ENV = {"HOROVOD_GLOO_TIMEOUT_SECONDS": LONG, "HOROVOD_STALL_CHECK_DISABLE": "1", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}


class _NoMoreTurns(Exception):
    """No more turns are given: a training has failed, or somebody asks for the end."""


@dataclass
class _Training:
    """One of the trainings: its job, the number of its processes, and the connections of those that wait for a turn."""

    job: Job
    ranks: int | None = None
    waiting: list[socket.socket] = field(default_factory=list)

    @property
    def going(self):
        return self.job.state in GOING

    @property
    def gives_way(self):
        """Whether another one can have its turn: this one waits, or has ended."""
        return len(self.waiting) == self.ranks or not self.going


def orders(seed: int, count: int) -> Iterator[list[int]]:
    """The order in which `count` trainings take turns, for each round, without end: lists of their numbers from 0,
    drawn independently by a generator with this seed.

    Simulated studies (tests/results/test_drift.py) chose pure chance over orders that are balanced within some rounds:
    those cancel a steady drift, but again have a period.
    """
    draw = random.Random(seed)
    while True:
        yield draw.sample(range(count), count)


class Turns:
    """Trainings in turns: `start` each of them, then `wait` for all. As a context manager it waits at its end.

    `begin` gives the turns in the background: a notebook goes on, and `wait` collects later. `print(turns)` says where
    they are. What is computed meanwhile takes from the cores. The trainings end with this process, also where nobody
    waited.

    Inside a job of SLURM's they may be steps over its nodes (launcher="srun"); who gives the turns is then heard by all
    of them, and asks each for the secret that it got at its start.

    What is measured before an interrupt, a crash or a kill is on record; then the others end, too, since they have
    nothing to be compared with. The records of all of them hold `study`, a new identifier, and the seed.

    show: a progress bar
    explain: a printed line on how each ended, at the end
    """

    def __init__(self, show: bool = True, explain: bool = True):
        self.study, self.seed, self.show, self.explain = secrets.token_hex(8), secrets.randbelow(2**31), show, explain
        self.jobs: list[Job] = []
        self._trainings: dict[str, _Training] = {}
        self._token, self._where = secrets.token_hex(16), {}  # where: what `progress` said last
        self._listener = socket.create_server(("" if os.environ.get("SLURM_JOB_ID") else "127.0.0.1", 0))
        self._changed = threading.Condition()  # a process waits for its turn now
        self._turn: _Training | None = None
        # From `begin` on (when, or 0: `_began`), one thread alone ends trainings. Others ask for the end, and wait for
        # it: by events, since an interrupted Thread.join takes the thread for dead (Python 3.11).
        self._began, self._end_asked, self._ended = 0.0, threading.Event(), threading.Event()

    def __repr__(self):
        from labs.jobs.bar import where

        at = ""
        if self.state == "running":
            now = self.progress()
            at = f", {now['fraction']:.0%} done; now {now['name']}: {where(now)}" if now else "; no step reported yet"
        return f"<{', '.join(job.name for job in self.jobs) or 'no training'}: {self.state}{at}>"

    def start(self, script: str | Path, *arguments, name: str, env: dict[str, str] | None = None, **options) -> Job:
        """Start a training as `labs.jobs.start` does, which says what the arguments are; returns the Job.

        All are started before the first turn: later it raises LabsError, and the others go on.
        """
        self._not_begun()
        if str(script).endswith(".sh"):
            raise LabsError("A batch script cannot take turns: start the training programs themselves.")
        if name in self._trainings:
            raise LabsError(f"Two trainings are called {name!r} and would overwrite each other: name them differently.")
        here = launch.words_of(options.get("launcher"))[0] != "srun"
        settings = {"host": "127.0.0.1" if here else None, "port": self._listener.getsockname()[1]}
        settings |= {"token": self._token, "job": name, "study": self.study, "order_seed": self.seed}
        env = {TURNS_VARIABLE: json.dumps(settings)} | _ENV | (env or {})
        job = anywhere.start(script, *arguments, name=name, env=env, **options)
        self._trainings[name] = _Training(job)
        self.jobs.append(job)
        return job

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.stop() if kind else self.wait()

    def _not_begun(self):
        if self._began or self._end_asked.is_set():
            raise LabsError(
                "These trainings have begun, and only those that begin together can be compared. wait() collects them, "
                "stop() ends them. For others make a new jobs.Turns(), start all of them, then begin."
            )

    def begin(self) -> Self:
        """Give turns in the background from now on, and return at once; `wait` collects. Returns this object.

        Raises LabsError: begun before, or without a training.
        """
        self._not_begun()
        if not self.jobs:
            raise LabsError("No training was started, so none can have a turn. Call start(...) for each, then begin().")
        self._began = time.monotonic()
        threading.Thread(target=self._run, name="turns", daemon=True).start()
        return self

    def wait(self, timeout: float | None = None) -> list[Job]:
        """Wait until all trainings have ended, with a progress bar; an interrupt stops them. Returns the jobs.

        Without `begin` before it, turns are given from now on. timeout: seconds from now after which they are stopped
        (None for no limit).
        """
        from labs.jobs import bar

        if self.jobs and not self._began and not self._end_asked.is_set():
            self.begin()
        begin, shown = time.monotonic(), bar.Bar(", ".join(self._trainings), self.show and bool(self.jobs))
        try:
            while self._began and not self._ended.wait(0.3):
                shown.update(self.progress(), time.monotonic() - self._began)
                if timeout is not None and time.monotonic() - begin > timeout:
                    break
        except KeyboardInterrupt:
            pass
        finally:
            self.stop()  # what has not ended, however the waiting ended
            shown.close(self)
        if self.explain and self.jobs:
            print(*(job.explain() for job in self.jobs), sep="\n")
        return self.jobs

    @property
    def state(self) -> str:
        """The state of them all: running while one is, finished when all are, else failed or stopped."""
        states = [job.state for job in self.jobs]
        return next((state for state in ("running", "waiting", "failed", "stopped") if state in states), "finished")

    def progress(self) -> dict[str, Any]:
        """Where the trainings are together, as `Job.progress` says it of the one whose turn it is or was; or {}."""
        turn = self._turn  # of another thread's: it may have changed on the next line
        if turn and (now := turn.job.progress()):  # between two turns nobody says anything
            done = [1.0 if job.state == "finished" else job.progress().get("fraction", 0.0) for job in self.jobs]
            self._where = now | {"fraction": sum(done) / len(done), "name": turn.job.name}
        return self._where

    def stop(self) -> None:
        """End all trainings that are not over, and wait for that; what they have measured is on record."""
        self._end_asked.set()
        if self._began:
            self._ended.wait()
        else:
            self._end()

    def _run(self):
        """Give turns, round by round, until all trainings have ended, one of them without success, or somebody asks for
        the end."""
        every = list(self._trainings.values())
        try:
            threading.Thread(target=self._accept, name="turns", daemon=True).start()
            for number, order in enumerate(orders(self.seed, len(every))):
                self._until(lambda: all(training.gives_way for training in every))
                going = [every[which] for which in order if every[which].going]
                if not going:
                    break
                for place, training in enumerate(going):
                    self._take(training, number, place)
        except _NoMoreTurns:
            pass
        finally:
            self._end()
            self._ended.set()

    def _take(self, training: _Training, number: int, place: int) -> None:
        """Let one training compute in this round, until it waits again or has ended. place: in the round's order."""
        turn = json.dumps({"round": number, "order": place}).encode() + b"\n"
        self._turn, connections, training.waiting = training, training.waiting, []
        for connection in connections:
            with contextlib.suppress(OSError):  # seen at its end
                connection.sendall(turn)
        self._until(lambda: training.gives_way)

    def _until(self, condition: Callable[[], bool]) -> None:
        """Wait for what changes when a process waits or a training ends. Raises _NoMoreTurns."""
        with self._changed:
            while True:
                if self._end_asked.is_set() or any(job.state in ("failed", "stopped") for job in self.jobs):
                    raise _NoMoreTurns
                if condition():
                    return
                self._changed.wait(0.3)

    def _accept(self):
        """Hear each process of the trainings in a thread of its own, until nobody listens any more."""
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._hear, args=(connection,), name="turns", daemon=True).start()

    def _hear(self, connection):
        """Note when the process behind this connection waits for its turn. A stranger is not heard."""
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError), connection, connection.makefile() as lines:
            process = json.loads(lines.readline(4096))
            if not secrets.compare_digest(process["token"], self._token):
                return
            training = self._trainings[process["job"]]
            training.ranks = process["ranks"]
            for _ in lines:
                with self._changed:
                    training.waiting.append(connection)
                    self._changed.notify()
            if connection in training.waiting:  # its keeper was killed, so it would stand still for ever
                training.job.stop()

    def _end(self):
        """Give no turns any more, end all trainings that are not over, and close all records."""
        for job in self.jobs:
            job.stopped = job.stopped or job.state in GOING  # and not failed, though it may end before we end it
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for training in self._trainings.values():
            for connection in training.waiting:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for job in self.jobs:
            if job.state in GOING:
                job.stop()
            job.close_records()
