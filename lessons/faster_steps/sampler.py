"""A few numbers a second on what a training process uses, written to a file while it trains.

A program starts a sampler in each rank, for a file NAME.rankR.samples, and says in which phase it is:
`sampler.phase("input")`. lessons.faster_steps.samples says what is in the file, and reads it.
"""

import json
import os
import resource
import threading
import time
from collections import Counter
from pathlib import Path

import psutil

from labs import devices


class Sampler:
    """Writes a line every `every` seconds, from a thread that ends with the process. Between `start` and `stop`."""

    def __init__(self, path, every=0.2, rank=0, **about):
        """path: of the file, which is replaced; about: what else stands in its first line."""
        self.path, self.every = Path(path), every
        about |= {"every": every, "machine": devices.machine()}
        self._head = {"version": 1, "kind": "measured", "rank": rank, "about": about}
        self._lock, self._ended = threading.RLock(), threading.Event()
        self._phases, self._phase, self._images = Counter(), None, 0
        self._gpus = _gpus()

    def start(self):
        self._phases, self._phase, self._images = Counter(), None, 0  # what came before does not count
        self._file = self.path.open("w", encoding="utf-8", buffering=1)  # each line is there if the process is killed
        self._line(self._head)
        self._last = self._since = time.perf_counter()
        self._used = _used()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="sampler")
        self._thread.start()
        return self

    def stop(self):
        """Write what came since the last sample, and end."""
        self._ended.set()
        self._thread.join()
        self._sample()
        self._file.close()

    def phase(self, name):
        """From now on the program is in this phase; None for a phase without a name."""
        with self._lock:
            now = time.perf_counter()
            if self._phase:
                self._phases[self._phase] += now - self._since
            self._phase, self._since = name, now

    def images(self, count):
        """So many images have been trained on."""
        with self._lock:
            self._images += count

    def _watch(self):
        while not self._ended.wait(self.every):  # an error, as of a full disk, ends this thread, not the training
            self._sample()

    def _sample(self):
        with self._lock:
            self.phase(self._phase)
            phases, images, self._phases, self._images = self._phases, self._images, Counter(), 0
            now = self._since
        used, seconds = _used(), now - self._last
        cores, faults = ((new - old) / seconds for new, old in zip(used, self._used, strict=True))
        self._used, self._last = used, now
        sample = {"t": round(time.time(), 3), "seconds": round(seconds, 4), "cores": round(cores, 3)}
        sample |= {"memory": psutil.Process().memory_info().rss, "faults": round(faults), "images": images}
        sample["phases"] = {name: round(value, 4) for name, value in phases.items()}
        self._line(sample | {"gpus": [_look(gpu) for gpu in self._gpus]})

    def _line(self, content):
        self._file.write(json.dumps(content) + "\n")


def _used():
    """(processor seconds, page faults) of this process so far, all threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_minflt + usage.ru_majflt


def _gpus():
    """The GPUs of this process, for `_look`; [] without NVML (package nvidia-ml-py)."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no package, no driver, no GPU
        return []
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = range(pynvml.nvmlDeviceGetCount()) if shown is None else filter(str.isdecimal, shown.split(","))
    return [pynvml.nvmlDeviceGetHandleByIndex(int(name)) for name in names]


def _look(gpu):
    import pynvml

    utilisation = pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu / 100
    memory, power = pynvml.nvmlDeviceGetMemoryInfo(gpu).used, pynvml.nvmlDeviceGetPowerUsage(gpu) / 1000
    return {"utilisation": utilisation, "memory": memory, "power": power}
