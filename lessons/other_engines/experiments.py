"""The same 20 steps on every engine that is here, and a study on each: jobs, and what they leave."""

import json

import numpy as np

from labs import devices, jobs, results
from labs.measure import study

ENGINES = {  # name in the tables: (engine, workers)
    "one process": ("single", 1),
    "MirroredStrategy": ("mirrored", 2),
    "Horovod": ("horovod", 2),
    "JAX, 1 device": ("jax", 1),
    "JAX, 2 devices": ("jax", 2),
}
CASES = ["plain", "softmax", "batch_norm"]  # of same_steps
ORDERS = ["order1", "order2", "order3", "order4"]


def here(*strategies):
    """Those of the strategies for which all is installed; one line says what is missing for the others."""
    return [each for each in strategies if each not in ("horovod", "jax") or devices.has(each)]


def trained(engines=ENGINES):
    """{name in ENGINES: {case: weights after the steps}}, for those that are installed."""
    found, installed = {}, here(*{ENGINES[name][0]: None for name in engines})
    for name in engines:
        engine, workers = ENGINES[name]
        if engine not in installed:
            continue
        cases = [*CASES, *ORDERS, "half"] if engine == "single" else CASES
        options = {"ranks": workers, "launcher": "horovodrun"} if engine == "horovod" else {}
        # Keras of this kernel has its backend already: that of a job is chosen in the job's environment.
        env = {"CUDA_VISIBLE_DEVICES": ""} | ({"KERAS_BACKEND": "jax"} if engine == "jax" else {})
        options |= {"name": f"steps_{engine}_{workers}", "env": env}
        asked = json.dumps({"engine": engine, "workers": workers, "cases": cases})
        job = jobs.run("-m", "lessons.other_engines.same_steps", asked, **options)
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
    """Rows for a table: how far each engine is from `by` in a case; none where `by` is missing."""
    others = {name: of for name, of in trained.items() if name != by and by in trained}
    return [{"engine": name, "apart": apart(of[case], trained[by][case])} for name, of in others.items()]


def studied(plan, *strategies):
    """Runs of a study of SmallCNN on 1 and 2 workers, which take turns, for each strategy that is here."""
    runs = []
    for strategy in here(*strategies) if devices.has("two devices") else []:
        if strategy == "jax" and devices.gpus():
            print("The course's JAX computes only on the CPU, so it is left out of a comparison with GPUs.")
            continue
        paths = study.run(plan, models=["SmallCNN"], workers=[1, 2], strategy=strategy, out=jobs.folder())
        runs += results.load(paths)
    return runs
