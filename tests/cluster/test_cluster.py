"""The test cluster itself: it starts, keeps its site's rules, runs beside others, and leaves nothing."""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from labs.slurm import sites
from setup.cluster import practice as module
from setup.cluster.practice import ROOT, Cluster, ClusterError

from .submitted import Job

OWNER = """
import sys, time
sys.path.insert(0, sys.argv[1])
from setup.cluster.practice import Cluster
from labs.slurm import sites
running = Cluster.start(sites.load("local"))
running.run("sbatch", "--output=/dev/null", "--wrap", "(setsid sleep 4321 &) ; sleep 4321")
print(running.folder, flush=True)
time.sleep(1000)
"""
# Each of 4 tasks says how many ranks MPI connects.
RANKS = """#!/bin/bash
srun --mpi=pmi2 --label "$LABS_PYTHON" -c '
import ctypes, pathlib, sys
mpi, size = ctypes.CDLL(str(pathlib.Path(sys.prefix) / "lib/libmpi.so.12")), ctypes.c_int()
mpi.MPI_Init(None, None)
mpi.MPI_Comm_size(0x44000000, ctypes.byref(size))
mpi.MPI_Finalize()
print("ranks", size.value)'
"""


def tree(cluster):
    """All processes of a cluster."""
    keeper = cluster.keeper()
    return [keeper, *keeper.children(recursive=True)]


def sleeping(cluster):
    """How many processes `sleep` its jobs have."""
    found = 0
    for process in cluster.processes():
        with contextlib.suppress(psutil.Error):
            found += process.name() == "sleep"
    return found


def living(processes, seconds=120):
    """Those that still run after at most `seconds`."""
    return psutil.wait_procs(processes, timeout=seconds)[1]


def mentioning(text):
    """Command lines of processes that hold the text."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or [])
        found += [line] if text in line and process.pid != os.getpid() else []
    return found


def test_it_ends_with_the_process_that_started_it_and_with_a_running_job(needs_slurm):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(ROOT / "tests")], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        folder = Path(owner.stdout.readline().strip())
        begin = time.monotonic()
        while sleeping(Cluster(folder)) < 2 and time.monotonic() - begin < 120:
            time.sleep(0.1)
        processes = tree(Cluster(folder))
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()
    assert len(processes) > 8  # the keeper, four daemons, the job's
    assert living(processes) == []
    assert not folder.exists()


def test_stop_ends_what_a_killed_keeper_left(needs_slurm, tmp_path):
    orphaned = Cluster.start(sites.load("local", ROOT))
    (tmp_path / "sleep.sh").write_text("#!/bin/bash\nsleep 4321\n")
    job = Job(orphaned, tmp_path / "sleep.sh", runs=tmp_path)
    job.until(lambda: sleeping(orphaned) == 1)
    processes = tree(orphaned)
    processes[0].kill()
    living(processes[:1])
    assert not orphaned.stop() and living(processes) == [] and not orphaned.folder.exists()


@pytest.fixture
def short():
    """A folder with a short path, as SLURM's sockets want it."""
    with tempfile.TemporaryDirectory(prefix="labs-") as folder:
        yield Path(folder)


def test_a_folder_with_a_path_too_long_for_sockets_is_refused(needs_slurm, tmp_path):
    with pytest.raises(ClusterError, match="Name a folder with a shorter path"):
        Cluster.start(sites.load("local", ROOT), tmp_path / ("a" * 70))
    assert not list(tmp_path.iterdir())


def test_start_that_fails_half_way_says_why_and_leaves_nothing(needs_slurm, short):
    broken = sites.load("local", ROOT).model_copy(update={"partition": "main NoSuchKey=1"})
    folder = short / "cluster"
    with pytest.raises(ClusterError, match=r"did not start: .*(NoSuchKey|fatal)"):
        Cluster.start(broken, folder)
    assert not folder.exists() and mentioning(str(folder)) == []


def test_folder_of_somebody_else_is_not_touched(needs_slurm, short):
    (short / "thesis.txt").write_text("mine")
    with pytest.raises(ClusterError, match="holds files that are not a cluster's"):
        Cluster.start(sites.load("local", ROOT), short)
    assert (short / "thesis.txt").read_text() == "mine"


