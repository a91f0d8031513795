"""Answers to the self-checks of 10_faster_and_watched: right ones, and wrong ones that students give."""

from functools import partial

import tensorflow as tf
from making import swapped

from labs.results.record import Configuration, Epoch, Record
from labs.results.watched import Watched

accumulated = partial(swapped, "scripts/accumulated.py")
sharded = partial(swapped, "scripts/sharded_optimizer.py")

# 10.2: 100 images/s of 6e7 operations on a worker that can do 5e10: 0.12
ABOUT = {"operations_of_an_image": 6e7, "most_operations_per_second": 5e10}
SAMPLES = [{"seconds": 0.5, "images": 50, "cores": 0.9, "memory": 1, "faults": 0, "phases": {}}] * 4
WATCHED = [Watched(0, "measured", ABOUT, SAMPLES)]

LIMITS = {"A": "input", "B": "exchange", "C": "validation", "D": "computation", "E": "slow rank", "F": "small batch"}


def swapped_limits(one, other):
    return {**LIMITS, one: LIMITS[other], other: LIMITS[one]}


ROWS = [
    {"operation": "Conv2DBackpropFilter", "seconds": 0.05, "calls": 9, "share": 0.4},
    {"operation": "_FusedConv2D", "seconds": 0.025, "calls": 9, "share": 0.2},
    {"operation": "FusedBatchNormV3", "seconds": 0.0375, "calls": 9, "share": 0.3},
    {"operation": "AddV2", "seconds": 0.0125, "calls": 9, "share": 0.1},
]

# Pipelines

FROM = tf.data.Dataset.from_tensor_slices
AUTO = tf.data.AUTOTUNE


def each(function):
    return lambda image, label: (function(image), label)


def starving(files, read, small, batch):
    return FROM(files).map(read).map(each(small)).batch(batch, drop_remainder=True)


def in_parallel(files, read, small, batch):
    return FROM(files).map(read, num_parallel_calls=4).map(each(small)).batch(batch)


def interleaved(files, read, small, batch):
    images = FROM(files).interleave(lambda file: tf.data.Dataset.from_tensors(file).map(read), 4, num_parallel_calls=4)
    return images.map(each(small)).batch(batch)


def one_map(files, read, small, batch):
    def both(file):
        image, label = read(file)
        return small(image), label

    return FROM(files).map(both, num_parallel_calls=AUTO).batch(batch, drop_remainder=True)


def batches_first(files, read, small, batch):
    return FROM(files).map(read, num_parallel_calls=AUTO).batch(batch, drop_remainder=True).map(each(small))


def batches_first_ahead(files, read, small, batch):
    return batches_first(files, read, small, batch).prefetch(1)


def batches_parallel(files, read, small, batch):
    return FROM(files).map(read, num_parallel_calls=3).batch(batch).map(each(small), num_parallel_calls=2)


def stages(*names):
    """A pipeline of these stages, behind reading in parallel."""

    def pipeline(files, read, small, batch):
        images = FROM(files).map(read, num_parallel_calls=AUTO)
        made = {
            "small": lambda it: it.map(each(small)),
            "cache": lambda it: it.cache(),
            "shuffle": lambda it: it.shuffle(len(files)),
            "same": lambda it: it.shuffle(len(files), seed=1, reshuffle_each_iteration=False),
            "batch": lambda it: it.batch(batch),
            "unbatch": lambda it: it.unbatch(),
            "ahead": lambda it: it.prefetch(2),
            "repeat": lambda it: it.repeat(),
        }
        for name in names:
            images = made[name](images)
        return images

    return pipeline


def names_cached(files, read, small, batch):
    return FROM(files).cache().shuffle(99).map(read, num_parallel_calls=4).map(each(small)).batch(batch).prefetch(2)


def of_several(files, read, small, batch):
    """Each call of map reads a batch of files."""

    def load(some):
        return tf.map_fn(lambda file: each(small)(*read(file)), some, fn_output_signature=(tf.uint8, tf.int64))

    return FROM(files).batch(batch).map(load, num_parallel_calls=3)


def joined(files, read, small, batch):
    images = FROM(files).map(read, num_parallel_calls=AUTO).batch(batch)
    return tf.data.Dataset.zip((images.map(lambda image, _: small(image)), images.map(lambda _, label: label)))


