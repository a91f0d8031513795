"""The experiments of notebooks 07 and 08 with real processes: what goes wrong there goes wrong as the notebooks say."""

import json

import pytest
from tree import ROOT

from labs import jobs
from lessons import timeline

SMALL = ("-m", "lessons.horovod_training.experiment", "--images", 64, "--epochs", 2)


@pytest.fixture
def run(tmp_path, needs_horovod):
    """run(*options, env=None) -> finished job of 2 ranks."""

    def run(*options, env=None):
        env = {"CUDA_VISIBLE_DEVICES": "", **(env or {})}
        return jobs.run(*SMALL, *options, name="small", ranks=2, launcher="mpiexec", runs=tmp_path, env=env, show=False)

    return run


def test_horovods_own_class_trains_two_networks(run):
    """That it is refused, unless unchecked: tests/hvd."""
    job = run("--optimizer", "horovods_own", "--unchecked")
    assert job.state == "finished" and "on all ranks: True before, False after the training" in job.out.read_text()


def test_a_slow_rank_is_seen_in_the_timeline_and_in_the_steps_of_the_others(run, tmp_path):
    file = tmp_path / "timeline.json"
    env = {"HOROVOD_TIMELINE": str(file), "HOROVOD_CACHE_CAPACITY": "0"}
    job = run("--model", "SmallCNN", "--images", 256, "--slow", 1, 100, env=env)
    assert job.state == "finished", job.explain()
    rows = timeline.summary(timeline.read(file))
    assert [row["tensors"] for row in rows] == [11] * 16  # 2 epochs of 8 steps
    # The machine may hold up another rank for longer in a step or two, and has more to do in the first.
    assert [row["last"] for row in rows].count(1) > len(rows) / 2
    record = json.loads(job.record.read_text())
    assert record["weights"]["identical"]
    # Rank 0 writes it. All of its steps wait for the 100 ms of rank 1, and nothing in them says whom they wait for.
    seconds = [step for epoch in record["epochs"] for step in epoch["step_seconds"]]
    assert len(seconds) == 16 and sorted(seconds)[8] > 0.08 and sum(seconds) > 15 * 0.1


@pytest.mark.parametrize(
    ("name", "steps", "options", "said", "never"),
    [
        ("end", ([3], [2]), (), ["has been shut down"], ["rank 0 is done", "has waited"]),
        ("epochs", ([3, 2], [2, 3]), (), ["rank 0: epoch 1 step 3, rank 1: epoch 2 step 1", "rank 0 is done"], []),
        ("loss", ([3, 2], [2, 3]), ("--average_loss",), ["has waited 20 s in the all-reduce of"], ["is done"]),
    ],
)
def test_a_rank_with_a_step_more_does_what_the_notebook_says(
    name, steps, options, said, never, tmp_path, needs_horovod
):
    script, asked = ROOT / "solutions/scripts/unequal.py", ["--rank0", *steps[0], "--rank1", *steps[1], *options]
    job = jobs.run(script, *asked, name=name, ranks=2, launcher="horovodrun", runs=tmp_path, show=False)
    text = job.out.read_text() + job.err.read_text()
    assert [line for line in said if line not in text] == [] and [line for line in never if line in text] == [], text
    assert (job.state == "finished") == ("rank 0 is done" in text and "rank 1 is done" in text)
