"""The step model fitted to measured steps: computation from one worker, exposed exchange from several."""

from functools import partial
from math import hypot
from statistics import fmean
from typing import NamedTuple

import numpy as np

from labs.measure import breakdown
from labs.printed import grouped
from labs.results import intervals
from lessons.reduce import ring_bytes
from lessons.step_model import Quantity, fitted_line, ranged, slowest


class MeasuredSteps(NamedTuple):
    """Measured steps of a network. seconds: the mean step of each round; spread: standard deviation of single steps /
    the mean of their round; gradient_bytes: that a worker exchanges."""

    model: str
    workers: int
    local_batch: int
    seconds: list
    spread: float
    gradient_bytes: int


def measured_steps(found):
    """The MeasuredSteps of a result of labs.measure.breakdown: one worker (alone), and all of them (exchange), for
    each local batch."""
    made = []
    for local_batch in found["seconds"]:
        kinds = breakdown.rounds(found, local_batch)
        for kind, workers in (("alone", 1), ("exchange", found["ranks"])):
            steps = np.array(kinds[kind])
            means = steps.mean(axis=1, keepdims=True)
            known = found["model"], workers, int(local_batch), means.ravel().tolist(), float((steps / means).std())
            made.append(MeasuredSteps(*known, found["gradient_bytes"]))
    return made


class Fit:
    """The model fitted to MeasuredSteps: of each network on one worker with 2 batches, of one or more on several.

    lines: {network: Line}; exposed: {network: seconds for each byte that a worker sends in a ring}, of all networks
    together where one had no step on several workers; spread: of a worker's steps.
    Raises UseError for steps that do not get longer with the batch.
    """

    def __init__(self, measured):
        spreads = [each.spread for each in measured if each.workers == 1]
        self.spread = Quantity(fmean(spreads), min(spreads) / 2, max(spreads))
        self._bytes = {each.model: each.gradient_bytes for each in measured}
        self.lines, rounds = {}, {}
        for model, own in grouped((each.model, each) for each in measured).items():
            alone = [(each.local_batch, seconds) for each in own if each.workers == 1 for seconds in each.seconds]
            self.lines[model] = fitted_line(*zip(*alone, strict=True))
            rounds[model] = [rate for each in own if each.workers > 1 for rate in self._rates(each)]
        every = sum(rounds.values(), [])
        self.exposed = {model: _exposed(own or every) for model, own in rounds.items()}

    def _rates(self, measured):
        """(exposed seconds for each byte that a worker sends, its weight, by how much it may be off since the
        computation may be) of each round. Weights are 1 / step^2 of the seconds, since errors are relative."""
        line = self.lines[measured.model]
        computation = line.seconds(measured.local_batch)
        waited = computation * slowest(measured.workers, self.spread.value)
        sent = ring_bytes(measured.workers, measured.gradient_bytes)
        doubt = (line.level.high - line.level.low) / 2 / line.level.value * computation / sent
        return [((seconds - waited) / sent, (sent / seconds) ** 2, doubt) for seconds in measured.seconds]

    def step(self, model, workers, local_batch):
        """(seconds, (low, high)) of a step; the range holds the noise of the steps that were fitted."""
        return ranged(partial(self._seconds, model, workers, local_batch), self._inputs(model))

    def efficiency(self, model, workers, local_batch):
        """(step on one worker / step on `workers`, (low, high)), of the same batch per worker."""

        def ratio(values):
            alone, together = (self._seconds(model, count, local_batch, values) for count in (1, workers))
            return alone / together

        return ranged(ratio, self._inputs(model), most=1.0)

    def _inputs(self, model):
        line = self.lines[model]
        return {"level": line.level, "slope": line.slope, "exposed": self.exposed[model], "spread": self.spread}

    def _seconds(self, model, workers, local_batch, values):
        computation = self.lines[model].seconds(local_batch, values["level"], values["slope"])
        sent = ring_bytes(workers, self._bytes[model])
        return computation * slowest(workers, values["spread"]) + values["exposed"] * sent


def _exposed(rounds):
    """Exposed seconds for each byte: least squares through 0. The range is a 95 % interval, with what the computation
    may be off."""
    rates, weights, doubts = map(np.array, zip(*rounds, strict=True))
    rate = np.average(rates, weights=weights)
    error = np.sqrt(np.average((rates - rate) ** 2, weights=weights) / (len(rates) - 1))
    reach = hypot(intervals.t_quantile(len(rates) - 1) * error, max(doubts))
    return Quantity(*(max(0.0, float(end)) for end in (rate, rate - reach, rate + reach)), "s/byte")
