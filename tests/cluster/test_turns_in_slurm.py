"""Trainings that take turns inside one job of SLURM's, as steps over its nodes: a whole study by its batch script; what
waiting costs; and that nothing waits for ever or stays behind, however the job ends."""

import json
import signal
import time

import psutil
import pytest
from waiting import until

from labs import jobs as labs_jobs
from labs import results
from labs.results import run as records
from labs.results import tables
from setup.cluster.practice import ROOT

from .submitted import Job, end_soon

pytestmark = pytest.mark.usefixtures("needs_horovod")

PROGRAM = ROOT / "tests/programs/takes_turns.py"
STUDY = ROOT / "solutions/slurm/local/study.sh"
HEAD = """#!/bin/bash
#SBATCH --job-name=turns
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=2
export SRUN_CPUS_PER_TASK=2 PYTHONPATH="$PWD"
"""
# Two trainings as steps, on 1 rank and on 2 of two nodes. Given a file, it gives no turn before that is there.
COORDINATOR = """
import sys, time
from pathlib import Path
from labs import jobs
_, last, how, when, after, *program = sys.argv
with jobs.Turns(show=False) as turns:
    for name, ranks in (("one", 1), ("two", 2)):
        more = [how, when] if ranks == 2 and how else []
        words = last.replace("RANKS", str(ranks)).split()
        turns.start(*program, *words, *more, name=name, ranks=ranks, launcher="srun --mpi=pmi2")
    while after and not Path(after).exists():
        for key, _ in turns._select.select(0.2):
            turns._accept() if key.fileobj is turns._listener else turns._hear(key.fileobj, key.data)
sys.exit(turns.state != "finished")
"""


def submit(cluster, folder, *program, last, how="", when="", after="", then=""):
    """A batch script with two trainings in turns; `then` is what it does after them, whatever they did."""
    (folder / "turns.py").write_text(COORDINATOR)
    (folder / "turns.sh").write_text(f'{HEAD}"$LABS_PYTHON" {folder}/turns.py "$@"\n{then}\n')
    arguments = [last, how, when, after, *program]
    return Job(cluster, folder / "turns.sh", *arguments, runs=folder / "runs")


def told(job, name):
    """How many turns this training has taken."""
    path = job.runs / f"{name}.turns"
    return len(path.read_text().splitlines()) if path.exists() else 0


def of(job, word):
    """Processes of a job whose command line has a word; the batch script itself, which has all of them, is none."""
    found = []
    for process in job.cluster.processes(job.id):
        try:
            line = " ".join(process.cmdline())
            found += [process] if word in line and "slurm_script" not in line else []
        except psutil.Error:
            pass
    return found


def stopped(job, word):
    return [process for process in of(job, word) if process.status() == psutil.STATUS_STOPPED]


def seconds(processes):
    """CPU seconds that they have taken."""
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def coordinator(job):
    """The process that gives the turns."""
    mine = [process for process in of(job, "turns.py") if process.cmdline()[1].endswith("/turns.py")]
    return min(mine, key=lambda process: process.create_time())


def states(job):
    return {path.stem: records.load(path).state for path in sorted(job.runs.glob("*.json"))}


of_a_study = pytest.mark.more("a study over two nodes in SLURM, on 1, 2 and 4 ranks")


@pytest.fixture(scope="module")
def study(cluster, tmp_path_factory):
    """The batch script of site `local`: 1, 2 and 4 ranks, on one and on two nodes."""
    job = Job(cluster, STUDY, "--preset", "test", runs=tmp_path_factory.mktemp("study"))
    assert job.end(900) == "COMPLETED", job.said()
    return job


@of_a_study
def test_a_batch_script_makes_a_paired_study_over_nodes(study):
    assert study.left() == [] and study.err.read_text() == ""
    folder = study.runs / f"study_{study.id}"
    names = ["w1_b32", "w2_b64", "w1_b32_beside_w4", "w4_b128"]
    found = [records.load(folder / f"SmallCNN_horovod_{name}.json") for name in names]
    assert [each.state for each in found] == ["finished"] * 4 and {each.job_id for each in found} == {study.id}
    assert [(each.configuration.workers, each.configuration.nodes) for each in found] == [
        (1, 1),
        (2, 1),
        (1, 1),
        (4, 2),
    ]
    assert found[0].study == found[1].study != found[2].study == found[3].study
    for first, second in (found[:2], found[2:]):
        assert [epoch.round for epoch in first.epochs] == [epoch.round for epoch in second.epochs] == [None, 1, 2, 3]
        assert first.order_seed == second.order_seed
        drawn = [order for _, order in zip(range(4), labs_jobs.orders(first.order_seed, 2), strict=False)][1:]
        for place, each in enumerate((first, second)):
            assert [epoch.order for epoch in each.epochs[1:]] == [order.index(place) for order in drawn]
    assert all(each.weights["identical"] and each.sharing == "stopped between turns" for each in found)
    assert all((folder / f"SmallCNN_horovod_{name}.err").read_text() == "" for name in names)


@of_a_study
def test_results_of_its_folder_are_paired(study):
    runs = results.load(study.runs / f"study_{study.id}")
    several = {run.workers: run for run in runs if run.workers > 1}
    assert set(several) == {2, 4} and len(runs) == 4
    for run in several.values():
        assert tables.counted(run) == 3 and run.speedup.interval
        assert not any("not paired" in note for note in run.notes)
    beside = results.load(study.runs)  # where the log of the batch script lies
    assert [run.source for run in beside] == [run.source for run in runs]


