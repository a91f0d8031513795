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
from labs import data, devices, files, jobs, models  # import this first: it sets up TensorFlow
from labs.results import intervals, metrics
from labs.results import run as records


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
    """The kit's training program; what its recorder wrote, and the peak of the GPU's memory."""
    import keras

    from labs.training import program

    keras.config.set_dtype_policy(precision)
    program.main(_options(sizes, case, model))
    return summary.training(case.runs / f"{case.name}.json") | {"peak_bytes": _peak()}


def watch(sizes, case, model):
    """The same with a sampler beside it, and what that saw."""
    from lessons.faster_steps import samples
    from lessons.faster_steps.sampler import Sampler

    sampler = Sampler(case.runs / f"{case.name}.rank0.samples", every=0.1).start()
    found = train(sizes, case, model)
    sampler.stop()
    rank = samples.ranks(case.runs / case.name)[0]
    found |= {"samples": len(rank.samples), "cores_used": rank.mean("cores")}
    seen = [gpu for sample in rank.samples for gpu in sample["gpus"]]
    found["gpus_seen"] = len(rank.samples and rank.samples[-1]["gpus"])
    for key in ("utilisation", "memory", "power"):
        found[f"highest_{key}"] = max((gpu[key] for gpu in seen), default=None)
    return found


def _options(sizes, case, model, strategy=None, workers=1, name=None):
    """The training program's command line."""
    strategy = strategy or ("jax" if devices.on_jax() else "mirrored")
    asked = {"model": model, "strategy": strategy, "workers": workers, "batch_size": sizes.local_batch * workers}
    asked |= {"epochs": sizes.epochs, "image_size": sizes.image_size, "dataset": "synthetic"}
    asked |= {"images": sizes.images, "run": name or case.name, "runs": case.runs}
    return [f"--{key}={value}" for key, value in asked.items()]


