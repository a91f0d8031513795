"""What a student's `local_sgd` does on 2 ranks, beside what it should do, and beside what usual mistakes would do.

    python -m labs.lessons.nb09.equal_ranks SCRIPT FOLDER      what each rank runs; rank 0 writes FOLDER/facts.json

The ranks begin with equal weights, each has a random seed and batches of its own. The network has a layer that is not
trained, and one that is used twice.
"""

import json
import os
import runpy
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path

import numpy as np

from labs import files, jobs
from labs.checks.judging import NotDone
from labs.checks.tryout.play import mistake
from labs.errors import LabsError

RANKS = 2
RATE = 0.1
STEPS = 6
CASES = ({"k": 1, "momentum": 0.0}, {"k": 3, "momentum": 0.0}, {"k": 2, "momentum": 0.9})
TOLERANCE = 1e-3  # of how far the weights have moved
MISTAKES = (
    "nothing",
    "never",
    "every step",
    "early",
    "at the end",
    "sum",
    "by k",
    "by all",
    "gradients at k",
    "rank 0",
    "weights alone",
    "momentum lost",
    "before",
    "rate",
)
PATIENCE = 120  # seconds, for ranks that wait for each other


def facts(script):
    """What happened, kept for a script that has not changed: {error: None or {line, code, says}, cases: a list}.

    Each of CASES has got: like, a list: "right", or else those of MISTAKES that give the same weights; equal: whether
    both ranks have the same weights at the end; moved_frozen: whether the layer changed that is not trained.
    Raises NotDone where ranks cannot be started.
    """
    path = Path(script).resolve()
    return _facts(str(path), path.read_bytes())


@cache
def _facts(script, text):
    with tempfile.TemporaryDirectory(prefix="local_sgd_") as folder:
        program = "labs.lessons.nb09.equal_ranks"
        env = {"CUDA_VISIBLE_DEVICES": ""}
        options = {"name": "equal_ranks", "runs": folder, "ranks": RANKS, "launcher": "mpiexec", "env": env}
        try:
            job = jobs.start("-m", program, script, folder, **options).wait(PATIENCE, show=False)
        except LabsError as problem:
            raise NotDone(str(problem)) from None
        for name in ("facts.json", "error.0.json", "error.1.json"):
            if Path(folder, name).is_file():
                return json.loads(Path(folder, name).read_text(encoding="utf-8"))
        if job.stopped:
            says = f"the 2 ranks do not come to an end, and were stopped after {PATIENCE} s: does each do the same?"
            return {"error": mistake(script, None, says)}
        return {"error": mistake(script, None, job.explain())}


def network():
    """8 numbers in, 3 probabilities out; the weights of all ranks begin equal, whatever their seeds."""
    import keras

    inputs, tied = keras.Input((8,)), keras.layers.Dense(8, "tanh", name="twice")
    frozen = keras.layers.Dense(8, "tanh", name="frozen", trainable=False)
    model = keras.Model(inputs, keras.layers.Dense(3, "softmax")(tied(tied(frozen(inputs)))))
    random = np.random.default_rng(1)
    model.set_weights([random.normal(0, 0.5, weight.shape) for weight in model.weights])
    return model


def batches(rank):
    """The batches of a rank: 5 samples in each step."""
    random = np.random.default_rng((2, rank))
    return [(random.normal(size=(5, 8)).astype("float32"), random.integers(0, 3, 5)) for _ in range(STEPS)]


