"""What `make gpu-proof` measures: parts, the most valuable first, and their cases, each a process of its own.

The order is also by what a part needs: those that need TensorFlow come last.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Sizes:
    """The sizes of a preset.

    local_batch: images of a step; images: of an epoch, the first of which is warm-up; rounds: of what takes turns
    small: batches below it, whose steps are timed, too
    memory: bytes for the search on the CPU, where no GPU limits it; largest: batch that it tries
    limit: seconds that a case may take
    """

    name: str
    models: tuple
    image_size: int
    local_batch: int
    small: tuple
    images: int
    epochs: int
    rounds: int
    memory: int
    largest: int
    limit: int


PRESETS = {
    "test": Sizes("test", ("SmallCNN",), 32, 32, (1, 8), 128, 4, 3, 2**27, 4096, 120),
    "gpu": Sizes("gpu", ("ResNet50V2", "ResNet152V2"), 224, 128, (1, 4, 16, 64), 2560, 6, 10, 2**34, 8192, 240),
}


@dataclass(frozen=True)
class Part:
    """needs: packages besides Keras and its engine. cases: {key: (function of measures.py, its arguments)}."""

    name: str
    about: str
    cases: dict
    needs: tuple = ()
    env: dict = field(default_factory=dict)


HIDDEN = {"CUDA_VISIBLE_DEVICES": ""}


def parts(sizes):
    """The parts in the order in which they run."""
    first = sizes.models[0]

    def only(function):
        return {first: (function, {"model": first})}

    precisions = ("float32", "mixed_float16")
    kinds = [(model, precision) for model in sizes.models for precision in precisions]
    every = {f"{model} {kind}": ("train", {"model": model, "precision": kind}) for model, kind in kinds}
    modes = {mode: ("recompute", {"mode": mode}) for mode in ("none", "blocks")}
    fetched = {model: ("fetch", {"model": model}) for model in dict.fromkeys(("SmallCNN", first))}
    same, large = {"float32": ("same_steps", {})}, sizes.models[-1]
    hvd, nccl = ("tensorflow", "horovod"), {"model": first, "ranks": 1}
    return [
        Part("doctor", "What this machine has", {"machine": ("doctor", {})}),
        Part("steps", "Training on 1 worker, every step recorded", every),
        Part("loop", "The kit against a bare loop, in turns", only("loop")),
        Part("turns", "These trainings in turns, the first of them twice, all in one memory", {"all": ("turns", {})}),
        Part("maxbatch", "The largest batch, by running out of memory", only("maxbatch")),
        Part("precision", "A step in each precision against float32, in turns", only("precision")),
        Part("recompute", "Peak memory of a step that keeps or recomputes activations", modes),
        Part("sampler", "The sampler beside a training", only("watch")),
        Part("input", "The input pipeline alone, and a training with and without it", only("feed")),
        Part("fetch", "The loss fetched in each step, against once at the end, in turns", fetched),
        Part(
            "same_steps",
            "The same 20 steps on this GPU and on the CPU: how far the weights are apart",
            same,
            ("sklearn",),
        ),
        Part("batches", "Steps of smaller batches", {first: ("batches", {"model": first})}),
        Part("maxbatch_large", "The largest batch of the larger network", {large: ("maxbatch", {"model": large})}),
        Part("mirrored", "MirroredStrategy over two logical devices", only("mirrored"), ("tensorflow",)),
        Part("horovod", "Horovod on one rank", {"1 rank": ("horovod", nccl)}, hvd),
        Part(
            "cpu_ranks", "Horovod on two ranks of the CPU", {"2 ranks": ("horovod", nccl | {"ranks": 2})}, hvd, HIDDEN
        ),
    ]
