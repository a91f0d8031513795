"""The sampler: what it writes is what the process used, and the recorder says in which phase it was."""

import json
import mmap
import resource
import sys
import time
import types

import numpy as np
import pytest
from test_training import settings, small_model

from labs import files, training
from labs.errors import LabsError
from labs.results import watched
from labs.training.sampler import Sampler, beside


def busy(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_samples_say_how_many_cores_were_busy_and_what_was_done(tmp_path):
    def now():
        return np.array([time.perf_counter(), time.process_time()])

    whole = now()
    sampler = Sampler(tmp_path / "own.rank3.samples", every=0.05, rank=3, limit="nothing").start()
    sampler.phase("busy")
    part = now()
    busy(0.3)
    sampler.phase("asleep")
    time.sleep(0.3)
    part = now() - part
    sampler.phase(None)
    sampler.images(40)
    sampler.images(2)
    sampler.stop()
    sampler.stop()  # a second time changes nothing
    whole = now() - whole
    (found,) = watched.ranks(tmp_path / "own")
    assert (found.rank, found.kind, found.about["limit"]) == (3, "measured", "nothing")
    assert sum(sample["images"] for sample in found.samples) == 42
    shares = found.shares()
    assert list(shares) == ["busy", "asleep"]
    used = sum(sample["cores"] * sample["seconds"] for sample in found.samples)
    # Seconds of the clock in phases that have a name, and of the processor, which asleep uses none of. 0.01: rounding.
    counted = np.array([sum(shares.values()) * found.seconds, used])
    assert all(part - 0.01 <= counted) and all(counted <= whole + 0.01) and part[1] < part[0]
    assert shares["asleep"] * found.seconds >= 0.29 and all(sample["memory"] > 1e7 for sample in found.samples)


def test_pages_that_the_kernel_gives_are_counted(tmp_path):
    whole = faults()
    sampler = Sampler(tmp_path / "own.rank0.samples", every=60.0).start()
    part = faults()
    # Mapped, not allocated: an array may lie where memory was freed, whose pages the process still has.
    with mmap.mmap(-1, 2**24, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.write(bytes(2**24))  # 4096 pages of 4 KiB, or fewer that are larger
    part = faults() - part
    time.sleep(0.05)  # the count is written as a rate, per 0.1 ms: a longer time rounds less
    sampler.stop()
    whole = faults() - whole
    (found,) = watched.ranks(tmp_path / "own")
    assert part >= 8 and 0.99 * part - 1 <= found.mean("faults") * found.seconds <= 1.01 * whole + 1


def faults():
    """Pages that the kernel has given to this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_minflt + usage.ru_majflt


def test_recorder_starts_one_where_it_is_asked_to(tmp_path, monkeypatch):
    monkeypatch.setenv("LABS_SAMPLES", "0.02")
    model, args = small_model(), settings(tmp_path, repeats=1)
    recorder = training.Recorder(args, model="SmallCNN", strategy="single", workers=1, images=64, learning_rate=0.01)
    images = np.zeros((64, 32, 32, 3), np.uint8)
    labels = np.zeros(64, np.int64)
    model.fit(
        images, labels, batch_size=16, epochs=2, verbose=0, validation_data=(images, labels), callbacks=[recorder]
    )
    recorder._close()
    (found,) = watched.ranks(recorder.path.with_suffix(""))
    assert {"training", "validation"} == set(found.shares())
    assert sum(sample["images"] for sample in found.samples) == 2 * 64
    moved = files.move_aside(tmp_path, recorder.path.stem)
    assert [path.name for path in tmp_path.glob("*.samples")] == [f"{moved}.rank0.samples"]


def test_without_being_asked_nothing_is_sampled(tmp_path, monkeypatch):
    monkeypatch.delenv("LABS_SAMPLES", raising=False)
    recorder = training.Recorder(
        settings(tmp_path), model="SmallCNN", strategy="single", workers=1, images=64, learning_rate=0.01
    )
    recorder._close()
    assert list(tmp_path.glob("*.samples")) == []
    with pytest.raises(watched.WatchedError, match="LABS_SAMPLES"):
        watched.ranks(recorder.path.with_suffix(""))


def test_a_pace_that_is_none_is_refused(tmp_path, monkeypatch):
    for said in ("fast", "0", "-1", "nan", "inf"):
        monkeypatch.setenv("LABS_SAMPLES", said)
        with pytest.raises(LabsError, match="LABS_SAMPLES"):
            beside(tmp_path / "run.json", 0)
    assert list(tmp_path.iterdir()) == []


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
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    sampler = Sampler(tmp_path / "own.rank0.samples", every=60.0).start()
    sampler.stop()
    (found,) = watched.ranks(tmp_path / "own")
    assert found.samples[0]["gpus"] == [
        {"utilisation": 0.3, "memory": 3 * 10**9, "power": 3.0},
        {"utilisation": 0.1, "memory": 10**9, "power": 1.0},
    ]


def test_what_a_killed_run_left_is_read_and_other_files_are_refused(tmp_path):
    head = {"version": 1, "kind": "measured", "rank": 0, "about": {}}
    sample = {"t": 1.0, "seconds": 1.0, "cores": 1.0, "memory": 1, "faults": 0, "images": 5, "phases": {}, "gpus": []}
    path = tmp_path / "own.rank0.samples"
    path.write_text(f'{json.dumps(head)}\n{json.dumps(sample)}\n{{"t": 2.0, "sec')
    assert watched.read(path).images_per_second == 5
    for text in (
        "",
        "{}",
        "[1]",
        f"{json.dumps(head)}\n",
        f"{json.dumps(head | {'version': 9})}\n{json.dumps(sample)}\n",
    ):
        path.write_text(text)
        with pytest.raises(watched.WatchedError, match="own.rank0.samples"):
            watched.read(path)
