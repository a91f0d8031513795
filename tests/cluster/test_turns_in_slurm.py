"""Trainings that take turns inside one job of SLURM's, as steps over its nodes: a whole study by its batch script; and
that nothing waits for ever or stays behind, however the job ends."""

import contextlib
import json

import psutil
import pytest
from waiting import until

from labs import results
from labs.jobs.slurm_job import SlurmJob
from labs.results import run as records
from labs.results import tables
from setup.cluster.practice import ROOT

from .submitted import Job

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
        time.sleep(0.2)
sys.exit(turns.state != "finished")
"""


def submit(cluster, folder, *program, last, how="", when="", after="", then=""):
    """A batch script with two trainings in turns; `then` is what it does after them, whatever they did."""
    (folder / "turns.py").write_text(COORDINATOR)
    (folder / "turns.sh").write_text(f'{HEAD}"$LABS_PYTHON" {folder}/turns.py "$@"\n{then}\n')
    arguments = [last, how, when, after, *program]
    return Job(cluster, folder / "turns.sh", *arguments, runs=folder / "runs")


def of(job, word):
    """Processes of a job whose command line has a word; the batch script itself, which has all of them, is none."""
    found = []
    for process in job.cluster.processes(job.id):
        with contextlib.suppress(psutil.Error):
            line = " ".join(process.cmdline())
            found += [process] if word in line and "slurm_script" not in line else []
    return found


@pytest.mark.more("a study over two nodes in SLURM, on 1, 2 and 4 ranks")
def test_a_batch_script_makes_a_paired_study_over_nodes(cluster, tmp_path):
    """The batch script of site `local`: 1, 2 and 4 ranks, on one and on two nodes."""
    study = Job(cluster, STUDY, "--preset", "test", runs=tmp_path)
    assert study.end(900) == "COMPLETED", study.said()
    assert study.left() == [] and study.err.read_text() == ""
    folder = study.runs / f"study_{study.id}"
    names = [f"SmallCNN_horovod_{name}" for name in ("w1_b32", "w2_b64", "w1_b32_beside_w4", "w4_b128")]
    assert [(folder / f"{name}.err").read_text() for name in names] == [""] * 4
    found = [records.load_record(folder / f"{name}.json") for name in names]
    has = [(each.configuration.workers, each.configuration.nodes, each.state, each.job_id) for each in found]
    assert has == [(ranks, nodes, "finished", study.id) for ranks, nodes in ((1, 1), (2, 1), (1, 1), (4, 2))]
    assert all(each.weights["identical"] for each in found)
    assert found[1].study != found[2].study
    for first, second in (found[:2], found[2:]):
        assert [epoch.round for epoch in first.epochs] == [epoch.round for epoch in second.epochs] == [None, 1, 2, 3]
        assert (first.study, first.order_seed) == (second.study, second.order_seed)
        assert all(a.order + b.order == 1 for a, b in zip(first.epochs[1:], second.epochs[1:], strict=True))
    runs = results.load(study.runs)  # where the log of the batch script lies
    assert [run.source for run in runs] == [run.source for run in results.load(folder)] and len(runs) == 4
    for run in runs:
        if run.workers > 1:
            assert tables.counted(run) == 3 and run.speedup.interval
            assert not any("not paired" in note for note in run.notes)
    job = SlurmJob(study.name, study.id, study.runs)
    assert job.state == "finished" and len(job.records) == 4 and names[3] in job.explain()


MODULE = ["-m", "labs.training.program", "--model=SmallCNN", "--strategy=horovod", "--images=64"]
SIZES = "--epochs=100000 --workers=RANKS --batch_size=32"


def test_what_was_measured_is_kept_and_nothing_stays(cluster, tmp_path):
    """With the coordinator killed by -9, in the middle of a long training."""
    job = submit(cluster, tmp_path, *MODULE, last=SIZES, then="sleep 300")

    def measured():
        found = [json.loads(path.read_text()) for path in job.runs.glob("*.json")]
        return len(found) == 2 and all(len(each["epochs"]) > 2 for each in found)

    job.until(measured)
    mine = [process for process in of(job, "turns.py") if process.cmdline()[1].endswith("/turns.py")]
    min(mine, key=lambda process: process.create_time()).kill()  # the first one gives the turns
    assert until(lambda: not of(job, "labs.training.program") and not of(job, "waiting.py")), "a rank stayed behind"
    assert job.state == "RUNNING", "the script itself goes on"
    cluster.run("scancel", job.id)
    assert job.end(120) == "CANCELLED" and job.left() == []
    for name in ("one", "two"):
        found = records.load_record(job.runs / f"{name}.json")
        assert len(found.epochs) > 2 and found.study and found.state in ("running", "failed", "stopped")
        assert [epoch.round for epoch in found.epochs] == [None, *range(1, len(found.epochs))]
    _, two = results.load([job.runs / "one.json", job.runs / "two.json"])
    assert tables.counted(two) >= 2 and two.speedup.value > 0


def test_a_rank_that_crashes_on_another_node_ends_all(cluster, tmp_path):
    job = submit(cluster, tmp_path, PROGRAM, last="1000", how="crash", when="3")
    assert job.end(120) == "FAILED" and job.left() == []
    last, one = (len((job.runs / f"{name}.turns").read_text().splitlines()) for name in ("two.1", "one"))
    assert last == 3 and 3 <= one <= 4
    assert "this training crashes" in (job.runs / "two.err").read_text()