class Reference:
    """Trainings of all ranks by hand, in this process: right, or with one of MISTAKES."""

    def __init__(self):
        import keras
        import tensorflow as tf

        self.model = network()
        self.start = [weight.numpy() for weight in self.model.trainable_variables]
        self.batches = [batches(rank) for rank in range(RANKS)]
        loss = keras.losses.SparseCategoricalCrossentropy()

        @tf.function
        def gradient(images, labels):
            with tf.GradientTape() as tape:
                value = loss(labels, self.model(images, training=True))
            return tape.gradient(value, self.model.trainable_variables)

        self._gradient = gradient

    def gradient(self, weights, batch):
        for variable, value in zip(self.model.trainable_variables, self._lists(weights), strict=True):
            variable.assign(value)
        return np.concatenate([np.ravel(part) for part in self._gradient(*batch)])

    def alike(self, weights, others):
        """Whether two trainings have ended with the same weights, up to rounding."""
        far = np.abs(others - np.concatenate([part.ravel() for part in self.start])).max()
        return bool(np.abs(weights - others).max() <= TOLERANCE * max(far, 1e-3))

    def _lists(self, flat):
        ends = np.cumsum([part.size for part in self.start])[:-1]
        return [part.reshape(like.shape) for part, like in zip(np.split(flat, ends), self.start, strict=True)]

    def train(self, k, momentum, mistake=None):
        """Weights of all ranks at the end, shape (RANKS, number of weights)."""
        start = np.concatenate([part.ravel() for part in self.start]).astype(np.float64)
        weights, speed = np.tile(start, (RANKS, 1)), np.zeros((RANKS, len(start)))
        rate = RATE * {"rate": RANKS, "nothing": 0}.get(mistake, 1)
        every = {"every step": 1, "at the end": STEPS}.get(mistake, k)
        for step in range(1, STEPS + 1):
            meet = step % every == 0 and mistake not in ("never", "gradients at k")
            if mistake == "early":
                meet = (step - 1) % k == 0
            if meet and mistake == "before":
                weights[:], speed[:] = weights.mean(0), speed.mean(0)
            found = np.array([self.gradient(weights[r], self.batches[r][step - 1]) for r in range(RANKS)])
            if mistake == "gradients at k" and step % k == 0:
                found[:] = found.mean(0)
            speed = momentum * speed - rate * found
            weights = weights + speed
            if meet and mistake != "before":
                divisor = {"sum": 1, "by k": k, "by all": RANKS * k}.get(mistake, RANKS)
                weights[:] = weights[0] if mistake == "rank 0" else weights.sum(0) / divisor
                if mistake == "momentum lost":
                    speed[:] = 0
                elif mistake == "rank 0":
                    speed[:] = speed[0]
                elif mistake != "weights alone":
                    speed[:] = speed.sum(0) / divisor
        return weights


def _rank(script, folder):
    """Try the script's function in this rank on all CASES, and compare. Rank 0 writes facts.json."""
    from labs import devices, hvd, ranks

    # isort: split
    import keras

    hvd.init()
    devices.pin(hvd.local_rank(), hvd.local_size())
    keras.utils.set_random_seed(10 + hvd.rank())
    reference, cases = Reference(), []
    loss = keras.losses.SparseCategoricalCrossentropy()
    try:
        function = runpy.run_path(script, run_name="a script that is tried out")["local_sgd"]
        for case in CASES:
            model, optimizer = network(), keras.optimizers.SGD(RATE, momentum=case["momentum"])
            optimizer.build(model.trainable_variables)
            frozen = [weight.numpy() for weight in model.non_trainable_variables]
            function(model, optimizer, loss, batches(hvd.rank()), case["k"])
            weights = np.concatenate([np.ravel(weight.numpy()) for weight in model.trainable_variables])
            moved = any(
                (weight.numpy() != before).any()
                for weight, before in zip(model.non_trainable_variables, frozen, strict=True)
            )
            by_rank = ranks.gather((weights, moved), "what it has trained")
            cases.append((np.array([each for each, _ in by_rank]), any(moved for _, moved in by_rank)))
    except BaseException as problem:
        lines = [frame.lineno for frame in traceback.extract_tb(problem.__traceback__) if frame.filename == script]
        line = problem.lineno if isinstance(problem, SyntaxError) else lines[-1] if lines else None
        said = str(problem).strip().split("\n")[0][:300]
        found = {"error": mistake(script, line, f"{type(problem).__name__}: {said}".rstrip(": "))}
        files.write(Path(folder, f"error.{hvd.rank()}.json"), json.dumps(found))
        os._exit(1)  # the other rank may wait for this one: the launcher ends it
    if hvd.rank() == 0:
        told = [_compare(reference, case, *found) for case, found in zip(CASES, cases, strict=True)]
        files.write(Path(folder, "facts.json"), json.dumps({"error": None, "cases": told}))


def _compare(reference, case, found, moved_frozen):
    """One of `cases` in the facts."""
    like = [name for name in (None, *MISTAKES) if reference.alike(found, reference.train(**case, mistake=name))]
    like = ["right"] if None in like else like
    equal = reference.alike(found[0], found[1])
    return case | {"like": like, "equal": equal, "moved_frozen": moved_frozen}


if __name__ == "__main__":
    _rank(*sys.argv[1:])
