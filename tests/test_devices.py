"""labs.devices: the workers that follow from the machine, and what the doctor says about it.

TensorFlow's devices are fixed after their first use, so each set-up is tried in a process of its own.
"""

import json
import os
import platform
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from labs import devices, doctor, printed

ROOT = Path(__file__).parents[1]

BURN = "import time\nwhile time.process_time() < 0.5: pass"


def test_busy_counts_what_other_programs_compute():
    for _ in range(5):  # a host that takes a core away, and does not say so, takes ticks with it
        before = devices.busy()
        subprocess.run([sys.executable, "-c", BURN], check=True)
        if (spent := devices.busy() - before) > 0.45:
            break
    assert spent > 0.45


SET_UP = """
# warm
import json, os, warnings
from labs import devices
import tensorflow as tf

said = {"cores": devices.cores()}


def set_up(count, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            names = devices.workers(count, **options)
        except devices.DeviceError as problem:
            names = str(problem)
    return {"names": names, "warnings": [str(w.message) for w in caught], "pinned": len(os.sched_getaffinity(0)),
            "cores": devices.cores(), "oversubscribed": devices.oversubscribed(count)}
"""

SECOND_THOUGHTS = (
    SET_UP
    + """
said["one"] = set_up(1)
said["two"] = set_up(2)
strategy = tf.distribute.MirroredStrategy(devices=said["two"]["names"])
with strategy.scope():
    variable = tf.Variable(1.0)
said["placed"] = [copy.device for copy in variable.values]
said["logical"] = len(tf.config.list_logical_devices("CPU"))
said["threads"] = [tf.config.threading.get_intra_op_parallelism_threads(),
                   tf.config.threading.get_inter_op_parallelism_threads()]
said["later three"] = set_up(3)
said["later one"] = set_up(1)
print(json.dumps(said))
"""
)

MORE_THAN_CORES = (
    SET_UP
    + """
said["unpinned"] = set_up(said["cores"] + 1, pin=False)
said["many"] = set_up(said["cores"] + 1)
said["logical"] = len(tf.config.list_logical_devices("CPU"))
print(json.dumps(said))
"""
)


def run(code):
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def second():
    return run(SECOND_THOUGHTS)


def test_two_workers_are_two_logical_devices_of_one_thread(second):
    assert second["two"]["names"] == ["CPU:0", "CPU:1"] and second["logical"] == 2
    assert [name.rsplit("/", 1)[1] for name in second["placed"]] == ["device:CPU:0", "device:CPU:1"]
    assert second["threads"] == [1, 2]


def test_workers_are_pinned_to_as_many_cores(second):
    assert second["one"]["names"] == ["CPU:0"] and second["one"]["pinned"] == 1
    assert second["two"]["pinned"] == min(2, second["cores"])


def test_pinning_does_not_make_the_machine_smaller(second):
    assert {second[key]["cores"] for key in ("one", "two", "later one")} == {second["cores"]}
    assert bool(second["two"]["warnings"]) == (second["cores"] < 2)


def test_more_workers_than_set_up_is_an_error_that_says_what_to_do(second):
    text = second["later three"]["names"]
    assert isinstance(text, str) and "\n" not in text
    assert "3 workers" in text and "already runs with 2" in text and "Restart" in text
    assert second["later one"]["names"] == ["CPU:0"]  # fewer are a subset


def test_more_workers_than_cores_warn():
    said = run(MORE_THAN_CORES)
    count = said["cores"] + 1
    assert len(said["many"]["names"]) == said["logical"] == count
    (warning,) = said["many"]["warnings"]
    assert f"{count} workers on {printed.several(said['cores'], 'core')}" in warning and "oversubscribed" in warning
    assert said["many"]["oversubscribed"] and said["many"]["pinned"] == said["cores"]
    assert said["unpinned"]["warnings"] == []  # for looking at how things work, not for speed


def test_workers_must_count():
    for count in (0, -1, True, "2", 2.0, None):
        with pytest.raises(devices.DeviceError) as caught:
            devices.workers(count)
        assert repr(count) in str(caught.value) and "at least 1" in str(caught.value)


