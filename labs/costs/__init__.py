"""The cost model: what a training step takes, fitted to measurements or from a machine's data, with intervals.

step = computation(local batch) x slowest worker / mean worker + the part of the all-reduce that backward does not hide

    parameter.py      a number with unit, 95 % interval and source
    computation.py    the first term: a fitted line over the batch, or a roofline from a machine's data
    communication.py  the last term: rings on two levels, fused buckets, overlap with backward
    stragglers.py     the factor in the middle
    machine.py        machines as data: labs/machines/*.toml
    model.py          the terms together
    observe.py        a run as the fit sees it
    fit.py            parameters from runs and from an all-reduce benchmark
    predict.py        step time, throughput, speedup, efficiency, largest batch, each with an interval
    command.py        `labs predict`
"""

from labs.costs.fit import Fit, fit
from labs.costs.machine import Machine, MachineError, load
from labs.costs.parameter import Parameter, ScalingError
from labs.costs.predict import Prediction, predict, predict_from_fit

__all__ = [
    "Fit",
    "Machine",
    "MachineError",
    "Parameter",
    "Prediction",
    "ScalingError",
    "fit",
    "load",
    "predict",
    "predict_from_fit",
]
