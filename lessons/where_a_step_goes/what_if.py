"""Both networks on up to 4096 V100: the step model with numbers that others published, all of them in INPUTS.

Arithmetic with stated assumptions: nothing here was measured on such a machine, and the ranges are not confidence
intervals. They hold what the inputs' ranges do.
"""

from functools import lru_cache, partial
from typing import NamedTuple

from lessons import counts
from lessons.step_model import BACKWARD, Quantity, exposed, ranged, slowest, two_rings

NAMES = ("ResNet50V2", "ResNet152V2")
WORKERS = tuple(2**k for k in range(13))  # 1, 2, 4, ..., 4096
DEVICES = 8  # GPUs of a node
MEMORY = 16e9  # bytes of a V100 (its data sheet)
BATCH = 64  # images for which the rates are taken; one of the two of ResNet-50 was measured with 128
HALF = 982.4 / 362.4  # times as fast in float16: ResNet-50 v1.5 on one V100, TensorFlow 1.15 (DLPerf, 2020)

_LEFT_OUT = "factor for what the model leaves out: four programs on 32 V100 had efficiencies of 0.82 to 0.94 (DLPerf)"
INPUTS = {
    "images/s, ResNet50V2": Quantity(
        383, 305, 480, "images/s", "ResNet-50 on a V100: 405 (Lambda, 2019), 362 (DLPerf, 2020)"
    ),
    "images/s, ResNet152V2": Quantity(155, 125, 195, "images/s", "ResNet-152 on a V100 (Lambda, 2019)"),
    "overhead": Quantity(50, 20, 200, "us", "assumed: start of operations and update, for each tensor"),
    "bandwidth inside": Quantity(100, 60, 130, "GB/s", "NVLink 2.0 has 150; rings of NCCL reach a part"),
    "latency inside": Quantity(6, 3, 15, "us", "usual of NCCL over NVLink"),
    "share reached": Quantity(0.7, 0.42, 0.93, "", "of the bandwidth between nodes, by TCP"),
    "latency between": Quantity(30, 15, 60, "us", "usual of TCP in a data centre"),
    "spread": Quantity(0.03, 0.005, 0.04, "", "assumed: standard deviation of a worker's steps / their mean"),
    "overlap": Quantity(1.0, 0.0, 1.0, "", "assumed: backward hides all that it can; at 0 it hides nothing"),
    "left out, ResNet50V2": Quantity(1.0, 0.93, 1.07, "", _LEFT_OUT),
    "left out, ResNet152V2": Quantity(1.0, 0.93, 1.07, "", _LEFT_OUT),
}


class StepParts(NamedTuple):
    """Where the seconds of a step go: their sum is the step."""

    computation: float
    stragglers: float
    exposed: float


def networks():
    """{name: Facts} of both networks for images of 224x224 and 1000 classes; the first time ever takes some seconds."""
    return {name: counts.of(name, 224, 1000) for name in NAMES}


def step(network, workers, batch, values, bandwidth, precision="float32", fusion=128, accumulation=1):
    """The StepParts of some workers; values: {name: number} for INPUTS; the rest: see `steps`."""
    tensor_bytes = networks()[network].tensor_bytes
    fixed = len(tensor_bytes) * values["overhead"] * 1e-6
    once = fixed + batch * (1 / values[f"images/s, {network}"] - fixed / BATCH)  # the line through the published rate
    once /= HALF if precision == "float16" else 1
    lost = 0.0
    if workers > 1:
        inside = values["latency inside"] * 1e-6, values["bandwidth inside"] * 1e9
        between = values["latency between"] * 1e-6, values["share reached"] * bandwidth * 1e9 / 8

        def all_reduce(size):
            return two_rings(workers, size, DEVICES, inside, between)

        lost = exposed(tensor_bytes, all_reduce, BACKWARD * once, fusion * 2**20, values["overlap"])
    computation = accumulation * once  # only the last backward pass can hide the all-reduce
    return StepParts(computation, computation * (slowest(workers, values["spread"]) - 1), lost)


@lru_cache(512)
def steps(network, batch=64, bandwidth=25, latency=30, precision="float32", fusion=128, accumulation=1):
    """{workers: StepParts} for WORKERS.

    batch: images per worker and pass; bandwidth: between nodes, Gbit/s; latency: between nodes, microseconds a message;
    precision: "float32" or "float16", of the computation; fusion: MiB of a fused message, 0 for none; accumulation:
    passes before each all-reduce.
    """
    values = {name: quantity.value for name, quantity in INPUTS.items()} | {"latency between": latency}
    options = bandwidth, precision, fusion, accumulation
    return {workers: step(network, workers, batch, values, *options) for workers in WORKERS}


def efficiencies(network, **settings):
    """{workers: efficiency} for WORKERS; settings as of `steps`."""
    found = steps(network, **settings)
    return {workers: sum(found[1]) / sum(each) for workers, each in found.items()}


def first_below(network, **settings):
    """Smallest number of workers in WORKERS whose efficiency is below 0.8, or None."""
    return next((workers for workers, value in efficiencies(network, **settings).items() if value < 0.8), None)


def order(workers, batches, bandwidth):
    """{name of a network: efficiency; "ratio": the second one's / the first one's}, each (value, (low, high)).

    batches: images per worker, of each of NAMES. An input of the machine moves both networks together, and in part
    cancels in the ratio; each network's own rate, and what the model leaves out, do not.
    """

    def efficiency(place, values):
        network, batch = NAMES[place], batches[place]
        alone, together = (sum(step(network, count, batch, values, bandwidth)) for count in (1, workers))
        return alone / (together * values[f"left out, {network}"])

    found = {name: ranged(partial(efficiency, place), INPUTS, most=1.0) for place, name in enumerate(NAMES)}
    return found | {"ratio": ranged(lambda values: efficiency(1, values) / efficiency(0, values), INPUTS)}


def fits(network, precision="float32"):
    """About how many images per worker fit into a V100, with SGD and momentum: 92 % of its memory less weights,
    gradients, momentum (float32) and the fusion buffer, over the activations (lessons.counts) of an image."""
    facts = networks()[network]
    fixed = 4 * (facts.parameters + 2 * facts.trainable) + min(128 * 2**20, facts.gradient_bytes)
    return int((0.92 * MEMORY - fixed) / (facts.activation_bytes / (2 if precision == "float16" else 1)))
