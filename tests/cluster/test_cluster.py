"""The test cluster itself: it starts, keeps its site's rules, runs beside others, and leaves nothing."""

import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest
from waiting import until

from labs.slurm import sites
from setup.cluster import practice as module
from setup.cluster.practice import ROOT, Cluster, ClusterError

from .submitted import Job

OWNER = """
import time
from setup.cluster.practice import Cluster
from labs.slurm import sites
running = Cluster.start(sites.load("local"))
running.run("sbatch", "--output=/dev/null", "--wrap", "(setsid sleep 4321 &) ; sleep 4321")
print(running.folder, flush=True)
time.sleep(1000)
"""


def tree(cluster):
    """All processes of a cluster."""
    keeper = cluster.keeper()
    return [keeper, *keeper.children(recursive=True)]


def lines(processes):
    """Command lines of those that still run."""
    found = []
    for process in processes:
        with contextlib.suppress(psutil.Error):
            found.append(" ".join(process.cmdline()))
    return found


def sleeping(cluster):
    """How many processes `sleep` its jobs have."""
    return lines(cluster.processes()).count("sleep 4321")


def living(processes, seconds=120):
    """Those that still run after at most `seconds`."""
    return psutil.wait_procs(processes, timeout=seconds)[1]


@pytest.mark.parametrize("killed", ["owner", "keeper"])
def test_it_ends_with_the_process_that_started_it_and_stop_ends_what_a_killed_keeper_left(needs_slurm, killed):
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True, cwd=ROOT) as owner:
        cluster = Cluster(owner.stdout.readline().strip())
        assert until(lambda: sleeping(cluster) == 2)
        processes = tree(cluster)
        if killed == "keeper":
            processes[0].kill()
            assert until(lambda: not cluster.keeper()) and not cluster.stop()
        owner.kill()
    assert len(processes) > 8  # the keeper, four daemons, the job's
    assert living(processes) == [] and not cluster.folder.exists()


@pytest.fixture
def short():
    """A folder with a short path, as SLURM's sockets want it."""
    with tempfile.TemporaryDirectory(prefix="labs-") as folder:
        yield Path(folder)


def test_a_start_that_cannot_be_says_why_and_leaves_nothing(needs_slurm, short, monkeypatch):
    site = sites.load("local", ROOT)
    broken = site.model_copy(update={"partition": "main NoSuchKey=1"})
    (short / "mine").mkdir()
    (short / "mine/thesis.txt").write_text("mine")
    for like, folder, says in (
        (site, "a" * 70, "Name a folder with a shorter path"),
        (site, "mine", "holds files that are not a cluster's"),
        (broken, "cluster", "did not start: .*(NoSuchKey|fatal)"),
    ):
        with pytest.raises(ClusterError, match=says):
            Cluster.start(like, short / folder)
    assert [*short.rglob("*")] == [short / "mine", short / "mine/thesis.txt"]
    assert not any(str(short) in line for line in lines(psutil.process_iter()))
    monkeypatch.setattr(module, "_path", lambda: "/nowhere")
    assert "as root, `apt-get install munge slurm-client slurmctld slurmd`" in module.missing()
    with pytest.raises(ClusterError, match="SLURM is not installed here"):
        Cluster.start(site)


def test_a_second_one_beside_it_without_host_names_of_its_own(cluster, short, tmp_path, monkeypatch):
    (short / "unshare").write_text("#!/bin/sh\nexit 1\n")
    (short / "unshare").chmod(0o755)
    (short / "tasks.sh").write_text("#!/bin/bash\n#SBATCH -N2 --ntasks-per-node=2\nsrun --label echo task\n")
    monkeypatch.setenv("PATH", f"{short}:{os.environ['PATH']}")
    second = Cluster.start(sites.load("local", ROOT))
    try:
        monkeypatch.delenv("SLURM_CONF")
        for job in [Job(one, short / "tasks.sh", runs=tmp_path / one.folder.name) for one in (cluster, second)]:
            assert job.end() == "COMPLETED", job.said()
            assert sorted(job.out.read_text().splitlines()) == [f"{rank}: task" for rank in range(4)]
    finally:
        processes = tree(second)
        assert second.stop() and living(processes) == [] and not second.folder.exists()
    assert cluster.keeper()


def test_command_line(needs_slurm, short):
    def call(command):
        words = [sys.executable, "-m", "setup.cluster", command, "--folder", short / "c"]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout + done.stderr

    assert call("status")[0] == 1 and call("stop") == (0, "No practice cluster runs here.\n")
    first = call("start")
    try:
        assert first == call("start") and first[0] == 0
        assert "2 nodes, each with 4 CPUs and gpu:2" in first[1] and "make cluster-stop" in first[1]
        assert call("env") == (0, f"export SLURM_CONF={short}/c/slurm.conf\n") and call("env")[1] in first[1]
        assert call("status")[1].count("idle") == 2
        processes = tree(Cluster(short / "c"))
    finally:
        ended = call("stop")
    assert ended[0] == 0 and living(processes) == [] and not (short / "c").exists()
    assert call("env") == (1, "No practice cluster runs here: `make cluster` starts one.\n")
