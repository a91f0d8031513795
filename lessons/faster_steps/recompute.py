"""24 convolutions that keep their activations for the backward pass, or recompute them: peak memory and time of a step.

    python -m lessons.faster_steps.recompute OPTIONS        OPTIONS: JSON, the arguments of `measure`

Prints one line of JSON. The memory is measured with one mode alone. Then, in each of `rounds`, it takes turns with a
network that keeps all activations, in random order.
"""

import contextlib
import json
import random
import re
import sys
from pathlib import Path

from labs import devices, jobs  # import this first: it sets up TensorFlow
from labs.measure.step import timed

# isort: split
import keras

LAYERS, FILTERS, SIDE = 24, 32, 48
# One arena, and large tensors in pages of their own: what is freed is given back, and the peak is the same each time.
QUIET = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "1048576"}


def measure(mode, block=6, batch=32, steps=3, rounds=0):
    """{mode, block, batch, peak_bytes (above what the process held before its first step), loss, seconds [of a step in
    each round], kept_seconds [of one that keeps all, in the same rounds]}.

    mode: none; layers (each layer recomputes its own); blocks (of `block` layers).
    In a process of its own; its files are called after mode, block and batch. Returns None if it did not finish.
    """
    name = f"recompute_{mode}{f'_{block}' if mode == 'blocks' else ''}_b{batch}"
    options = json.dumps({"mode": mode, "block": block, "batch": batch, "steps": steps, "rounds": rounds})
    job = jobs.run("-m", "lessons.faster_steps.recompute", options, name=name, env=QUIET, show=False)
    return json.loads(job.out.read_text().splitlines()[-1]) if job.state == "finished" else None


class Block(keras.Sequential):
    """Some layers as one: TensorFlow recomputes no call with keywords (`training`)."""

    def call(self, values):
        return super().call(values)


def build(mode, block):
    with keras.RematScope() if mode == "layers" else contextlib.nullcontext():
        layers = [keras.layers.Conv2D(FILTERS, 3, padding="same", activation="relu") for _ in range(LAYERS)]
    if mode == "blocks":
        with keras.RematScope():  # the whole block is one function, which backward computes again
            layers = [Block(layers[first : first + block]) for first in range(0, LAYERS, block)]
    return keras.Sequential([keras.Input((SIDE, SIDE, FILTERS)), *layers])


def main(mode, block, batch, steps, rounds):
    import tensorflow as tf

    devices.workers(1)
    # Where TensorFlow fuses convolution, bias and relu, the order of operations differs from process to process, and so
    # does the peak, by a factor of up to four.
    tf.config.optimizer.set_experimental_options({"remapping": False})
    keras.utils.set_random_seed(0)

    def trained(mode):
        model, optimizer = build(mode, block), keras.optimizers.SGD(0.001)
        optimizer.build(model.trainable_variables)

        @tf.function(input_signature=[tf.TensorSpec([None, SIDE, SIDE, FILTERS])])
        def step(values):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(model(values, training=True) ** 2)
            optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
            return loss

        return step

    step = trained(mode)
    values = tf.random.stateless_normal((batch, SIDE, SIDE, FILTERS), seed=(0, 1))
    float(step(values[:1]))  # traced
    before = _memory("current")
    if devices.gpus():
        tf.config.experimental.reset_memory_stats("GPU:0")
    else:
        Path("/proc/self/clear_refs").write_text("5")  # the highest mark (VmHWM) begins anew
    for _ in range(steps):
        loss = float(step(values))
    found = {"mode": mode, "block": block if mode == "blocks" else None, "batch": batch}
    found |= {"peak_bytes": _memory("peak") - before, "loss": loss, "seconds": [], "kept_seconds": []}
    turns, order = {"seconds": step}, random.Random(0)
    if rounds:
        turns["kept_seconds"] = trained("none")
        float(turns["kept_seconds"](values))  # traced
    for _ in range(rounds):
        for key in order.sample(list(turns), len(turns)):
            found[key] += timed(lambda: float(turns[key](values)), 1)  # noqa: B023, called at once
    print(json.dumps(found))


def _memory(when):
    """Bytes that this process uses, "current" or at its "peak": on its GPU, or without one in the machine's memory."""
    import tensorflow as tf

    if devices.gpus():
        return tf.config.experimental.get_memory_info("GPU:0")[when]
    name = {"current": "VmRSS", "peak": "VmHWM"}[when]
    return 1024 * int(re.search(rf"{name}:\s*(\d+) kB", Path("/proc/self/status").read_text())[1])


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
