"""Why a right schedule misses a bar, as it is seen in what was played: a sentence or two for the verdict.

Each function takes the PlayedSchedule, the operations of each rank, and the bar that is missed.
"""

import re
from itertools import pairwise

from lessons.write_the_schedule.engine import COLLECTIVES

_AN_ERROR = re.compile(r"receive\(error\(\d+, (\d+)\)")  # of which micro-batch


def _passes(played, rank):
    """The passes of a rank, in their order."""
    return [e for e in played.events if e.rank == rank and e.word.startswith(("forward", "backward"))]


def _waits(played, rank):
    return [event for event in played.events if event.rank == rank and event.word == "wait"]


def _ms(events):
    return sum(event.end - event.begin for event in events)


def buckets(played, operations, bar):
    """How many latencies the exchanges of a data-parallel step pay, and when they run."""
    case, passes, links = played.case, _passes(played, 0), played.transfers
    sizes = [len(arguments[0]) for word, arguments, _ in operations[0] if word in COLLECTIVES]
    latencies = 2 * (case.ranks - 1) * len(sizes)
    pay = "1 exchange pays" if len(sizes) == 1 else f"{len(sizes)} exchanges pay"
    told = f"Your program exchanges {case.layers} layers in buckets of {_listed(sizes)}: {pay} {latencies} latencies, "
    told += f"{latencies * case.latency:.3g} ms in all. "
    begin, end = min(each.begin for each in links), max(each.end for each in links)
    if between := _ms(w for w in _waits(played, 0) if passes[0].begin < w.begin < passes[-1].begin):
        return f"{told}Before its last backward pass, a rank waits {between:.3g} ms for its exchanges."
    if len(sizes) > 1 and _ms(links) > 0.98 * (end - begin):
        return f"{told}From {begin:.3g} ms on, the links are in use without a break."
    follows = f"{end - max(begin, passes[-1].end):.3g} ms of exchange follow the last backward pass"
    return f"{told}The links start only at {begin:.3g} ms, and {follows}."


def _listed(sizes):
    """6, or 6, 6 and 3; where there are many, from the smallest to the largest."""
    if len(set(sizes)) == 1:
        return f"{sizes[0]}"
    *most, last = map(str, sizes)
    return f"{', '.join(most)} and {last}" if len(sizes) < 6 else f"{min(sizes)} to {max(sizes)}"


def longest_waits(played, operations, bar):
    """The longest waits of the rank that waits most, between its first and its last pass if there are any."""

    def between(rank):
        passes = _passes(played, rank)
        return [wait for wait in _waits(played, rank) if passes[0].begin < wait.begin < passes[-1].begin]

    rank = max(range(played.case.ranks), key=lambda rank: _ms(between(rank)))
    when, waits = "Between its first and its last pass", between(rank)
    if not waits:
        when, waits = "Before its first pass and after its last one", _waits(played, rank)
    if not waits:
        return "No rank waits for an exchange: what else takes longer than it must?"
    longest = sorted(waits, key=lambda wait: wait.begin - wait.end)[:3]
    told = [f"{_ms([wait]):.2g} ms in `{wait.text.removeprefix('wait for ')}`" for wait in longest]
    named = f"{', '.join(told[:-1])} and {told[-1]}" if len(told) > 1 else told[0]
    return f"{when}, rank {rank} waits {_ms(waits):.3g} ms; the longest waits are {named}. What could it compute then?"


def gathered_weights(otherwise):
    """The function that says if weights are gathered where layers are split, and `otherwise` if not."""

    def told(played, operations, bar):
        gathers = [arguments for each in operations for word, arguments, _ in each if word == "all_gather"]
        if any(tensor[0] == "weights" for tensors, _ in gathers for tensor in tensors):
            return "You gather weights: split the layers instead."
        return otherwise

    return told


def second_halves_in_time(played, operations, bar):
    """What keeps ranks waiting in a pipeline whose backward passes may be split."""
    case, last = played.case, played.case.ranks - 1
    passes = [_passes(played, rank) for rank in range(case.ranks)]
    if all(event.word != "backward_inputs" for each in passes for event in each):
        return "Every backward pass is whole: which of its two results does another rank wait for?"
    end = max(e.end for e in passes[last] if e.word in ("backward", "backward_inputs"))
    end += last * (case.inputs + case.message(case.activation)) + case.weights + case.update
    late, halves = _late_errors(played, passes)
    if end > bar and halves:  # no rank could make up for this
        told = (
            f"ranks wait {late:.3g} ms for errors that another rank computes after up to {halves} of its second halves"
        )
        return f"In all, {told}: which rank is it, and which of these second halves could come later?"
    ready = sum(_ms(wait for wait in _waits(played, r) if _has_ready(passes[r], wait)) for r in range(case.ranks))
    if ready > case.weights:
        return f"In all, ranks wait {ready:.3g} ms although they could compute a second half: which ranks, and when?"
    return "Which rank waits longest, and which operation of another rank could have come earlier to end that wait?"


def _late_errors(played, passes):
    """(ms for which ranks wait for errors that a rank computes after second halves, the most second halves before one).
    If the rank that others wait for is itself waiting for the same micro-batch, the next rank counts instead."""
    waits = {}  # {(rank, micro-batch): ms}
    for event in (event for event in played.events if event.word == "wait"):
        if found := _AN_ERROR.search(event.text):
            waits[event.rank, int(found[1])] = event.end - event.begin
    late, most, last = 0.0, 0, played.case.ranks - 1
    for (rank, batch), ms in waits.items():
        source = min(rank + 1, last)
        while source < last and (source, batch) in waits:
            source += 1
        halves = 0
        for event in passes[source]:
            if event.word in ("backward", "backward_inputs") and event.batch == batch:
                break
            halves += event.word == "backward_weights"
        late, most = late + ms * (halves > 0), max(most, halves)
    return late, most


def _has_ready(passes, wait):
    """Whether a rank waits although it has computed a first half, and computes its second half later."""
    first = {event.batch for event in passes if event.word == "backward_inputs" and event.end <= wait.begin}
    return any(e.word == "backward_weights" and e.begin >= wait.end and e.batch in first for e in passes)


def second_halves_in_memory(played, operations, bar):
    """What keeps activations in the memory of the rank that holds most."""
    rank = max(range(played.case.ranks), key=lambda rank: played.peaks[rank])
    passes = _passes(played, rank)
    done = [(event.word, event.batch) for event in passes]
    for place, (before, after) in enumerate(pairwise(passes)):
        ready = ("backward_inputs", after.batch) in done[:place]
        if (before.word, after.word) == ("forward", "backward_weights") and ready:
            return f"On rank {rank}, does a forward pass come before a second half that could have freed memory first?"
    return "Whose second half waits too long? Until then its activation and its error stay."
