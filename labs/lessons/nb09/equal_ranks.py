"""What a student's `local_sgd` does on 2 ranks, beside what it should do, and beside what usual mistakes would do.

    python -m labs.lessons.nb09.equal_ranks SCRIPT FOLDER SECONDS      what each rank runs; rank 0 writes facts.json

The ranks begin with equal weights, each has a random seed and batches of its own. The network has a layer that is not
trained, and one that is used twice.
"""

import json
import os
import runpy
import sys
import tempfile
import threading
import time
import traceback
from functools import cache
from pathlib import Path

import numpy as np

from labs import files, jobs
from labs.checks import student_code
from labs.checks.judging import NotDone
from labs.checks.tryout.play import mistake
from labs.errors import LabsError

RANKS = 2
RATE = 0.1
STEPS = 6
CASES = ({"k": 1, "momentum": 0.0}, {"k": 3, "momentum": 0.0}, {"k": 2, "momentum": 0.9})
TOLERANCE = 1e-3  # of how far the weights have moved
MEETS = {  # whether the ranks take their mean after this step
    None: lambda step, k: step % k == 0,
    "never": lambda step, k: False,
    "every step": lambda step, k: True,
    "early": lambda step, k: (step - 1) % k == 0,
    "one early": lambda step, k: (step + 1) % k == 0,
    "not at k": lambda step, k: step % k > 0,
    "at the end": lambda step, k: step == STEPS,
    "gradients at k": lambda step, k: False,
    "repeated": lambda step, k: True,
}
RATES = {"nothing": 0, "rate": RANKS, "uphill": -1}  # times the right one
DIVISORS = {"sum": lambda k: 1, "by k": lambda k: k, "by all": lambda k: RANKS * k, "twice": lambda k: RANKS**2}
OF_MOMENTUM = ("weights alone", "momentum alone", "momentum sum", "momentum of rank 0", "momentum lost", "no momentum")
OTHERS = ("only k-th", "first mean", "collected", "collected sum", "rank 0", "before")
MISTAKES = (*RATES, *filter(None, MEETS), *DIVISORS, *OF_MOMENTUM, *OTHERS)
PATIENCE = 60, 300  # seconds: for the script's function, and for all with the start of the ranks


