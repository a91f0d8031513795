"""Several trainings in one program, each from newly drawn weights: they share TensorFlow's start-up and tracing."""

import argparse
import random
from collections.abc import Iterator

import keras

from labs.training.recorder import Recorder


def repeats(args: argparse.Namespace, recorder: Recorder, model: keras.Model) -> Iterator[int]:
    """Count from 0 to args.repeats - 1; before each training but the first, draw new weights.

    args: parsed command line (labs.training.arguments); recorder: of all these trainings; model: compiled.
    Seed of repeat r: args.seed + r. The compiled step is reused, so only the first repeat traces.
    """
    for repeat in range(args.repeats):
        if repeat:
            if recorder.rank == 0:
                print(f"Repeat {repeat + 1} of {args.repeats}", flush=True)
            reinitialise(model, args.seed + repeat)
        recorder.repeat = repeat
        yield repeat


def reinitialise(model: keras.Model, seed: int) -> None:
    """Give the variables of `model` and its optimizer the start that a new model with this seed would have.

    Keras' initializers draw their seeds from Python's `random`. tf.random.set_seed would do more than needed:
    it empties TensorFlow's cache of compiled steps, and the next step would take as long as the first one.
    """
    random.seed(seed)
    model.set_weights(keras.models.clone_model(model).get_weights())
    for variable in model.optimizer.variables:
        if variable.path.endswith("learning_rate"):
            continue
        variable.assign(keras.ops.zeros(variable.shape, dtype=variable.dtype))
