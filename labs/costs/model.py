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
    """Where the seconds of a step go. step = computation + stragglers + exposed + host + input; all_reduce is the whole
    of it, of which backward hides the rest; without_overlap and with_full_overlap are what would be exposed then. host:
    what one process spends on driving several GPUs. input: how much longer than all others the node's host takes to
    make the step's images ready; input_whole: all it takes."""

    computation: float
    stragglers: float
    exposed: float
    all_reduce: float
    without_overlap: float
    with_full_overlap: float
    host: float = 0.0
    input: float = 0.0
    input_whole: float = 0.0

    @property
    def step(self):
        return self.computation + self.stragglers + self.exposed + self.host + self.input


@dataclass(frozen=True)
class Model:
    """A network on a machine. computation: Line or Roofline; tensor_bytes: of the gradients that are exchanged;
    parameters: {name: Parameter} of communication and stragglers. They are `overlap`, `spread`, `cycle`,
    `fusion_threshold` and the fabric's, or `exposed_per_byte` and `spread`; and where they are known, `input`, seconds
    in which a node's host makes an image ready, `host`, seconds for each further GPU that a process drives, and
    `unmodelled`, a factor on steps of several workers (see `step`).
    devices: workers of a node."""

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

        step = max(C + C (E[slowest] / mean - 1) + exposed + host x (GPUs of a node - 1), input x images of a node): all
        workers wait for the slowest one (labs.costs.stragglers), for what backward does not hide of the all-reduce
        (labs.costs.communication), and for what one process does for one GPU after the other, if it drives them all.
        exposed = overlap x (with full overlap) + (1 - overlap) x (without). The host's pipeline is shared by the
        workers of a node; it prepares the next batch during a step, so the longer of the two counts and not their sum
        (TensorFlow, "Better performance with the tf.data API", section on prefetching). accumulation: passes of forward
        and backward, of `local_batch` images each, before one all-reduce; only the last backward can hide it. values:
        as `values()` gives them. Raises SimulationError.
        """
        workers, local_batch = whole("workers", workers), number("local_batch", local_batch, above=True)
        passes, values = whole("accumulation", accumulation), values or self.values()
        once = self.computation.seconds(local_batch, values)
        total, none, full = self._exchange(workers, BACKWARD * once, values)
        overlap = values.get("overlap", 0.0)
        waiting = passes * once * (slowest(workers, values["spread"]) - 1)
        lost = overlap * full + (1 - overlap) * none
        fed = values.get("input", 0.0) * self.node_images(workers, local_batch, passes)
        driving = values.get("host", 0.0) * (min(workers, self.devices) - 1)
        late = max(0.0, fed - (passes * once + waiting + lost + driving))
        return Breakdown(passes * once, waiting, lost, total, none, full, driving, late, fed)

    def node_images(self, workers, local_batch, accumulation=1):
        """Images that a step takes from the host of a node, of the fullest if nodes differ."""
        return min(workers, self.devices) * local_batch * accumulation

    def step(self, workers, local_batch, accumulation=1, values=None):
        """Seconds of a step, with the factor `unmodelled` on several workers; never less than one worker's, since the
        model knows nothing by which others would make a worker faster."""
        values = values or self.values()
        alone = self.breakdown(1, local_batch, accumulation, values).step
        if workers == 1:
            return alone
        several = self.breakdown(workers, local_batch, accumulation, values).step
        return max(alone, several * values.get("unmodelled", 1.0))

    def _exchange(self, workers, backward, values):
        if "exposed_per_byte" in values:  # fitted from step times: it is the exposed part already
            seconds = values["exposed_per_byte"] * ring_bytes(workers, sum(self.tensor_bytes))
            return seconds, seconds, seconds
        names = ("latency_inside", "bandwidth_inside", "latency_between", "bandwidth_between")
        fabric = Fabric(self.devices, **{name: values[name] for name in names}, algorithm=self.algorithm)
        return exposed(workers, self.tensor_bytes, fabric, backward, values["fusion_threshold"], values["cycle"])
