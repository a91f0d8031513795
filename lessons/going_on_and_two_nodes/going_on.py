"""What `save`, `resume` and `train` of goes_on.py do on ranks that have a disk each, played in one process.

The network is tiny, one of its layers is not trained, and it is SGD with momentum that trains it. An image's label is
its number, so that the steps tell which images they have seen.
"""

import argparse
import contextlib
import io
import tempfile
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from labs.checks.student_code import tried
from labs.data.datasets import Dataset
from lessons import connected

RANKS, IMAGES, BATCH, EPOCHS = 2, 8, 4, 3
SEED = 5
STEPS = IMAGES // BATCH
ACCURACY = (0.25, 0.75)
NAME = "checkpoint.npz"


@dataclass
class Seen:
    """What one rank did. kept: bytes of the file that it has left under the checkpoint's name, or None."""

    returned: object
    weights: list
    momentum: list
    files: list  # names, on the disk of this rank
    kept: bytes | None
    steps: list  # labels of the images of each step
    in_place: bool = False  # whether the second checkpoint was written over the bytes of the first


class PlayedScript:
    """A student's script, whose functions are played on RANKS ranks, each time from a beginning of its own.

    `save`, `resume` and `train` return a Seen for each rank, and raise connected.ConnectedError where ranks do not fit.
    """

    def __init__(self, path):
        self.path = path

    def missing(self):
        """Names of functions that the script does not define any more."""
        names = connected.definitions(self.path, connected.World(RANKS))
        return [name for name in ("save", "resume", "train") if not callable(names.get(name))]

    def save(self, epochs):
        """All ranks save the same state `state(1)`, after another one for an epoch less has been saved."""

        def program(names, model, path):
            put(model, state(0))
            names["save"](path, model, epochs - 1)
            with open(path, "rb") if path.is_file() else io.BytesIO() as old:  # also when another has got its name
                before = old.read()
                put(model, state(1))
                names["save"](path, model, epochs)
                old.seek(0)
                return old.read() != before

        return [replace(seen, in_place=seen.returned) for seen in self._play("save", program, None)]

    def resume(self, kept):
        """All ranks resume from a checkpoint, bytes or None, that lies on the disk of rank 0."""
        return self._play("resume", lambda names, model, path: names["resume"](path, model), kept)

    def train(self, kept, stop_after=None):
        """A job trains until EPOCHS epochs are done, or stops after so many; `accuracy` is ACCURACY[rank]."""
        images = np.random.default_rng(SEED).integers(0, 256, (IMAGES, 2, 2, 3), np.uint8)
        dataset = Dataset("numbered", images, np.arange(IMAGES), list(map(str, range(IMAGES))))
        args = argparse.Namespace(epochs=EPOCHS, stop_after=stop_after, batch_size=BATCH, seed=SEED)
        return self._play("train", lambda names, model, path: names["train"](model, dataset, dataset, path, args), kept)

    def _play(self, what, program, kept):
        world = connected.World(RANKS)
        names = connected.definitions(self.path, world)
        notes, step = [[] for _ in range(RANKS)], names.get("step")

        def noted(model, images, labels):
            notes[world.rank()].append(np.asarray(labels).tolist())
            return step(model, images, labels)

        names |= {"step": noted, "accuracy": lambda *_: ACCURACY[world.rank()]}
        with tempfile.TemporaryDirectory(prefix="goes_on_") as folder:

            def once():
                rank = world.rank()
                disk = Path(folder, f"disk_of_rank_{rank}")
                disk.mkdir()
                path, model = disk / NAME, self._models[rank]
                put(model, state(10 + rank))
                if kept is not None and rank == 0:
                    path.write_bytes(kept)
                try:
                    with tried(f"{RANKS} ranks"):
                        returned = program(names, model, path)
                except FileNotFoundError as problem:
                    if rank == 0 or NAME not in str(problem.filename):
                        raise
                    raise connected.ConnectedError(
                        f"Rank {rank} opens the checkpoint itself, but there is none on its node. Which rank reads, "
                        "and how do the others get what it has read?"
                    ) from None
                momentum = [variable.numpy() for variable in model.optimizer.momentums]
                left = path.read_bytes() if path.is_file() else None
                files = sorted(each.name for each in disk.iterdir())
                return Seen(returned, model.get_weights(), momentum, files, left, notes[rank])

            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")  # tf.data says that it does not run eagerly
                try:
                    return world.play(once)
                except connected.ConnectedError as problem:
                    disks = "only rank 0 has a checkpoint there" if kept else "no rank has a checkpoint there"
                    raise connected.ConnectedError(f"{problem} (Seen in `{what}`; {disks}.)") from None

    @cached_property
    def _models(self):
        """A network for each rank, made once: each play begins with weights of its own."""
        import keras

        models = []
        for _ in range(RANKS):
            layers = [keras.Input((2, 2, 3)), keras.layers.Flatten(), keras.layers.Rescaling(1 / 255)]
            layers += [keras.layers.Dense(4, use_bias=False, trainable=False, name="frozen")]
            model = keras.Sequential([*layers, keras.layers.Dense(IMAGES, "softmax")])
            model.compile(keras.optimizers.SGD(0.05, momentum=0.9), jit_compile=False)
            model.optimizer.build(model.trainable_variables)
            models.append(model)
        return models


FROZEN = 0  # its place among the weights of the network


def state(number):
    """(weights, momentum) by number, as lists of arrays; from 10 on those of a rank that begins, without momentum."""
    random = np.random.default_rng((7, number))
    weights = [random.normal(0, 0.3, shape).astype("float32") for shape in ((12, 4), (4, IMAGES), (IMAGES,))]
    momentum = [(number < 10) * random.normal(0, 0.3, each.shape).astype("float32") for each in weights[1:]]
    return weights, momentum


def put(model, held):
    """Give a network and its optimizer a `state`."""
    weights, momentum = held
    model.set_weights(weights)
    model.optimizer.iterations.assign(0)
    for variable, value in zip(model.optimizer.momentums, momentum, strict=True):
        variable.assign(value)


def equal(arrays, others):
    return all(np.array_equal(a, b) for a, b in zip(arrays, others, strict=True))


def images_of(epoch, rank):
    """The labels of each step of a rank in an epoch, in the order that labs.data.order says it gives."""
    numbers = np.random.default_rng([SEED, epoch]).permutation(IMAGES)[rank::RANKS]
    return [each.tolist() for each in np.split(numbers, STEPS)]
