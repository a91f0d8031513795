"""The same 20 steps on every engine that is here: jobs, and the weights that they leave."""

import numpy as np

from labs import devices, jobs
from labs.measure import study
from labs.results import collect

MODULE = ("-m", "labs.lessons.nb14.same_steps")
JAX = {"KERAS_BACKEND": "jax"}  # of the job alone: this kernel's Keras has its backend already
ENGINES = {  # name in the tables: (engine, workers)
    "one process": ("single", 1),
    "MirroredStrategy": ("mirrored", 2),
    "Horovod": ("horovod", 2),
    "JAX, 1 device": ("jax", 1),
    "JAX, 2 devices": ("jax", 2),
}
CASES = ["plain", "softmax", "batch_norm"]  # of same_steps
ORDERS = ["order1", "order2", "order3", "order4"]


def trained():
    """{name in ENGINES: {case: weights after the steps}}, for the engines that are installed."""
    found = {}
    for name, (engine, workers) in ENGINES.items():
        if engine in ("horovod", "jax") and not devices.has(engine):
            continue
        cases = [*CASES, *ORDERS, "half"] if engine == "single" else CASES
        ranks = {"ranks": workers, "launcher": "horovodrun"} if engine == "horovod" else {}
        job = jobs.run(
            *[*MODULE, "--engine", engine, "--workers", workers, "--cases", *cases],
            name=f"same_steps_{engine}_{workers}",
            env={"CUDA_VISIBLE_DEVICES": ""} | (JAX if engine == "jax" else {}),
            **ranks,
        )
        with np.load(job.stem.with_suffix(".npz")) as file:
            found[name] = dict(file)
    return found


def orders(weights):
    """The weights of one process after each order of summation, an array (5, number of weights)."""
    return np.stack([weights[case] for case in ("plain", *ORDERS)])


def apart(weights, others):
    """The largest difference of a weight."""
    return float(np.max(np.abs(weights - others)))


def table(trained, case, by="one process"):
    """Rows for a table: how far each engine is from `by` in a case."""
    return [{"engine": name, "apart": apart(of[case], trained[by][case])} for name, of in trained.items() if name != by]


def studied(plan):
    """Rows of a study of SmallCNN on 1 and 2 workers, which take turns, for each engine that is here."""
    rows = []
    for strategy in ("mirrored", "horovod", "jax"):
        if strategy == "jax" and devices.gpus():
            print("The course's JAX computes on the CPU only: beside GPUs, it is left out.")
        elif devices.has("two devices", *[strategy] * (strategy != "mirrored")):
            rows += collect.rows(
                study.run(plan, models=["SmallCNN"], workers=[1, 2], strategy=strategy, out=jobs.folder())
            )
    return rows