def with_options(files, read, small, batch):
    options = tf.data.Options()
    options.deterministic = False
    return stages("small", "cache", "shuffle", "batch", "ahead")(files, read, small, batch).with_options(options)


# The two scripts

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
HIDDEN_INIT = """        whole = keras.optimizers.SGD(rate, momentum)
        whole.build(weights)
        self.apply = lambda gradients: whole.apply(gradients, weights)
"""

REDUCED = "hvd.reducescatter(flat(gradients, padded))"
in_step = sharded  # with parts of its step replaced

# The closing task


def run(script="faster.py", options=(), rate=100.0, accuracy=0.95, images=1024, parameters=1000, **more):
    epochs = [Epoch(epoch=n, seconds=images / rate, images=images, metrics={"val_accuracy": accuracy}) for n in (0, 1)]
    configuration = Configuration(dataset=more.pop("dataset", "digits"), image_size=32)
    given = {"state": "finished", "epochs": epochs, "dataset_images": images, "observed": {"parameters": parameters}}
    given |= {"command": [f"scripts/{script}", *map(str, options)], "script_sha256": script}
    return Record(configuration=configuration, **(given | more))


def steps(*others):
    return ({"as given": run("slow.py"), **{f"change {n}": other for n, other in enumerate(others, 1)}},)


FED, LARGE = run(rate=180.0), run(options=["--batch_size", 64], rate=250.0)

