"""Search for the largest batch size that fits: real training steps, in a process of their own.

On a GPU the device's memory is the limit. Without one the process gets a memory budget: after one
warm-up step its address space may grow by `memory` bytes and no further (RLIMIT_AS), so that TensorFlow
itself runs out of memory, as it would on a GPU, and the rest of the machine never does.

python -m labs.measure.maxbatch OPTIONS      what that process runs (OPTIONS: JSON)
"""

import json
import os
import re
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from labs import files, jobs, models
from labs.errors import LabsError, UseError
from labs.printed import digits
from labs.results import failures

GIB = 2**30
# One thread, one arena, no oneDNN, and tensors from 1 MiB on in pages of their own (a threshold that is set stays
# fixed): so no freed tensor leaves a gap in the heap that the next one may or may not fit, and the border is
# the same in every run.
_CPU = {"TF_ENABLE_ONEDNN_OPTS": "0", "OMP_NUM_THREADS": "1"}
_CPU |= {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "1048576"}
_TRIAL = re.compile(r"Trial batch (\d+): (starts|fits in ([\d.]+) s|out of memory)")


def parse_memory(text: str | int) -> int:
    """Bytes in "512MiB", "1GiB" or a plain number of bytes; k, M and G count in 1024s, with an i or without. Raises
    UseError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(B|[kKMG]i?B?)?\s*", str(text))
    scale = {"b": 1, "k": 2**10, "m": 2**20, "g": GIB}
    size = float(match[1]) * scale[(match[2] or "B")[0].lower()] if match else 0
    if not 1 <= size < 2**60:
        raise UseError(f"{text!r} is not an amount of memory: the search needs a limit, such as 1GiB or 512MiB.")
    return int(size)


def search(
    model="ResNet50V2", *, image_size=32, memory=None, start=1, limit=65536, runs=None, show=True
) -> dict[str, Any]:
    """Search for the largest batch whose training step fits in `memory`.

    The batch doubles from `start` until memory runs out, or until `limit`, all in one process.

    model: one of labs.models.NAMES; image_size: pixels per side; start, limit: the smallest batch that is tried, and
        the largest
    memory: bytes, or text such as "1GiB", beyond what the process holds after a warm-up step (default
        1 GiB); with a GPU the device's memory limit (default: all of it)
    runs: folder of the evidence (default: labs.jobs.folder()); show: a progress bar

    Returns a dict: model, image_size, memory, device, largest (None if not even `start` fits), fails (smallest that
    does not, or None), trials [{batch, fits, seconds}], evidence {file, line_number, line} of the out-of-memory line,
    or None. It is kept as <runs>/<name>.maxbatch.json. Raises UseError for a search that cannot be run, LabsError for
    one that broke off, but not for lack of memory.
    """
    models.check_size(model, image_size)
    options = {"model": model, "image_size": image_size, "memory": None if memory is None else parse_memory(memory)}
    batches = [2**k * start for k in range(32) if 2**k * start <= limit]
    name, arguments = f"maxbatch_{model}_{image_size}", json.dumps(options | {"batches": batches})
    job = jobs.start("-m", "labs.measure.maxbatch", arguments, name=name, runs=runs, env=_CPU).wait(show=show)
    text = job.out.read_text(errors="replace")
    about = dict(re.findall(r"(?m)^(Device|Memory): (.*?)(?: bytes)?$", text))
    memory = int(about["Memory"]) if "Memory" in about else options["memory"]
    result = {"version": 1, "name": name, "kind": "measured"} | options | {"memory": memory}
    tried = {}  # the last line on a batch counts
    for local_batch, outcome, seconds in _TRIAL.findall(text):
        fits = outcome.startswith("fits")
        tried[local_batch] = {"batch": int(local_batch), "fits": fits, "seconds": float(seconds) if fits else None}
    if not tried or job.state == "stopped":
        raise LabsError(f"The search gave no result. {job.explain()}")
    fits, fails = ([trial["batch"] for trial in tried.values() if trial["fits"] is fit] for fit in (True, False))
    result |= {"device": about.get("Device"), "largest": max(fits, default=None), "fails": min(fails, default=None)}
    result |= {"trials": [*tried.values()], "evidence": None}
    failure = failures.failure(job.err) if fails else None
    if failure and failure["kind"] == "out of memory":
        result["evidence"] = {key: failure[key] for key in ("line_number", "line")} | {"file": str(job.err)}
    elif fails and (job.state == "finished" or job.process.returncode > 0):
        raise LabsError(f"A trial failed, but not for lack of memory. {job.explain()}")
    # else killed without a line: the trial counts, the evidence is missing, and `table` says so
    files.write(Path(runs or jobs.folder()) / f"{name}.maxbatch.json", json.dumps(result, indent=1))
    return result


def conditions(result):
    """The size of the images, the device and the memory of a search (what `search` returns), as text."""
    if not result.get("device"):
        return "no search"
    memory = f"{result['memory'] / GIB:.3g} GiB for a step" if result["memory"] else "all of its memory"
    return f"{result['image_size']}x{result['image_size']} on {result['device']}, {memory}"


def table(result: dict[str, Any]) -> str:
    """The search as text: each trial, then the largest batch and the evidence."""
    lines = [f"{result['model']} at {conditions(result)}", f"{'batch':>7}  result"]
    for trial in result["trials"]:
        batch, seconds = trial["batch"], trial["seconds"]
        outcome = f"fits ({seconds:.3g} s a step, {digits(batch / seconds)} images/s)" if seconds else "out of memory"
        lines.append(f"{batch:>7}  {outcome}")
    fails = f"; {result['fails']} does not" if result["fails"] else ""
    lines.append(f"largest batch that fits: {result['largest']}{fails}")
    if result["evidence"]:
        evidence = result["evidence"]
        lines.append(f"evidence: {evidence['file']}, line {evidence['line_number']}:\n  {evidence['line'].strip()}")
    elif result["fails"]:
        lines.append("no out-of-memory line was written: the process was killed")
    return "\n".join(lines)


def _trials(model, image_size, memory, batches):
    """The process that tries: one training step per batch size, ascending, until one does not fit."""
    import keras
    import tensorflow as tf

    from labs.measure.step import compiled

    gpus = tf.config.list_physical_devices("GPU")
    if gpus and memory:
        limit = tf.config.LogicalDeviceConfiguration(memory_limit=memory // 2**20)
        tf.config.set_logical_device_configuration(gpus[0], [limit])
    elif not gpus:
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        memory = memory or GIB
    network = models.build(model, image_size, classes=10)
    step = compiled(network, keras.optimizers.SGD(0.01))

    def train(local_batch):
        return float(step(tf.zeros((local_batch, 32, 32, 3), tf.uint8), tf.zeros(local_batch, tf.int64)))

    print(f"Model {model} 1 workers", flush=True)
    train(1)
    if gpus:
        details = tf.config.experimental.get_device_details(gpus[0])
        print(f"Device: {details.get('device_name', 'GPU')}")
    else:
        import resource

        import psutil

        size = psutil.Process().memory_info().vms
        resource.setrlimit(resource.RLIMIT_AS, (size + memory, size + memory))
        print("Device: CPU under a memory budget")
    if memory:
        print(f"Memory: {memory} bytes")
    for local_batch in batches:
        print(f"Trial batch {local_batch}: starts", flush=True)
        begin = time.perf_counter()
        try:
            train(local_batch)
        except (tf.errors.ResourceExhaustedError, MemoryError):
            traceback.print_exc()
            sys.stderr.flush()
            print(f"Trial batch {local_batch}: out of memory", flush=True)
            os._exit(0)  # tearing TensorFlow down needs memory that is not there
        print(f"Trial batch {local_batch}: fits in {time.perf_counter() - begin:.5f} s", flush=True)


if __name__ == "__main__":
    _trials(**json.loads(sys.argv[1]))