def test_gpus_are_workers_where_there_are_some(monkeypatch):
    monkeypatch.setattr(devices, "gpus", lambda: ["GPU:0", "GPU:1"])
    assert devices.workers(1) == ["GPU:0"] and devices.workers(2) == ["GPU:0", "GPU:1"]
    with pytest.raises(devices.DeviceError, match="3 workers .* 2 GPU") as caught:
        devices.workers(3)
    assert "--gres" in str(caught.value)
    assert devices.oversubscribed(3) and not devices.oversubscribed(2)


def test_workers_are_compared_with_the_cores_that_they_may_use(monkeypatch):
    monkeypatch.setattr(devices, "gpus", lambda: [])
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
    with pytest.raises(KeyError):
        devices.has("three devices")


def test_cores_and_memory_are_those_of_this_process():
    assert 1 <= devices.cores() <= os.cpu_count()
    assert 2**20 < devices.memory() < 2**50  # bytes


def test_files_that_linux_keeps_in_a_containers_memory_count_as_free(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "Path", lambda path: Path(f"{tmp_path}{path}"))
    group = tmp_path / "sys/fs/cgroup"
    group.mkdir(parents=True)
    for name, text in {"max": "3000", "current": "2900", "stat": "anon 100\ninactive_file 2500\nfile 2800\n"}.items():
        (group / f"memory.{name}").write_text(text + "\n")
    assert devices.memory() == 2600
    (group / "memory.max").write_text("max\n")
    assert devices.memory() > 2**20  # the machine's


def test_machine_is_described_without_its_name():
    machine = devices.machine()
    assert set(machine) == {"cpu", "cores", "memory", "gpus", "platform"}
    assert machine["cores"] == devices.cores() and machine["memory"] > 2**20
    assert machine["platform"] == f"{platform.system()} {platform.machine()}" and machine["cpu"]
    text = json.dumps(machine)
    for private in {socket.gethostname(), platform.node()}:
        assert len(private) < 4 or private not in text


def test_versions(monkeypatch):
    import keras
    import tensorflow as tf

    import labs

    found = devices.versions()
    assert set(found) == {"python", "tensorflow", "keras", "horovod", "labs"}
    assert found["python"] == platform.python_version()
    assert (found["tensorflow"], found["keras"]) == (tf.__version__, keras.__version__)
    assert found["labs"] == labs.__version__

    def nowhere(name):
        raise devices.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(devices.metadata, "version", nowhere)
    assert devices.versions()["tensorflow"] is None


# The doctor


def looked(monkeypatch, tmp_path, *, gpus=(), cores=4, memory=8 * 2**30, horovod=True, sbatch=None, cifar=False):
    import importlib.util

    from labs import data
    from labs.data import cifar10

    def find():
        if not cifar:
            raise data.DataError("nowhere")

    find_spec = importlib.util.find_spec
    monkeypatch.setattr(devices, "gpus", lambda: list(gpus))
    monkeypatch.setattr(devices, "cores", lambda: cores)
    monkeypatch.setattr(devices, "memory", lambda: memory)
    monkeypatch.setattr(cifar10, "find", find)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: sbatch if name == "sbatch" else None)
    monkeypatch.setattr(
        doctor.importlib.util, "find_spec", lambda name: horovod or None if name == "horovod" else find_spec(name)
    )
    rows = doctor.look()
    assert all(set(row) == {"what", "found", "means", "fix"} for row in rows)
    assert all(row["what"] and row["found"] and row["means"] for row in rows)
    return {row["what"]: row for row in rows}


def test_doctor_finds_nothing_to_fix_on_a_small_complete_machine(monkeypatch, tmp_path):
    rows = looked(monkeypatch, tmp_path, cores=2)
    assert {"GPUs", "cores", "memory", "Horovod", "SLURM", "CIFAR-10"} <= set(rows)
    assert [row["what"] for row in rows.values() if row["fix"]] == []
    assert "a worker is a CPU core" in rows["GPUs"]["means"] and "oversubscribed" in rows["cores"]["means"]
    assert "digits" in rows["CIFAR-10"]["means"]


def test_on_a_gpu_the_doctor_counts_gpus_and_no_cores(monkeypatch, tmp_path):
    rows = looked(monkeypatch, tmp_path, gpus=["GPU:0"], cores=16)
    assert rows["GPUs"]["means"] == "a worker is a GPU; at most 1"
    assert "worker" not in rows["cores"]["means"] and not rows["cores"]["fix"]


