"""Started with K ranks by tests/hvd/test_collectives.py: what each collective of labs.hvd gives each rank, as JSON."""

import json
import sys
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from labs import devices, hvd

out = Path(sys.argv[1])
hvd.init()
devices.pin(hvd.local_rank(), hvd.local_size())
rank, size = hvd.rank(), hvd.size()
rows = np.arange(2 * (2 * size + 1), dtype="float32").reshape(-1, 2) * (rank + 1)  # K does not divide their number

found = {
    "allreduce": hvd.allreduce(rows),
    "sum": hvd.allreduce(keras.Variable(rows), op=hvd.Sum),
    "grouped": hvd.grouped_allreduce([rows, rows[0]])[1],
    "reducescatter": hvd.reducescatter(rows),
    "reducescatter_sum": hvd.reducescatter(tf.constant(rows), op=hvd.Sum),
    "allgather": hvd.allgather(rows[: rank + 1]),
    "broadcast": hvd.broadcast(rows, 1),
    "slices": hvd.allreduce(tf.IndexedSlices(tf.constant([[1.0, 2.0]]), [rank % 2], tf.constant([2, 2]))),
}


@tf.function
def in_a_graph(values):
    twice = hvd.allreduce(values, name="first"), hvd.allreduce(2 * values, name="second")
    return hvd.allgather(hvd.reducescatter(twice[0] + twice[1], name="third"), name="fourth")


found["graph"] = in_a_graph(tf.constant(rows))
refused = []
for collective in (hvd.reducescatter, hvd.allgather):
    try:
        collective(1.0)
    except hvd.HorovodError as problem:
        refused.append(str(problem))
values = {name: np.asarray(value).tolist() for name, value in found.items()}
(out / f"rank{rank}.json").write_text(json.dumps(values | {"refused": refused}))
