"""In which operations training spends its time, by a profile of TensorFlow's profiler.

tf.profiler.experimental.Profile("runs/profile") leaves one, as does Keras' callback TensorBoard(..., profile_batch=(4,
6)), which needs the package tensorboard. `uvx xprof --logdir runs/profile` shows all that is in it, in the browser.
"""

import re
from collections import defaultdict
from pathlib import Path

from labs import compat
from labs.errors import UseError

# _FusedConv2D of "sequential/conv2d/BiasAdd:_FusedConv2D#id=1#": an operation of a graph, and nothing else that ran
OPERATION = re.compile(r"^(?!.*::)[^#]+:(_*[A-Z]\w*)(?:#.*)?$")


def operations(folder):
    """What the newest profile below a folder says about each kind of operation, the slowest first.

    Rows {operation, seconds, calls, share}: kind as TensorFlow names it (Conv2D; a GPU's kernels have names of their
    own), seconds over all threads or streams without those of operations inside, calls, share of all operations'
    seconds. Raises UseError.
    """
    found = sorted(Path(folder).rglob("*.xplane.pb"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise UseError(f"No profile below {folder}: run the cell that records one.")
    planes = compat.xplane().XSpace.FromString(found[-1].read_bytes()).planes
    gpus = [plane for plane in planes if plane.name.startswith("/device:GPU")]
    seconds = defaultdict(list)
    for plane in gpus or [plane for plane in planes if plane.name == "/host:CPU"]:
        names = {id: event.name for id, event in plane.event_metadata.items()}
        for line in plane.lines:
            events = [(event.offset_ps, event.duration_ps, names[event.metadata_id]) for event in line.events]
            for name, own in _own_times(events):
                for kind in [name] if gpus else OPERATION.findall(name):
                    seconds[kind].append(own / 1e12)
    whole = sum(map(sum, seconds.values()))
    rows = [
        {"operation": kind, "seconds": sum(times), "calls": len(times), "share": sum(times) / whole}
        for kind, times in seconds.items()
    ]
    return sorted(rows, key=lambda row: -row["seconds"])


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
