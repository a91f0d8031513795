"""labs.devices: the workers that follow from the machine, and what the doctor says about it.

TensorFlow's devices are fixed after their first use, so set-ups are tried in processes of their own.
"""

import importlib.util
import json
import os
import platform
import socket
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest

from labs import devices, doctor, printed
from labs.data import cifar10

ROOT = Path(__file__).parents[1]
BURN = "import time\nwhile time.process_time() < 0.5: pass"


def test_busy_counts_what_other_programs_compute():
    for _ in range(5):  # a host that takes a core away, and does not say so, takes ticks with it
        before = devices.busy()
        subprocess.run([sys.executable, "-c", BURN], check=True)
        if (spent := devices.busy() - before) > 0.45:
            break
    assert spent > 0.45


def test_others_are_what_the_processes_that_are_measured_did_not_spend(monkeypatch):
    monkeypatch.setattr(devices, "cores", lambda: 2)
    first = [(10.0, 0.0, 1.0), (14.0, 2.0, 2.5), (14.1, 2.1, 2.6), (17.0, 4.1, 4.0)]  # cores busy, clock, own
    other = [(0.0, 0.0, 5.0), (0.0, 2.0, 6.5), (0.0, 2.1, 6.5), (0.0, 4.1, 8.6)]
    assert devices.others([first, other]) == [pytest.approx(0.25), None, 0.0]  # the second round is too short
    assert devices.others([[(None, *rest) for _, *rest in first], other]) == [None] * 3


def test_a_core_that_is_offline_shifts_no_other_ones(tmp_path, monkeypatch):
    (tmp_path / "stat").write_text("cpu  3 2\ncpu0 1 0\ncpu2 1 0\ncpu3 1 2\nintr 7\n")
    monkeypatch.setattr(devices, "Path", lambda path: tmp_path / Path(path).name)
    monkeypatch.setattr(devices, "_allowed", lambda: {2, 3})
    monkeypatch.setattr(psutil, "cpu_percent", lambda **_: [0.0, 10.0, 90.0])
    assert devices._idle_cores(1) == [2]


SET_UP = """
# warm
import json, os, warnings
from labs import devices
import tensorflow as tf

count, threads, allowed = devices.cores() + 1, tf.config.threading, sorted(os.sched_getaffinity(0))


def seen(ask, *arguments, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            got = ask(*arguments, **options)
        except devices.UseError as problem:
            got = str(problem)
    return {"got": got, "warnings": [str(w.message) for w in caught], "pinned": sorted(os.sched_getaffinity(0)),
            "cores": devices.cores() + 1, "oversubscribed": devices.oversubscribed(arguments[0]),
            "threads": [threads.get_intra_op_parallelism_threads(), threads.get_inter_op_parallelism_threads()]}


said = {str(rank): seen(devices.pin, rank, size) for rank, size in ((0, 1), (1, 2), (3, 4))}
said |= {"one": seen(devices.workers, 1), "unpinned": seen(devices.workers, count, pin=False)}
said |= {"many": seen(devices.workers, count), "two": seen(devices.workers, 2)}
tf.Variable(1.0)  # TensorFlow has computed
said |= {"three": seen(devices.workers, 3), "later one": seen(devices.workers, 1), "late": seen(devices.pin, 0, 2)}
print(json.dumps([said, count, allowed[:count - 1]]))
"""


def test_workers_and_ranks_have_cores_and_threads_of_their_own():
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", SET_UP], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    said, count, cores = json.loads(done.stdout)
    for rank in (0, 1, 3):
        core, got = cores[rank % len(cores)], said[str(rank)]
        assert (got["got"], got["pinned"], got["threads"]) == (f"core {core}", [core], [1, 1])
    one, two, many = said["one"], said["two"], said["many"]
    assert (one["got"], len(one["pinned"]), one["warnings"]) == (["CPU:0"], 1, [])
    assert two["got"] == ["CPU:0", "CPU:1"] and two["threads"] == [1, 2]
    assert len(two["pinned"]) == min(2, count - 1) and bool(two["warnings"]) == (count - 1 < 2)
    assert len(many["got"]) == count and many["oversubscribed"] and len(many["pinned"]) == count - 1
    assert f"{count} workers on {printed.several(count - 1, 'core')}" in many["warnings"][0]
    assert said["unpinned"]["warnings"] == []  # for looking at how things work, not for speed
    assert {each["cores"] for each in said.values()} == {count}, "pinning does not make the machine smaller"
    assert "3 workers" in said["three"]["got"] and "already runs with 2" in said["three"]["got"]
    assert said["later one"]["got"] == ["CPU:0"]  # fewer are a subset
    assert said["late"]["got"].endswith("Pin first.")


def test_workers_must_count_and_gpus_are_workers_where_there_are_some(monkeypatch):
    for count in (0, -1, True, "2", 2.0):
        with pytest.raises(devices.UseError, match=f"number of workers is {count!r}: .* at least 1"):
            devices.workers(count)
    monkeypatch.setattr(devices, "gpus", lambda: ["GPU:0", "GPU:1"])
    assert devices.workers(1) == ["GPU:0"] and devices.workers(2) == ["GPU:0", "GPU:1"]
    with pytest.raises(devices.UseError, match="3 workers .* 2 GPU.*--gres"):
        devices.workers(3)
    assert devices.oversubscribed(3) and not devices.oversubscribed(2)
    monkeypatch.setattr(devices, "gpus", list)
    monkeypatch.setattr(devices, "cores", lambda: 2)  # of a container
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    assert devices.oversubscribed(3) and not devices.oversubscribed(2)


