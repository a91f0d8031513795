"""The sampler of notebook 24: what it writes is what the process used."""

import mmap
import sys
import time
from unittest import mock

import pytest

from lessons.faster_steps import sampler as watching
from lessons.faster_steps import samples
from lessons.faster_steps.sampler import Sampler


def test_samples_say_how_many_cores_were_busy_and_what_was_done(tmp_path):
    begin = time.perf_counter(), time.process_time()
    sampler = Sampler(tmp_path / "own.rank3.samples", every=0.05, rank=3, limit="nothing").start()
    sampler.phase("busy")
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass
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


def test_gpus_are_those_that_the_process_sees(monkeypatch):
    """That NVIDIA's library says what it should was seen on a GPU: labs/recorded/h200, test_on_gpu.py."""
    nvml = mock.Mock(nvmlDeviceGetCount=lambda: 4, nvmlDeviceGetHandleByIndex=lambda number: number)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    for shown, numbers in (({"CUDA_VISIBLE_DEVICES": "3,1"}, [3, 1]), ({}, [0, 1, 2, 3])):
        monkeypatch.setattr(watching.os, "environ", shown)
        assert watching._gpus() == numbers
