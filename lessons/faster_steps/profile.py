"""A profile of some steps of `fit` by TensorFlow's profiler, and which operations it spends its time in.

    profile.callback("runs/profile")        in the callbacks of `fit`
    uvx xprof --logdir runs/profile         all that is in it, in the browser

Keras' own callback, TensorBoard(..., profile_batch=(4, 6)), leaves the same files; it needs the package tensorboard.
"""

from pathlib import Path

from labs import compat
from labs.errors import UseError


class ProfileError(UseError):
    """There is no profile to read."""


def callback(folder, first=4, last=6):
    """A Keras callback that profiles the steps `first` to `last` (from 0) of the first epoch into a folder."""
    import keras
    import tensorflow as tf

    running = []

    def begin(batch, logs=None):
        if batch == first and not running:
            tf.profiler.experimental.start(str(folder))
            running.append(True)
        elif batch == last + 1:
            end()

    def end(*_, **__):
        if running == [True]:
            tf.profiler.experimental.stop()
            running.append(False)  # once is enough

    return keras.callbacks.LambdaCallback(on_train_batch_begin=begin, on_epoch_end=end)


def operations(folder):
    """What the newest profile below a folder says about each kind of operation, the slowest first.

    Rows {operation, seconds, calls, share}: kind as TensorFlow names it (Conv2D), seconds over all threads or streams
    without those of operations inside, calls, share of all operations' seconds. Raises ProfileError.
    """
    found = sorted(Path(folder).rglob("*.xplane.pb"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise ProfileError(
            f"No profile below {folder}: the callback writes it when the last batch of profile_batch has ended. "
            "Train for more steps than that."
        )
    space = compat.xplane().XSpace.FromString(found[-1].read_bytes())
    planes = [plane for plane in space.planes if plane.name.startswith("/device:GPU")]
    seconds, calls = {}, {}
    for plane in planes or [plane for plane in space.planes if plane.name == "/host:CPU"]:
        names = {id: event.name for id, event in plane.event_metadata.items()}
        for line in plane.lines:
            events = [(event.offset_ps, event.duration_ps, names[event.metadata_id]) for event in line.events]
            for name, own in _own_times(events):
                if kind := _operation(name, bool(planes)):
                    seconds[kind] = seconds.get(kind, 0.0) + own / 1e12
                    calls[kind] = calls.get(kind, 0) + 1
    if not seconds:
        raise ProfileError(f"{found[-1]} holds no operation: profile batches in which the network trains.")
    whole, dearest = sum(seconds.values()), sorted(seconds, key=seconds.get, reverse=True)
    return [
        {"operation": kind, "seconds": seconds[kind], "calls": calls[kind], "share": seconds[kind] / whole}
        for kind in dearest
    ]


def _own_times(events):
    """(name, duration without that of the events inside) of the events (begin, duration, name) of one thread."""
    open_events = []  # [end, name, own]
    for begin, duration, name in sorted(events, key=lambda event: (event[0], -event[1])):
        while open_events and open_events[-1][0] <= begin:
            yield tuple(open_events.pop()[1:])
        if open_events:
            open_events[-1][2] -= duration
        open_events.append([begin + duration, name, duration])
    for _, name, own in open_events:
        yield name, own


def _operation(name, on_gpu):
    """_FusedConv2D of "sequential/conv2d/BiasAdd:_FusedConv2D", None unless it is an operation of a graph. The kernels
    of a GPU have names of their own."""
    if on_gpu:
        return name
    node, colon, kind = name.partition("#")[0].rpartition(":")
    named = kind.isidentifier() and kind.lstrip("_")[:1].isupper() and "::" not in name
    return kind if colon and node and named else None