def test_what_a_cell_needs_and_the_machine_lacks_is_named_in_one_line(monkeypatch, capsys):
    monkeypatch.setattr(devices, "gpus", lambda: ["GPU:0"])
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda name: None)
    assert not devices.has("horovod", "two devices")
    said = "This cell needs Horovod, which is not installed (`labs doctor` says how to get it) and two devices, and "
    assert capsys.readouterr().out == f"{said}there is one GPU.\n"
    monkeypatch.setattr(devices, "gpus", list)
    assert devices.has("two devices") and not capsys.readouterr().out


def test_cores_and_memory_are_those_of_this_process_and_its_container(tmp_path, monkeypatch):
    assert 1 <= devices.cores() <= os.cpu_count() and 2**20 < devices.memory() < 2**50  # bytes
    monkeypatch.setattr(devices, "Path", lambda path: Path(f"{tmp_path}{path}"))
    monkeypatch.setattr(devices, "_allowed", lambda: range(8))
    group = tmp_path / "sys/fs/cgroup"
    group.mkdir(parents=True)
    stat = "anon 100\ninactive_file 2500\nfile 2800"
    for name, text in {"memory.max": "3000", "memory.current": "2900", "memory.stat": stat}.items():
        (group / name).write_text(f"{text}\n")
    assert devices.memory() == 2600, "files that Linux keeps in a container's memory count as free"
    (group / "memory.max").write_text("max\n")
    assert devices.memory() > 2**20  # the machine's
    for quota, count in (("250000 100000", 2), ("50000 100000", 1), ("900000 100000", 8), ("max 100000", 8)):
        (group / "cpu.max").write_text(quota)
        assert devices.cores() == count


def test_the_machine_is_described_without_its_name_and_with_versions(monkeypatch):
    machine, found, private = devices.machine(), devices.versions(), socket.gethostname()
    assert set(machine) == {"cpu", "cores", "memory", "gpus", "platform"}
    assert machine["cores"] == devices.cores() and machine["memory"] > 2**20 and machine["cpu"]
    assert len(private) < 4 or private not in json.dumps(machine)
    installed = {name: importlib.import_module(name).__version__ for name in ("tensorflow", "keras", "labs")}
    assert found == installed | {"python": platform.python_version(), "horovod": found["horovod"]}
    gone = Mock(side_effect=devices.metadata.PackageNotFoundError)
    monkeypatch.setattr(devices.metadata, "version", gone)
    assert devices.versions()["tensorflow"] is None


FLAGS = {"AMX": "fpu amx_bf16 avx512_bf16", "AVX-512": "fpu avx512_bf16", "none": "fpu avx2"}
SMALL = {"gpus": [], "cores": 2, "memory": 8 * 2**30, "horovod": True, "sbatch": None, "cifar": False, "cpu": "AMX"}
SMALL["runs"] = str(ROOT)
DOCTOR = [  # a machine, what is said of it, and the problems that get a fix
    (
        {},
        "GPUs none: a worker is a CPU core|cores 2: more than 2 workers run, but share cores and are marked oversub"
        "|CIFAR-10 not found: the bundled digits|bfloat16 AMX: how fast|SLURM none: jobs run on this",
        {},
    ),
    (
        {"cores": 1, "memory": 4 * 2**30, "horovod": False, "cpu": "none", "cifar": True, "runs": "/no"},
        "memory 4.0 GiB free|bfloat16 no operations for it: how fast|CIFAR-10 found: --dataset c"
        "|LABS_RUNS '/no': no such folder",
        {"cores": "2 cores", "memory": "4 GiB", "Horovod": "compiler", "LABS_RUNS": "make the folder"},
    ),
    (
        {"gpus": ["GPU:0", "GPU:1"], "sbatch": "/usr/bin/sbatch", "cores": 1, "memory": 4 * 2**30 + 1},
        "GPUs 2: a worker is a GPU; at most 2|SLURM sbatch found|cores 1: they read the images",
        {"CIFAR-10": "$LABS_DATA"},
    ),
]


@pytest.mark.parametrize("machine, says, fixes", DOCTOR)
def test_doctor_says_what_is_here_and_names_a_fix_for_each_problem(monkeypatch, machine, says, fixes):
    here, find_spec = SMALL | machine, importlib.util.find_spec
    for name in ("gpus", "cores", "memory"):
        monkeypatch.setattr(devices, name, lambda name=name: here[name])
    monkeypatch.setenv("LABS_RUNS", here["runs"])
    monkeypatch.setattr(devices, "_of_cpu", lambda key: FLAGS[here["cpu"]])
    monkeypatch.setattr(cifar10, "find", Mock(side_effect=None if here["cifar"] else devices.UseError("nowhere")))
    monkeypatch.setattr(doctor.shutil, "which", lambda name: here[name])
    absent = "" if here["horovod"] else "horovod"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == absent else find_spec(name))
    rows = doctor.look()
    told = [f"{row['what']} {row['found']}: {row['means']}" for row in rows]
    assert all(any(line.startswith(words) for line in told) for words in says.split("|")), told
    assert any(line.startswith("bfloat16") for line in told) == (not here["gpus"])
    found = {row["what"]: row["fix"] for row in rows if row["fix"]}
    assert set(found) == set(fixes) and all(fixes[what] in found[what] for what in fixes)


def test_a_rank_gets_its_gpu_and_no_two_share_one(monkeypatch):
    import tensorflow as tf

    chosen = []
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["first", "second"] if kind == "GPU" else [])
    monkeypatch.setattr(tf.config, "set_visible_devices", lambda device, kind: chosen.append((device, kind)))
    before = os.sched_getaffinity(0)
    assert devices.pin(1, 2) == "GPU 1" and chosen == [("second", "GPU")]
    assert os.sched_getaffinity(0) == before
    with pytest.raises(devices.UseError, match="3 ranks on a machine that shows 2 GPU.*at most 2 ranks"):
        devices.pin(2, 3)
