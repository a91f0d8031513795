"""What this machine has (GPUs, cores, memory), also as run records say it (`machine`, `versions`); workers set up on
it; and what other programs take of its cores."""

import importlib.util
import os
import platform
import re
import time
import warnings
from collections.abc import Iterable
from contextlib import suppress
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any

from labs.errors import UseError, whole
from labs.printed import several

_unpinned = None  # the cores that were allowed before `workers` pinned this process to some of them


def _allowed():
    return _unpinned or os.sched_getaffinity(0)


def cores() -> int:
    """Number of cores that this process may use.

    Affinity and a container's limit count, not the machine's total. That `workers` has pinned the process to some of
    them does not change the number.
    """
    count = len(_allowed())
    with suppress(OSError, ValueError):  # a container's limit: "quota period" in microseconds, or "max period"
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        count = min(count, max(1, int(quota) // int(period)))
    return count


def busy() -> float | None:
    """Seconds of processor time that the cores of this process have spent for any program, or for their host.

    Counted from the machine's start; None where Linux does not tell (proc(5), /proc/stat).
    """
    import psutil

    with suppress(OSError, ValueError):
        by_core = _by_core(psutil.cpu_times(percpu=True)).items()
        # Without idle and waiting for a disk; what guests of this machine take stands in `user` already.
        return sum(sum(times[:8]) - times.idle - times.iowait for core, times in by_core if core in _allowed())
    return None


def _by_core(values):
    """{number of a core: its value} of a list of psutil's, in which a core that is offline has no place."""
    return dict(zip(map(int, re.findall(r"(?m)^cpu(\d+)", Path("/proc/stat").read_text())), values, strict=False))


SHORTEST_LOOK = 0.25  # seconds: what other programs did in a shorter time is lost in the ticks of the kernel's clock


def moment() -> tuple[float | None, float, float]:
    """This moment in a process, as `others` takes it: seconds that the cores were `busy` so far, seconds of a clock,
    seconds of processor time of this process so far."""
    return busy(), time.perf_counter(), time.process_time()


def others(moments: Iterable[Iterable[tuple]], shortest: float = SHORTEST_LOOK) -> list[float | None]:
    """Share of the cores, 0 to 1, that other programs took between one moment and the next; None where not known.

    moments: for each process that is measured what `moment` gave it, in order, equally many of each
    shortest: seconds between two moments below which nothing is told
    """
    found = []
    for begin, end in pairwise(zip(*moments, strict=True)):
        own = sum(after[2] - before[2] for before, after in zip(begin, end, strict=True))
        (spent, clock, _), (now, later, _) = begin[0], end[0]
        known = spent is not None and later - clock >= shortest
        found.append(min(1.0, max(0.0, (now - spent - own) / (later - clock) / cores())) if known else None)
    return found


def memory() -> int:
    """Memory in bytes that is free for this process: the machine's, or the container's limit if lower.

    Copies of files that Linux keeps in a container's memory until it is needed count as free, as on a machine.
    """
    import psutil

    free = psutil.virtual_memory().available
    with suppress(OSError, ValueError):
        limit, used, parts = (Path(f"/sys/fs/cgroup/memory.{name}").read_text() for name in ("max", "current", "stat"))
        kept = re.search(r"(?m)^inactive_file (\d+)$", parts)
        free = min(free, int(limit) - int(used) + (int(kept[1]) if kept else 0))
    return free


def bfloat16() -> str | None:
    """What this machine's CPU has for products of bfloat16: "AMX" (tiles), "AVX-512" (vectors) or None."""
    flags = _of_cpu("flags").split()
    return "AMX" if "amx_bf16" in flags else "AVX-512" if "avx512_bf16" in flags else None


def _of_cpu(key):
    """What Linux says of the first core under this key, or ""."""
    with suppress(OSError):
        if found := re.search(rf"(?m)^{key}\s*:(.*)", Path("/proc/cpuinfo").read_text()):
            return found[1].strip()
    return ""


def on_jax() -> bool:
    """Whether Keras computes with JAX in this process: then TensorFlow is not needed, and may not be installed."""
    return os.environ.get("KERAS_BACKEND") == "jax"


def _gpus_of_jax():
    # Asked for its devices, JAX starts a thread for each core, which no longer follow where `workers` pins the process.
    if not importlib.util.find_spec("jax_plugins") or os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return []
    import jax

    return [device for device in jax.devices() if device.platform == "gpu"]


def gpus() -> list[str]:
    """Names of the GPUs, such as "GPU:0"; an empty list if none.

    TensorFlow's, or JAX's where Keras computes with it.
    """
    if on_jax():
        return [f"GPU:{i}" for i in range(len(_gpus_of_jax()))]
    import tensorflow as tf

    return [f"GPU:{i}" for i in range(len(tf.config.list_physical_devices("GPU")))]


_WITHOUT = {
    "jax": "JAX, which is not installed (`make jax` installs it)",
    "horovod": "Horovod, which is not installed (`labs doctor` says how to get it)",
    "two devices": "two devices, and there is one GPU",
}


def has(*needs: str) -> bool:
    """True if this machine has what a cell needs; else prints what is missing.

    needs: "horovod"; "jax"; "two devices" (GPUs, or cores, which are shared where there is one only)
    """
    there = {need: len(gpus()) != 1 if need == "two devices" else importlib.util.find_spec(need) for need in needs}
    missing = [_WITHOUT[need] for need in needs if not there[need]]
    if missing:
        print(f"This cell needs {' and '.join(missing)}.")
    return not missing


def oversubscribed(workers: int) -> bool:
    """True where `workers` must share cores or GPUs.

    Then no speedup can be expected from the last ones.
    """
    return workers > (len(gpus()) or cores())


def _idle_cores(count):
    """The `count` cores with the least to do at this moment."""
    import psutil

    allowed = sorted(_allowed())
    load = _by_core(psutil.cpu_percent(interval=0.1, percpu=True))
    return sorted(allowed, key=lambda core: load.get(core, 0.0))[:count]


def workers(count: int, pin: bool = True, kind: str | None = None) -> list[str]:
    """Set up `count` workers, such as MirroredStrategy's replicas; returns their device names.

    A worker is a GPU where there are GPUs. Elsewhere it is one core: TensorFlow's CPU is divided into
    `count` logical devices with one thread each, and the process is pinned to `count` cores (unless
    `pin` is False), so that one worker does not secretly compute on two cores.

    kind: "cpu" takes logical CPU devices also where there are GPUs, for looking at how things work.

    Returns the names, such as ["GPU:0", "GPU:1"] or ["CPU:0", "CPU:1"].
    Raises UseError: count below 1; more workers than GPUs; TensorFlow already set up with fewer.
    """
    global _unpinned
    count = whole("the number of workers", count)
    found = gpus() if kind != "cpu" else []
    if found:
        if count > len(found):
            raise UseError(
                f"{count} workers asked for, but this machine shows {several(len(found), 'GPU')}: each needs one. "
                "Ask for more GPUs (in SLURM: --gres=gpu:N) or for fewer workers."
            )
        return found[:count]
    if pin and oversubscribed(count):
        warnings.warn(
            f"{count} workers on {several(cores(), 'core')}: they share cores (oversubscribed), so expect no speedup.",
            stacklevel=2,
        )
    alone = on_jax() and not importlib.util.find_spec("tensorflow")
    try:
        if not alone:
            import tensorflow as tf

            if kind == "cpu":
                tf.config.set_visible_devices([], "GPU")
            cpu = tf.config.list_physical_devices("CPU")[0]
            tf.config.threading.set_intra_op_parallelism_threads(1)
            tf.config.threading.set_inter_op_parallelism_threads(count)
            tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
        if pin:
            _unpinned = _allowed()
            os.sched_setaffinity(0, _idle_cores(min(count, cores())))
    except RuntimeError:  # TensorFlow has computed something: its devices are fixed now
        have = len(tf.config.list_logical_devices("CPU"))
        if have < count:
            raise UseError(
                f"{count} workers asked for, but TensorFlow already runs with {have} in this process and cannot "
                "add more. Restart the kernel and set up the largest number first."
            ) from None
    return [f"CPU:{i}" for i in range(count)]


def workers_on_jax(count: int) -> list[str]:
    """Set up `count` workers in this process as devices of JAX, and return their names in Keras, such as ["cpu:0"].

    A worker is a GPU where JAX has GPUs. Elsewhere it is one core, as of `workers`: JAX's CPU is divided into `count`
    virtual devices. To be called before JAX computes anything. Raises UseError: Keras computes with another backend;
    JAX is already set up; more workers than GPUs.
    """
    import keras

    if keras.backend.backend() != "jax":
        raise UseError(
            f"Keras computes with {keras.backend.backend()} in this process, and chose so when it was imported. Start "
            "the program with KERAS_BACKEND=jax in its environment."
        )
    import jax

    try:
        jax.config.update("jax_num_cpu_devices", count)
    except RuntimeError:
        raise UseError("JAX has already computed, so its devices are fixed. Set them up first.") from None
    if not gpus():
        jax.config.update("jax_platforms", "cpu")
    # With TensorFlow installed, it reads the images: with the threads of as many cores, and on no GPU.
    return [name.lower() for name in workers(count, kind=None if gpus() else "cpu")]


def pin(local_rank: int, local_size: int = 1) -> str:
    """Pin this process to its own core or GPU, and return its name.

    local_rank: number of this process among the `local_size` on this machine, from 0.
    Returns "GPU 1" for `local_rank` 1 where there are GPUs; else one core, such as "core 1", on which TensorFlow then
    computes with one thread. Where there are fewer cores than processes, they share them. To be called before
    TensorFlow computes anything. Raises UseError: more processes than GPUs; TensorFlow already in use.
    """
    global _unpinned
    import tensorflow as tf

    found = tf.config.list_physical_devices("GPU")
    if found and local_size > len(found):
        raise UseError(
            f"{local_size} ranks on a machine that shows {several(len(found), 'GPU')}: a rank is one GPU here, and two "
            f"on one would share its memory. Start at most {len(found)} ranks per machine."
        )
    try:
        if found:
            tf.config.set_visible_devices(found[local_rank], "GPU")
            return f"GPU {local_rank}"
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    except RuntimeError:
        raise UseError("TensorFlow has already computed, so its devices are fixed. Pin first.") from None
    _unpinned = _allowed()
    if len(_unpinned) > 1:  # a launcher that binds has done it already
        os.sched_setaffinity(0, {sorted(_unpinned)[local_rank % cores()]})
    return f"core {min(os.sched_getaffinity(0))}"


def machine() -> dict[str, Any]:
    """Description of this machine for a run record: cpu, cores, memory in bytes (all of it; `memory` tells what is
    free), gpus, platform. No host name."""
    import psutil

    if on_jax():
        names = [device.device_kind for device in _gpus_of_jax()]
    else:
        import tensorflow as tf

        details = [tf.config.experimental.get_device_details(gpu) for gpu in tf.config.list_physical_devices("GPU")]
        names = [each.get("device_name", "GPU") for each in details]
    return {
        "cpu": _of_cpu("model name") or platform.processor() or platform.machine(),
        "cores": cores(),
        "memory": psutil.virtual_memory().total,
        "gpus": names,
        "platform": f"{platform.system()} {platform.machine()}",
    }


def hardware(machine: dict[str, Any]) -> str | None:
    """The name of what computes on a machine that `machine` described: its GPUs, else its CPU; None if unknown."""
    return ", ".join(sorted(set(machine.get("gpus") or []))) or machine.get("cpu")


def versions(strategy: str | None = None) -> dict[str, str | None]:
    """{package: version} of everything that shapes a measurement, None for what is not installed.

    strategy: of the training; with "jax", JAX is among them.
    """

    def version(*packages):
        for package in packages:
            with suppress(metadata.PackageNotFoundError):
                return metadata.version(package)

    found = {"python": platform.python_version(), "tensorflow": version("tensorflow-cpu", "tensorflow")}
    return found | {name: version(name) for name in ("keras", "horovod", "labs", *["jax"] * (strategy == "jax"))}
