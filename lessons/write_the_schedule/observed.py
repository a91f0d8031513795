"""Why a right schedule misses a bar, as it is seen in what was played: a sentence or two for the verdict.

Each function takes the PlayedSchedule.
"""

from labs.printed import several


def _passes(played, rank):
    """The passes of a rank, in their order."""
    return [e for e in played.events if e.rank == rank and e.word.startswith(("forward", "backward"))]


def _waits(played, rank):
    return [event for event in played.events if event.rank == rank and event.word == "wait"]


def _between(played, rank):
    """The waits of a rank between its first and its last pass."""
    passes = _passes(played, rank)
    return [wait for wait in _waits(played, rank) if passes and passes[0].begin < wait.begin < passes[-1].begin]


def _ms(events):
    return sum(event.end - event.begin for event in events)


def buckets(played):
    """How many latencies the exchanges of a data-parallel step pay, and when they run."""
    case, links = played.case, played.transfers
    sizes, latencies = [len(each.tensors) for each in links], 2 * (case.ranks - 1) * len(links)
    how = f"{min(sizes)}" + f" to {max(sizes)}" * (max(sizes) > min(sizes))
    told = f"Your program exchanges {case.layers} layers in buckets of {how}: {several(len(links), 'exchange')} with "
    told += f"{latencies} latencies, {latencies * case.latency:.3g} ms in all. "
    begin, end = min(each.begin for each in links), max(each.end for each in links)
    if waits := _ms(_between(played, 0)):
        return f"{told}Before its last backward pass, a rank waits {waits:.3g} ms for its exchanges."
    if len(sizes) > 1 and _ms(links) > 0.98 * (end - begin):
        return f"{told}From {begin:.3g} ms on, the links are in use without a break."
    computed = max(event.end for rank in range(case.ranks) for event in _passes(played, rank))
    follows = f"{end - max(begin, computed):.3g} ms of exchange follow the last backward pass"
    return f"{told}The links start only at {begin:.3g} ms, and {follows}."


def longest_waits(played):
    """The longest waits of the rank that waits most between its first and its last pass."""
    waits = max((_between(played, rank) for rank in range(played.case.ranks)), key=_ms)
    if not waits:
        return "Between its first and its last pass, no rank waits: what else takes longer than it must?"
    longest = sorted(waits, key=lambda wait: wait.begin - wait.end)[:3]
    told = ", ".join(f"{_ms([wait]):.2g} ms in `{wait.text.removeprefix('wait for ')}`" for wait in longest)
    who = f"Between its first and its last pass, rank {waits[0].rank} waits {_ms(waits):.3g} ms"
    return f"{who}, longest: {told}. What could it compute then?"


def second_halves(played):
    """What keeps ranks waiting in a pipeline whose backward passes may be split."""
    passes = [_passes(played, rank) for rank in range(played.case.ranks)]
    if all(event.word != "backward_inputs" for each in passes for event in each):
        return "Every backward pass is whole: which of its two results does another rank wait for?"
    ready = sum(_ms(w for w in _waits(played, rank) if _has_ready(own, w)) for rank, own in enumerate(passes))
    if ready > played.case.weights:
        return f"In all, ranks wait {ready:.3g} ms although they could compute a second half: which ranks, and when?"
    return "Which rank waits longest, and what does the rank that it waits for compute before? Could that come later?"


def _has_ready(passes, wait):
    """Whether a rank waits although it has computed a first half, and computes its second half later."""
    first = {event.batch for event in passes if event.word == "backward_inputs" and event.end <= wait.begin}
    return any(e.word == "backward_weights" and e.begin >= wait.end and e.batch in first for e in passes)
