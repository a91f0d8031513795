"""Answers to the self-checks of 22_when_workers_do_not_help: right ones, and wrong ones that students give."""

import math

import numpy as np
from making import swapped

LOOP = """    for number, (images, labels) in enumerate(batches, 1):
        step(images, labels)
        if number % k == 0:
            for variable in [*weights, *optimizer.momentums]:
                variable.assign(horovod.allreduce(variable.value, op=horovod.Average))
"""
MEAN = """            for variable in [*weights, *optimizer.momentums]:
                variable.assign(horovod.allreduce(variable.value, op=horovod.Average))
"""
APPLY = "        optimizer.apply(tape.gradient(value, weights), weights)\n"
VALUE_OF_LOSS = "            value = loss(labels, model(images, training=True))\n"
PREDICTED_ONLY = "            scores = model(images, training=True)\n        value = loss(labels, scores)\n"
AVERAGED = """        gradients = [horovod.allreduce(gradient) for gradient in tape.gradient(value, weights)]
        optimizer.apply(gradients, weights)
"""
VALUE = "horovod.allreduce(variable.value, op=horovod.Average)"
PARAMETERS = 1000

# Loops that are written otherwise
GROUPED = """    changed = [v.value for v in [*weights, *optimizer.variables] if v.dtype == "float32"]
    batches = iter(batches)
    while group := [batch for _, batch in zip(range(k), batches)]:
        for images, labels in group:
            step(images, labels)
        for variable, mean in zip(changed, horovod.grouped_allreduce(changed)):
            variable.assign(mean)
"""
ONE_VECTOR = """    taken = 0
    for images, labels in batches:
        step(images, labels)
        taken += 1
        if taken == k:
            taken, parts = 0, [*weights, *optimizer.momentums]
            flat = tf.concat([tf.reshape(part.value, [-1]) for part in parts], 0)
            mean = horovod.allreduce(flat, op=horovod.Sum) / hvd.size()
            for part, new in zip(parts, tf.split(mean, [tf.size(part.value) for part in parts])):
                part.assign(tf.reshape(new, part.shape))
"""
OF_KERAS = """    model.compile(optimizer, loss)
    for number, batch in enumerate(batches):
        model.train_on_batch(*batch)
        if number % k == k - 1:
            model.set_weights([horovod.allreduce(each).numpy() for each in model.get_weights()])
            for speed in optimizer.momentums:
                speed.assign(hvd.allreduce(speed))
"""
# and three that are wrong
COLLECTED = """    total = [tf.zeros_like(weight.value) for weight in weights]
    for number, (images, labels) in enumerate(batches, 1):
        with tf.GradientTape() as tape:
            value = loss(labels, model(images))
        total = [a + b for a, b in zip(total, tape.gradient(value, weights))]
        if number % k == 0:
            optimizer.apply([horovod.allreduce(each / k) for each in total], weights)
            total = [0 * each for each in total]
"""
REPEATED = """    for images, labels in batches:
        for _ in range(k):
            step(images, labels)
""" + MEAN.replace("\n    ", "\n").removeprefix("    ")
FROM_0 = LOOP.replace("batches, 1", "batches").replace("[*weights, *optimizer.momentums]", "weights")
K_LOOPS = """    for _ in range(k):
        for images, labels in batches:
            step(images, labels)
""" + MEAN.replace("\n    ", "\n").removeprefix("    ")
ALL_TAKEN = "    batches = list(batches)\n" + LOOP
BY_HAND = """    speeds = [tf.Variable(tf.zeros_like(weight.value)) for weight in weights]
    momentum, rate = optimizer.momentum, float(optimizer.learning_rate)
    for number, (images, labels) in enumerate(batches):
        with tf.GradientTape() as tape:
            value = loss(labels, model(images, training=True))
        for speed, weight, gradient in zip(speeds, weights, tape.gradient(value, [w.value for w in weights])):
            speed.assign(momentum * speed - rate * gradient)
            weight.assign_add(speed)
        if (number + 1) % k == 0:
            for variable in speeds + [weight.value for weight in weights]:
                variable.assign(horovod.allreduce(variable))
"""


def script(*pairs):
    """Answer: the script with some text replaced."""
    return swapped("scripts/local_sgd.py", *pairs)


def mean(*pairs):
    """The script with some text of its last line replaced."""
    return script(*((MEAN, MEAN.replace(*pair)) for pair in pairs))


def loop(text):
    return script((LOOP, text))


