"""The cases of gpu_proof, each in a process of its own: `python measures.py OPTIONS` (JSON), which leaves a result.

Each function takes (sizes, case) and its own arguments, and returns what goes into the records. Keras' engine is the
one that KERAS_BACKEND names.
"""

import gc
import json
import os
import random
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gpu_proof import plan, summary
from labs import data, devices, files, jobs, models  # first: it silences TensorFlow's start-up messages
from labs.results import intervals


@dataclass(frozen=True)
class Case:
    """name: of its files; runs: where they are."""

    name: str
    runs: Path


def doctor(sizes, case):
    """The machine, and what `labs doctor` says."""
    from labs import doctor

    told = {"machine": devices.machine(), "versions": devices.versions("jax"), "rows": doctor.look()}
    told["processor_bfloat16"] = devices.bfloat16() or "none"
    try:
        asked = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.sm,power.limit", "--format=csv"]
        told["nvidia_smi"] = subprocess.run(asked, capture_output=True, text=True, timeout=30).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        told["nvidia_smi"] = ""
    return told


def train(sizes, case, model, precision="float32"):
    """The kit's training program; what its recorder wrote, what the sampler saw, and the peak of the GPU's memory."""
    import keras

    from labs.training import program

    keras.config.set_dtype_policy(precision)
    program.main(_options(sizes, case, model))
    found = summary.training(case.runs / f"{case.name}.json") | {"peak_bytes": _peak()}
    if os.environ.get("LABS_SAMPLES"):
        from labs.results import watched

        samples = watched.ranks(case.runs / case.name)[0]
        found |= {"samples": len(samples.samples), "cores_used": samples.mean("cores")}
        seen = [gpu for sample in samples.samples for gpu in sample["gpus"]]
        found["gpus_seen"] = len(samples.samples and samples.samples[-1]["gpus"])
        for key in ("utilisation", "memory", "power"):
            found[f"highest_{key}"] = max((gpu[key] for gpu in seen), default=None)
    return found


def _options(sizes, case, model, strategy=None, workers=1, name=None):
    strategy = strategy or ("jax" if devices.on_jax() else "mirrored")
    asked = {"model": model, "strategy": strategy, "workers": workers, "batch_size": sizes.local_batch * workers}
    asked |= {"epochs": sizes.epochs, "image_size": sizes.image_size, "dataset": f"synthetic:{sizes.images}"}
    asked |= {"run": name or case.name, "runs": case.runs}
    return [f"--{key}={value}" for key, value in asked.items()]


def predict(sizes, case, model):
    """What `labs predict` says of a step, before it is measured: of the H100's file, or of a core's on the CPU."""
    from labs import costs
    from labs.models import counts

    name = "laptop"
    if gpus := devices.machine()["gpus"]:
        name = case.runs / "gpu.toml"
        files.write(name, machine_file(gpus[0]))
    facts = counts.of(model, sizes.image_size, 10)
    found = costs.predict_from_machine(
        model, facts, costs.load_machine(name), 1, sizes.local_batch, image_size=sizes.image_size
    )
    step = found.quantities["step_seconds"]
    return {"machine": found.as_dict()["machine"], "step_seconds": step.value, "interval": list(step.interval)}


def machine_file(gpu):
    """The file of a machine with one such GPU, for `labs predict`: an H100, or an H200, which has more memory."""
    told = [f'name = "one {gpu}"', "[device]", 'base = "H100"']
    if "H200" in gpu:
        told += [f'name = "{gpu}"', 'memory = { value = "141 GB", source = "NVIDIA H200 data sheet" }']
        told += ['memory_bandwidth = { value = "4800 GB/s", source = "NVIDIA H200 data sheet" }']
    return "\n".join([*told, "[node]", "devices = 1", 'bandwidth = "50 GB/s"', ""])


