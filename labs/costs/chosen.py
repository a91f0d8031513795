"""The constants that were chosen by data, all of them: chosen.toml, written by benchmarks/published.py --write.

That file says how each one is chosen.
"""

from dataclasses import dataclass
from math import exp, log2
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
    freedom; model_workers: most workers on which it was seen. repeat_spread: standard deviation of the logarithm of a
    run's mean step from run to run; repeat_degrees: its degrees of freedom. host: seconds that one process which drives
    all GPUs of a node adds to a step for each GPU after the first; host_most: upper 95 % end of these from program to
    program. rate_reach: relative 95 % reach of a rate that is carried over from another program or another network of
    the family."""

    overlap: float
    spread: float
    model_error: float
    model_degrees: int
    model_workers: int
    repeat_spread: float
    repeat_degrees: int
    host: float
    host_most: float
    rate_reach: float

    @property
    def repeat_reach(self):
        """95 % reach of the logarithm of a single run's mean step."""
        return intervals.t_quantile(self.repeat_degrees) * self.repeat_spread

    @property
    def one_process(self):
        """`host` as a Parameter."""
        return Parameter(self.host, "s", (0.0, self.host_most), "published programs (labs/machines/README.md)")

    def unmodelled(self, workers, measured=None):
        """The factor on a step of several workers, relative to one, as a Parameter: 1, and an interval of Student's t.

        Its variance is one model error's, and one more for each doubling of the workers beyond model_workers. measured:
        most workers that runs were fitted to; then one for each doubling beyond these, and None up to there.
        """
        doublings = log2(workers / (measured or self.model_workers))
        times = max(0.0, doublings) + (0 if measured else 1)
        if not times:
            return None
        reach = intervals.t_quantile(self.model_degrees) * self.model_error * times**0.5
        source = "what the model leaves out: its errors on published efficiencies (labs/machines/README.md)"
        return Parameter(1.0, "", (exp(-reach), exp(reach)), source)


CHOSEN = Chosen(**schema.read(FILE, FILE.name, CostError))
