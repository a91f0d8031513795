"""What is seen of a job's ranks (labs.jobs.standing), in words: where each one is, who waits for whom, and what cannot
be known from this."""

import linecache
from pathlib import Path

from labs import files
from labs.printed import grouped, printable, several

KINDS = ("allreduce", "allgather", "broadcast", "reducescatter", "alltoall", "barrier", "join", "init", "shutdown")
HOROVOD = ("/horovod/", "/labs/hvd/", "/labs/ranks.py")  # parts of its files' paths
LATE = "- whether a rank that is late will come: look again in a minute"
BUSY = 0.3  # of a core: a thread that takes more than this computes


def screen(name: str, ranks: list[dict]) -> str:
    """One screen on a job that goes on: where its ranks are, as labs.jobs.standing sees them; who waits for whom."""
    linecache.checkcache()  # a script may have been edited since it was last quoted
    lines = [f"{name}: {several(max(each['size'] for each in ranks), 'rank')}"]
    for rank in ranks:
        used = f", {rank['cores']:.0%} of a core, {rank['memory'] / 2**20:.0f} MiB" if rank["memory"] else ""
        lines += ["", f"rank {rank['rank']}: process {rank['pid']} on {rank['host']}, {rank['state']}{used}"]
        for file, line, function in reversed(own(rank["looks"][-1]) if rank["looks"] else []):
            text = linecache.getline(file, line).strip()
            lines.append(f"    {f'{Path(file).name}:{line}':<24} {function:<10} {text:.70}".rstrip())
    inside = [str(each["rank"]) for each in ranks if any(map(_in_tensorflow, each["looks"]))]
    unknown = [f"- which operation of TensorFlow: inside of one is rank {', '.join(inside)}"] if inside else []
    unknown += ["- the names of tensors: over MPI, Horovod's stall message in the .err tells them after 60 s"]
    lines += ["", *verdict(ranks), "", "What cannot be seen from outside:", LATE, *unknown]
    return "\n".join(map(printable, lines))


def own(frames):
    """The frames, innermost first, that lie in the student's files; without such frames, the outermost one."""
    return [frame for frame in frames if frame[0][:1] != "<" and not files.installed(frame[0])] or frames[-1:]


def waits(rank):
    """(kind of collective, the student's frames) where a rank was in the same one at every look; else None."""
    calls = {(_collective(look), tuple(map(tuple, own(look)))) for look in rank["looks"]}
    call = calls.pop() if len(calls) == 1 else (None,)
    return call if call[0] else None


def _collective(frames):
    """The kind of the collective in which a process with these frames is, the innermost first; None for none."""
    inside = [function for file, _, function in frames if any(part in file for part in HOROVOD)]
    named = ((kind, function) for function in inside for kind in KINDS if kind in function)
    return next((kind for kind, _ in named), None)


def _in_tensorflow(frames):
    return not _collective(frames) and "/tensorflow/" in frames[0][0]


def verdict(ranks: list[dict]) -> list[str]:
    """Sentences: who waits in which collective for whom, and what those do that do not come."""
    calls, lines = grouped((waits(rank), rank) for rank in ranks), []
    others, every = calls.pop(None, []), set(range(max(rank["size"] for rank in ranks)))
    for (kind, frames), there in calls.items():
        numbers = {rank["rank"] for rank in there}
        place = " > ".join(str(line) for _, line, _ in reversed(frames))
        lines.append(f"{_named(numbers)} waits in {kind}, {Path(frames[0][0]).name}, line {place}.")
        if every - numbers:
            lines[-1] += f" Not there: {_named(every - numbers).lower()}."
    lines += [_does(rank) for rank in others]
    if silent := every - {rank["rank"] for rank in ranks}:
        lines.append(f"{_named(silent)} has said nothing: it has not begun, or it was not started by labs.")
    if len(calls) > 1:
        lines.append("They wait in different calls: as long as no other rank comes, each waits for ever.")
    elif calls and not others and not silent:
        lines.append("All have come to one call: either it is under way, or their tensors have different names.")
    return lines


def stuck(ranks: list[dict]) -> bool:
    """Does a rank wait for another one that is in another call, asleep or gone?"""
    calls = [waits(rank) for rank in ranks]
    late = [rank for rank, call in zip(ranks, calls, strict=True) if not call]
    return len({*calls} - {None}) > 1 or any(calls) and any(not _computes(rank) for rank in late)


def _computes(rank):
    inside = any(map(_in_tensorflow, rank["looks"])) and rank["cores"] > BUSY
    imports = any(file.startswith("<frozen importlib") for look in rank["looks"] for file, _, _ in look)
    return rank["state"] in ("running", "disk-sleep") or rank["thread"] > BUSY or inside or imports


def _does(rank):
    who = f"Rank {rank['rank']}"
    if rank["state"] == "ended":
        return f"{who} has ended: it comes to no collective any more."
    if rank["state"] == "killed":
        return f"{who} has gone without an end of its own: it was killed. Memory? `dmesg` on {rank['host']} may tell."
    if rank["state"] == "stopped":
        return f"{who} is stopped, as one that waits for its turn: it goes on when it is told to."
    if not rank["looks"]:
        return f"{who} cannot be seen: its node was not asked, or another handler has the signal."
    at = sorted({own(look)[0][1] for look in rank["looks"]})
    where = f"{Path(own(rank['looks'][-1])[0][0]).name}, line {' and '.join(map(str, at))}"
    if _computes(rank):
        return f"{who} computes ({where}). It is late, and nothing here says that it will not come."
    return f"{who} sleeps ({where}), in no collective: it waits for something else, as a file, a lock or a thread."


def _named(numbers):
    """Rank 1; Rank 0, 2."""
    return f"Rank {', '.join(map(str, sorted(numbers)))}"
