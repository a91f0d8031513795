"""Why a job hangs: where each rank is, and who waits for whom (`labs why`); and what cannot be known from this.

Each rank writes where it is (labs.stacks); the job goes on as before.
"""

import contextlib
import json
import linecache
import re
import socket
import time
from pathlib import Path

import psutil

from labs import files
from labs.errors import UseError
from labs.printed import grouped, printable, several
from labs.stacks import COMPUTES, EVERY, LOOKS

SILENT = 10.0  # seconds without a word of a process, which writes each second: then it is not known where it is
NO_WORD = {  # states of a process that writes nothing, and what is said of it
    "ended": "has ended: it comes to no collective any more.",
    "killed": "has gone without an end of its own: it was killed. Memory? `dmesg` on {host} may tell.",
    "stopped": "is stopped, as one that waits for its turn: it goes on when it is told to.",
    "silent": "has said nothing for {age:.0f} s: it is inside of a library that lets no Python run.",
}
KINDS = ("allreduce", "allgather", "broadcast", "reducescatter", "alltoall", "barrier", "join", "init", "shutdown")
HOROVOD = ("/horovod/", "/labs/hvd/", "/labs/ranks.py")  # parts of its files' paths


class WhyError(UseError):
    """Nothing can be seen of a job; the message says why and what to do."""


def stem(job: str, runs: Path) -> Path:
    """The path that the files of a running job begin with. job: its name, or its number in SLURM's queue."""
    pattern = re.escape(job) + r"(?:_local|_\d+)?" + (rf"|.+_{job}" if job.isdecimal() else "")
    newest_last = sorted(runs.glob("*.stacks"), key=_written)
    found = [re.fullmatch(rf"({pattern})(?:_w\d+)?\.rank\d+\.stacks", path.name) for path in newest_last]
    return runs / next((match[1] for match in reversed(found) if match), job)


def stack_files(stem: str | Path) -> list[Path]:
    """The files of stacks of a job's ranks; of a batch script those of the training that began last."""
    stem, found = Path(stem), {}
    for path in stem.parent.glob("*.stacks"):
        if match := re.fullmatch(re.escape(stem.name) + r"((?:_w\d+)?)\.rank(\d+)\.stacks", path.name):
            found.setdefault(match[1], {})[int(match[2])] = path
    newest = max(found.values(), key=lambda ranks: max(map(_written, ranks.values())), default={})
    return [newest[rank] for rank in sorted(newest)]


def _written(path):
    """When a file was written; 0 if it has gone, as at the end of the job."""
    with contextlib.suppress(OSError):
        return path.stat().st_mtime
    return 0.0


def ranks(stem: str | Path) -> list[dict]:
    """What is seen of each rank of a job: what its file holds (labs.stacks), `state` and `age`, the seconds since then.

    state: "running" or "sleeping", as its main thread; "stopped"; "ended"; "killed" without an end of its own; or
    "silent". Without `looks` where nothing is known any more. Raises WhyError without any file.
    """
    seen = []
    for path in stack_files(stem):
        with contextlib.suppress(OSError):
            seen.append(json.loads(path.read_text()))
    if not seen:
        raise WhyError(
            f"No process of {Path(stem).name} has said where it is: nothing of it runs, it has not begun yet, or it "
            "uses neither labs.hvd nor the recorder. Let the script begin with `from labs import stacks; "
            f'stacks.register("{stem}")`.'
        )
    for rank in seen:
        rank["age"] = time.time() - rank["time"]
        if rank["host"] == socket.gethostname() and rank["state"] != "ended":
            rank["state"] = _state(rank)
        if rank["age"] > SILENT and rank["state"] not in NO_WORD:
            rank["state"] = "silent"
        if rank["state"] in NO_WORD:
            rank["looks"] = []
    return seen


def _state(rank):
    """The state of a rank of this node: "killed" where its process is gone, "stopped", or what its file says."""
    try:
        status = psutil.Process(rank["pid"]).status()
    except psutil.NoSuchProcess:
        return "killed"
    gone = {psutil.STATUS_ZOMBIE: "killed", psutil.STATUS_DEAD: "killed", psutil.STATUS_STOPPED: "stopped"}
    return gone.get(status, rank["state"])


