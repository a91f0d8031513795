"""Data, model and pipeline parallelism as the timeline of K devices that train one mini-batch after the other.

The unit of time is the forward pass of one layer for the whole mini-batch; backward takes `backward` times as long.
"""

from typing import NamedTuple

from labs.errors import UseError, number, whole


class DeviceSpan(NamedTuple):
    """A device at work: its number, begin and end in units of time, "forward", "backward" or "all-reduce", and the
    number of the micro-batch (0 where the batch is not divided)."""

    device: int
    begin: float
    end: float
    what: str
    part: int = 0


def data_parallel(devices, layers, backward=2.0, reduce=0.5):
    """Each device has all layers and 1/K of the mini-batch; then all sum their gradients for `reduce` units."""
    devices, layers = whole("devices", devices), whole("layers", layers)
    backward, reduce = number("backward", backward), number("reduce", reduce)
    forward = layers / devices
    middle, end = forward, forward * (1 + backward)
    found = []
    for device in range(devices):
        found += [DeviceSpan(device, 0.0, middle, "forward"), DeviceSpan(device, middle, end, "backward")]
        if devices > 1 and reduce:
            found.append(DeviceSpan(device, end, end + reduce, "all-reduce"))
    return found


def pipelined(devices, layers, parts=1, backward=2.0):
    """Each device has an equal share of the layers; the mini-batch goes through them in `parts` micro-batches, all
    forward, then all backward. With one part this is plain model parallelism: one device works, the others wait.

    The idle share of K devices and M parts is (K - 1) / (M + K - 1). Source: Y. Huang and others, GPipe, NeurIPS 2019.
    Raises UseError: layers that cannot be shared equally.
    """
    devices, layers, parts = whole("devices", devices), whole("layers", layers), whole("parts", parts)
    backward = number("backward", backward)
    if layers % devices:
        raise UseError(f"{layers} layers on {devices} devices: no equal shares. Choose a multiple of {devices}.")
    unit = layers / devices / parts  # forward pass of one micro-batch on one device
    turn = (parts + devices - 1) * unit
    found = []
    for part in range(parts):
        for device in range(devices):
            begin = (part + device) * unit
            found.append(DeviceSpan(device, begin, begin + unit, "forward", part))
            begin = turn + (parts - 1 - part + devices - 1 - device) * unit * backward
            if backward:
                found.append(DeviceSpan(device, begin, begin + unit * backward, "backward", part))
    return found


def length(blocks):
    """Units of time from the first begin to the last end."""
    return max(block.end for block in blocks) - min(block.begin for block in blocks)


def idle(blocks):
    """Share of all devices' time in which nothing runs, from 0 to 1."""
    devices = 1 + max(block.device for block in blocks)
    busy = sum(block.end - block.begin for block in blocks)
    return 1 - busy / (devices * length(blocks))
