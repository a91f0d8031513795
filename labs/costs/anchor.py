"""Rates of one worker in a machine's file, measured or computed, correct what arithmetic and memory alone give."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import exp, log
from statistics import fmean

import numpy as np

from labs.costs.chosen import CHOSEN
from labs.costs.computation import roofline, values
from labs.costs.notes import note
from labs.costs.parameter import Parameter
from labs.simulate.given import number

SIZES = {"InceptionV3": 299, "InceptionResNetV2": 299, "Xception": 299, "NASNetLarge": 331}  # others: 224
# Relative 95 % reach of the correction: by a rate of the network itself or of its family, in another program; and by
# operations and bytes alone, which tests/costs/test_published.py holds against all rates on file.
CARRIED, NONE = CHOSEN.rate_reach, 0.35


def family(model: str) -> str:
    """The letters of a network's name before its size: ResNet of ResNet50V2, VGG of VGG16."""
    return re.split(r"V?\d", model)[0]


def anchored(model, facts, machine, precision, local_batch, image_size, facts_of, rate=None):
    """(Roofline, notes) of network `model` on a machine's device, corrected by its rates.

    That is `rate`, images/s of one worker at this batch; else the machine's rates of this network, measured or computed
    from what was published; else those of the network of its family that is closest in multiply-adds. Between the
    batches of rates the correction goes on a straight line over the logarithm of the batch, outside it stays; where a
    larger batch is slower than a smaller one, programs differ, and the geometric mean of all is taken.
    facts_of(model, image_size) gives the facts of a network with a rate. Raises MachineError, SimulationError.
    """
    device, local_batch = machine.computes(precision), number("local_batch", local_batch, above=True)
    plain = roofline(facts, device, precision)
    if rate is not None:
        ratio = local_batch / number("rate", rate, above=True) / _seconds(plain, local_batch)
        return _corrected(plain, ratio, 0.02, f"one worker's {rate:g} images/s at batch {local_batch:g}, as given"), []
    rows = [row for row in machine.rates if row.precision == precision and family(row.model) == family(model)]
    if not rows:
        alone = note("no_rate", model=model, precision=precision, percent=100 * NONE)
        return _corrected(plain, 1.0, NONE, "arithmetic and memory alone"), [alone]
    same = [row for row in rows if row.model == model]
    sizes = {row.model: _size(row) for row in same or rows}
    with ThreadPoolExecutor() as pool:  # the first time, each of them is counted in a process of its own
        counted = dict(zip(sizes, pool.map(facts_of, sizes, sizes.values()), strict=True))
    near = min(counted, key=lambda name: abs(log(counted[name].multiply_adds / facts.multiply_adds)))
    chosen = sorted((row for row in rows if row.model == near), key=lambda row: row.local_batch)
    ratios = []
    for row in chosen:
        alone = roofline(facts_of(near, _size(row)), device, precision)
        ratios.append(row.local_batch / row.images_per_second / _seconds(alone, row.local_batch))
    rates = ", ".join(f"{r.images_per_second:g} images/s at batch {r.local_batch:g} ({r.kind})" for r in chosen)
    text = f"computation is anchored to {near} in {precision} on one worker: {rates}"
    source = f"{text} ({'; '.join(dict.fromkeys(row.source for row in chosen))})"
    return _corrected(plain, _between(chosen, ratios, local_batch), CARRIED, source), [text]


def _size(row):
    return row.image_size or SIZES.get(row.model, 224)


def _seconds(line, local_batch):
    return line.seconds(local_batch, values(line.parameters))


def _between(rows, ratios, local_batch):
    """The correction at this batch from those at the rows' batches, which ascend."""
    rates = [row.images_per_second for row in rows]
    alike = len({(row.local_batch, row.image_size) for row in rows}) == len(rows) and rates == sorted(rates)
    if not alike:
        return exp(fmean(map(log, ratios)))
    return float(np.interp(log(local_batch), [log(row.local_batch) for row in rows], ratios))


def _corrected(plain, ratio, reach, source):
    # The range of the correction stands for those of peak, share and passes together.
    known = {name: replace(p, interval=None) for name, p in plain.parameters.items()}
    correction = Parameter(ratio, "", (ratio / (1 + reach), ratio * (1 + reach)), source)
    return replace(plain, parameters=known | {"correction": correction})