def report(name: str, ranks: list[dict]) -> str:
    """A screen of text on a job that goes on: where its ranks are; who waits for whom."""
    linecache.checkcache()  # a script may have been edited since it was last quoted
    lines = [f"{name}: {several(max(rank['size'] for rank in ranks), 'rank')}"]
    for rank in ranks:
        used = f"{rank['cores']:.0%} of a core, {rank['memory'] / 2**20:.0f} MiB"
        lines += ["", f"rank {rank['rank']}: process {rank['pid']} on {rank['host']}, {rank['state']}, {used}"]
        for file, line, function in reversed(own(rank["looks"][-1]) if rank["looks"] else []):
            text = linecache.getline(file, line).strip()
            lines.append(f"    {f'{Path(file).name}:{line}':<24} {function:<10} {text:.70}".rstrip())
    lines += ["", *sentences(ranks), "", "What cannot be seen from outside:"]
    lines += ["- whether a rank that is late will come: look again in a minute"]
    lines += ["- the names of tensors: over MPI, Horovod's stall message in the .err tells them after 60 s"]
    return "\n".join(map(printable, lines))


def own(frames):
    """The frames, innermost first, that lie in the student's files; without such frames, the outermost one."""
    return [frame for frame in frames if frame[0][:1] != "<" and not files.installed(frame[0])] or frames[-1:]


def waits(rank):
    """(kind of collective, the student's frames) where a rank was in the same one at all LOOKS looks; else None."""
    calls = {(_collective(look), tuple(map(tuple, own(look)))) for look in rank["looks"]}
    call = calls.pop() if len(calls) == 1 and len(rank["looks"]) == LOOKS else (None,)
    return call if call[0] else None


def _collective(frames):
    """The kind of the collective in which a process with these frames is, the innermost first; None for none."""
    inside = [function for file, _, function in frames if any(part in file for part in HOROVOD)]
    return next((kind for function in inside for kind in KINDS if kind in function), None)


def sentences(ranks: list[dict]) -> list[str]:
    """Who waits in which collective for whom, and what those do that do not come."""
    calls, lines = grouped((waits(rank), rank) for rank in ranks), []
    others, every = calls.pop(None, []), set(range(max(rank["size"] for rank in ranks)))
    for (kind, frames), there in calls.items():
        numbers = {rank["rank"] for rank in there}
        place = f"{Path(frames[0][0]).name}, line {' > '.join(str(line) for _, line, _ in reversed(frames))}"
        lines.append(f"{_named(numbers)} wait{'s' * (len(numbers) == 1)} in {kind}, {place}.")
        if every - numbers:
            lines[-1] += f" Not there: {_named(every - numbers).lower()}."
    lines += [_sentence_on(rank) for rank in others]
    if missing := every - {rank["rank"] for rank in ranks}:
        lines.append(f"Not heard of: {_named(missing).lower()}. Not begun yet, or without labs.hvd and the recorder?")
    if len(calls) > 1:
        lines.append("They wait in different calls: as long as no other rank comes, each waits for ever.")
    elif calls and not others and not missing:
        lines.append("All have come to one call: either it is under way, or their tensors have different names.")
    return lines


def stuck(ranks: list[dict]) -> bool:
    """Does a rank wait for another one that is in another call, asleep or gone?"""
    calls = [waits(rank) for rank in ranks]
    late = [rank for rank, call in zip(ranks, calls, strict=True) if not call]
    return len({*calls} - {None}) > 1 or any(calls) and any(not _computes(rank) for rank in late)


def _computes(rank):
    """Whether a rank that is late may still be on its way: it runs, computes in TensorFlow, has just begun, or cannot
    be seen."""
    if rank["state"] in NO_WORD:
        return rank["state"] == "silent"
    tensorflow = any("/tensorflow/" in look[0][0] for look in rank["looks"]) and rank["cores"] > COMPUTES
    begins = len(rank["looks"]) < LOOKS
    return rank["state"] == "running" or rank["thread"] > COMPUTES or tensorflow or begins


def _sentence_on(rank):
    who = f"Rank {rank['rank']}"
    if rank["state"] in NO_WORD:
        return f"{who} {NO_WORD[rank['state']].format(**rank)}"
    lines = sorted({own(look)[0][1] for look in rank["looks"]})
    where = f"{Path(own(rank['looks'][-1])[0][0]).name}, line {' and '.join(map(str, lines))}"
    if len(rank["looks"]) < LOOKS:
        return f"{who} has begun less than {LOOKS * EVERY:.0f} s ago ({where}): ask again."
    if _computes(rank):
        return f"{who} computes ({where}). It is late, and nothing here says that it will not come."
    return f"{who} sleeps ({where}), in no collective: it waits for something else, as a file, a lock or a thread."


def _named(numbers):
    """Rank 1; Ranks 0, 2."""
    return f"Rank{'s' * (len(numbers) > 1)} {', '.join(map(str, sorted(numbers)))}"
