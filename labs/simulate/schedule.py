"""Programs of labs.simulate.programs, played on K ranks: who does what when, holds how much, and sends how many bytes.

Pure Python, so that a browser can run it, too. Times are in ms, sizes in MB, bandwidth in MB/ms (which is GB/s).

What is played. A rank computes one operation at a time. Its link carries one message out and one in at the same time; a
message takes latency + size / bandwidth and begins as soon as both ranks have come to it and both links are free. An
all-reduce of n MB is a ring over all links: 2 (K - 1) messages of n / K, a reduce-scatter or an all-gather half of
them. Memory for what an operation makes, or for what will arrive, is taken when it begins.

What is followed. No numbers are computed: of each part of a tensor the engine knows what it sums up. Of a gradient this
is how often each micro-batch is in it, of activations and errors how often the share of each rank is, of weights how
often they were updated. So it can say what is wrong with a sum.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from labs.simulate.given import SimulationError, number, whole
from labs.simulate.programs import COLLECTIVES, OPERATIONS, named, written

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
        for name, most in (("ranks", 16), ("layers", 64), ("batches", 256)):
            whole(name, getattr(self, name), most=most)
        for name in ("forward", "inputs", "weights", "load", "update", "latency", "parameters", "slots", "activation"):
            number(name, getattr(self, name))
        number("bandwidth", self.bandwidth, above=True)
        number("wide", self.wide, above=True)
        if self.start not in STARTS:
            raise SimulationError(f"start is {self.start!r}: it must be one of {', '.join(map(repr, STARTS))}.")

    def size(self, kind, layer):
        """MB of a whole tensor."""
        if kind in ("activation", "error"):
            return self.activation * (self.wide if layer >= 0 and layer % 2 == 0 else 1)
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
    batch: int | None


class Transfer(NamedTuple):
    """A message from `sender` to `receiver`, or a collective, where both are None. MB: what a rank sends for it."""

    word: str
    sender: int | None
    receiver: int | None
    begin: float
    end: float
    text: str
    MB: float


@dataclass
class Played:
    """What came of it. problem: why it is not right, or None; cycle: [(rank, text, rank that it waits for)] of a
    deadlock; changes: for each rank (time, MB, name) of what its memory gets and frees; sent: MB by rank."""

    case: Case
    events: list = field(default_factory=list)
    transfers: list = field(default_factory=list)
    problem: str | None = None
    cycle: list = field(default_factory=list)
    changes: list = field(default_factory=list)
    sent: list = field(default_factory=list)

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
        for time, change, _ in sorted(self.changes[rank], key=lambda each: (round(each[0], 9), each[1] > 0)):
            used += change
            found.append((time, used))
        return found

    @property
    def peaks(self):
        """The most MB that each rank holds at a time."""
        return [max((used for _, used in self.memory(rank)), default=0.0) for rank in range(self.case.ranks)]

    def holds(self, rank, time):
        """{tensor as it is written: MB} that a rank holds at a time."""
        found = {}
        for when, change, name in self.changes[rank]:
            if when <= time + 1e-9:
                found[name] = found.get(name, 0.0) + change
        return {name: size for name, size in found.items() if size > 1e-9}

    def does(self, rank, time):
        """The Event of a rank at a time; None where it has ended."""
        return next((e for e in self.events if e.rank == rank and e.begin <= time + 1e-9 < e.end), None)


class _Wrong(Exception):
    """What a rank does is not possible; the text says why."""


class _Exchange:
    """A message or a collective: who takes part, who has come, and when it ends, which is known when all have come."""

    def __init__(self, word, ranks):
        self.word, self.ranks, self.came, self.end = word, ranks, {}, None


class _Rank:
    """A rank while it is played: what it holds, {tensor: {part: what it sums up}}, and where in its program it is."""

    def __init__(self, case, place, operations):
        self.number, self.now, self.step, self.operations = place, 0.0, 0, operations
        self.waits, self.busy, self.started, self.count, self.sent = None, {}, {}, 0, 0.0
        self.store, self.changes, self.halves = {}, [], set()
        for tensor, parts in case.held(place).items():
            content = tuple(int(m == place) for m in range(case.batches)) if tensor[0] == "gradient" else (0,)
            self.store[tensor] = dict.fromkeys(parts, content)
            self.change(0.0, tensor, case.size(*tensor[:2]) * len(parts) / case.ranks)

    def change(self, time, tensor, size):
        if size:
            self.changes.append((time, size, named((*tensor, ()))))


def play(case, programs):
    """Played of the operations of each rank, as programs give them. Whatever is wrong with them, it is its problem."""
    return _Play(case).played(programs)


class _Play:
    def __init__(self, case):
        self.case, self.every = case, tuple(range(case.ranks))
        self.found, self.messages, self.meetings = Played(case), {}, []
        self.out, self.into = [0.0] * case.ranks, [0.0] * case.ranks  # when each link is free again

    def played(self, programs):
        self.ranks = []
        try:
            for place, operations in enumerate(programs):
                self.ranks.append(_Rank(self.case, place, self._read(place, operations)))
            while ready := [r for r in self.ranks if r.waits is None and r.step < len(r.operations)]:
                self._do(min(ready, key=lambda rank: (rank.now, rank.number)))
            self._ended()
        except _Wrong as wrong:
            self.found.problem = str(wrong)
        self.found.changes = [rank.changes for rank in self.ranks]
        self.found.sent = [rank.sent for rank in self.ranks]
        return self.found

    # Reading: a program may hold anything

    def _read(self, place, operations):
        """The operations of a rank, each [word, arguments, line], with a wait at the end for all that was started."""
        found, open_ = [], {}
        if not isinstance(operations, list | tuple) or len(operations) > OPERATIONS:
            raise _Wrong(f"Rank {place} gives no list of operations: put @program above your function.")
        for step, each in enumerate(operations):
            try:
                word, arguments, line = each
                found.append((word, self._arguments(word, *arguments), str(line)[:120]))
            except _Wrong as wrong:
                raise _Wrong(f"Rank {place}, operation {step + 1}, {word} ({line}): {wrong}") from None
            except (TypeError, ValueError):
                raise _Wrong(
                    f"Rank {place}, operation {step + 1} is none: use the words of the course alone."
                ) from None
            if word == "wait":
                if open_.pop(arguments[0], None) is None:
                    raise _Wrong(f"Rank {place}, operation {step + 1} ({line}) waits for what was not started.")
            elif word in ("send", "receive", *COLLECTIVES) and not arguments[-1]:
                open_[step] = str(line)
        return found + [("wait", (step,), line) for step, line in open_.items()]

    def _arguments(self, word, *arguments):
        """The arguments as they must be. Raises _Wrong, and ValueError or TypeError for too many or too few."""
        if self.case.words and word not in self.case.words:
            raise _Wrong(f"this puzzle is to be solved without `{word}`.")
        if word == "wait":
            (step,) = arguments
            return (self._whole("what is waited for", step, OPERATIONS),)
        if word in ("send", "receive"):
            tensor, other, *options = arguments
            add, wait = options if word == "receive" else (False, *options)
            other = self._whole("the other rank", other, self.case.ranks)
            return self._tensor(tensor), other, self._yes(add), self._waits(wait)
        if word in COLLECTIVES:
            tensors, wait = arguments
            return self._tensors(tensors), self._waits(wait)
        if word == "free":
            tensors, keep = arguments
            return self._tensors(tensors), keep if keep is None else self._whole("keep", keep, self.case.ranks)
        if word == "load":
            (batch,) = arguments
            return None, self._whole("the micro-batch", batch, self.case.batches), None
        if word == "update":
            (layer,) = arguments
            return self._whole("the layer", layer, self.case.layers), None, None
        if word not in ("forward", "backward", "backward_inputs", "backward_weights"):
            raise TypeError(word)
        layer, batch, split = (*arguments, None)[:3] if word.startswith("backward_") else arguments
        if split not in (None, "columns", "rows"):
            raise _Wrong("split must be 'columns' or 'rows'.")
        layer = self._whole("the layer", layer, self.case.layers)
        return layer, self._whole("the micro-batch", batch, self.case.batches), split

    def _whole(self, what, value, count, least=0):
        if type(value) is not int or not least <= value < count:
            raise _Wrong(f"{what} is {value!r:.40}: it must be a whole number from {least} to {count - 1}.")
        return value

    def _yes(self, value):
        if type(value) is not bool:
            raise _Wrong(f"{value!r:.40} stands where True or False must.")
        return value

    def _waits(self, value):
        if self.case.words and "wait" not in self.case.words and not self._yes(value):
            raise _Wrong("this puzzle is to be solved without `wait=False`.")
        return self._yes(value)

    def _tensors(self, tensors):
        if not isinstance(tensors, list | tuple) or not tensors:
            raise _Wrong("name one tensor or more, as gradient(0).")
        made = [self._tensor(each) for each in tensors]
        if len({each[:3] for each in made}) < len(made):
            raise _Wrong("a tensor is named twice.")
        return made

    def _tensor(self, tensor):
        """(kind, layer, batch, parts) of a tensor; it has no parts where it is whole."""
        if not isinstance(tensor, list | tuple) or len(tensor) != 4 or not isinstance(tensor[3], list | tuple):
            raise _Wrong(f"{tensor!r:.40} is no tensor: write one as gradient(0) or activation(0, 1).")
        kind, layer, batch, parts = tensor
        of_batch = kind in ("activation", "error")
        if kind not in ("weights", "gradient", "optimizer", "activation", "error") or (batch is None) == of_batch:
            raise _Wrong(f"{tensor!r:.40} is no tensor: write one as gradient(0) or activation(0, 1).")
        self._whole("the layer", layer, self.case.layers, -of_batch)
        if of_batch:
            self._whole("the micro-batch", batch, self.case.batches)
        parts = tuple(sorted({self._whole("a part", part, self.case.ranks) for part in parts}))
        return kind, layer, batch, () if len(parts) == self.case.ranks else parts

    # Playing

    def _do(self, rank):
        word, arguments, line = rank.operations[rank.step]
        try:
            if word in ("send", "receive", *COLLECTIVES):
                exchange = self._come(rank, word, *arguments)
                rank.started[rank.step] = exchange
                if arguments[-1]:
                    self._wait(rank, exchange)
            elif word == "wait":
                self._wait(rank, rank.started[arguments[0]])
            elif word == "free":
                self._free(rank, *arguments)
            else:
                self._compute(rank, word, *arguments)
        except _Wrong as wrong:
            text = written(word, arguments)
            raise _Wrong(f"Rank {rank.number}, operation {rank.step + 1}, `{text}` ({line}): {wrong}") from None
        if rank.waits is None:
            rank.step += 1

    def _need(self, rank, tensor, parts=()):
        """{part: what it sums up} of a tensor, or of some parts. Raises _Wrong where the rank has not got all of it."""
        parts, held = parts or self.every, rank.store.get(tensor, {})
        for part in parts:
            if text := rank.busy.get((tensor, part)):
                raise _Wrong(f"{named((*tensor, ()))} is under way in `{text}`: wait for it first.")
        if missing := [part for part in parts if part not in held]:
            some = f" part {', '.join(map(str, missing[:4]))} of" if held else ""
            raise _Wrong(f"rank {rank.number} has not got{some} {named((*tensor, ()))}.")
        return {part: held[part] for part in parts}

    def _sum(self, rank, tensor, parts=()):
        """The same of a sum, which must hold each share once, or of weights, which must not be updated yet."""
        held = self._need(rank, tensor, parts)
        for content in held.values():
            if tensor[0] == "weights":
                if content != (0,):
                    raise _Wrong(f"{named((*tensor, ()))} is updated already.")
            elif tensor[0] != "optimizer" and set(content) != {1}:
                raise _Wrong(f"{named((*tensor, ()))} {self._unlike(tensor, content)}")
        return held

    def _unlike(self, tensor, content):
        """What is wrong with a sum."""
        what = "micro-batch" if tensor[0] == "gradient" else "the share of rank"
        lacks = [f"{what} {place}" for place, count in enumerate(content) if not count]
        often = [f"{count} copies of {what} {place}" for place, count in enumerate(content) if count > 1]
        told = [f"contains {each}" for each in often[:1]] + [f"lacks {', '.join(lacks[:4])}"] * bool(lacks)
        return f"{' and '.join(told)}."

    def _compute(self, rank, word, layer, batch, split):
        case, own = self.case, (rank.number,)
        weight, slope, state = (("weights", layer, None), ("gradient", layer, None), ("optimizer", layer, None))
        last = layer is not None and layer == case.layers - 1
        before = None if layer is None else ("activation", layer - 1, batch)
        after = ("activation" if last else "error", layer, batch)
        made, gone, time = {}, [], 0.0
        share = tuple(int(place == rank.number) for place in self.every)
        full, part = (1,) * case.ranks, own if split else ()
        columns, rows = split == "columns", split == "rows"
        if word == "load":
            made["activation", -1, batch], time = dict.fromkeys(self.every, full), case.load
        elif word == "update":
            parts = tuple(
                set(self._need(rank, slope, tuple(rank.store.get(slope, ())))) & set(rank.store.get(state, ()))
            )
            self._need(rank, state, parts)
            self._sum(rank, slope, parts)
            time = case.update * len(parts) / case.ranks
            made[weight] = {place: (old[0] + 1,) for place, old in self._sum(rank, weight, parts).items()}
            gone.append(slope)
        else:
            if word != "backward_weights":
                self._sum(rank, weight, part)
            elif (layer, batch) not in rank.halves:
                raise _Wrong(f"backward_inputs({layer}, {batch}) comes first.")
            if word == "backward_inputs":
                rank.halves.add((layer, batch))
            given = self._sum(rank, before, own if rows else ())
        if word == "forward":
            content = share if rows else full
            made["activation", layer, batch] = dict.fromkeys(own if columns else self.every, content)
            time = case.forward
        elif word.startswith("backward"):
            self._sum(rank, after, own if columns else ())
            if word != "backward_weights":
                time += case.inputs
                if layer:
                    content = dict.fromkeys(given, share if columns else full)
                    made["error", layer - 1, batch] = content
            if word != "backward_inputs":
                time += case.weights
                new = tuple(int(place == batch) for place in range(case.batches))
                there = rank.store.get(slope, {})
                self._need(rank, slope, tuple(there) if there else ()) if there else None
                made[slope] = {
                    place: tuple(map(sum, zip(new, there.get(place, (0,) * case.batches), strict=True)))
                    for place in part or self.every
                }
                gone += [before, after]
        time /= case.ranks if split else 1
        self._event(rank, rank.now + time, word, written(word, rank.operations[rank.step][1]), batch)
        for tensor, content in made.items():
            self._put(rank, rank.now, tensor, content)
        rank.now += time
        for tensor in gone:
            self._drop(rank, rank.now, tensor, rank.store[tensor])

    def _event(self, rank, end, word, text, batch=None):
        if end > rank.now:
            self.found.events.append(Event(rank.number, rank.now, end, word, text, batch))

    def _put(self, rank, time, tensor, content):
        """A rank holds parts of a tensor from a time on."""
        there = rank.store.setdefault(tensor, {})
        new = len(content.keys() - there.keys())
        rank.change(time, tensor, self.case.size(*tensor[:2]) * new / self.case.ranks)
        there |= content

    def _drop(self, rank, time, tensor, parts, leave=False):
        """A rank does not hold parts of a tensor any more. leave: their memory is freed later."""
        left = {part: content for part, content in rank.store[tensor].items() if part not in parts}
        gone = len(rank.store[tensor]) - len(left)
        rank.store[tensor] = left
        if not left:
            del rank.store[tensor]
        if not leave:
            rank.change(time, tensor, -self.case.size(*tensor[:2]) * gone / self.case.ranks)

    def _free(self, rank, tensors, keep):
        for *tensor, parts in tensors:
            held = self._need(rank, tuple(tensor), parts or tuple(rank.store.get(tuple(tensor), self.every)))
            self._drop(rank, rank.now, tuple(tensor), held.keys() - {keep})

    # Exchanging

    def _come(self, rank, word, *arguments):
        """The exchange to which a rank comes, with what it brings; it begins when the last one has come."""
        if word in COLLECTIVES:
            exchange = self._meeting(rank, word, arguments[0])
        else:
            exchange = self._message(rank, word, *arguments[:3])
        exchange.came[rank.number] = rank.step
        if len(exchange.came) == len(exchange.ranks):
            begin = max(rank.now, *(self.out[r] for r in exchange.out), *(self.into[r] for r in exchange.into))
            exchange.end = begin + exchange.time
            for r in exchange.out:
                self.out[r] = exchange.end
                self.ranks[r].sent += exchange.size
            for r in exchange.into:
                self.into[r] = exchange.end
            for r, (name, size) in exchange.gives.items():
                self.ranks[r].change(exchange.end, name, -size)
            ends = exchange.ranks if word not in COLLECTIVES else (None, None)
            text = exchange.text.replace(", add=True", "")
            self.found.transfers.append(Transfer(exchange.word, *ends, begin, exchange.end, text, exchange.size))
            for other in self.ranks:
                if other.waits is exchange:
                    other.waits = None
                    self._arrive(other, exchange)
                    other.step += other is not rank
        return exchange

    def _message(self, rank, word, tensor, other, add):
        if other == rank.number:
            raise _Wrong("a rank cannot send to itself: what it holds is there already.")
        pair = (rank.number, other) if word == "send" else (other, rank.number)
        *name, parts = tensor
        name, size = tuple(name), self.case.size(*tensor[:2]) * len(parts or self.every) / self.case.ranks
        content = self._need(rank, name, parts) if word == "send" or add else None
        waiting = self.messages.setdefault((pair, tensor), [])
        exchange = next((each for each in waiting if rank.number not in each.came), None)
        if exchange is None:
            exchange = _Exchange("send", pair)
            exchange.out, exchange.into, exchange.gets, exchange.gives = pair[:1], pair[1:], {}, {}
            exchange.size, exchange.time = size, self.case.message(size)
            waiting.append(exchange)
        else:
            waiting.remove(exchange)
        if word == "send":
            exchange.brought, exchange.text = content, written(word, (tensor, other))
            if name[0] in ("activation", "error"):
                self._drop(rank, rank.now, name, content, leave=True)
                exchange.gives = {rank.number: (name, size)}
        else:
            exchange.gets = {rank.number: (name, parts or self.every, add)}
            rank.change(rank.now, name, size)
            rank.busy |= dict.fromkeys(
                [(name, part) for part in parts or self.every], written(word, (tensor, other, add))
            )
        return exchange

    def _meeting(self, rank, word, tensors):
        text, names = written(word, (tensors,)), [each[:3] for each in tensors]
        if any(each[3] for each in tensors):
            raise _Wrong(f"{word} takes whole tensors: the parts follow from the ranks.")
        if rank.count == len(self.meetings):
            self.meetings.append(_Exchange(word, self.every))
            exchange = self.meetings[-1]
            exchange.out = exchange.into = self.every if self.case.ranks > 1 else ()
            exchange.text, exchange.names, exchange.brought, exchange.gives = text, names, {}, {}
            share = sum(self.case.size(*name[:2]) for name in names)
            times = 2 if word == "all_reduce" else 1
            exchange.size = times * (self.case.ranks - 1) / self.case.ranks * share
            exchange.time, exchange.step = self.case.ring(share, times), rank.step
        exchange = self.meetings[rank.count]
        if (exchange.word, exchange.names) != (word, names):
            first = min(exchange.came)
            raise _Wrong(
                f"this is exchange {rank.count + 1} of all ranks, and rank {first} comes to it with "
                f"`{exchange.text}`. All must call the same ones in the same order."
            )
        rank.count += 1
        for name in names:
            if name[0] in ("weights", "optimizer") and word != "all_gather":
                raise _Wrong(f"{named((*name, ()))} is not a sum of what the ranks hold: `{word}` adds up.")
            parts = (rank.number,) if word == "all_gather" else ()
            exchange.brought[rank.number, name] = self._need(rank, name, parts)
            there = rank.store[name]
            rank.busy |= {(name, part): text for part in self.every}
            if word == "all_gather":
                new = self.case.ranks - len(there)
                rank.change(rank.now, name, self.case.size(*name[:2]) * new / self.case.ranks)
        return exchange

    def _wait(self, rank, exchange):
        if exchange.end is None:
            rank.waits = exchange
        else:
            self._arrive(rank, exchange)

    def _arrive(self, rank, exchange):
        """A rank has waited for an exchange whose end is known: it has what came."""
        word, arguments, _ = rank.operations[rank.step]
        self._event(
            rank, exchange.end, "wait", written(word, arguments) if word != "wait" else f"wait for {exchange.text}"
        )
        rank.now = max(rank.now, exchange.end)
        if exchange.word in COLLECTIVES:
            for name in exchange.names:
                self._met(rank, exchange, name)
        elif rank.number in exchange.gets:
            name, parts, add = exchange.gets[rank.number]
            there = rank.store.setdefault(name, {})
            size = self.case.size(*name[:2]) / self.case.ranks
            rank.change(exchange.end, name, -size * sum(part in there for part in parts))
            for part in parts:
                came = exchange.brought[part]
                there[part] = tuple(map(sum, zip(came, there[part], strict=True))) if add else came
                rank.busy.pop((name, part), None)

    def _met(self, rank, exchange, name):
        """What a collective has made of one tensor."""
        size, own = self.case.size(*name[:2]) / self.case.ranks, rank.number
        brought = [exchange.brought[other, name] for other in self.every]
        for part in self.every:
            rank.busy.pop((name, part), None)
        if exchange.word == "all_gather":
            rank.store[name] = {part: brought[part][part] for part in self.every}
            return
        parts = self.every if exchange.word == "all_reduce" else (own,)
        rank.store[name] = {p: tuple(map(sum, zip(*(each[p] for each in brought), strict=True))) for p in parts}
        rank.change(exchange.end, name, -size * (self.case.ranks - len(parts)))

    # The end

    def _ended(self):
        """Raise _Wrong for a deadlock, and where a rank does not end with what it must."""
        if stuck := [rank for rank in self.ranks if rank.waits]:
            self._deadlock(stuck)
        for rank in self.ranks:
            for tensor, parts in self.case.held(rank.number).items():
                if tensor[0] == "optimizer":
                    continue
                try:
                    held = self._need(rank, tensor, parts)
                except _Wrong as wrong:
                    raise _Wrong(f"At the end, {wrong}") from None
                for part, content in held.items():
                    whose = f"At the end, part {part} of {named((*tensor, ()))} on rank {rank.number}"
                    if tensor[0] == "gradient" and set(content) != {1}:
                        raise _Wrong(f"{whose} {self._unlike(tensor, content)}")
                    if tensor[0] == "weights" and content != (1,):
                        raise _Wrong(f"{whose} {'has been updated twice' if content[0] else 'has not been updated'}.")

    def _deadlock(self, stuck):
        """Who waits for whom: from the first rank that waits, until one comes again or has ended."""
        rank, chain = stuck[0], []
        while rank in stuck and rank.number not in [place for place, _, _ in chain]:
            other = next(place for place in rank.waits.ranks if place not in rank.waits.came)
            word, arguments, line = rank.operations[rank.step]
            text = (
                written(word, arguments)
                if word != "wait"
                else f"wait for {written(*rank.operations[arguments[0]][:2])}"
            )
            chain.append((rank.number, f"`{text}` ({line})", other))
            rank = self.ranks[other]
        places = [place for place, _, _ in chain]
        if rank.number in places:
            chain = chain[places.index(rank.number) :]
        self.found.cycle = chain
        told = "; ".join(f"rank {place} waits in {text} for rank {other}" for place, text, other in chain)
        ended = "" if rank in stuck else ", which has ended without it"
        raise _Wrong(f"Deadlock: {told}{ended}.")
