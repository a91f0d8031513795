"""Two commands, or one command in two commits of git, in turns: is one of them faster?"""

import contextlib
import secrets
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from labs import jobs
from labs.errors import LabsError
from labs.jobs import local
from labs.printed import several
from labs.results import intervals, verdict

# Bash's own clock: neither Python's start nor that of the job's guard is in it. The subshell: `exit` ends only that.
_TIMED = "TIMEFORMAT=$'\\n%3R %3U %3S'; time (eval \"$0\")"
LEAST = 1e-3  # seconds: a step of that clock


class CompareError(LabsError):
    """A command failed, or a commit has no work tree; the message says why."""


def run(first: str, second: str, command: str | None = None, rounds: int = 6, report: Callable = print) -> list[str]:
    """Run both commands once in each round, in an order that is drawn; round 0 warms up, and does not count.

    first, second: shell commands; with `command`, commits of this git repository, in whose work trees it runs. These
    are removed at the end, and whatever the commands have started is ended, also at an interrupt.
    report: is called with a line at the beginning of each round

    Returns lines: for the seconds of the wall clock and of the processors the ratio A / B within rounds, with its
    interval, and whether they differ. Raises CompareError.
    """
    commands, measured = [command] * 2 if command else [first, second], []
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        places = [_work_tree(stack, folder / "AB"[n], (first, second)[n]) if command else None for n in (0, 1)]
        for number, order in zip(range(rounds + 1), jobs.orders(secrets.randbelow(2**31), 2), strict=False):
            report(f"Round {number} of {rounds}" + ("" if number else ": warm-up"))
            both = {n: _seconds(commands[n], folder / f"{'AB'[n]}.run", places[n]) for n in order}
            measured.append([both[0], both[1]])
    kinds = zip(("wall", "processor"), np.moveaxis(measured[1:], 2, 0), strict=True)
    return [line for kind, seconds in kinds for line in _told(kind, seconds)]


def _told(kind, seconds):
    """Lines on A's and B's seconds of one kind, an array of (round, which)."""
    ratio = intervals.paired(*seconds.T.tolist())
    answer = verdict.OPEN if ratio.notes else verdict.decide(ratio.interval)
    low, high = ratio.interval or (0.0, float("inf"))
    said = {verdict.YES: f"yes, A takes {'more' if low > 1 else 'less'}", verdict.NO: "no, less than 5 %"}
    between = f"{ratio.value:.3f}" + (f" [{low:.3f}, {high:.3f}], a 95 % interval" if ratio.interval else "")
    yield "{} seconds: A {:.3g}, B {:.3g} (medians, in these minutes)".format(kind, *np.median(seconds, axis=0))
    yield f"  A / B within {several(len(seconds), 'round')}: {between}. Do they differ? {said.get(answer, answer)}."
    yield from (f"  Note: {note}." for note in ratio.notes)


def _work_tree(stack, place, commit):
    """The folder `place` with the files of a commit, until the stack is left."""
    git = partial(subprocess.run, capture_output=True, text=True)
    stack.callback(git, ["git", "worktree", "remove", "--force", place])
    made = git(["git", "worktree", "add", "--detach", place, commit])
    if made.returncode:
        raise CompareError(
            f"No work tree of {commit!r} ({made.stderr.strip().splitlines()[-1]}). Name a commit that `git log` shows, "
            "and call it inside of its repository."
        )
    return place


def _seconds(command, stem, folder):
    """(wall seconds, processor seconds) of a shell command in a folder (None: here). Raises CompareError."""
    job = local.start_here(stem.name, stem, ["bash", "-c", _TIMED, command], {}, cwd=folder).wait(show=False)
    if job.state == "stopped":
        raise KeyboardInterrupt
    *said, times = job.err.read_text(errors="replace").strip().splitlines() or [""]
    if job.state != "finished":
        why = next(filter(str.strip, reversed(said)), "it printed nothing on its standard error")
        raise CompareError(f"Nothing to compare: {command!r} ended with exit code {job.process.returncode}: {why}")
    wall, user, system = (float(time.replace(",", ".")) for time in times.split())  # a comma in some locales
    return max(wall, LEAST), max(user + system, LEAST)