def loop(sizes, case, model):
    """Seconds of a step of the kit's training (fit, with its recorder) over those of a bare loop, in turns."""
    import argparse

    import numpy as np

    from labs import training

    _one_worker()
    batch, steps = sizes.local_batch, max(2, sizes.images // sizes.local_batch)
    dataset = data.load(f"synthetic:{batch * steps}")
    ours = _compiled(model, sizes)
    asked = {"dataset": "synthetic", "image_size": sizes.image_size, "images": None, "repeats": 10**6, "seed": 0}
    asked |= {"run": case.name, "runs": str(case.runs), "epochs": 1, "batch_size": batch}
    strategy = "jax" if devices.on_jax() else "single"
    told = {"model": model, "strategy": strategy, "workers": 1, "images": batch * steps, "learning_rate": 0.01}
    recorder = training.Recorder(argparse.Namespace(**asked), **told)
    pipeline = data.pipeline(dataset, batch)
    bare = _bare(models.build(model, sizes.image_size, 10))
    arrays = [(dataset.images[i : i + batch], dataset.labels[i : i + batch]) for i in range(0, batch * steps, batch)]

    def kit():
        ours.fit(pipeline, epochs=1, shuffle=False, verbose=0, callbacks=[recorder])

    def without():
        for images, labels in arrays:
            loss = bare(images, labels)
        float(np.asarray(loss))

    seconds = _in_turns({"kit": kit, "bare": without}, sizes.rounds, steps)
    return _ratio(seconds, "kit", "bare") | {"steps": steps}


def turns(sizes, case, model):
    """One training against itself, both in one memory, an epoch of each in turn."""
    from labs.measure import study

    paths, env = [], {"LABS_SAMPLES": "0.2"}
    with jobs.Turns(show=False, explain=False) as both:
        for ending in ("once", "again"):
            name = f"{case.name}_{ending}"
            asked = _options(sizes, case, model, name=name)
            both.start("-m", "labs.training.program", *asked, name=name, runs=case.runs, env=env)
            paths.append(case.runs / f"{name}.json")
    if both.state != "finished":
        raise SystemExit("\n".join(job.explain() for job in both.jobs))
    ratio, floor = study.itself(paths)
    found = {"ratio": ratio.value, "interval": ratio.interval, "floor": floor, "waited": both.waited}
    return found | {path.stem.rpartition("_")[2]: summary.training(path) for path in paths}


def maxbatch(sizes, case, model):
    """The largest batch of a step that fits, doubling until memory runs out, and the line that says so."""
    memory = None if devices.gpus() else sizes.memory
    if not devices.on_jax():
        from labs.measure import maxbatch

        found = maxbatch.search(
            model,
            image_size=sizes.image_size,
            memory=memory,
            start=sizes.local_batch,
            limit=sizes.largest,
            runs=case.runs,
            show=False,
        )
        return {key: found[key] for key in ("device", "memory", "largest", "fails", "trials", "evidence")}
    from labs.results import failures

    # As `labs maxbatch` does: in a process of its own, which may not survive it.
    name, options = f"{case.name}_trials", {"model": model, "memory": memory}
    asked = {"function": "trials", "arguments": options, "preset": sizes.name, "name": name, "runs": str(case.runs)}
    job = jobs.start(__file__, json.dumps(asked | {"result": None}), name=name, runs=case.runs).wait(show=False)
    said = re.findall(r"Trial batch (\d+): (starts|fits in ([\d.]+) s)", job.out.read_text(errors="replace"))
    seconds = {int(batch): float(took) for batch, _, took in said if took}
    found, last = failures.failure(job.err), max((int(batch) for batch, *_ in said), default=None)
    evidence = found["line"].strip()[:300] if found and found["kind"] == "out of memory" else None
    if job.state != "finished" and not evidence:
        raise SystemExit(f"A trial failed, but not for lack of memory. {job.explain()}")
    fails = last if evidence else None
    return {
        "memory": memory,
        "largest": max(seconds, default=None),
        "fails": fails,
        "evidence": evidence,
        "trials": seconds,
    }


def trials(sizes, case, model, memory):
    """Steps with JAX, each of twice the batch of the one before, until one does not fit."""
    import numpy as np

    _one_worker()
    step = _bare(models.build(model, sizes.image_size, 10))

    def train(batch):
        begin = time.perf_counter()
        loss = step(np.zeros((batch, 32, 32, 3), "uint8"), np.zeros(batch, "int64"))
        float(np.asarray(loss))
        return time.perf_counter() - begin

    train(1)
    if memory:
        import resource

        import psutil

        size = psutil.Process().memory_info().vms
        resource.setrlimit(resource.RLIMIT_AS, (size + memory, size + memory))
    batch = sizes.local_batch
    while batch <= sizes.largest:
        print(f"Trial batch {batch}: starts", flush=True)
        train(batch)  # compiles
        print(f"Trial batch {batch}: fits in {train(batch):.5f} s", flush=True)
        batch *= 2


def bfloat16(sizes, case, model):
    """Seconds of a step in float32 over those in mixed_bfloat16, in turns, and how far their losses are apart."""
    import keras
    import numpy as np

    _one_worker()
    steps, batch, trained = 4, sizes.local_batch, {}
    dataset = data.load(f"synthetic:{batch}")
    for precision in ("float32", "mixed_bfloat16"):
        keras.utils.set_random_seed(0)
        keras.config.set_dtype_policy(precision)
        network = models.build(model, sizes.image_size, 10)
        trained[precision] = _bare(network)
    losses = {}

    def turn(precision):
        for _ in range(steps):
            loss = trained[precision](dataset.images, dataset.labels)
        losses[precision] = float(np.asarray(loss))

    every = {precision: (lambda name=precision: turn(name)) for precision in trained}
    seconds = _in_turns(every, sizes.rounds, steps)
    found = _ratio(seconds, "float32", "mixed_bfloat16")
    return found | {f"loss_{name}": value for name, value in losses.items()}


def recompute(sizes, case, mode):
    """Peak memory of a step of notebook 10's network that keeps all activations, or recomputes those of a block."""
    from labs.lessons.nb10 import recompute as lesson

    batch = 256 if devices.gpus() else 8
    if not devices.on_jax():
        os.environ["LABS_RUNS"] = str(case.runs)
        found = lesson.measure(mode, batch=batch, rounds=0)
        if found is None:
            raise SystemExit("the measurement of notebook 10 did not finish")
        return found
    import jax
    import keras

    _one_worker()
    keras.utils.set_random_seed(0)
    network = lesson.build(mode, 6)
    weights = [variable.value for variable in network.trainable_variables]
    values = jax.random.normal(jax.random.key(0), (batch, lesson.SIDE, lesson.SIDE, lesson.FILTERS))

    @jax.jit
    def step(weights, values):
        def loss(weights):
            return (network.stateless_call(weights, [], values, training=True)[0] ** 2).mean()

        value, gradient = jax.value_and_grad(loss)(weights)
        return value, [weight - 0.001 * each for weight, each in zip(weights, gradient, strict=True)]

    compiled = step.lower(weights, values).compile()
    needed, seconds = compiled.memory_analysis().temp_size_in_bytes, []
    for _ in range(4):
        begin = time.perf_counter()
        value, weights = jax.block_until_ready(compiled(weights, values))
        seconds.append(time.perf_counter() - begin)
    found = {"mode": mode, "batch": batch, "compiled_bytes": needed, "peak_bytes": _peak(), "loss": float(value)}
    return found | {"seconds": seconds[1:], "step_seconds": min(seconds[1:])}


def feed(sizes, case, model):
    """Images/s of the input pipeline alone; seconds of a step that reads over those of one that does not, in turns."""
    import numpy as np

    _one_worker()
    batch, steps = sizes.local_batch, max(2, sizes.images // sizes.local_batch)
    dataset = data.load(f"synthetic:{batch * steps}")
    pipeline = data.pipeline(dataset, batch)
    bare = _bare(models.build(model, sizes.image_size, 10))

    def batches():
        return (pipeline[i] for i in range(len(pipeline))) if hasattr(pipeline, "on_epoch_end") else iter(pipeline)

    def reading():
        for _ in batches():
            pass

    def training(source):
        for images, labels in source:
            loss = bare(images, labels)
        float(np.asarray(loss))

    fixed = next(iter(batches()))
    every = {"alone": reading, "reading": lambda: training(batches()), "fixed": lambda: training([fixed] * steps)}
    seconds = _in_turns(every, sizes.rounds, steps)
    rates = {f"images_per_second_{name}": batch / (sum(each) / len(each)) for name, each in seconds.items()}
    return _ratio(seconds, "reading", "fixed") | rates


def mirrored(sizes, case, model):
    """MirroredStrategy over two logical devices of one card, or of the CPU."""
    import argparse

    import keras
    import tensorflow as tf

    from labs import training

    cards = tf.config.list_physical_devices("GPU")
    if cards:
        half = [tf.config.LogicalDeviceConfiguration(memory_limit=24 * 2**10)] * 2
        tf.config.set_logical_device_configuration(cards[0], half)
        names = ["GPU:0", "GPU:1"]
    else:
        names = devices.workers(2)
    # NCCL does not join two devices of one card.
    strategy = tf.distribute.MirroredStrategy(names, cross_device_ops=tf.distribute.ReductionToOneDevice())
    dataset, batch = data.load(f"synthetic:{sizes.images}"), 2 * (sizes.local_batch // 2)
    with strategy.scope():
        network = _compiled(model, sizes)
    asked = {"dataset": "synthetic", "image_size": sizes.image_size, "images": None, "repeats": 1, "seed": 0}
    asked |= {"run": case.name, "runs": str(case.runs), "epochs": sizes.epochs, "batch_size": batch}
    told = {"model": model, "strategy": "mirrored", "workers": 2, "images": sizes.images, "learning_rate": 0.01}
    recorder = training.Recorder(argparse.Namespace(**asked), **told)
    pipeline = data.pipeline(dataset, batch, workers=2)
    network.fit(pipeline, epochs=sizes.epochs, shuffle=False, verbose=2, callbacks=[recorder])
    first = keras.ops.convert_to_numpy(network.trainable_variables[0].value)
    return summary.training(recorder.path) | {"finite": bool((first == first).all())}


def horovod(sizes, case, model, ranks):
    """The kit's training program on Horovod's ranks; whether NCCL was in it is in the end of the output."""
    name = f"{case.name}_ranks"
    asked = _options(sizes, case, model, "horovod", ranks, name)
    job = jobs.start(
        "-m", "labs.training.program", *asked, name=name, runs=case.runs, ranks=ranks, env={"NCCL_DEBUG": "INFO"}
    ).wait(show=False)
    if job.state != "finished":
        raise SystemExit(job.explain())
    said = job.out.read_text(errors="replace") + job.err.read_text(errors="replace")
    return summary.training(case.runs / f"{name}.json") | {"lines_of_nccl": said.count("NCCL INFO")}


def _one_worker():
    """This process computes on one GPU, or on one core."""
    devices.of_jax(1) if devices.on_jax() else devices.workers(1)


def _compiled(model, sizes):
    import keras

    network = models.build(model, sizes.image_size, 10)
    compiled = {"loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"], "jit_compile": devices.on_jax()}
    network.compile(optimizer=keras.optimizers.SGD(0.01), **compiled)
    return network


def _bare(network):
    """A function (images, labels) -> loss that trains once, without Keras' loop."""
    import keras

    optimizer = keras.optimizers.SGD(0.01)
    if not devices.on_jax():
        from labs.measure.step import compiled

        return compiled(network, optimizer)
    import jax
    import numpy as np

    network(np.zeros((1, 32, 32, 3), "uint8"))  # makes its variables
    optimizer.build(network.trainable_variables)
    measure = keras.losses.SparseCategoricalCrossentropy()

    def loss(weights, others, images, labels):
        outputs, others = network.stateless_call(weights, others, images, training=True)
        return measure(labels, outputs), others

    @jax.jit
    def step(state, images, labels):
        weights, others, kept = state
        (value, others), gradient = jax.value_and_grad(loss, has_aux=True)(weights, others, images, labels)
        weights, kept = optimizer.stateless_apply(kept, gradient, weights)
        return (weights, others, kept), value

    parts = network.trainable_variables, network.non_trainable_variables, optimizer.variables
    state = tuple([variable.value for variable in each] for each in parts)

    def train(images, labels):
        nonlocal state
        state, value = step(state, images, labels)
        return value

    return train


def _in_turns(functions, rounds, steps):
    """{name: seconds of a step in each round}, in an order that is drawn; a first round is warm-up."""
    seconds, order = {name: [] for name in functions}, random.Random(0)
    for number in range(rounds + 1):
        for name in order.sample(list(functions), len(functions)):
            gc.collect()
            begin = time.perf_counter()
            functions[name]()
            if number:
                seconds[name].append((time.perf_counter() - begin) / steps)
    return seconds


def _ratio(seconds, above, below):
    found = intervals.paired(seconds[above], seconds[below])
    means = {f"step_seconds_{name}": sum(each) / len(each) for name, each in seconds.items()}
    told = {"ratio": found.value, "interval": found.interval, "notes": found.notes}
    return {"of": f"{above} / {below}"} | told | means | {"seconds": seconds}


def _peak():
    """The most that this process had of its GPU's memory, in bytes; None without a GPU."""
    if not devices.gpus():
        return None
    if devices.on_jax():
        import jax

        return (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use")
    import tensorflow as tf

    return tf.config.experimental.get_memory_info("GPU:0")["peak"]


def main(function, arguments, preset, name, runs, result):
    found = globals()[function](plan.PRESETS[preset], Case(name, Path(runs)), **arguments)
    if result:
        files.write(Path(result), json.dumps(found))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