def test_a_second_one_beside_it_without_host_names_of_its_own(cluster, tmp_path, monkeypatch):
    script = tmp_path / "ranks.sh"
    script.write_text(RANKS)
    refusing = tmp_path / "bin/unshare"
    refusing.parent.mkdir()
    refusing.write_text("#!/bin/sh\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", f"{refusing.parent}:{os.environ['PATH']}")
    second = Cluster.start(sites.load("local", ROOT))
    try:
        monkeypatch.delenv("SLURM_CONF")
        options = ["--nodes=2", "--ntasks-per-node=2", "--gres=gpu:2", "--cpus-per-task=2"]
        jobs = [
            Job(one, script, runs=tmp_path / name, options=options)
            for one, name in ((cluster, "first"), (second, "second"))
        ]
        for job in jobs:
            assert job.end() == "COMPLETED", job.said()
            assert sorted(job.out.read_text().splitlines()) == [f"{rank}: ranks 4" for rank in range(4)]
            assert job.err.read_text() == "" and job.left() == []
        processes = tree(second)
        assert second.stop() and living(processes) == [] and not second.folder.exists()
    finally:
        second.stop()
    assert cluster.keeper() and cluster.run("sinfo", "-h", "-o", "%D").stdout.strip() == "2"


def test_cancelled_job_takes_along_what_left_its_process_tree(cluster, tmp_path):
    (tmp_path / "leaves.sh").write_text("#!/bin/bash\n(setsid sleep 4321 &)\nsrun sleep 4321\n")
    job = Job(cluster, tmp_path / "leaves.sh", runs=tmp_path)
    job.until(lambda: sleeping(cluster) == 2)
    processes = cluster.processes(job.id)
    assert cluster.run("scancel", job.id).returncode == 0
    assert job.end() == "CANCELLED" and job.left() == [] and living(processes) == []


@pytest.mark.parametrize(
    "options, says",
    [
        ("--gres=gpu:1 --cpus-per-task=2", None),
        ("--nodes=2 --ntasks-per-node=2 --gres=gpu:2 --cpus-per-task=2", None),
        ("--nodes=2 --ntasks=4 --gpus=4 --cpus-per-gpu=2", None),
        ("--ntasks=2 --gpus-per-task=1 --cpus-per-task=2", None),
        ("--cpus-per-task=1", None),
        ("--gres=gpu:1 --cpus-per-task=1", "1 GPU(s) per node need 2..2 CPUs per node, this job asks 1"),
        ("--gres=gpu:1 --cpus-per-task=3", "1 GPU(s) per node need 2..2 CPUs per node, this job asks 3"),
        ("--gres=gpu:1 --cpus-per-task=2 --exclusive", "1 GPU(s) per node need 2..2 CPUs per node, this job asks 4"),
        ("--nodes=2 --ntasks=4 --gpus-per-node=2", "2 GPU(s) per node need 4..4 CPUs per node, this job asks 2"),
        ("--nodes=2 --ntasks-per-node=1 --gpus=2", "1 GPU(s) per node need 2..2 CPUs per node, this job asks 1"),
        ("--gres=gpu:3 --cpus-per-task=2", "Requested node configuration is not available"),
        ("--time=3:00:00", "time limit"),
        ("--partition=other", "invalid partition"),
    ],
)
def test_cluster_keeps_the_rule_of_its_site(cluster, options, says):
    done = cluster.run("sbatch", "--test-only", "--wrap=true", *options.split())
    assert done.returncode == (0 if says is None else 1), done.stderr
    assert (says or "to start at") in done.stderr


def test_command_line(needs_slurm, short):
    def call(command):
        return subprocess.run(
            [sys.executable, "-m", "setup.cluster", command, "--folder", short / "c"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=300,
        )

    assert (call("status").returncode, call("stop").stdout) == (1, "No practice cluster runs here.\n")
    first, again = call("start"), call("start")
    try:
        assert first.returncode == again.returncode == 0 and first.stdout == again.stdout, first.stderr + again.stderr
        assert "2 nodes, each with 4 CPUs and gpu:2" in first.stdout and "make cluster-stop" in first.stdout
        assert call("env").stdout == f"export SLURM_CONF={short}/c/slurm.conf\n"
        assert call("env").stdout in first.stdout
        assert call("status").stdout.count("idle") == 2
        processes = tree(Cluster(short / "c"))
    finally:
        ended = call("stop")
    assert ended.returncode == 0 and living(processes) == [] and not (short / "c").exists()
    assert call("env").returncode == 1
    assert call("env").stderr == "No practice cluster runs here: `make cluster` starts one.\n"


def test_what_is_missing_is_said_in_one_line(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(module, "_path", lambda: "/nowhere")
        packages = "munge slurm-client slurmctld slurmd"
        assert f"as root, `apt-get install {packages}`" in module.missing() and "\n" not in module.missing()
        with pytest.raises(ClusterError, match="SLURM is not installed here"):
            Cluster.start(sites.load("local", ROOT))
    monkeypatch.setattr(module.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(module.shutil, "which", lambda name, path: name)
    assert module.missing().startswith("SLURM's daemons need root")
