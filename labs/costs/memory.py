"""The largest batch that should fit into a worker's memory."""

from labs.costs.communication import THRESHOLD
from labs.costs.computation import BYTES
from labs.costs.parameter import Parameter
from labs.models.counts import Facts
from labs.simulate.given import number, whole

USABLE = 0.92  # of a device's memory; the rest is the runtime's own
KEPT = (0.75, 1.0, 1.33)  # activations that a step really holds / those that are counted: low, central, high


def largest_batch(
    facts: Facts, memory: float, precision: str = "float32", slots: int = 1, workers: int = 1
) -> Parameter:
    """Largest number of images per worker in `memory` bytes, with its interval; the value is 0 where nothing fits.

    memory >= 4 bytes x (parameters + trainable x (1 + slots)) + fusion buffer + batch x activations, with activations
    in `precision`, all else in float32 (mixed precision keeps float32 weights: P. Micikevicius and others, ICLR 2018).
    slots: numbers per weight that the optimizer keeps (SGD 0, momentum 1, Adam 2). Parts of memory:
    labs.simulate.memory and its source. Raises SimulationError.
    """
    memory, slots = number("memory", memory, above=True), whole("slots", slots, 0)
    fixed = 4 * (facts.parameters + facts.trainable * (1 + slots))
    if whole("workers", workers) > 1:
        fixed += min(THRESHOLD, facts.gradient_bytes)
    image = facts.activation_bytes * BYTES.get(precision, 4) / 4
    low, value, high = (max(0, int((USABLE * memory - fixed) / (image * kept))) for kept in reversed(KEPT))
    source = (
        f"{USABLE:.0%} of the memory, weights, gradients, the optimizer ({slots} per weight), "
        f"and between {KEPT[0]} and {KEPT[2]} of the counted activations"
    )
    return Parameter(value, "images", (low, high), source)