@of_a_study
def test_labs_jobs_finds_its_records(study):
    job = labs_jobs.find(study.id, study.runs)
    assert job.state == "finished" and len(job.records) == 4 and "SmallCNN_horovod_w4_b128.json" in job.explain()


@pytest.mark.more("the batch script of a study once more, with the strategy of one node")
def test_mirrored_on_one_node(cluster, tmp_path):
    arguments = ["--preset", "test", "--strategy", "mirrored", "--epochs", "3"]
    job = Job(cluster, STUDY, *arguments, runs=tmp_path, options=["--nodes=1"])
    assert job.end() == "COMPLETED", job.said()
    assert job.left() == [] and job.err.read_text() == ""
    runs = results.load(tmp_path / f"study_{job.id}")
    assert [(run.workers, run.strategy, tables.counted(run)) for run in runs] == [
        (1, "mirrored", 2),
        (2, "mirrored", 2),
    ]


MODULE = ["-m", "labs.training.program", "--model=SmallCNN", "--strategy=horovod", "--images=64"]
SIZES = "--epochs=EPOCHS --workers=RANKS --batch_size=32"


def test_a_waiting_step_costs_under_a_hundredth_of_a_core(cluster, cold, tmp_path):
    """Real ranks of Horovod over MPI, before their first turn: of each training all processes, its srun included."""
    go = tmp_path / "go"
    job = submit(cluster, tmp_path, *MODULE, last=SIZES.replace("EPOCHS", "2"), after=str(go))
    job.until(lambda: len(stopped(job, "labs.training.program")) == 3)
    trainings = {"one": [], "two": []}
    for process in cluster.processes(job.id):
        if name := process.environ().get("LABS_RUN"):
            trainings[name].append(process)
    assert len(of(job, "keeper.py")) == 3
    before, begin = {name: seconds(waiting) for name, waiting in trainings.items()}, time.monotonic()
    time.sleep(10)
    spent = time.monotonic() - begin
    for name, waiting in trainings.items():
        share = (seconds(waiting) - before[name]) / spent
        print(f"{name}: {len(waiting)} processes, {share:.2%} of a core")
        assert share < 0.01
    go.touch()
    assert job.end() == "COMPLETED", job.said()
    assert states(job) == {"one": "finished", "two": "finished"} and job.left() == []


SIGNALS = pytest.mark.more("trainings in turns that SLURM ends: `make test` kills their coordinator, which is harder")


@pytest.mark.parametrize("how", [*(pytest.param(how, marks=SIGNALS) for how in ("scancel", "time")), "kill"])
def test_what_was_measured_is_kept_and_nothing_stays(cluster, tmp_path, how):
    """Cancelled, at its time limit, and with the coordinator killed by -9, in the middle of a long training."""
    job = submit(cluster, tmp_path, *MODULE, last=SIZES.replace("EPOCHS", "100000"), then="sleep 300")

    def measured():
        found = [json.loads(path.read_text()) for path in job.runs.glob("*.json")]
        return len(found) == 2 and all(len(each["epochs"]) > 2 for each in found)

    job.until(measured)
    if how == "scancel":
        cluster.run("scancel", job.id)
    elif how == "time":
        end_soon(cluster, job.id)
    else:
        coordinator(job).send_signal(signal.SIGKILL)
        assert until(lambda: not of(job, "labs.training.program") and not of(job, "keeper.py")), "a rank stayed behind"
        assert job.state == "RUNNING", "the script itself goes on"
        cluster.run("scancel", job.id)
    assert job.end(120) == ("TIMEOUT" if how == "time" else "CANCELLED")
    assert job.left() == []
    for name in ("one", "two"):
        found = records.load(job.runs / f"{name}.json")
        assert len(found.epochs) > 2 and found.study and found.state in ("running", "failed", "stopped")
        assert [epoch.round for epoch in found.epochs] == [None, *range(1, len(found.epochs))]
    _, two = results.load([job.runs / "one.json", job.runs / "two.json"])
    assert tables.counted(two) >= 2 and two.speedup.value > 0


def test_a_rank_that_crashes_on_another_node_ends_all(cluster, tmp_path):
    job = submit(cluster, tmp_path, PROGRAM, last="1000", how="crash", when="3")
    assert job.end(120) == "FAILED" and job.left() == []
    assert told(job, "two.1") == 3 and 3 <= told(job, "one") <= 4
    assert "this training crashes" in (job.runs / "two.err").read_text()


def test_a_rank_that_is_killed_while_it_waits_ends_all(cluster, tmp_path):
    job = submit(cluster, tmp_path, PROGRAM, last="2", after=str(tmp_path / "never"))
    job.until(lambda: len(stopped(job, "takes_turns")) == 3)
    (rank,) = [each for each in stopped(job, "takes_turns") if each.environ().get("SLURM_NODEID") == "1"]
    rank.kill()
    (tmp_path / "never").touch()
    assert job.end(120) == "FAILED" and job.left() == []


def test_more_ranks_than_the_job_has_are_refused_before_any_starts(cluster, tmp_path):
    job = Job(cluster, STUDY, "--preset", "test", "--workers", "1", "9", runs=tmp_path)
    assert job.end() == "FAILED"
    assert "9 ranks need as many tasks, and this job has 4 tasks" in job.err.read_text()
    assert not (tmp_path / f"study_{job.id}").exists() and job.left() == []
