"""Answers to the self-checks of 25_memory_and_exchange: right ones, and wrong ones that students give."""

from functools import partial
from itertools import combinations

import numpy as np
from making import swapped

accumulated = partial(swapped, "scripts/accumulated.py")
sharded = partial(swapped, "scripts/sharded_optimizer.py")

LOOP = """    total = None
    for some, their_labels in zip(np.split(images, passes), np.split(labels, passes)):
        part = gradient(some, their_labels)
        total = part if total is None else [a + b for a, b in zip(total, part)]
    return hvd.grouped_allreduce([each / passes for each in total])
"""
TOTAL = "        total = part if total is None else [a + b for a, b in zip(total, part)]"
RETURN = "    return hvd.grouped_allreduce([each / passes for each in total])"
WEIGHED = """    parts = []
    size = len(images) // passes
    for number in range(passes):
        here = slice(number * size, (number + 1) * size)
        parts.append([np.asarray(each) for each in gradient(images[here], labels[here])])
    return [hvd.allreduce(sum(each) / passes) for each in zip(*parts)]
"""
SUMMED = """    total = [0] * len(gradient(images[:1], labels[:1])) if False else None
    for part in range(passes):
        found = gradient(np.split(images, passes)[part], np.split(labels, passes)[part])
        total = [np.zeros(each.shape, "float32") for each in found] if total is None else total
        total = [a + np.asarray(b) / (passes * hvd.size()) for a, b in zip(total, found)]
    return list(hvd.grouped_allreduce(total, op=hvd.Sum))
"""
EVERY_PASS = """    total = None
    for some, their_labels in zip(np.split(images, passes), np.split(labels, passes)):
        part = hvd.grouped_allreduce([each / passes for each in gradient(some, their_labels)])
        total = part if total is None else [a + b for a, b in zip(total, part)]
    return total
"""
SCATTERED = """    total = 0
    for number in range(passes):
        found = gradient(images[number::passes], labels[number::passes])
        total = total + np.concatenate([np.ravel(each) for each in found])
    mean = np.asarray(hvd.allgather(hvd.reducescatter(total / passes)))
    sizes = [int(np.prod(each.shape)) for each in found]
    return [part.reshape(each.shape) for part, each in zip(np.split(mean, np.cumsum(sizes)[:-1]), found)]
"""
OF_HOROVOD = """    import functools
    size = len(labels) // passes
    parts = [gradient(images[at : at + size], labels[at : at + size]) for at in range(0, len(labels), size)]
    total = functools.reduce(lambda one, other: [a + b for a, b in zip(one, other)], parts)
    return tuple(horovod.allreduce(each, op=horovod.Average) / passes for each in total)
"""
ALL_BUT_THE_LAST = """    total, parts = None, max(1, passes - 1)
    for some, their_labels in list(zip(np.split(images, passes), np.split(labels, passes)))[:parts]:
        part = gradient(some, their_labels)
        total = part if total is None else [a + b for a, b in zip(total, part)]
    return hvd.grouped_allreduce([each / parts for each in total])
"""
OF_SIZE = LOOP.replace(
    "np.split(images, passes), np.split(labels, passes)", "*(np.split(a, 6) for a in (images, labels))"
)