def test_doctor_names_a_fix_for_each_problem(monkeypatch, tmp_path):
    rows = looked(monkeypatch, tmp_path, cores=1, memory=2**30, horovod=False)
    fixes = {what: row["fix"] for what, row in rows.items() if row["fix"]}
    assert set(fixes) == {"cores", "memory", "Horovod"}
    assert "1.0 GiB" in rows["memory"]["found"] and "compiler" in fixes["Horovod"] and "2 cores" in fixes["cores"]


@pytest.mark.parametrize(
    "flags, found, says",
    [
        ("fpu amx_bf16 avx512_bf16", "AMX", "some times as fast"),
        ("fpu avx512_bf16", "AVX-512", "faster or slower"),
        ("fpu avx2", "no operations for it", "likely slower"),
    ],
)
def test_doctor_says_what_bfloat16_is_worth_here(monkeypatch, tmp_path, flags, found, says):
    real, cpu = Path.read_text, f"model name\t: x\nflags\t\t: {flags}\n"
    monkeypatch.setattr(
        Path, "read_text", lambda path, *a, **k: cpu if str(path) == "/proc/cpuinfo" else real(path, *a, **k)
    )
    row = looked(monkeypatch, tmp_path, cores=2)["bfloat16"]
    assert row["found"] == found and says in row["means"] and not row["fix"]
    assert "bfloat16" not in looked(monkeypatch, tmp_path, gpus=["GPU:0"])


def test_doctor_on_a_gpu_node_with_slurm(monkeypatch, tmp_path):
    rows = looked(monkeypatch, tmp_path, gpus=["GPU:0", "GPU:1"], sbatch="/usr/bin/sbatch")
    assert rows["GPUs"]["found"] == "2" and "a worker is a GPU" in rows["GPUs"]["means"]
    assert rows["SLURM"]["found"] == "sbatch found"
    assert rows["CIFAR-10"]["fix"] and "$LABS_DATA" in rows["CIFAR-10"]["fix"]
    assert not looked(monkeypatch, tmp_path, gpus=["GPU:0"], cifar=True)["CIFAR-10"]["fix"]


# One worker for each rank


PIN = """
# warm
import json, os, sys
from labs import devices
import tensorflow as tf

before, count, said = sorted(os.sched_getaffinity(0)), devices.cores(), {}
rank, size = map(int, sys.argv[1:3])
said["got"] = devices.pin(rank, size)
said["cores"] = sorted(os.sched_getaffinity(0))
said["threads"] = [tf.config.threading.get_intra_op_parallelism_threads(),
                   tf.config.threading.get_inter_op_parallelism_threads()]
said["machine"] = devices.cores() == count
print(json.dumps([before[:count], said]))
"""


@pytest.mark.parametrize("rank, size", [(0, 1), (1, 2), (3, 4)])
def test_a_rank_gets_one_core_and_one_thread(rank, size):
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", PIN, str(rank), str(size)], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    before, said = json.loads(done.stdout)
    core = before[rank % len(before)]
    assert said["got"] == f"core {core}" and said["cores"] == [core] and said["threads"] == [1, 1]
    assert said["machine"]  # pinning changes nothing about what the machine has


def test_pinning_after_tensorflow_has_computed_is_refused():
    code = "# warm\nimport tensorflow as tf; from labs import devices; tf.constant(1.0) + 1; devices.pin(0, 2)"
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 1 and "Pin first." in done.stderr.splitlines()[-1], done.stderr


def test_a_rank_gets_its_gpu_and_no_two_share_one(monkeypatch):
    import tensorflow as tf

    chosen = []
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["first", "second"] if kind == "GPU" else [])
    monkeypatch.setattr(tf.config, "set_visible_devices", lambda device, kind: chosen.append((device, kind)))
    before = os.sched_getaffinity(0)
    assert devices.pin(1, 2) == "GPU 1" and chosen == [("second", "GPU")]
    assert os.sched_getaffinity(0) == before
    with pytest.raises(devices.DeviceError, match="3 ranks on a machine that shows 2 GPU.*at most 2 ranks"):
        devices.pin(2, 3)
