"""The model of a step: its terms together."""

from dataclasses import dataclass

from labs.costs.communication import BACKWARD, Fabric, exposed
from labs.costs.computation import values as values_of
from labs.costs.parameter import CostError
from labs.costs.stragglers import slowest
from labs.simulate.given import number, whole
from labs.simulate.reduce import ring_bytes


@dataclass(frozen=True)
class Breakdown:
    """Where the seconds of a step go. step = computation + stragglers + exposed; all_reduce is the whole of it, of
    which backward hides the rest; without_overlap and with_full_overlap are what would be exposed then."""

    computation: float
    stragglers: float
    exposed: float
    all_reduce: float
    without_overlap: float
    with_full_overlap: float

    @property
    def step(self):
        return self.computation + self.stragglers + self.exposed


@dataclass(frozen=True)
class Model:
    """A network on a machine. computation: Line or Roofline; tensor_bytes: of the gradients that are exchanged;
    parameters: {name: Parameter} of communication and stragglers. They are `overlap`, `spread`, `cycle`,
    `fusion_threshold` and the fabric's, or `exposed_per_byte` and `spread`."""

    computation: object
    tensor_bytes: tuple
    parameters: dict
    devices: int = 1
    algorithm: str = "two-level"

    @property
    def all_parameters(self):
        """{name: Parameter} of all terms."""
        return self.computation.parameters | self.parameters

    def values(self, **changed):
        """{name: value} of all parameters, some of them `changed`."""
        found = values_of(self.all_parameters)
        if unknown := changed.keys() - found.keys():
            raise CostError(f"{unknown.pop()} is no parameter of this model; they are {', '.join(found)}.")
        return found | changed

    def breakdown(self, workers, local_batch, accumulation=1, values=None):
        """Breakdown of a step of K workers with `local_batch` images each.

        step = C + C (E[slowest] / mean - 1) + exposed: all workers wait for the slowest one (labs.costs.stragglers),
        and for what backward does not hide of the all-reduce (labs.costs.communication). exposed = overlap x (with
        full overlap) + (1 - overlap) x (without). accumulation: passes of forward and backward, of `local_batch` images
        each, before one all-reduce; only the last backward can hide it. values: as `values()` gives them. Raises
        SimulationError.
        """
        workers, local_batch = whole("workers", workers), number("local_batch", local_batch, above=True)
        passes, values = whole("accumulation", accumulation), values or self.values()
        once = self.computation.seconds(local_batch, values)
        total, none, full = self._exchange(workers, BACKWARD * once, values)
        overlap = values.get("overlap", 0.0)
        waiting = passes * once * (slowest(workers, values["spread"]) - 1)
        return Breakdown(passes * once, waiting, overlap * full + (1 - overlap) * none, total, none, full)

    def _exchange(self, workers, backward, values):
        if "exposed_per_byte" in values:  # fitted from step times: it is the exposed part already
            seconds = values["exposed_per_byte"] * ring_bytes(workers, sum(self.tensor_bytes))
            return seconds, seconds, seconds
        names = ("latency_inside", "bandwidth_inside", "latency_between", "bandwidth_between")
        fabric = Fabric(self.devices, **{name: values[name] for name in names}, algorithm=self.algorithm)
        return exposed(workers, self.tensor_bytes, fabric, backward, values["fusion_threshold"], values["cycle"])
