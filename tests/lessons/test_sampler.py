"""The sampler of notebook 24: what it writes is what the process used."""

import mmap
import sys
import time
import types

import pytest

from lessons.faster_steps import samples
from lessons.faster_steps.sampler import Sampler


def busy(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_samples_say_how_many_cores_were_busy_and_what_was_done(tmp_path):
    begin = time.perf_counter(), time.process_time()
    sampler = Sampler(tmp_path / "own.rank3.samples", every=0.05, rank=3, limit="nothing").start()
    sampler.phase("busy")
    busy(0.2)
    # Mapped, not allocated: an array may lie where memory was freed, whose pages the process still has.
    with mmap.mmap(-1, 2**24, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.write(bytes(2**24))  # 4096 pages of 4 KiB, or fewer that are larger
    sampler.phase("asleep")
    time.sleep(0.3)
    sampler.phase(None)
    sampler.images(40)
    sampler.images(2)
    sampler.stop()
    (found,) = samples.ranks(tmp_path / "own")
    assert (found.rank, found.kind, found.about["limit"]) == (3, "measured", "nothing")
    assert found.images_per_second == pytest.approx(42 / found.seconds)
    assert 0.5 <= found.seconds <= time.perf_counter() - begin[0] + 0.01
    assert 0.19 <= found.mean("cores") * found.seconds <= time.process_time() - begin[1] + 0.01
    assert found.mean("faults") * found.seconds >= 8 and list(found.shares()) == ["busy", "asleep"]
    assert found.shares()["asleep"] * found.seconds >= 0.29
    assert all(sample["memory"] > 1e7 for sample in found.samples)
    left = sampler.path.read_text().replace('"rank": 3', '"rank": 10') + '{"t": 2.0, "sec'
    (tmp_path / "own.rank10.samples").write_text(left)  # of a killed run
    both = samples.ranks(tmp_path / "own")
    assert [(each.rank, each.seconds) for each in both] == [(3, found.seconds), (10, found.seconds)]


def test_gpus_are_those_that_the_process_sees(tmp_path, monkeypatch):
    """With a stand-in for NVIDIA's library: this never ran on a GPU."""
    nvml = types.SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: 4,
        nvmlDeviceGetHandleByIndex=lambda number: number,
        nvmlDeviceGetMemoryInfo=lambda number: types.SimpleNamespace(used=number * 10**9),
        nvmlDeviceGetUtilizationRates=lambda number: types.SimpleNamespace(gpu=10 * number),
        nvmlDeviceGetPowerUsage=lambda number: 1000 * number,
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    for shown, numbers in (("3,1", [3, 1]), (None, [0, 1, 2, 3])):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown) if shown else monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
        Sampler(tmp_path / "own.rank0.samples", every=60.0).start().stop()
        (found,) = samples.ranks(tmp_path / "own")
        assert found.samples[0]["gpus"] == [{"utilisation": n / 10, "memory": n * 10**9, "power": n} for n in numbers]
