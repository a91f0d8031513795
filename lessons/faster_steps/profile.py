"""In which operations training spends its time, by a profile of TensorFlow's profiler.

tf.profiler.experimental.Profile("runs/profile") leaves one, as does Keras' callback TensorBoard(..., profile_batch=(4,
6)), which needs the package tensorboard. `uvx xprof --logdir runs/profile` shows all that is in it, in the browser.
"""

import json
from collections import Counter
from pathlib import Path

from labs.errors import UseError


def operations(folder):
    """What the newest profile below a folder says about each kind of operation, the slowest first.

    Rows {operation, seconds, share}: kind as TensorFlow names it (Conv2D), seconds over all threads or streams without
    those of operations inside, share of all operations' seconds; those on GPUs where there are any, without the input
    pipeline. Raises UseError.
    """
    from tensorflow.python.profiler.internal import _pywrap_profiler_plugin  # what TensorBoard's plugin calls

    found = sorted(Path(folder).rglob("*.xplane.pb"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise UseError(f"No profile below {folder}: run the cell that records one.")
    text, _ = _pywrap_profiler_plugin.xspace_to_tools_data([str(found[-1])], "framework_op_stats")
    _, table = json.loads(text)  # the first one has the idle time, too
    names = [column["id"] for column in table["cols"]]
    stats = [dict(zip(names, (cell["v"] for cell in row["c"]), strict=True)) for row in table["rows"]]
    where = min(row["host_or_device"] for row in stats)  # "Device" stands before "Host"
    seconds = Counter()
    for row in stats:
        if row["host_or_device"] == where and row["type"] != "Dataset":
            seconds[row["type"]] += row["total_self_time"] / 1e6
    whole = seconds.total()
    return [{"operation": kind, "seconds": own, "share": own / whole} for kind, own in seconds.most_common()]
