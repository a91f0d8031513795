"""Answers to the self-checks of 25_memory_and_exchange that have a judge of their own."""

import numpy as np

MEAN, SUM = "hvd.grouped_allreduce([each / passes for each in total])", "part if total is None else [a + b for a, b in"
KEPT = "        self.velocity = tf.Variable(tf.zeros(self.share))\n"
REDUCED, MINE = "hvd.reducescatter(flat(gradients, padded))", "flat(self.weights, padded)[begin : begin + self.share]"
MASTER = "tf.Variable(flat(weights, hvd.size() * self.share)[hvd.rank() * self.share :][: self.share])"
WHOLE = "        self.apply(hvd.grouped_allreduce(gradients), self.weights)\n        return\n"

RIGHT = [("memory.4", (5,)), ("memory.4", (np.int64(5),))]
WRONG = [("memory.4", (4,)), ("memory.4", (6,)), ("memory.4", (5.0,)), ("memory.4", (24,))]
STYLES = [
    (
        "memory.6",
        KEPT,
        f"{KEPT}        self.own = {MASTER}\n",
        f"{MINE} + self.velocity",
        "self.own.assign_add(self.velocity)",
    )
]
MISTAKES = [
    ("memory.5", MEAN, "hvd.grouped_allreduce(total)"),
    ("memory.5", MEAN, "[each / passes for each in total]"),
    ("memory.5", MEAN, f"total if hvd.rank() else {MEAN}"),
    ("memory.5", "np.split(images, passes), np.split(labels, passes)", "[images] * passes, [labels] * passes"),
    ("memory.5", "gradient(some, their_labels)", "hvd.grouped_allreduce(gradient(some, their_labels))"),
    ("memory.5", SUM, "part if total is None else [passes * b for a, b in"),
    ("memory.6", "self.momentum * self.velocity - ", "-"),
    ("memory.6", REDUCED, "hvd.reducescatter(flat(gradients, padded), op=hvd.Sum)"),
    ("memory.6", REDUCED, "hvd.allreduce(flat(gradients, padded))[begin : begin + self.share]"),
    ("memory.6", REDUCED, "flat(gradients, padded)[begin : begin + self.share]"),
    ("memory.6", "begin, padded = hvd.rank()", "begin, padded = (hvd.size() - 1 - hvd.rank())"),
    ("memory.6", "hvd.allgather(mine)", "tf.concat([mine, hvd.allgather(mine)], 0)"),
    ("memory.6", KEPT, f"{KEPT}        self.whole = flat(weights, sum(self.sizes))\n"),
    ("memory.6", KEPT, f"{KEPT}        self.apply = keras.optimizers.SGD(rate, momentum).apply\n")
    + ("        begin, padded", f"{WHOLE}        begin, padded"),
]
