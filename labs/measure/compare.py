"""Two commands, or one command in two commits of git, in turns: is one of them faster?"""

import contextlib
import secrets
import subprocess
import tempfile
from pathlib import Path
from statistics import median

from labs import jobs
from labs.errors import LabsError
from labs.jobs import local
from labs.results import intervals, verdict

# Bash's own clock: neither Python's start nor that of the job's guard is in it. The subshell: `exit` ends only that.
_TIMED = "TIMEFORMAT=$'\\n%3R %3U %3S'; time (eval \"$0\")"
LEAST = 1e-3  # seconds, of the same clock


class CompareError(LabsError):
    """A command failed, or a commit has no work tree; the message says why."""


def run(first, second, command=None, rounds=6, report=print):
    """Run both commands once in each round, in an order that is drawn; round 0 warms up, and does not count.

    first, second: shell commands; with `command`, commits of this git repository, in whose work trees it runs. These
    are removed at the end, and whatever the commands have started is ended, also at an interrupt.

    Returns {"wall" or "processor": ([(first's seconds, second's) of each round], the ratio of both as an Estimate)}.
    Raises CompareError.
    """
    commands, measured, seed = [command] * 2 if command else [first, second], [], secrets.randbelow(2**31)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        places = [_work_tree(stack, folder / "AB"[n], (first, second)[n]) if command else None for n in (0, 1)]
        for number, order in zip(range(rounds + 1), jobs.orders(seed, 2), strict=False):
            report(f"Round {number} of {rounds}" + ("" if number else ": warm-up"))
            both = {n: _seconds(commands[n], folder / f"{'AB'[n]}.run", places[n]) for n in order}
            measured += [zip(both[0], both[1], strict=True)] if number else []
    by_kind = zip(("wall", "processor"), zip(*measured, strict=True), strict=True)
    return {kind: (pairs, intervals.paired(*zip(*pairs, strict=True))) for kind, pairs in by_kind}


def text(found):
    """What `run` found, a sentence or two for each kind of seconds."""
    lines = []
    for kind, (pairs, ratio) in found.items():
        one, other = (median(seconds) for seconds in zip(*pairs, strict=True))
        answer = verdict.OPEN if ratio.notes else verdict.decide(ratio.interval)
        said = {verdict.YES: f"yes: A takes {'more' if ratio.value > 1 else 'less'}", verdict.NO: "no, less than 5 %"}
        between = " [{:.3f}, {:.3f}]".format(*ratio.interval) if ratio.interval else ""
        lines.append(f"{kind} seconds: A {one:.3g}, B {other:.3g} (medians, in these minutes).")
        lines.append(f"  A / B within {len(pairs)} rounds: {ratio.value:.3f}{between}, interval of 95 %.")
        lines.append(f"  Do they differ? {said.get(answer, answer)}.")
        lines += [f"  Note: {note}." for note in ratio.notes]
    return "\n".join(lines)


def _work_tree(stack, place, commit):
    """The folder `place` with the files of a commit, until the stack is left."""
    git, options = ["git", "worktree"], {"capture_output": True, "text": True}
    stack.callback(subprocess.run, [*git, "remove", "--force", place], **options)
    made = subprocess.run([*git, "add", "--detach", place, commit], **options)
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
        raise CompareError(
            f"There is nothing to compare: {command!r} ended with exit code {job.process.returncode}: {why}"
        )
    wall, user, system = (float(time.replace(",", ".")) for time in times.split())  # a comma in some locales
    return max(wall, LEAST), max(user + system, LEAST)
