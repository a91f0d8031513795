"""Programs that a student writes, played on K ranks: who does what when, holds how much, and sends how many bytes.

A program is a list of operations for each rank, as lessons.write_the_schedule.programs records them: (word, arguments,
line). Times are in ms, sizes in MB, bandwidth in MB/ms (which is GB/s).

What is played. A rank computes one operation at a time. Its link carries one message out and one in at the same time; a
message takes latency + size / bandwidth and begins as soon as both ranks have come to it and both links are free. An
all-reduce of n MB is a ring over all links: 2 (K - 1) messages of n / K, a reduce-scatter or an all-gather half of
them. Memory for what an operation makes, or for what will arrive, is taken when it begins.

What is followed. No numbers are computed: of each part of a tensor the engine knows what it sums up. Of a gradient this
is how often each micro-batch is in it, of activations and errors how often the share of each rank is, of weights how
often they were updated. So it can say what is wrong with a sum.
"""

from collections import Counter
from dataclasses import dataclass
from inspect import signature
from math import inf
from typing import NamedTuple

from labs.errors import UseError, number, whole
from lessons.write_the_schedule import programs as words
from lessons.write_the_schedule.programs import OPERATIONS

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather")
_COMPUTING = ("load", "forward", "backward", "backward_inputs", "backward_weights", "update")
_ARGUMENTS = {
    word: tuple(signature(getattr(words, word)).parameters)
    for word in (*_COMPUTING, "free", "send", "receive", "wait", *COLLECTIVES)
}

STARTS = {  # what each rank holds at the start, and again at the end, updated
    "whole": "all weights and the whole state of the optimizer",
    "optimizer parts": "all weights, and of the optimizer's state the part with its number",
    "parts": "of weights and state the part with its number",
    "stages": "weights and state of its own layers alone",
    "gradients": "the gradient of the micro-batch with its number",
}


@dataclass(frozen=True)
class Case:
    """What a program is played with. Sizes of a layer; times of one layer and one micro-batch.

    start: a key of STARTS; slots: numbers that the optimizer keeps for each weight; wide: how many times as large as
    the others the activations of layers 0, 2, 4, ... are; words: the operations that may be used, if not all of them.
    """

    ranks: int
    layers: int
    batches: int
    start: str = "whole"
    forward: float = 1.0
    inputs: float = 1.0
    weights: float = 1.0
    load: float = 0.0
    update: float = 0.0
    latency: float = 0.0
    bandwidth: float = 8.0
    parameters: float = 8.0
    slots: float = 2.0
    activation: float = 1.0
    wide: float = 1.0
    words: tuple = ()

    def __post_init__(self):
        for name, value in vars(self).items():
            if name in ("ranks", "layers", "batches"):
                whole(name, value, most=256)
            elif name not in ("start", "words"):
                number(name, value, above=name in ("bandwidth", "wide"))

    def size(self, kind, layer):
        """MB of a whole tensor."""
        if kind in ("activation", "error"):
            return self.activation * (1 if layer % 2 else self.wide)  # micro-batches have layer -1
        return self.parameters * (self.slots if kind == "optimizer" else 1)

    def held(self, rank):
        """{tensor: its parts} that a rank holds at the start."""
        every, own, found = range(self.ranks), (rank,), {}
        for layer in range(self.layers):
            if self.start == "gradients":
                found["gradient", layer, None] = every
            elif self.start != "stages" or layer * self.ranks // self.layers == rank:
                found["weights", layer, None] = own if self.start == "parts" else every
                found["optimizer", layer, None] = own if self.start in ("parts", "optimizer parts") else every
        return found

    def message(self, size):
        """ms of one message."""
        return self.latency + size / self.bandwidth

    def ring(self, size, times=1):
        """ms of a reduce-scatter or an all-gather of whole tensors of this size; times=2: of an all-reduce."""
        return times * (self.ranks - 1) * self.message(size / self.ranks)


class Event(NamedTuple):
    """What a rank does for a time: an operation, or "wait" for one; `text` says it as it is written."""

    rank: int
    begin: float
    end: float
    word: str
    text: str


