"""The step model fitted to measured steps: computation from one worker, exposed exchange from several."""

from dataclasses import dataclass
from math import hypot
from statistics import fmean, pstdev

import numpy as np

from labs.measure import breakdown
from labs.printed import grouped
from labs.results import intervals
from lessons.reduce import ring_bytes
from lessons.step_model import Line, Quantity, fitted_line, ranged, slowest

NO_STEPS = "each round is one step, so stragglers and communication cannot be told apart; both count as exposed"
NOT_APART = (
    "communication is fitted to steps of several workers: latency, bandwidth and overlap cannot be told apart; other "
    "numbers of workers follow the ring's bytes, 2 (K - 1) / K"
)


@dataclass(frozen=True)
class MeasuredSteps:
    """Measured steps of a network. seconds: the mean step of each round; spread: standard deviation of single steps /
    the mean of their round, None where a round is one step; gradient_bytes: that a worker exchanges."""

    model: str
    workers: int
    local_batch: int
    seconds: list
    spread: float | None
    gradient_bytes: int


def measured_steps(found):
    """The MeasuredSteps of a result of labs.measure.breakdown: one worker (alone), and all of them (exchange), for
    each local batch."""
    made = []
    for local_batch in found["seconds"]:
        kinds = breakdown.rounds(found, local_batch)
        for kind, workers in (("alone", 1), ("exchange", found["ranks"])):
            steps = [step / fmean(round_) for round_ in kinds[kind] for step in round_]
            spread = pstdev(steps) if len(kinds[kind][0]) > 1 else None
            seconds = list(map(fmean, kinds[kind]))
            known = found["model"], workers, int(local_batch), seconds, spread, found["gradient_bytes"]
            made.append(MeasuredSteps(*known))
    return made


@dataclass(frozen=True)
class Fit:
    """lines: {network: Line}; exposed: {network: seconds for each byte that a worker sends in a ring}, of all networks
    together where one had no step on several workers; spread: of a worker's steps; gradient_bytes: {network: bytes};
    notes: what could not be told apart."""

    lines: dict[str, Line]
    exposed: dict[str, Quantity]
    spread: Quantity
    gradient_bytes: dict[str, int]
    notes: list

    def step(self, model, workers, local_batch):
        """(seconds, (low, high)) of a step; the range holds the noise of the steps that were fitted."""
        return ranged(lambda values: self._seconds(model, workers, local_batch, values), self._inputs(model))

    def efficiency(self, model, workers, local_batch):
        """(step on one worker / step on `workers`, (low, high)), of the same batch per worker."""

        def ratio(values):
            alone, together = (self._seconds(model, count, local_batch, values) for count in (1, workers))
            return alone / together

        value, (low, high) = ranged(ratio, self._inputs(model))
        return value, (low, min(1.0, high))

    def _inputs(self, model):
        line = self.lines[model]
        return {"level": line.level, "slope": line.slope, "exposed": self.exposed[model], "spread": self.spread}

    def _seconds(self, model, workers, local_batch, values):
        computation = self.lines[model].seconds(local_batch, values["level"], values["slope"])
        sent = ring_bytes(workers, self.gradient_bytes[model])
        return computation * slowest(workers, values["spread"]) + values["exposed"] * sent

    def parameters(self):
        """{name: Quantity} of all that was fitted."""
        found = {"spread": self.spread}
        for model, line in self.lines.items():
            found[f"{model}: computation at batch {line.centre:.4g}"] = line.level
            found[f"{model}: computation per image"] = line.slope
            found[f"{model}: exposed communication"] = self.exposed[model]
        return found


def fit(measured):
    """The Fit to MeasuredSteps: of each network on one worker with 2 batches, and of one or more on several workers.

    Raises UseError for steps that do not get longer with the batch.
    """
    known = [each.spread for each in measured if each.workers == 1 and each.spread is not None]
    spread = Quantity(0.0, 0.0, 0.03, source="not measured")
    notes = [NOT_APART] if known else [NO_STEPS, NOT_APART]
    if known:
        spread = Quantity(fmean(known), min(known) / 2, max(known), source="single steps, and half of their spread")
    lines, pairs = {}, {}
    for model, own in grouped((each.model, each) for each in measured).items():
        alone = [(each.local_batch, seconds) for each in own if each.workers == 1 for seconds in each.seconds]
        lines[model] = fitted_line(*zip(*alone, strict=True))
        pairs[model] = [pair for each in own if each.workers > 1 for pair in _pairs(each, lines[model], spread)]
    everywhere = _exposed([pair for own in pairs.values() for pair in own])
    exposed = {model: _exposed(own) if own else everywhere for model, own in pairs.items()}
    notes += [
        f"steps of {model} on several workers are not longer than on one: the exposed part is taken as 0"
        for model, each in exposed.items()
        if not each.value
    ]
    return Fit(lines, exposed, spread, {each.model: each.gradient_bytes for each in measured}, notes)


def _pairs(measured, line, spread):
    """(bytes that a worker sends, exposed seconds, step, seconds by which the computation may be off) of each round."""
    computation = line.seconds(measured.local_batch)
    doubt = (line.level.high - line.level.low) / 2 / line.level.value * computation
    waited = computation * slowest(measured.workers, spread.value)
    sent = ring_bytes(measured.workers, measured.gradient_bytes)
    return [(sent, seconds - waited, seconds, doubt) for seconds in measured.seconds]


def _exposed(pairs):
    """Exposed seconds for each byte: least squares through 0, with weights 1 / step^2, since errors are relative. The
    range is a 95 % interval, with what the computation may be off."""
    sent, exposed, steps, doubts = map(np.array, zip(*pairs, strict=True))
    weights = (sent / steps) ** 2
    rates = exposed / sent
    rate = float(np.average(rates, weights=weights))
    error = np.sqrt(np.average((rates - rate) ** 2, weights=weights) / (len(rates) - 1))
    reach = hypot(intervals.t_quantile(len(rates) - 1) * error, max(doubts / sent))
    return Quantity(max(0.0, rate), max(0.0, rate - reach), max(0.0, rate + reach), "s/byte", "least squares")
