"""Horovod's timeline: what rank 0 wrote down about every collective operation, in numbers.

HOROVOD_TIMELINE=FILE makes rank 0 write a trace (Chrome's format, microseconds). What stands in it was found by running
Horovod 0.28.1 with one rank slowed down, over Gloo and MPI:

- A tensor's negotiation begins when the first rank announces it and ends when the last one has: this is waiting.
- Which rank announced it when is written only for tensors that are not in Horovod's response cache: with the cache, in
  the first step only; with HOROVOD_CACHE_CAPACITY=0 in every step. Times are those at which rank 0 heard of it.
- Tensors that were fused into one buffer are started together and share the times of copies and all-reduce.
- Over Gloo no announcement is heard while a message is summed: a gradient may have been ready up to a message earlier.
"""

import gzip
import json
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from labs.errors import UseError


@dataclass
class Collective:
    """One tensor in one collective operation. All times in seconds since the timeline began; None if it never came.

    negotiated: (begin, end)
    arrivals: {rank: when it announced the tensor}, empty where Horovod did not write it (see above)
    phases: [(name, begin, end)], such as ("GLOO_ALLREDUCE", 1.2, 1.3)
    buffer: number shared by the tensors that were sent as one message
    """

    tensor: str
    operation: str
    negotiated: tuple
    arrivals: dict = field(default_factory=dict)
    end: float | None = None
    phases: list = field(default_factory=list)
    bytes: int = 0
    buffer: int | None = None


def read(path):
    """All collectives of a timeline file (.json, or .json.gz), a list of Collective in the order of their begin.

    Raises UseError: missing file, one that a dying job left without its end, no collective in it.
    """
    path = Path(path)
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
            text = file.read()
    except OSError as problem:
        raise UseError(
            f"{path}: no timeline ({problem.strerror}). Rank 0 writes it if HOROVOD_TIMELINE names a file in a folder "
            "that exists: run the job again."
        ) from None
    try:
        found = _collectives(json.loads(text, strict=False))  # Horovod escapes nothing in a tensor's name
    except ValueError:
        raise UseError(
            f"{path}: the file has no end: the job has died, or is still running. Read its .err, and run it again."
        ) from None
    if not found:
        raise UseError(
            f"{path}: no events: the job ended before the first exchange, or another rank was asked (rank 0 writes the "
            "timeline)."
        )
    return found


def _collectives(events):
    names, latest, stacks, found = {}, {}, {}, []
    buffer, joining = 0, False
    for event in events:
        kind, pid, name = event["ph"], event.get("pid"), event.get("name", "")
        if name == "process_name":
            names[pid] = event["args"].get("name")
        if kind not in ("B", "X", "E"):
            continue
        time, stack, negotiates = event["ts"] / 1e6, stacks.setdefault(pid, []), name.startswith("NEGOTIATE_")
        if negotiates:
            latest[pid] = Collective(names[pid], name.removeprefix("NEGOTIATE_").lower(), (time, None))
            found.append(latest[pid])
        item = latest[pid]
        if kind == "B":
            top = not stack and not negotiates
            if top:
                buffer += not joining
                item.buffer = buffer
            joining = top
            stack.append((name, time))
        elif kind == "X":
            item.arrivals[int(name)] = time
        else:
            name, begin = stack.pop()
            if name.startswith("NEGOTIATE_"):
                item.negotiated = (begin, time)
            elif stack:
                item.phases.append((name, begin, time))
            else:
                item.end, args = time, event.get("args")
                if args:
                    bits = int(re.sub(r"\D", "", args["dtype"]) or 8)  # of bfloat16, int8 ...; bool has none
                    item.bytes = math.prod(map(int, re.findall(r"\d+", args["shape"]))) * bits // 8
    return found


def steps(events):
    """The gradients' all-reduces by training step: a list of lists of Collective, finished ones only.

    Gradients are the tensors with `grad` in their name or, without such tensors, all; a new step begins where a tensor
    comes again.
    Raises UseError if no all-reduce was finished.
    """
    done = [e for e in events if e.operation == "allreduce" and e.end is not None]
    done = [e for e in done if "grad" in e.tensor.lower()] or done
    if not done:
        raise UseError("No all-reduce in this timeline was finished, so there is no step. Read the job's .err.")
    turns, count = {}, Counter()
    for item in done:
        turns.setdefault(count[item.tensor], []).append(item)
        count[item.tensor] += 1
    return list(turns.values())


def covered(intervals):
    """Seconds that intervals (begin, end) cover together; where they overlap counts once."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(intervals):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def _phases(items, wanted):
    return [(begin, end) for item in items for name, begin, end in item.phases if wanted(name)]


def is_copy(name):
    """True for the phases in which tensors are copied into or out of the fusion buffer."""
    return name.startswith("MEMCPY")


def is_reduction(name):
    """True for the phases that sum over the ranks: GLOO_ALLREDUCE, MPI_ALLREDUCE, NCCL_ALLREDUCE."""
    return name.endswith("_ALLREDUCE")


def summary(events):
    """One row (dict) for each training step.

    step (from 1), tensors, buffers (messages after fusion), bytes; seconds from the first announcement to the last
    end; of these negotiate_seconds (some tensor waits for a rank), copy_seconds (into and out of the fusion buffer) and
    allreduce_seconds, each counted once where tensors overlap. Backward goes on meanwhile: waiting is not idling.
    within_seconds and behind_seconds: the all-reduces before and after the last announcement by the last rank, together
    allreduce_seconds.
    waited: {rank: median over the tensors of the seconds from its announcement to the last rank's}; last: the rank that
    came last for most tensors. They are {} and None where Horovod did not write who came when.

    Assumed of what lies within and behind the backward pass: a rank's backward pass ends with its last gradient, which
    is announced when it is ready. Rank 0 hears of it later (see above), so within_seconds is an upper bound, and
    behind_seconds a lower one. Gradients that are all announced at once, at the end, leave nothing within. What lies
    within need not be free: on the same cores, an all-reduce slows backward down. What lies behind may be beside the
    update of the weights.
    Raises UseError: see `steps`.
    """
    rows = []
    for number, items in enumerate(steps(events), 1):
        known = [item.arrivals for item in items if len(item.arrivals) > 1]
        last = Counter(max(arrivals, key=arrivals.get) for arrivals in known)
        sums, announced = _phases(items, is_reduction), max(item.negotiated[1] for item in items)
        rows.append(
            {
                "step": number,
                "tensors": len(items),
                "buffers": len({item.buffer for item in items}),
                "bytes": sum(item.bytes for item in items),
                "seconds": max(e.end for e in items) - begin_of(items),
                "negotiate_seconds": covered([item.negotiated for item in items]),
                "copy_seconds": covered(_phases(items, is_copy)),
                "allreduce_seconds": covered(sums),
                "within_seconds": covered([(begin, min(end, announced)) for begin, end in sums if begin < announced]),
                "behind_seconds": covered([(max(begin, announced), end) for begin, end in sums if end > announced]),
                "waited": {
                    rank: median(max(arrivals.values()) - arrivals[rank] for arrivals in known if rank in arrivals)
                    for rank in sorted({rank for arrivals in known for rank in arrivals})
                },
                "last": last.most_common(1)[0][0] if last else None,
            }
        )
    return rows


def begin_of(items):
    return min(item.negotiated[0] for item in items)
