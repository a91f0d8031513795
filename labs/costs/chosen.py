"""The constants that were chosen by data, all of them: chosen.toml, which `python benchmarks/published.py --write` writes.

labs.costs.published says how each one is chosen.
"""

from dataclasses import dataclass
from math import exp
from pathlib import Path

from labs import schema
from labs.costs.parameter import CostError, Parameter
from labs.results import intervals

FILE = Path(__file__).with_name("chosen.toml")
SPREADS = (0.005, 0.04)  # 95 % range of `spread`, where a machine's file has none


@dataclass(frozen=True)
class Chosen:
    """overlap: of all-reduce and backward, from 0 (none) to 1 (full). spread: standard deviation of a worker's step
    times / their mean. model_error: standard deviation of the logarithm of a step of several workers / that of one, as
    measured / as the model has it, beyond what the ranges of its parameters explain; model_degrees: its degrees of
    freedom. repeat_spread: standard deviation of the logarithm of a run's mean step from run to run; repeat_degrees:
    its degrees of freedom. rate_reach: relative 95 % reach of a rate that is carried over from another program or
    another network of the family."""

    overlap: float
    spread: float
    model_error: float
    model_degrees: int
    repeat_spread: float
    repeat_degrees: int
    rate_reach: float

    @property
    def repeat_reach(self):
        """95 % reach of the logarithm of a single run's mean step."""
        return intervals.t_quantile(self.repeat_degrees) * self.repeat_spread

    def unmodelled(self, times=1.0):
        """The factor on a step of several workers, relative to one worker, as a Parameter: 1, and the interval of
        Student's t for `times` model errors in quadrature."""
        reach = intervals.t_quantile(self.model_degrees) * self.model_error * times**0.5
        source = "what the model leaves out: its errors on published efficiencies (labs/machines/README.md)"
        return Parameter(1.0, "", (exp(-reach), exp(reach)), source)


CHOSEN = Chosen(**schema.read(FILE, FILE.name, CostError))