INIT = """        self.sizes = [int(np.prod(weight.shape)) for weight in weights]
        self.share = -(-sum(self.sizes) // hvd.size())  # rounded up: zeros fill what the last rank has too many
        self.velocity = tf.Variable(tf.zeros(self.share))
"""
STEP = """        begin, padded = hvd.rank() * self.share, hvd.size() * self.share
        mean = hvd.reducescatter(flat(gradients, padded))
        self.velocity.assign(self.momentum * self.velocity - self.rate * mean)
        mine = flat(self.weights, padded)[begin : begin + self.share] + self.velocity
        new = hvd.allgather(mine)[: sum(self.sizes)]
        for weight, part in zip(self.weights, tf.split(new, self.sizes)):
            weight.assign(tf.reshape(part, weight.shape))
"""
# A reduce-scatter and a share for each weight; uneven rows as Horovod divides them.
EACH_INIT = """        self.velocity = None
"""
EACH_STEP = """        if self.velocity is None:
            self.velocity = [0.0] * len(self.weights)
        for number, (weight, gradient) in enumerate(zip(self.weights, gradients)):
            count = int(np.prod(weight.shape))
            rows = np.array_split(np.arange(count), hvd.size())[hvd.rank()]
            mean = hvd.reducescatter(tf.reshape(gradient, [-1])).numpy()
            self.velocity[number] = self.momentum * self.velocity[number] - self.rate * mean
            mine = np.ravel(weight.numpy())[rows] + self.velocity[number]
            weight.assign(tf.reshape(hvd.allgather(mine.astype("float32")), weight.shape))
"""
# NumPy, without padding; v in the form of PyTorch: w <- w - rate v.
NUMPY_INIT = """        self.count = sum(int(np.prod(weight.shape)) for weight in weights)
        self.mine = np.array_split(np.arange(self.count), hvd.size())[hvd.rank()]
        self.v = np.zeros(len(self.mine), "float32")
"""
NUMPY_STEP = """        grad = np.concatenate([np.ravel(each) for each in gradients])
        self.v = self.momentum * self.v + np.asarray(hvd.reducescatter(grad, op=hvd.Sum)) / hvd.size()
        new = np.concatenate([np.ravel(np.asarray(each)) for each in self.weights])[self.mine] - self.rate * self.v
        new, place = np.asarray(hvd.allgather(new)), 0
        for weight in self.weights:
            count = int(np.prod(weight.shape))
            weight.assign(new[place : place + count].reshape(weight.shape))
            place += count
"""
# Every rank updates and sends only v; a tf.function.
CHANGES = """        padded = hvd.size() * self.share
        self.velocity.assign(self.momentum * self.velocity - self.rate * hvd.reducescatter(flat(gradients, padded)))
        change, place = hvd.allgather(self.velocity), 0
        for weight, size in zip(self.weights, self.sizes):
            weight.assign_add(tf.reshape(change[place : place + size], weight.shape))
            place += size
"""
IN_A_FUNCTION = "        tf.function(self._step)(gradients)\n\n    def _step(self, gradients):\n" + STEP
# Of its share a rank also keeps the weights in float32, as mixed precision does.
MASTER_INIT = (
    INIT
    + """        begin = hvd.rank() * self.share
        self.master = tf.Variable(flat(weights, hvd.size() * self.share)[begin : begin + self.share])
"""
)
MASTER = "mine = self.master.assign_add(self.velocity)"
HIDDEN_INIT = """        whole = keras.optimizers.SGD(rate, momentum)
        whole.build(weights)
        self.apply = lambda gradients: whole.apply(gradients, weights)
"""

REDUCED = "hvd.reducescatter(flat(gradients, padded))"
in_step = sharded  # with parts of its step replaced