ANSWERS = {
    "10.2": dict(
        right=[(0.12, WATCHED), (100 * 6e7 / 5e10, WATCHED), ("0.12", WATCHED)],
        wrong=[(12, WATCHED), (0.04, WATCHED), (0.24, WATCHED), (0.9, WATCHED), (8.33, WATCHED), (0.5, WATCHED)],
        secret=r"0\.12\b",
    ),
    "10.3": dict(
        right=[
            (LIMITS,),
            (dict(reversed(LIMITS.items())),),
            ({case: f"{limit.title()} " for case, limit in LIMITS.items()},),
        ],
        wrong=[
            ("input",),
            ({**LIMITS, "A": "the disk"},),
            ({case: "input" for case in LIMITS},),
            ({case: limit for case, limit in LIMITS.items() if case != "F"},),
            (swapped_limits("A", "D"),),
            (swapped_limits("B", "E"),),
            (swapped_limits("C", "D"),),
            (swapped_limits("D", "F"),),
            (swapped_limits("E", "F"),),
            ({case: [limit] for case, limit in LIMITS.items()},),
        ],
        secret=None,
    ),
    "10.5": dict(
        right=[(0.6, ROWS), (0.4 + 0.2, ROWS)],
        wrong=[(60, ROWS), (0.4, ROWS), (0.075, ROWS), (0.7, ROWS)],
        secret=r"\b0?\.6\b",
    ),
    "10.7": dict(
        right=[(in_parallel,), (interleaved,), (one_map,), (of_several,)],
        wrong=[
            (starving,),
            (batches_first,),
            (lambda files, read, small, batch: FROM(files).map(read, 4).map(each(small)),),
            (lambda files, read, small, batch: FROM(files).map(read, 4).batch(batch),),
            (lambda files, read, small, batch: in_parallel(files[:16], read, small, batch),),
            (lambda files, read, small, batch: in_parallel(files, read, small, 2 * batch),),
            (lambda files, read, small, batch: in_parallel(files, read, small, batch).repeat(),),
            (lambda files, read, small, batch: FROM(files).map(read, 4).map(lambda x, y: small(x)).batch(batch),),
            (lambda files, read, small, batch: files,),
            (lambda *given: in_parallel(*given).map(lambda image, label: (label, image)),),
            (lambda *given: in_parallel(*given).map(lambda image, label: (tf.cast(image, tf.float32) / 255, label)),),
            (lambda *given: in_parallel(*given).map(each(given[2])),),
        ],
        secret=r"num_parallel_calls",
    ),
    "10.8": dict(
        right=[(batches_first,), (batches_first_ahead,), (batches_parallel,)],
        wrong=[
            (in_parallel,),
            (lambda files, read, small, batch: FROM(files).map(read).batch(batch).map(each(small)),),
            (lambda files, read, small, batch: FROM(files).map(read, 4).batch(batch),),
            (lambda files, read, small, batch: FROM(files).map(read, 4).batch(4).map(each(small)),),
            (lambda files, read, small, batch: FROM(files).batch(batch).map(read, 4).map(each(small)),),
            (joined,),
        ],
        secret=r"\.batch",
        raises=[4],
    ),
    "10.9": dict(
        right=[
            (stages("small", "cache", "shuffle", "batch", "ahead"),),
            (stages("batch", "small", "unbatch", "cache", "shuffle", "batch", "ahead"),),
            (stages("cache", "shuffle", "batch", "small", "ahead"),),
            (with_options,),
        ],
        wrong=[
            (stages("small", "shuffle", "batch", "ahead"),),
            (names_cached,),
            (stages("small", "shuffle", "cache", "batch", "ahead"),),
            (stages("small", "cache", "batch", "ahead"),),
            (stages("small", "cache", "same", "batch", "ahead"),),
            (stages("small", "shuffle", "batch", "cache", "shuffle", "ahead"),),
            (stages("small", "cache", "batch", "shuffle", "ahead"),),
            (stages("small", "cache", "shuffle", "batch"),),
            (stages("small", "cache", "shuffle", "batch", "repeat", "ahead"),),
        ],
        secret=r"cache|prefetch",
        same=[(0, 1), (2, 4), (5, 6)],  # the files are read again; all epochs in one order; batches are shuffled
    ),
    "10.12": dict(
        right=[(4,), (4.0,), (2**2,)], wrong=[(2,), (8,), (6,), (0,), (65536,), (1,)], secret=r"(?<!\d)4(?!\d)"
    ),
    "10.14": dict(right=[(6,), (4,), (5,)], wrong=[(1,), (24,), (12,), (2,), (3,), (8,), (25,)], secret=r"\b[456]\b"),
    "10.15": dict(
        right=[
            accumulated(),
            accumulated((LOOP, WEIGHED)),
            accumulated((LOOP, SUMMED)),
            accumulated((LOOP, SCATTERED)),
            accumulated((LOOP, OF_HOROVOD), ("import keras\n", "import horovod.tensorflow as horovod\nimport keras\n")),
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
        ],
        secret=r"/ passes|hvd\.(grouped_)?allreduce",
        raises=[10],
    ),
    "10.17": dict(
        right=[
            sharded(),
            sharded((INIT, EACH_INIT), (STEP, EACH_STEP)),
            sharded((INIT, NUMPY_INIT), (STEP, NUMPY_STEP)),
            sharded((STEP, CHANGES)),
            sharded((STEP, IN_A_FUNCTION)),
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
            sharded((INIT, HIDDEN_INIT), (STEP, "        self.apply(hvd.grouped_allreduce(gradients))\n")),
        ],
        secret=r"reducescatter\(|hvd\.rank\(\) \* self\.share",
    ),
    "10.18": dict(
        right=[(13.5e9,), (1.5e9 * (4 + 4 + 8 / 8),), (13_500_000_000,)],
        wrong=[(24e9,), (3e9,), (8.25e9,), (12.75e9,), (1.5e9,), (13.5,), (7e9,)],
        secret=r"13[.,]?5",
    ),
    "10.20": dict(
        right=[
            steps(FED, LARGE),
            steps(LARGE, run(options=["--precision", "mixed_bfloat16"], rate=300.0)),
            (*steps(FED, LARGE), {"change 2": (2.5, (2.2, 2.8))}),
            (*steps(FED, LARGE), {"change 2": (2.5, None)}),
        ],
        wrong=[
            ([],),
            steps(LARGE),
            steps(FED, FED),
            steps(FED, run(options=["--batch_size", 64], rate=190.0)),
            steps(FED, run(options=["--batch_size", 64], rate=300.0, accuracy=0.8)),
            steps(FED, run(options=["--images", 64], rate=300.0, images=64)),
            steps(FED, run(options=["--dataset", "synthetic"], rate=300.0, dataset="synthetic")),
            steps(FED, run(options=["--small"], rate=300.0, parameters=10)),
            steps(FED, run(options=["--batch_size", 64], rate=300.0, state="failed")),
            (*steps(FED, LARGE), {"change 2": (1.7, (1.5, 1.9))}),
        ],
        secret=None,
    ),
}