class Transfer:
    """A message or a collective, since its first rank came to it. When all have come, its begin and end are known.

    ranks: of a message (sender, receiver); MB: what each of the ranks in `out` sends; time: in ms; text: the operation
    as it is written; came: the ranks that have come; brought: {tensor: {part: [what it sums up, for each rank that
    brought it]}}, whose sums all ranks in `into` get.
    """

    def __init__(self, word, ranks, tensors, MB, time, text):
        self.word, self.ranks, self.tensors, self.MB, self.time, self.text = word, ranks, tensors, MB, time, text
        self.out, self.into = (ranks[:1], ranks[1:]) if word == "send" else (ranks, ranks)
        self.came, self.brought, self.begin, self.end = set(), {tensor: {} for tensor in tensors}, inf, inf

    def bring(self, tensor, held):
        for part, content in held.items():
            self.brought[tensor].setdefault(part, []).append(content)


def named(kind, layer, batch, parts=()):
    """A tensor as it is written: gradient(3, 0, 1)."""
    if kind == "activation" and layer == -1:
        return f"micro-batch {batch}"
    return f"{kind}({', '.join(map(str, [layer] + [batch] * (batch is not None) + list(parts)))})"


def written(word, arguments):
    """An operation as it is written, without what says how to wait."""
    if word in (*COLLECTIVES, "free"):
        names = [named(*each) for each in arguments[0]]
        inside = names if len(names) < 4 else [names[0], "...", names[-1]]
    elif word in ("send", "receive"):
        inside = [named(*arguments[0]), f"{'to' if word == 'send' else 'source'}={arguments[1]}"]
        inside += ["add=True"] * (word == "receive" and arguments[2])
    else:
        inside = [repr(each) for each in arguments if each is not None]
    return f"{word}({', '.join(inside)})"


def told(tensor, parts):
    """A tensor, or some of its parts, in words: parts 0 and 1 of gradient(3)."""
    *most, last = map(str, parts or [""])
    which = f"parts {', '.join(most)} and {last} of " if most else f"part {last} of " if last else ""
    return which + named(*tensor)


class _Wrong(UseError):
    """What a rank does is not possible; the text says why."""


class _Operation(NamedTuple):
    word: str
    values: dict
    line: str
    text: str


class _ScheduleRank:
    """A rank while it is played: what it holds, {tensor: {part: what it sums up}}, and where in its program it is.

    busy: {(tensor, part): (the Transfer that it is in, as it is written)}; freed: {tensor: where, in words};
    started: {operation: Transfer}; waits: the one that it waits for; met: how many it has come to, by their key;
    halves: what backward_inputs was done for; changes: of PlayedSchedule.
    """

    def __init__(self, case, place):
        self.case, self.number, self.operations, self.step, self.now = case, place, [], 0, 0.0
        self.store, self.busy, self.freed, self.started, self.met, self.halves = {}, {}, {}, {}, Counter(), set()
        self.waits: Transfer | None = None
        self.changes = []
        for tensor, parts in case.held(place).items():
            own = tuple(int(batch == place) for batch in range(case.batches))
            self.put(tensor, dict.fromkeys(parts, own if tensor[0] == "gradient" else (0,)))

    def change(self, time, tensor, parts):
        """So many parts more in memory, or fewer."""
        if size := self.case.size(*tensor[:2]) * parts / self.case.ranks:
            self.changes.append((time, size, tensor))

    def put(self, tensor, content):
        there = self.store.setdefault(tensor, {})
        self.change(self.now, tensor, len(content.keys() - there.keys()))
        self.freed.pop(tensor, None)
        there |= content

    def drop(self, tensor, parts):
        for part in parts:
            del self.store[tensor][part]

    def need(self, tensor, parts):
        """{part: what it sums up}. Raises _Wrong where the rank has not got all these parts, or they are under way."""
        held = self.store.get(tensor, {})
        for part in parts:
            if (tensor, part) in self.busy:
                raise _Wrong(f"{named(*tensor)} is under way in `{self.busy[tensor, part][1]}`: wait for it first.")
        if missing := [part for part in parts if part not in held]:
            what = told(tensor, missing if held else ()) + self.freed.get(tensor, "")
            raise _Wrong(f"rank {self.number} does not have {what}.")
        return {part: held[part] for part in parts}

    def summed(self, tensor, parts):
        """The same of sums, which must hold each share once, and of weights, which must not be updated yet."""
        held = self.need(tensor, parts)
        for content in held.values():
            if text := _unlike(tensor, content, 0):
                raise _Wrong(f"{named(*tensor)} {text}.")
        return held


