"""Data, model and pipeline parallelism as the timeline of K devices that train one mini-batch.

The unit of time is the forward pass of one layer for the whole mini-batch.
"""

from collections import namedtuple

BACKWARD = 2  # times as long as forward
ALL_REDUCE = 0.5  # units that the sum of all gradients takes


# A device at work: its number, begin and end in units of time, "forward", "backward" or "all-reduce", and the number of
# the micro-batch (0 where the batch is not divided).
DeviceSpan = namedtuple("DeviceSpan", "device begin end what part", defaults=[0])


def data_parallel(devices, layers):
    """Each device has all layers and 1/K of the mini-batch; then all sum their gradients."""
    forward = layers / devices
    backward = forward + forward * BACKWARD
    found = []
    for device in range(devices):
        found += [DeviceSpan(device, 0, forward, "forward"), DeviceSpan(device, forward, backward, "backward")]
        if devices > 1:
            found.append(DeviceSpan(device, backward, backward + ALL_REDUCE, "all-reduce"))
    return found


def pipelined(devices, layers, parts=1):
    """Each device has an equal share of the layers; the mini-batch goes through them in `parts` micro-batches, all
    forward, then all backward. With one part this is plain model parallelism: one device works, the others wait.

    The idle share of K devices and M parts is (K - 1) / (M + K - 1). Source: Y. Huang and others, GPipe, NeurIPS 2019.
    """
    unit = layers / devices / parts  # forward pass of one micro-batch on one device
    turn = (parts + devices - 1) * unit
    found = []
    for part in range(parts):
        for device in range(devices):
            begin = (part + device) * unit
            found.append(DeviceSpan(device, begin, begin + unit, "forward", part))
            begin = turn + (parts - 1 - part + devices - 1 - device) * unit * BACKWARD
            found.append(DeviceSpan(device, begin, begin + unit * BACKWARD, "backward", part))
    return found


def length(blocks):
    """Units of time until the last end."""
    return max(block.end for block in blocks)


def idle(blocks):
    """Share of all devices' time in which nothing runs, from 0 to 1."""
    devices = 1 + max(block.device for block in blocks)
    busy = sum(block.end - block.begin for block in blocks)
    return 1 - busy / (devices * length(blocks))
