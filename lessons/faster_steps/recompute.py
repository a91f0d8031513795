"""24 convolutions that keep their activations for the backward pass, or recompute them: peak memory and time of a step.

    python -m lessons.faster_steps.recompute MODE [--block 6] [--batch 32] [--steps 3] [--rounds 0]

MODE: none; layers (each layer recomputes its own); activations (Keras' mode of this name); blocks (of --block layers).
Prints one line of JSON. The memory is measured with this mode alone. Then, in each of --rounds, it takes turns with a
network that keeps all activations, in random order.
"""

import argparse
import contextlib
import json
import random
from pathlib import Path

from labs import devices, jobs  # import this first: it sets up TensorFlow
from labs.measure.step import timed

LAYERS, FILTERS, SIDE = 24, 32, 48
MODES = ("none", "layers", "activations", "blocks")
# One arena, and large tensors in pages of their own: what is freed is given back, and the peak is the same each time.
QUIET = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "1048576"}


def measure(mode, block=6, batch=32, steps=3, rounds=0):
    """{mode, block, batch, peak_bytes (above what the process held before its first step), loss, seconds [of a step in
    each round], kept_seconds [of one that keeps all, in the same rounds]}.

    In a process of its own; its files are called after mode, block and batch. Returns None if it did not finish.
    """
    name = f"recompute_{mode}{f'_{block}' if mode == 'blocks' else ''}_b{batch}"
    options = ["--block", block, "--batch", batch, "--steps", steps, "--rounds", rounds]
    job = jobs.start("-m", "lessons.faster_steps.recompute", mode, *options, name=name, env=QUIET).wait(show=False)
    if job.state != "finished":
        print(job.explain())
        return None
    return json.loads(job.out.read_text().splitlines()[-1])


def build(mode, block):
    import keras

    class Block(keras.layers.Layer):
        """Some convolutions, one after the other, as one layer."""

        def __init__(self, convolutions):
            super().__init__()
            self.convolutions = convolutions

        def build(self, shape):
            for convolution in self.convolutions:
                convolution.build(shape)
            self.built = True

        def call(self, values):
            for convolution in self.convolutions:
                values = convolution(values)
            return values

    def convolution():
        return keras.layers.Conv2D(FILTERS, 3, padding="same", activation="relu")

    scope = {"none": contextlib.nullcontext, "blocks": contextlib.nullcontext, "layers": keras.RematScope}
    scope["activations"] = lambda: keras.RematScope(mode="activations")
    model = keras.Sequential([keras.Input((SIDE, SIDE, FILTERS))])
    if mode == "blocks":
        for first in range(0, LAYERS, block):
            inside = [convolution() for _ in range(min(block, LAYERS - first))]
            with keras.RematScope():  # the whole block is one function, which backward computes again
                model.add(Block(inside))
    else:
        with scope[mode]():
            for _ in range(LAYERS):
                model.add(convolution())
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=MODES)
    for option, value in (("--block", 6), ("--batch", 32), ("--steps", 3), ("--rounds", 0)):
        parser.add_argument(option, type=int, default=value)
    args = parser.parse_args()
    import keras
    import tensorflow as tf

    if not hasattr(keras, "RematScope") and args.mode != "none":
        raise SystemExit(f"Keras {keras.__version__} has no RematScope: this needs Keras 3.9 or newer.")
    devices.workers(1)
    # Where TensorFlow fuses convolution, bias and relu, the order of operations differs from process to process, and so
    # does the peak, by a factor of up to four.
    tf.config.optimizer.set_experimental_options({"remapping": False})
    keras.utils.set_random_seed(0)

    def trained(mode):
        model, optimizer = build(mode, args.block), keras.optimizers.SGD(0.001)
        optimizer.build(model.trainable_variables)

        @tf.function(reduce_retracing=True)
        def step(values):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(model(values, training=True) ** 2)
            optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
            return loss

        return step

    step = trained(args.mode)

    def one_of(batch):
        return tf.random.stateless_normal((batch, SIDE, SIDE, FILTERS), seed=(0, 1))

    float(step(one_of(1)))  # traced with one shape,
    float(step(one_of(2)))  # and then with any
    values = one_of(args.batch)
    before = _memory("now")
    if devices.gpus():
        tf.config.experimental.reset_memory_stats("GPU:0")
    else:
        Path("/proc/self/clear_refs").write_text("5")  # the highest mark (VmHWM) begins anew
    for _ in range(args.steps):
        loss = float(step(values))
    found = {"mode": args.mode, "block": args.block if args.mode == "blocks" else None, "batch": args.batch}
    found |= {"peak_bytes": _memory("peak") - before, "loss": loss, "seconds": [], "kept_seconds": []}
    turns = {"seconds": step, "kept_seconds": trained("none")} if args.rounds else {}
    for one in turns.values():
        float(one(values))  # traced
    order = random.Random(0)
    for _ in range(args.rounds):
        for key in order.sample(list(turns), len(turns)):
            found[key] += timed(lambda: float(turns[key](values)), 1)  # noqa: B023, called at once
    print(json.dumps(found))


def _memory(when):
    """Bytes that this process uses, "now" or at its "peak": on its GPU, or without a GPU in the machine's memory."""
    import tensorflow as tf

    if devices.gpus():
        return tf.config.experimental.get_memory_info("GPU:0")["current" if when == "now" else "peak"]
    what = "VmRSS" if when == "now" else "VmHWM"
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return 1024 * int(lines[what].split()[0])


if __name__ == "__main__":
    main()
