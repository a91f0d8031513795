"""Seconds that a worker computes in a step, over its batch: a line that was fitted, or a roofline from data.

Both give `parameters`, {name: Parameter}, and `seconds(local_batch, values)` with values {name: number} for them.
"""

from dataclasses import dataclass

from labs.costs.parameter import Parameter

FLOPS = 6  # operations per multiply-add of forward: one multiplication, one addition, and backward costs twice as much
BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}


@dataclass(frozen=True)
class FittedLine:
    """level + slope x (batch - centre): least squares. Written about the centre of the fitted batches, where the errors
    of level and slope are independent (any text on regression, such as N. Draper and H. Smith, Applied Regression
    Analysis, section 1.4). The fixed cost is level - slope x centre."""

    level: Parameter  # seconds at the centre
    slope: Parameter  # seconds per image
    centre: float  # images

    @property
    def parameters(self):
        return {"computation_level": self.level, "computation_slope": self.slope}

    def seconds(self, local_batch, values):
        level = values["computation_level"]
        line = level + values["computation_slope"] * (local_batch - self.centre)
        # The end of an interval may cross 0 far outside.
        return max(line, 0.05 * level * min(1, local_batch / self.centre))


@dataclass(frozen=True)
class Roofline:
    """correction x (tensors x overhead + batch x (multiply-adds x 6 / (peak x share) + activations x passes / memory
    bandwidth)).

    Layers run one after the other; some are limited by arithmetic and some by memory, so both times add up (S.
    Williams, A. Waterman and D. Patterson, "Roofline", CACM 52, 2009, for one kernel; the sum over a network is this
    model's assumption). 6 operations per multiply-add: forward, and twice as much in backward (A. Griewank and A.
    Walther, Evaluating Derivatives, 2008: each product has two derivatives). share can be above 1: Winograd's
    convolutions need fewer multiplications (A. Lavin and S. Gray, CVPR 2016). overhead: what a step costs per tensor
    of weights, whatever the batch: starts of kernels and the update.
    """

    multiply_adds: float  # of forward, for an image
    activation_bytes: float  # of an image, in the precision of the computation
    tensors: int
    parameters: dict  # peak, share, memory_bandwidth, passes, overhead, correction

    def seconds(self, local_batch, values):
        arithmetic = FLOPS * self.multiply_adds / (values["peak"] * values["share"])
        traffic = self.activation_bytes * values["passes"] / values["memory_bandwidth"]
        return values["correction"] * (self.tensors * values["overhead"] + local_batch * (arithmetic + traffic))


def roofline(facts, device, precision="float32"):
    """The Roofline of a network (labs.models.counts.Facts) on a device, which is {name: Parameter} as
    `Machine.computes` gives it."""
    correction = {"correction": Parameter(1.0, "", source="none: no measurement of this network is used")}
    activations = facts.activation_bytes * BYTES.get(precision, 4) / 4
    return Roofline(facts.multiply_adds, activations, facts.tensors, device | correction)


def values(parameters):
    """{name: value} of {name: Parameter}."""
    return {name: parameter.value for name, parameter in parameters.items()}