ANSWERS = {
    "memory.8": dict(
        right=[(4,), (4.0,), (2**2,)],
        wrong=[(2,), (8,), (6,), (0,), (65536,), (1,), (np.float16("inf"),)],
        secret=r"(?<!\d)4(?!\d)",
    ),
    "memory.4": dict(
        right=[(5,), (np.int64(5),)],
        wrong=[(1,), (24,), (12,), (2,), (3,), (4,), (6,), (8,), (25,), (5.0,), ("4",), (24**0.5,), (4.8,)],
        secret=r"\b5\b",
        same=[*combinations(range(9, 13), 2)],  # no whole numbers
    ),
    "memory.5": dict(
        right=[
            accumulated(),
            accumulated((LOOP, WEIGHED)),
            accumulated((LOOP, SUMMED)),
            accumulated((LOOP, SCATTERED)),
            accumulated((LOOP, OF_HOROVOD), ("import keras\n", "import horovod.tensorflow as horovod\nimport keras\n")),
            accumulated((LOOP, "    import horovod.tensorflow as horovod\n\n" + OF_HOROVOD)),
        ],
        wrong=[
            accumulated((RETURN, "    return hvd.grouped_allreduce(total)")),
            accumulated((RETURN, "    return [each / passes for each in total]")),
            accumulated((RETURN, "    return hvd.grouped_allreduce([each / passes for each in total], op=hvd.Sum)")),
            accumulated((RETURN, "    return hvd.grouped_allreduce(total, op=hvd.Sum)")),
            accumulated((RETURN, "    return hvd.grouped_allreduce([each / passes / hvd.size() for each in total])")),
            accumulated((TOTAL, "        total = [passes * each for each in part]")),
            accumulated((LOOP, EVERY_PASS)),
            accumulated((LOOP, "    return hvd.grouped_allreduce(gradient(images, labels))\n")),
            accumulated((RETURN, "    return hvd.grouped_allreduce([each / passes for each in total]) and None")),
            accumulated(
                (RETURN, "    return total if hvd.rank() else hvd.grouped_allreduce([each / passes for each in total])")
            ),
            accumulated((RETURN, "    return [hvd.allreduce(each / passes, average=True) for each in total]")),
            accumulated((RETURN, RETURN.replace("each / passes", "each / len(images)"))),
            accumulated((LOOP, ALL_BUT_THE_LAST)),
            accumulated((TOTAL, TOTAL.replace("a + b", "(a + b) / 2")), (" / passes", "")),
            accumulated((TOTAL, "        total = part if total is None else total + part")),
            accumulated((LOOP, OF_SIZE)),
            accumulated((LOOP, OF_HOROVOD)),  # which the script does not import under this name
        ],
        secret=r"/ passes|hvd\.(grouped_)?allreduce",
        raises=[10],
    ),
    "memory.6": dict(
        right=[
            sharded(),
            sharded((INIT, EACH_INIT), (STEP, EACH_STEP)),
            sharded((INIT, NUMPY_INIT), (STEP, NUMPY_STEP)),
            sharded((STEP, CHANGES)),
            sharded((STEP, IN_A_FUNCTION)),
            sharded(
                (INIT, MASTER_INIT),
                ("mine = flat(self.weights, padded)[begin : begin + self.share] + self.velocity", MASTER),
            ),
        ],
        wrong=[
            in_step(("self.momentum * self.velocity - self.rate * mean", "-self.rate * mean")),
            in_step((REDUCED, "hvd.reducescatter(flat(gradients, padded), op=hvd.Sum)")),
            in_step((REDUCED, "flat(gradients, padded)[begin : begin + self.share]")),
            in_step(("begin, padded = hvd.rank()", "begin, padded = (hvd.size() - 1 - hvd.rank())")),
            in_step(("self.rate * mean)", "mean)")),
            in_step(
                (REDUCED, "hvd.allreduce(flat(gradients, padded))"),
                ("tf.zeros(self.share)", "tf.zeros(self.share * hvd.size())"),
                ("+ self.velocity\n", "+ self.velocity[begin : begin + self.share]\n"),
            ),
            in_step((REDUCED, "hvd.allreduce(flat(gradients, padded))[begin : begin + self.share]")),
            in_step(("hvd.allgather(mine)[", "hvd.broadcast(flat(self.weights, padded), 0)[")),
            in_step(
                (
                    "        mean = hvd",
                    "        if hvd.rank() == 0:\n            hvd.allreduce([1.0])\n        mean = hvd",
                )
            ),
            in_step(("        mean = hvd", "        self.last = flat(gradients, padded)\n        mean = hvd")),
            in_step(("- self.rate * mean", "+ self.rate * mean")),
            in_step((REDUCED, f"{REDUCED} / hvd.size()")),
            in_step((REDUCED, "hvd.allreduce(flat(gradients, padded)[begin : begin + self.share])")),
            in_step(("hvd.allgather(mine)", "hvd.allreduce(tf.pad(mine, [[begin, padded - begin - self.share]]))")),
            in_step(("-(-sum(self.sizes) // hvd.size())", "sum(self.sizes) // hvd.size()")),
            in_step((REDUCED, "hvd.reducescatter(flat(gradients, sum(self.sizes)))")),
            sharded((INIT, HIDDEN_INIT), (STEP, "        self.apply(hvd.grouped_allreduce(gradients))\n")),
        ],
        secret=r"reducescatter\(|hvd\.rank\(\) \* self\.share",
    ),
    "memory.7": dict(
        right=[(13.5e9,), (1.5e9 * (4 + 4 + 8 / 8),), (13_500_000_000,)],
        wrong=[(24e9,), (3e9,), (8.25e9,), (12.75e9,), (1.5e9,), (13.5,), (7e9,), (13.5 * 2**30,)],
        secret=r"13[.,]?5",
    ),
}