def facts(script):
    """What happened, kept for a script that has not changed: {error: None or {line, code, says}, cases: a list}.

    Each of CASES has got: like, a list: "right", or else those of MISTAKES that give the same weights; equal: whether
    both ranks have the same weights at the end; moved_frozen: whether the layer changed that is not trained; ahead: how
    many batches were taken before the first step.
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
            job = jobs.start("-m", program, script, folder, PATIENCE[0], **options).wait(PATIENCE[1], show=False)
        except LabsError as problem:
            raise NotDone(str(problem)) from None
        for name in ("facts.json", "error.0.json", "error.1.json"):
            if Path(folder, name).is_file():
                return json.loads(Path(folder, name).read_text(encoding="utf-8"))
        still = [Path(folder, f"still.{rank}") for rank in range(RANKS)]
        if all(file.is_file() for file in still):
            return {"error": _endless(script, [json.loads(file.read_text()) for file in still])}
        if job.stopped:
            says = f"the 2 ranks do not come to an end, and were stopped after {PATIENCE[1]} s: does each do the same?"
            return {"error": mistake(script, None, says)}
        return {"error": mistake(script, None, job.explain())}


def _endless(script, lines):
    """The mistake of ranks that do not come to an end; lines: where each of them is, None behind the function."""
    at, there = next(((rank, line) for rank, line in enumerate(lines) if line), (0, None))
    other = lines[1 - at]
    where = "has ended" if other is None else "is here, too" if other == there else f"is in line {other}"
    says = f"after {PATIENCE[0]} s rank {at} is still here, and rank {1 - at} {where}. "
    return mistake(script, there, says + "Do all exchange equally often, and does every loop end?")


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
        rate, divisor = RATE * RATES.get(mistake, 1), DIVISORS.get(mistake, lambda k: RANKS)(k)
        momentum, collected = 0.0 if mistake == "no momentum" else momentum, 0.0
        for step in range(1, STEPS + 1):
            at_k, meet = step % k == 0, MEETS.get(mistake, MEETS[None])(step, k)
            if mistake == "only k-th" and not at_k:
                continue
            if meet and mistake == "before":
                weights[:], speed[:] = weights.mean(0), speed.mean(0)
            for _ in range(k if mistake == "repeated" else 1):
                found = np.array([self.gradient(weights[r], self.batches[r][step - 1]) for r in range(RANKS)])
                if mistake in ("collected", "collected sum"):
                    collected = collected + found.mean(0) / (k if mistake == "collected" else 1)
                    if not at_k:
                        continue
                    found[:], collected = collected, 0.0
                if mistake == "gradients at k" and at_k:
                    found[:] = found.mean(0)
                speed = momentum * speed - rate * found
                weights = weights + speed
            if meet and mistake != "before":
                if mistake != "momentum alone":
                    weights[:] = weights[0] if mistake == "rank 0" else weights.sum(0) / divisor
                if mistake in ("rank 0", "momentum of rank 0"):
                    speed[:] = speed[0]
                elif mistake == "momentum lost":
                    speed[:] = 0
                elif mistake != "weights alone":
                    speed[:] = speed.sum(0) / (1 if mistake == "momentum sum" else divisor)
                if mistake == "first mean":
                    break
        return weights


def one_by_one(some, model, ahead):
    """The batches, one by one; `ahead` gets those that are taken before any weight of the model has changed."""
    start = model.get_weights()
    for batch in some:
        if all((a == b).all() for a, b in zip(start, model.get_weights(), strict=True)):
            ahead.append(batch)
        yield batch


def play(function, rank):
    """[(weights at the end, whether the frozen layer has moved, batches taken ahead) of each of CASES] on this rank."""
    import keras

    loss, cases = keras.losses.SparseCategoricalCrossentropy(), []
    for case in CASES:
        model, optimizer = network(), keras.optimizers.SGD(RATE, momentum=case["momentum"])
        optimizer.build(model.trainable_variables)
        frozen = [weight.numpy() for weight in model.non_trainable_variables]
        ahead = []
        function(model, optimizer, loss, one_by_one(batches(rank), model, ahead), case["k"])
        weights = np.concatenate([np.ravel(weight.numpy()) for weight in model.trainable_variables])
        pairs = zip(model.non_trainable_variables, frozen, strict=True)
        cases.append((weights, any((weight.numpy() != before).any() for weight, before in pairs), len(ahead)))
    return cases


def _rank(script, folder, seconds):
    """Try the script's function in this rank on all CASES, and compare. Rank 0 writes facts.json.

    What has not come to an end after so many seconds is told in still.RANK.
    """
    from labs import devices, hvd, ranks

    # isort: split
    import keras

    hvd.init()
    devices.pin(hvd.local_rank(), hvd.local_size())
    keras.utils.set_random_seed(10 + hvd.rank())
    reference = Reference()
    watch = threading.Timer(float(seconds), _still, (script, Path(folder, f"still.{hvd.rank()}")))
    watch.daemon = True
    watch.start()
    try:
        function = runpy.run_path(script, run_name="a script that is tried out")["local_sgd"]
        by_rank = ranks.gather(play(function, hvd.rank()), "what it has trained")
    except BaseException as problem:
        lines = [frame.lineno for frame in traceback.extract_tb(problem.__traceback__) if frame.filename == script]
        line = problem.lineno if isinstance(problem, SyntaxError) else lines[-1] if lines else None
        found = {"error": mistake(script, line, student_code.said(problem))}
        files.write(Path(folder, f"error.{hvd.rank()}.json"), json.dumps(found))
        os._exit(1)  # the other rank may wait for this one: the launcher ends it
    watch.cancel()
    if hvd.rank() == 0:
        told = [_compare(reference, *of_case) for of_case in zip(CASES, *by_rank, strict=True)]
        files.write(Path(folder, "facts.json"), json.dumps({"error": None, "cases": told}))


def _still(script, file):
    """Write down in which line of the script this rank is, and end it; the other one does the same by then."""
    frame, line = sys._current_frames()[threading.main_thread().ident], None
    while frame is not None and line is None:
        line = frame.f_lineno if frame.f_code.co_filename == script else None
        frame = frame.f_back
    files.write(file, json.dumps(line))
    time.sleep(5)
    os._exit(1)


def _compare(reference, case, *by_rank):
    """One of `cases` in the facts, from what `play` gave for this case on each rank."""
    found = np.array([weights for weights, *_ in by_rank])
    like = [name for name in (None, *MISTAKES) if reference.alike(found, reference.train(**case, mistake=name))]
    like = ["right"] if None in like else like
    equal, moved_frozen = reference.alike(found[0], found[1]), any(moved for _, moved, _ in by_rank)
    return case | {"like": like, "equal": equal, "moved_frozen": moved_frozen, "ahead": by_rank[0][2]}


if __name__ == "__main__":
    _rank(*sys.argv[1:])