def _unlike(tensor, content, updates):
    """What is wrong with a part: a sum, or weights that must have been updated so many times; "" if nothing is."""
    if tensor[0] == "weights":
        if content == (updates,):
            return ""
        return "is updated already" if content[0] > updates else "has not been updated"
    what = "micro-batch" if tensor[0] == "gradient" else "the share of rank"
    often = [f"contains {count} copies of {what} {place}" for place, count in enumerate(content) if count > 1]
    lacks = [f"{what} {place}" for place, count in enumerate(content) if not count]
    return " and ".join(often[:1] + [f"lacks {', '.join(lacks[:4])}"] * bool(lacks))


def _added(contents):
    return tuple(map(sum, zip(*contents, strict=True)))


def play(case, programs):
    """The PlayedSchedule of the operations of each rank, as programs give them; its `problem` says what is wrong."""
    played = PlayedSchedule(case)
    try:
        played._play(programs)
    except _Wrong as wrong:
        played.problem = str(wrong)
    return played


class PlayedSchedule:
    """What came of it. sent: MB by rank; events, transfers: lists of Event and Transfer; problem: why it is not right,
    or None; cycle: [(rank, text, rank that it waits for)] of a deadlock."""

    def __init__(self, case):
        self.case, self.sent, self.events, self.transfers = case, [0.0] * case.ranks, [], []
        self.problem: str | None = None
        self.cycle = []
        self._every = tuple(range(case.ranks))
        self._ranks, self._met_at = [_ScheduleRank(case, place) for place in self._every], {}
        self._free_at = {}  # {("out" or "into", rank): when this link is free again}

    @property
    def time(self):
        return max((each.end for each in (*self.events, *self.transfers)), default=0.0)

    @property
    def idle(self):
        """Share of the ranks' time in which they do not compute."""
        busy = sum(each.end - each.begin for each in self.events if each.word != "wait")
        return 1 - busy / (self.case.ranks * self.time) if self.time else 0.0

    def memory(self, rank):
        """[(time, MB from then on)] of a rank, by time. What is freed at a moment makes room for what comes then."""
        found, used = [], 0.0
        for time, change, _ in sorted(self._ranks[rank].changes, key=lambda each: (round(each[0], 9), each[1] > 0)):
            used += change
            found.append((time, used))
        return found

    @property
    def peaks(self):
        """The most MB that each rank holds at a time."""
        return [max((used for _, used in self.memory(rank)), default=0.0) for rank in range(self.case.ranks)]

    def holds(self, rank, time):
        """{(kind, layer, batch): MB} of the tensors that a rank holds at a time."""
        found = {}
        for when, change, tensor in self._ranks[rank].changes:
            if when <= time + 1e-9:
                found[tensor] = found.get(tensor, 0.0) + change
        return {tensor: size for tensor, size in found.items() if size > 1e-9}

    def _play(self, programs):
        for rank, operations in zip(self._ranks, programs, strict=True):
            rank.operations = self._read(rank.number, operations)
        while ready := [r for r in self._ranks if r.waits is None and r.step < len(r.operations)]:
            self._do(min(ready, key=lambda rank: (rank.now, rank.number)))
        self._ended()

    # Reading: a program may hold anything

    def _read(self, place, operations):
        """The operations of a rank, with a wait at the end for all that was started."""
        found, open_ = [], {}
        if not isinstance(operations, list | tuple) or len(operations) > OPERATIONS:
            raise _Wrong(f"Rank {place} returns no operations. Does @program stand above the function?")
        for step, each in enumerate(operations):
            try:
                word, arguments, line = each[0], each[1], str(each[2])[:120]
                values = {name: self._value(name, v) for name, v in zip(_ARGUMENTS[word], arguments, strict=True)}
                if self.case.words and word not in self.case.words:
                    raise _Wrong(f"this puzzle must be solved without `{word}`.")
                if self.case.words and "wait" not in self.case.words and not values.get("wait", True):
                    raise _Wrong("this puzzle must be solved without `wait=False`.")
                if word == "wait" and open_.pop(values["started"], None) is None:
                    raise _Wrong("it waits for an exchange that is complete, or that began without `wait=False`.")
            except UseError as wrong:
                raise _Wrong(f"Rank {place}, operation {step + 1}, {word} ({line}): {wrong}") from None
            except (TypeError, ValueError, LookupError):
                raise _Wrong(f"Rank {place}, operation {step + 1} is not one of the course's operations.") from None
            text = f"wait for {found[arguments[0]].text}" if word == "wait" else written(word, arguments)
            found.append(_Operation(word, values, line, text))
            if not values.get("wait", True):
                open_[step] = found[-1]
        return found + [_Operation("wait", {"started": n}, o.line, f"wait for {o.text}") for n, o in open_.items()]

    def _value(self, name, value):
        """An argument as it must be. Raises UseError."""
        if name == "tensor":
            return self._tensor(value)
        if name == "tensors":
            made = [self._tensor(each) for each in value]
            if not made or len({tensor for tensor, _ in made}) < len(made):
                raise _Wrong("name one tensor or more, as gradient(0), and each of them once.")
            return made
        if name in ("add", "wait"):
            if type(value) is not bool:
                raise _Wrong(f"{name} is {value!r:.40}: it must be True or False.")
        elif name == "split":
            if value not in (None, "columns", "rows"):
                raise _Wrong("split must be 'columns' or 'rows'.")
        elif value is not None or name != "keep":
            counts = {"layer": self.case.layers, "batch": self.case.batches, "started": OPERATIONS}
            return whole(name, value, 0, counts.get(name, self.case.ranks) - 1)
        return value

    def _tensor(self, tensor):
        """((kind, layer, batch), parts) of a tensor; all parts where none are named."""
        kind, layer, batch, parts = tensor
        of_batch = kind in ("activation", "error")
        if kind not in ("weights", "gradient", "optimizer", "activation", "error") or (batch is None) == of_batch:
            raise ValueError(kind)
        layer = whole("layer", layer, -of_batch, self.case.layers - 1)
        batch = self._value("batch", batch) if of_batch else None
        return (kind, layer, batch), tuple(sorted({self._value("a part", part) for part in parts})) or self._every

    # Playing

    def _do(self, rank):
        word, values, line, text = rank.operations[rank.step]
        try:
            if word in ("send", "receive", *COLLECTIVES):
                rank.started[rank.step] = self._come(rank, word, text, values)
            elif word == "free":
                self._free(rank, line, **values)
            elif word != "wait":
                self._compute(rank, word, text, **values)
            if word == "wait" or values.get("wait"):
                rank.waits = rank.started[values.get("started", rank.step)]
                if rank.waits.end < inf:
                    self._arrive(rank)
        except _Wrong as wrong:
            raise _Wrong(f"Rank {rank.number}, operation {rank.step + 1}, `{text}` ({line}): {wrong}") from None
        rank.step += rank.waits is None

    def _compute(self, rank, word, text, layer=0, batch=None, split=None):
        """One operation of the rank alone: what it needs must be there, what it makes is there from its begin on."""
        case, own, every = self.case, (rank.number,), self._every
        weight, slope = ("weights", layer, None), ("gradient", layer, None)
        part, made, gone = own if split else every, {}, []
        if word == "load":
            made["activation", -1, batch], time = dict.fromkeys(every, (1,) * case.ranks), case.load
        elif word == "update":
            state = ("optimizer", layer, None)
            parts = set(rank.store.get(slope) or every) & set(rank.store.get(state) or every)
            rank.need(state, parts)
            rank.summed(slope, parts)
            made[weight] = {place: (old[0] + 1,) for place, old in rank.summed(weight, parts).items()}
            time, gone = case.update * len(parts) / case.ranks, [slope]
        else:
            if word != "backward_weights":
                rank.summed(weight, part)
            before = ("activation", layer - 1, batch)
            given = rank.summed(before, own if split == "rows" else every)
            share = tuple(int(place == rank.number) for place in every)  # of a sum over the ranks
            if word == "forward":
                content = share if split == "rows" else (1,) * case.ranks
                made["activation", layer, batch] = dict.fromkeys(own if split == "columns" else every, content)
                time = case.forward
            else:
                after = ("activation" if layer == case.layers - 1 else "error", layer, batch)
                rank.summed(after, own if split == "columns" else every)
                time = case.inputs * (word != "backward_weights") + case.weights * (word != "backward_inputs")
                if word != "backward_weights" and layer:
                    content = share if split == "columns" else (1,) * case.ranks
                    made["error", layer - 1, batch] = dict.fromkeys(given, content)
                if word == "backward_inputs":
                    rank.halves.add((layer, batch))
                else:
                    if word == "backward_weights" and (layer, batch) not in rank.halves:
                        raise _Wrong(f"call backward_inputs({layer}, {batch}) first.")
                    there = rank.need(slope, rank.store.get(slope, ()))
                    new = tuple(int(place == batch) for place in range(case.batches))
                    made[slope] = {p: _added([new, there[p]]) if p in there else new for p in part}
                    gone = [before, after]
            time /= case.ranks if split else 1
        self._event(rank, rank.now + time, word, text)
        for tensor, content in made.items():
            rank.put(tensor, content)
        rank.now += time
        for tensor in gone:
            rank.change(rank.now, tensor, -len(rank.store.pop(tensor)))

    def _event(self, rank, end, word, text):
        if end > rank.now:
            self.events.append(Event(rank.number, rank.now, end, word, text))

    def _free(self, rank, line, tensors, keep):
        for tensor, parts in tensors:
            held = rank.store.get(tensor, {})
            parts = rank.need(tensor, [part for part in parts if part in held or not held]).keys() - {keep}
            rank.drop(tensor, parts)
            rank.change(rank.now, tensor, -len(parts))
            rank.freed[tensor] = f", which was freed in operation {rank.step + 1}, {line}"

    # Exchanging

    def _come(self, rank, word, text, values):
        """The Transfer to which a rank comes, with what it brings; it begins when the last one has come."""
        transfer = (self._meeting if word in COLLECTIVES else self._message)(rank, word, text, **values)
        transfer.came.add(rank.number)
        if len(transfer.came) < len(transfer.ranks):
            return transfer
        links = [("out", place) for place in transfer.out] + [("into", place) for place in transfer.into]
        transfer.begin = max(rank.now, *(self._free_at.get(link, 0.0) for link in links))
        transfer.end = transfer.begin + transfer.time
        self._free_at |= dict.fromkeys(links, transfer.end)
        self.transfers.append(transfer)
        for other in self._ranks:
            if other.number in transfer.out:
                self.sent[other.number] += transfer.MB
                for tensor, parts in transfer.brought.items() if transfer.word == "send" else ():
                    if tensor[2] is not None:  # an activation or an error leaves its rank
                        other.change(transfer.end, tensor, -len(parts))
            if other.waits is transfer:
                self._arrive(other)
                other.step += 1
        return transfer

    def _met(self, rank, key, new):
        """The Transfer that a rank comes to, for the n-th time with this key: what another rank began, or a new one."""
        rank.met[key] += 1
        return self._met_at.setdefault((key, rank.met[key]), new)

    def _message(self, rank, word, text, tensor, wait, to=None, source=None, add=False):
        pair = (rank.number, to) if word == "send" else (source, rank.number)
        name, parts = tensor
        if pair[0] == pair[1]:
            raise _Wrong("a rank cannot send a message to itself.")
        if name[0] in ("weights", "optimizer"):
            raise _Wrong(f"{named(*name)} stays where it is: only gradients, activations and errors are sent.")
        size = self.case.size(*name[:2]) * len(parts) / self.case.ranks
        transfer = self._met(rank, (pair, tensor), Transfer("send", pair, [name], size, self.case.message(size), text))
        if word == "send" or add:
            transfer.bring(name, rank.need(name, parts))
        if word == "receive":
            rank.change(rank.now, name, len(parts))
            rank.busy |= {(name, part): (transfer, text) for part in parts}
        else:
            transfer.text = text
            if name[2] is not None:
                rank.drop(name, parts)
        return transfer

    def _meeting(self, rank, word, text, tensors, wait):
        names, K = [name for name, _ in tensors], self.case.ranks
        if any(parts != self._every for _, parts in tensors):
            raise _Wrong(f"{word} takes whole tensors, since each rank's number says which part is its own.")
        if any(name[0] in ("weights", "optimizer") for name in names) and word != "all_gather":
            raise _Wrong(f"`{word}` adds up what the ranks hold, but weights and optimizer state are not sums.")
        size, times = sum(self.case.size(*name[:2]) for name in names), 1 + (word == "all_reduce")
        sent, time = times * (K - 1) / K * size, self.case.ring(size, times)
        transfer = self._met(rank, "all", Transfer(word, self._every, names, sent, time, text))
        if (transfer.word, transfer.tensors) != (word, names):
            first = f"for rank {min(transfer.came)}, collective number {rank.met['all']} is `{transfer.text}`"
            raise _Wrong(f"{first}. All ranks must call the same collectives in the same order.")
        for name in names:
            transfer.bring(name, rank.need(name, (rank.number,) if word == "all_gather" else self._every))
            rank.busy |= {(name, part): (transfer, transfer.text) for part in self._every}
            rank.change(rank.now, name, K - len(rank.store[name]))  # room for what an all-gather brings
        return transfer

    def _arrive(self, rank):
        """A rank has waited for a transfer whose end is known: it has what came."""
        transfer, rank.waits = rank.waits, None
        self._event(rank, transfer.end, "wait", rank.operations[rank.step].text)
        rank.now = max(rank.now, transfer.end)
        rank.busy = {part: under_way for part, under_way in rank.busy.items() if under_way[0] is not transfer}
        for tensor, parts in transfer.brought.items() if rank.number in transfer.into else ():
            there = rank.store.setdefault(tensor, {})
            room = len(there) + len(parts) if transfer.word == "send" else self.case.ranks
            there |= {part: _added(contents) for part, contents in parts.items()}
            if transfer.word == "reduce_scatter":
                rank.drop(tensor, parts.keys() - {rank.number})
            rank.change(transfer.end, tensor, len(there) - room)

    # The end

    def _ended(self):
        """Raise _Wrong for a deadlock, and where a rank does not end with what it must."""
        for rank in self._ranks:
            if rank.waits:
                self._deadlock(rank)
        for rank in self._ranks:
            for tensor, parts in self.case.held(rank.number).items():
                if tensor[0] == "optimizer":
                    continue
                try:
                    held = rank.need(tensor, parts)
                except _Wrong as wrong:
                    raise _Wrong(f"At the end, {wrong}") from None
                alike = len(held) == self.case.ranks and len(set(held.values())) == 1  # then no part need be named
                for part, content in held.items():
                    if text := _unlike(tensor, content, 1):
                        where = told(tensor, () if alike else [part])
                        raise _Wrong(f"At the end, {where} on rank {rank.number} {text}.")

    def _deadlock(self, rank):
        """Who waits for whom: from a rank that waits, until one comes again or has ended."""
        chain = {}
        while rank.waits and rank.number not in chain:
            other = next(place for place in rank.waits.ranks if place not in rank.waits.came)
            _, _, line, text = rank.operations[rank.step]
            chain[rank.number] = (rank.number, f"`{text.removeprefix('wait for ')}` ({line})", other)
            rank = self._ranks[other]
        links = list(chain.values())
        self.cycle = links[[*chain].index(rank.number) :] if rank.waits else links
        who = "; ".join(f"rank {place} waits in {text} for rank {other}" for place, text, other in self.cycle)
        raise _Wrong(f"Deadlock: {who}{'' if rank.waits else ', which has ended without it'}.")