def loop(sizes, case, model):
    """Seconds of a step of the kit's training (fit, with its recorder) over those of a bare loop, in turns."""
    import argparse

    import numpy as np

    from labs import training

    _one_worker()
    batch, steps = sizes.local_batch, max(2, sizes.images // sizes.local_batch)
    dataset = data.load("synthetic", images=batch * steps)
    ours = _compiled(model, sizes.image_size)
    asked = {"dataset": "synthetic", "image_size": sizes.image_size, "images": None, "repeats": 10**6, "seed": 0}
    asked |= {"run": case.name, "runs": str(case.runs), "epochs": 1, "batch_size": batch}
    recorder = training.Recorder(argparse.Namespace(**asked), ours, images=batch * steps)
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


def turns(sizes, case):
    """The trainings of `steps`, an epoch of each in turn, and the first of them twice: their ratios, and the floor."""
    trained = {part.name: part for part in plan.parts(sizes)}["steps"].cases
    asked = {f"{case.name}_{key.replace(' ', '_')}": arguments for key, (_, arguments) in trained.items()}
    first, *others = asked
    names = [first, f"{first}_again", *others]
    asked[names[1]] = asked[first]
    with jobs.Turns(show=False, explain=False) as every:
        for name in names:
            options = {"function": "train", "arguments": asked[name], "preset": sizes.name, "name": name}
            options |= {"runs": str(case.runs), "result": None}
            every.start(__file__, json.dumps(options), name=name, runs=case.runs)
    if every.state != "finished":
        raise SystemExit("\n".join(job.explain() for job in every.jobs))
    paths = {name: case.runs / f"{name}.json" for name in names}
    ratios = []
    for name in names[1:]:
        one, other = records.load_record(paths[name]), records.load_record(paths[first])
        rounds, _ = metrics.undisturbed_rounds(one, other)
        ratio = intervals.paired([one.rounds[n] for n in rounds], [other.rounds[n] for n in rounds])
        ratios.append({"of": f"{name} / {first}".replace(f"{case.name}_", ""), "ratio": ratio.value})
        ratios[-1]["interval"] = ratio.interval
    low, high = ratios[0]["interval"] or (None, None)  # no difference below that of the first from itself is believed
    ratios[0]["floor"] = max(high, 1 / low) - 1 if low else None
    return {"ratios": ratios} | {name: summary.training(path) for name, path in paths.items()}


def maxbatch(sizes, case, model):
    """The largest batch of a step that fits, doubling until memory runs out, and the line that says so."""
    memory = None if devices.gpus() else sizes.memory
    # All of a GPU's memory in one piece: pieces that an allocator kept of smaller batches may not fit a larger one.
    whole = {"XLA_PYTHON_CLIENT_PREALLOCATE": "true", "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.95"}
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
        told = {key: found[key] for key in ("device", "memory", "largest", "fails", "evidence")}
        return told | {"trials": {trial["batch"]: trial["seconds"] for trial in found["trials"] if trial["fits"]}}
    from labs.results import failures

    # As `labs maxbatch` does: in a process of its own, which may not survive it.
    name, options = f"{case.name}_trials", {"model": model, "memory": memory, "batches": _doubled(sizes)}
    asked = {"function": "trials", "arguments": options, "preset": sizes.name, "name": name, "runs": str(case.runs)}
    job = jobs.start(__file__, json.dumps(asked | {"result": None}), name=name, runs=case.runs, env=whole).wait(
        show=False
    )
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


def _doubled(sizes):
    batch, found = sizes.local_batch, []
    while batch <= sizes.largest:
        found.append(batch)
        batch *= 2
    return found


def batches(sizes, case, model):
    """{batch: seconds of a step} of the smaller batches."""
    return {"trials": trials(sizes, case, model, None, sizes.small)}


def trials(sizes, case, model, memory, batches, steps=5):
    """Steps of each of these batches, until one does not fit; {batch: seconds of a step, the mean of `steps`}."""
    import numpy as np

    _one_worker()
    step, found = _bare(models.build(model, sizes.image_size, 10)), {}

    def train(batch, steps):
        images, labels = np.zeros((batch, 32, 32, 3), "uint8"), np.zeros(batch, "int64")
        begin = time.perf_counter()
        for _ in range(steps):
            loss = step(images, labels)
        float(np.asarray(loss))
        return (time.perf_counter() - begin) / steps

    train(1, 1)
    if memory:
        import resource

        import psutil

        size = psutil.Process().memory_info().vms
        resource.setrlimit(resource.RLIMIT_AS, (size + memory, size + memory))
    for batch in batches:
        print(f"Trial batch {batch}: starts", flush=True)
        train(batch, 1)  # compiles
        found[batch] = train(batch, steps)
        print(f"Trial batch {batch}: fits in {found[batch]:.5f} s", flush=True)
    return found


def precision(sizes, case, model):
    """Seconds of a step in float32 over those in other precisions, in turns, and the loss that each arrives at.

    "float32, exact" does without TF32, in which GPUs multiply float32 numbers unless they are told not to.
    """
    import keras
    import numpy as np

    _one_worker()
    policies = {"float32": "float32", "float32, exact": "float32"}
    policies |= {name: name for name in ("mixed_bfloat16", "mixed_float16")}
    steps, batch, trained, losses = 4, sizes.local_batch, {}, {}
    dataset = data.load("synthetic", images=batch)
    for name, policy in policies.items():
        keras.utils.set_random_seed(0)
        keras.config.set_dtype_policy(policy)
        trained[name] = _bare(models.build(model, sizes.image_size, 10))

    def turn(name):
        _exact(name == "float32, exact")
        for _ in range(steps):
            loss = trained[name](dataset.images, dataset.labels)
        losses[name] = float(np.asarray(loss))

    every = {name: (lambda name=name: turn(name)) for name in trained}
    seconds = _in_turns(every, sizes.rounds, steps)
    ratios = [_ratio(seconds, "float32", name) for name in policies if name != "float32"]
    means = {f"step_seconds_{name}": sum(each) / len(each) for name, each in seconds.items()}
    return {"ratios": ratios} | means | {f"loss_{name}": loss for name, loss in losses.items()} | {"seconds": seconds}


def _exact(exact):
    """From now on, products of float32 numbers are computed in float32, or as the engine likes."""
    if devices.on_jax():
        import jax

        jax.config.update("jax_default_matmul_precision", "highest" if exact else None)
    else:
        import tensorflow as tf

        tf.config.experimental.enable_tensor_float_32_execution(not exact)


def fetch(sizes, case, model):
    """Seconds of a step whose loss is fetched over those of one whose loss is not, in turns: a bare loop, and fit."""
    import keras
    import numpy as np

    _one_worker()
    batch = sizes.local_batch if model != "SmallCNN" else 32
    steps, size = max(2, sizes.images // batch), sizes.image_size if model != "SmallCNN" else 32
    dataset = data.load("synthetic", images=batch * steps)
    bare, ours, pipeline = _bare(models.build(model, size, 10)), _compiled(model, size), data.pipeline(dataset, batch)
    images, labels = dataset.images[:batch], dataset.labels[:batch]

    class Reader(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.loss = float(logs["loss"])

    def loop(fetches):
        for _ in range(steps):
            loss = bare(images, labels)
            if fetches:
                float(np.asarray(loss))
        float(np.asarray(loss))

    def fit(callbacks):
        ours.fit(pipeline, epochs=1, shuffle=False, verbose=0, callbacks=callbacks)

    every = {"loop": lambda: loop(False), "loop, fetched": lambda: loop(True)}
    every |= {"fit": lambda: fit([]), "fit, fetched": lambda: fit([Reader()])}
    seconds = _in_turns(every, sizes.rounds, steps)
    ratios = [_ratio(seconds, f"{name}, fetched", name) for name in ("loop", "fit")]
    return {"ratios": ratios, "steps": steps, "batch": batch, "seconds": seconds}


def same_steps(sizes, case):
    """The largest difference of a weight after notebook 27's 20 steps: of this GPU from the CPU, as JAX computes and
    exactly, and of four other orders of the images in each batch from the first, on the CPU."""
    import numpy as np

    cases, found = ["plain", "order1", "order2", "order3", "order4"], {}
    hidden, exact = {"CUDA_VISIBLE_DEVICES": ""}, {"JAX_DEFAULT_MATMUL_PRECISION": "highest"}
    for name, env in {"cpu": hidden, "gpu": {}, "gpu_exact": exact}.items():
        asked = json.dumps({"engine": "jax" if devices.on_jax() else "single", "workers": 1, "cases": cases})
        started = f"{case.name}_{name}"
        job = jobs.start("-m", "lessons.other_engines.same_steps", asked, name=started, runs=case.runs, env=env)
        if job.wait(show=False).state != "finished":
            raise SystemExit(job.explain())
        with np.load(job.stem.with_suffix(".npz")) as file:
            found[name] = dict(file)

    def apart(one, other):
        return float(np.max(np.abs(one - other)))

    others = {
        f"orders_on_{name}": max(apart(of["plain"], of[case]) for case in cases[1:]) for name, of in found.items()
    }
    of_gpu = {f"{name}_from_cpu": apart(found[name]["plain"], found["cpu"]["plain"]) for name in ("gpu", "gpu_exact")}
    return of_gpu | others


def recompute(sizes, case, mode):
    """Peak memory of a step of notebook 24's network that keeps all activations, or recomputes those of a block."""
    from lessons.faster_steps import recompute as lesson

    if not devices.on_jax():
        batch = 256 if devices.gpus() else 8
        os.environ["LABS_RUNS"] = str(case.runs)
        found = lesson.measure(mode, batch=batch, rounds=0)
        if found is None:
            raise SystemExit("the measurement of notebook 24 did not finish")
        return found
    import jax
    import keras

    _one_worker()
    batch = 256 if devices.gpus() else 8  # asked before, JAX would have set up its devices
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
    dataset = data.load("synthetic", images=batch * steps)
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
    dataset, batch = data.load("synthetic", images=sizes.images), 2 * (sizes.local_batch // 2)
    with strategy.scope():
        network = _compiled(model, sizes.image_size)
    asked = {"dataset": "synthetic", "image_size": sizes.image_size, "images": None, "repeats": 1, "seed": 0}
    asked |= {"run": case.name, "runs": str(case.runs), "epochs": sizes.epochs, "batch_size": batch}
    recorder = training.Recorder(argparse.Namespace(**asked), network, images=sizes.images)
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
    devices.workers_on_jax(1) if devices.on_jax() else devices.workers(1)


def _compiled(model, size):
    import keras

    network = models.build(model, size, 10)
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
    """{name: seconds of a step in each round}, in an order that is drawn; the first two rounds are warm-up."""
    seconds, order = {name: [] for name in functions}, random.Random(0)
    for number in range(rounds + 2):
        for name in order.sample(list(functions), len(functions)):
            gc.collect()
            begin = time.perf_counter()
            functions[name]()
            if number > 1:
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
