"""What is seen of a job's ranks (labs.jobs.standing), in words: where each of them is, who waits for whom, and what
cannot be known from this."""

import linecache
from pathlib import Path

from labs import files
from labs.printed import printable, several

COLLECTIVES = {
    *("allreduce", "grouped_allreduce", "allgather", "grouped_allgather", "broadcast", "broadcast_", "reducescatter"),
    *("grouped_reducescatter", "alltoall", "barrier", "join", "allgather_object", "broadcast_object"),
    *("broadcast_variables", "init", "shutdown"),
}
_OF = ("/horovod/", "/labs/hvd/", "/labs/ranks.py")
_GRAPH = ("quick_execute", "execute", "call_function", "__call__")
BUSY = 0.3  # of a core: who takes more computes


def screen(name, ranks):
    """One screen on a job that goes on: its ranks, as labs.jobs.standing sees them, then who waits for whom."""
    lines = [f"{name}: {several(max(each['size'] for each in ranks), 'rank')}"]
    for rank in ranks:
        lines += ["", _head(rank), *(f"    {line}" for line in _stack(rank))]
    said, unknown = verdict(ranks), _unknown(ranks)
    lines += ["", *said, "", "What cannot be seen from outside: ", *(f"- {line}" for line in unknown)]
    return "\n".join(map(printable, lines))


def _head(rank):
    place = f"process {rank['pid']} on {rank['host']}"
    if rank["state"] in ("ended", "killed", "not asked"):
        return f"rank {rank['rank']}: {place}, {rank['state']}"
    mib = rank["memory"] / 2**20
    return f"rank {rank['rank']}: {place}, {rank['state']}, {rank['cores']:.0%} of a core, {mib:.0f} MiB"


def own(frames):
    """Of frames, the innermost first, those of the student's files, or the outermost where there are none of these."""
    return [frame for frame in frames if frame[0][:1] != "<" and not files.installed(frame[0])] or frames[-1:]


def collective(frames):
    """The collective in which a process with these frames is, the innermost first; None for none."""
    inside = [function for file, _, function in frames if any(part in file for part in _OF)]
    return next((function for function in reversed(inside) if function in COLLECTIVES), None)


def waits(rank):
    """(collective, the student's frames of the call) where a rank was in the same collective at every look; or None."""
    calls = {(collective(look), tuple(map(tuple, own(look)))) for look in rank["looks"]}
    return next(iter(calls)) if len(calls) == 1 and None not in next(iter(calls)) else None


def _stack(rank):
    """Lines on where a rank was at the last look, the outermost first, and what it does there."""
    if not rank["looks"]:
        if rank["state"] in ("ended", "killed", "not asked", "stopped"):
            return []
        return ["It has not written its stacks: another handler has its signal, or it is another user's."]
    lines = []
    for file, line, function in reversed(own(rank["looks"][-1])):
        text = linecache.getline(file, line).strip()
        lines.append(f"{f'{Path(file).name}:{line}':<22} {function:<12} {text:.70}".rstrip())
    return lines


def verdict(ranks):
    """Sentences: who waits in which collective for whom, and what those do that do not come."""
    calls, lines = {}, []
    for rank in ranks:
        if call := waits(rank):
            calls.setdefault(call, []).append(rank)
    for (kind, frames), there in calls.items():
        numbers = [each["rank"] for each in there]
        missing = [each["rank"] for each in ranks if each["rank"] not in numbers]
        here = " from ".join(f"line {line}" for _, line, _ in frames[:3])
        comes = f"{_named(numbers)} wait{'s' * (len(numbers) == 1)} in {kind}, {Path(frames[0][0]).name}, {here}"
        lines.append(f"{comes}. Missing there: {_named(missing).lower()}." if missing else f"{comes}: all of them.")
    waiting = {each["rank"] for there in calls.values() for each in there}
    lines += [_does(rank) for rank in ranks if rank["rank"] not in waiting]
    if len(calls) > 1:
        lines.append("They wait in different calls, so none of these can end.")
    elif calls and len(waiting) == len(ranks):
        lines.append("All have come to one call: it is under way, or they bring tensors of different names to it.")
    return lines


def stuck(ranks):
    """Does a rank wait for another one that is in another call, asleep or gone?"""
    calls = [waits(rank) for rank in ranks]
    others = [rank for rank, call in zip(ranks, calls, strict=True) if not call]
    return len({*calls} - {None}) > 1 or any(calls) and any("comput" not in _does(rank) for rank in others)


def _does(rank):
    who = f"Rank {rank['rank']}"
    if rank["state"] == "ended":
        return f"{who} has come to its end, and comes to no collective any more."
    if rank["state"] == "killed":
        return f"{who} is gone and has not said why: it was killed (`dmesg` on {rank['host']} may name the kernel)."
    if rank["state"] == "stopped":
        return f"{who} is stopped (SIGSTOP): it goes on when it is told to, as by whoever gives turns."
    if not rank["looks"]:
        return f"{who} cannot be seen."
    lines = sorted({own(look)[0][1] for look in rank["looks"]})
    where = f"{Path(own(rank['looks'][-1])[0][0]).name}, line {' and '.join(map(str, lines))}"
    if rank["state"] == "running" or rank["cores"] > BUSY:
        return f"{who} computes ({where}): it is late, and nothing here says that it will not come."
    return f"{who} sleeps ({where}) outside of any collective: it waits for something else."


def _named(numbers):
    """Rank 1; Ranks 0 and 2."""
    return f"Rank{'s' * (len(numbers) != 1)} {' and '.join(map(str, numbers))}"


def _unknown(ranks):
    lines = ["whether a rank that is late will come: look again in a minute;"]
    graph = [each["rank"] for each in ranks if any(_in_graph(look) for look in each["looks"])]
    if graph:
        lines.append(f"which operation of a compiled step: {_named(graph).lower()} is inside of one;")
    lines.append("the names of the tensors: over MPI Horovod's stall message in the .err tells them.")
    return lines


def _in_graph(look):
    inside = [function for file, _, function in look if "/tensorflow/" in file]
    return collective(look) is None and "quick_execute" in inside