ANSWERS = {
    "workers.1": dict(
        right=[(443 / 73,), (6,), (6.07,), (6.1,)],
        wrong=[(73 / 443,), (370,), (370 / 73,), (8,), (4,), (2,)],
        secret=r"\b6\b|\bsix\b|6\.",
    ),
    "workers.3": dict(
        right=[
            (lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k + e),),
            (lambda s, c, e, k: 1 / ((s + e + 32 / k * c) / (s + 32 * c)),),
            (lambda s, c, e, k: np.float32(s + 32 * c) / (s + c * (32 / k) + (e if k > 1 else 0)),),
        ],
        wrong=[
            (lambda s, c, e, k: (s + 32 * c / k + e) / (s + 32 * c),),
            (lambda s, c, e, k: (s + 32 * c) / ((s + 32 * c) / k + e),),
            (lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k),),
            (lambda s, c, e, k: 32 * c / (32 * c / k + e),),
            (lambda s, c, e, k: (s + 32 * c) / (s + 32 * c + e),),
            (lambda s, c, e, k: k * (s + 32 * c) / (s + 32 * c + e),),
            (lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k + e / k),),
            (lambda s, c, e, k: (s + c) / (s + c / k + e),),
            (lambda s, c, e, k: k,),
            (lambda s, c, e, k: (s + 32 * k * c) / (s + 32 * c + e),),
            (lambda s, c, e, k: (s + 32 * c + e) / (s + 32 * c / k + e),),
            (lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k + k * e),),
            (lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k + (k - 1) * e),),
            (lambda s, c, e, k: (s + 32 * c) / (32 * c / k + e),),
            (lambda s, c, e, k: (s + 32 * c) - (s + 32 * c / k + e),),
            (lambda s, c, e, k: s + 32 * c / k + e,),
            (lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k + e) / k,),
            (lambda s, c, e, k: s + 32 * c / (s + 32 * c / k + e),),
            (lambda s, c, e, k: f"{(s + 32 * c) / (s + 32 * c / k + e):.3f}",),
            (lambda s, c, e, k: (s + 32 * c) / (s + 32 // k * c + e),),
            (lambda s, c, e, k: (s + 32 * c) / (s + max(1, round(32 / k)) * c + e),),
            (lambda s, c, e, k: (s + 32 * c) / (s + math.ceil(32 / k) * c + e),),
            (lambda s, c, e, k: round((s + 32 * c) / (s + 32 * c / k + e), 2),),
        ],
        secret=r"32 \*|/ ranks",
        same=[(11, 12), (20, 21)],  # the exchange is counted several times; the share is rounded
    ),
    "workers.7": dict(
        right=[(8, 32000, PARAMETERS), (8.0, 32e3, PARAMETERS), ("8", "32000", PARAMETERS)],
        wrong=[
            (512, 32000, PARAMETERS),
            (64, 32000, PARAMETERS),
            (448, 32000, PARAMETERS),
            (3, 32000, PARAMETERS),
            (8, 4000, PARAMETERS),
            (8, 1000, PARAMETERS),
            (8, 2048000, PARAMETERS),
            (8, 0.032, PARAMETERS),
            (8, 5, PARAMETERS),
            (8, 8000, PARAMETERS),  # without the 4 bytes of a float32
        ],
        secret=r"32,?000|512 / 64",
    ),
    "workers.5": dict(
        right=[script(), loop(GROUPED), loop(ONE_VECTOR), loop(BY_HAND), loop(OF_KERAS)],
        wrong=[
            mean(("op=horovod.Average", "op=horovod.Sum")),
            mean((VALUE, "horovod.allreduce(variable.value, op=horovod.Sum) / k")),
            mean(("[*weights, *optimizer.momentums]", "weights")),
            mean((VALUE, "horovod.broadcast(variable.value, 0)")),
            script((LOOP, "    for images, labels in batches:\n        step(images, labels)\n"), (APPLY, AVERAGED)),
            script((LOOP, LOOP.replace("batches, 1", "batches"))),
            script((LOOP, LOOP.replace("number % k == 0", "False"))),
            script((LOOP, LOOP.replace("number % k == 0", "number % k == 1"))),
            loop("    return step\n"),
            script(("def local_sgd(", "def train(")),
            script(("[*weights, *optimizer.momentums]", "[*model.weight, *optimizer.momentums]")),
            mean((VALUE, f"{VALUE} / horovod.size()")),
            script((LOOP, LOOP.replace("number % k == 0", "number % k == k - 1"))),
            loop(COLLECTED),
            loop(REPEATED),
            loop(ALL_TAKEN),
            script((APPLY, APPLY.replace("weights)\n", "weihts)\n"))),
            script((LOOP, LOOP.replace("(images, labels)\n", "(images)\n"))),
            script((VALUE_OF_LOSS, PREDICTED_ONLY)),
            script(
                (APPLY, APPLY.replace("tape.gradient(value, weights)", "[tape.gradient(value, w) for w in weights]"))
            ),
            script((LOOP, LOOP.replace("number % k == 0", "number == k"))),
            loop("    optimizer = hvd.DistributedOptimizer(optimizer)\n" + LOOP.partition("        if")[0]),
            mean((VALUE, "horovod.allreduce(variable.value, op=horovod.Sum) / 2")),
            script((LOOP, FROM_0)),
            loop(K_LOOPS),
        ],
        same=[(4, 21), (5, 23)],  # both average the gradients of every step; both count from 0
        secret=r"momentums|Average|number % k",
    ),
}
