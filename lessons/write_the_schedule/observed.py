"""Why a right schedule misses a bar, as it is seen in what was played: a sentence or two for the verdict.

Each function takes the PlayedSchedule.
"""

from labs.printed import several


def _passes(played, rank):
    """The passes of a rank, in their order."""
    return [e for e in played.events if e.rank == rank and e.word.startswith(("forward", "backward"))]


def _between(played, rank):
    """The waits of a rank between its first and its last pass."""
    passes, waits = _passes(played, rank), [e for e in played.events if e.rank == rank and e.word == "wait"]
    return [wait for wait in waits if passes and passes[0].begin < wait.begin < passes[-1].begin]


def _ms(events):
    return sum(event.end - event.begin for event in events)


def buckets(played):
    """How many latencies the exchanges of a data-parallel step pay, when they run, and how long a rank waits."""
    case, links = played.case, played.transfers
    sizes, latencies = [len(each.tensors) for each in links], 2 * (case.ranks - 1) * len(links)
    how = f"{min(sizes)}" + f" to {max(sizes)}" * (max(sizes) > min(sizes))
    told = f"Your program exchanges {case.layers} layers in buckets of {how}: {several(len(links), 'exchange')} with "
    told += f"{latencies} latencies, {latencies * case.latency:.3g} ms in all. "
    told += f"They run from {min(each.begin for each in links):.3g} to {max(each.end for each in links):.3g} ms; "
    waits, computed = _ms(_between(played, 0)), _passes(played, 0)[-1].end
    return f"{told}before its last backward pass ends, at {computed:.3g} ms, a rank waits {waits:.3g} ms for them."


def longest_waits(played):
    """The longest waits of the rank that waits most between its first and its last pass."""
    waits = max((_between(played, rank) for rank in range(played.case.ranks)), key=_ms)
    if not waits:
        return "Between its first and its last pass, no rank waits: what else takes longer than it must?"
    longest = sorted(waits, key=lambda wait: wait.begin - wait.end)[:3]
    told = ", ".join(f"{_ms([wait]):.2g} ms in `{wait.text.removeprefix('wait for ')}`" for wait in longest)
    who = f"Between its first and its last pass, rank {waits[0].rank} waits {_ms(waits):.3g} ms"
    return f"{who}, longest: {told}. What could it compute then, or what be sent earlier?"
