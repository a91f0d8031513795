"""The cost model: what a training step takes, fitted to measurements or from a machine's data, with intervals.

step = computation(local batch) x slowest worker / mean worker + the part of the all-reduce that backward does not hide,
or what a node's host takes to make its images ready, if that is longer

parameter      a number with unit, 95 % interval and source
computation    the first term: a fitted line over the batch, or a roofline from a machine's data
stragglers     the factor in the middle
communication  the last term: rings on two levels, fused buckets, overlap with backward
model          the terms together
memory         the largest batch that fits
machine        machines as data: labs/machines/*.toml
anchor         rates of a machine's file correct its roofline
chosen         the constants that were chosen by data
observe        runs as the fit sees them
least_squares  lines through measured seconds
notes          what a reader must know of a fit or a prediction
fit            parameters from runs and from an all-reduce benchmark
predict        step time, throughput, speedup, efficiency, largest batch, each with an interval
command        `labs predict`
"""

from labs.costs.fit import fit
from labs.costs.machine import MachineError, load_machine
from labs.costs.parameter import CostError, Parameter
from labs.costs.predict import predict_from_fit, predict_from_machine

__all__ = ["CostError", "MachineError", "Parameter", "fit", "load_machine", "predict_from_fit", "predict_from_machine"]
