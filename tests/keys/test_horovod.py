"""The answers that notebooks 07 to 21 key are true."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from tree import ROOT
from waiting import until

from labs.jobs import launch, why
from lessons import sharding, training_scripts
from lessons.standing_still import following
from teaching.author import regions

SCRIPTS = ROOT / "solutions/scripts"


def test_shard_of_a_sorted_source_gives_batches_of_nearly_one_class_alike_on_all_workers():
    """sharding.4"""
    import tensorflow as tf

    labels = np.repeat(np.arange(10), 48)
    parts = [list(tf.data.Dataset.range(480).shard(2, rank).batch(16).as_numpy_iterator()) for rank in range(2)]
    assert sharding.coverage([np.concatenate(part) for part in parts], 480).right  # not b
    assert all(set(labels[np.concatenate(part)]) == set(range(10)) for part in parts)  # not a
    for step in zip(*parts, strict=True):
        assert len(set(labels[np.concatenate(step)])) <= 2


def test_each_rank_of_the_colleagues_script_goes_through_all_images():
    """sharding.13"""
    plays = training_scripts.ranks(SCRIPTS / "colleague.py", [(1, 1), (2, 2)])
    (alone,), two = [[facts["fits"][0] for facts in by_rank] for by_rank in plays]
    everything = list(range(training_scripts.IMAGES_OF_RANKS))
    for fit in (alone, *two):
        assert sorted(number for step in fit["passes"][0] for number in step) == everything
        assert {len(step) for step in fit["passes"][0]} == {training_scripts.LOCAL_BATCH_OF_RANKS}  # not b
    assert len(two[0]["passes"][0]) == len(alone["passes"][0])  # not a: as many steps


@pytest.fixture(scope="module")
def found(tmp_path_factory, needs_horovod):
    folder = tmp_path_factory.mktemp("ranks")
    program = [sys.executable, ROOT / "tests/programs/begin_and_average.py", folder, SCRIPTS]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "HOROVOD_GLOO_TIMEOUT_SECONDS": "600"}
    done = subprocess.run([*launch.command(2), *map(str, program)], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(2)]


def test_weights_stay_identical_by_the_broadcast_and_the_averaged_gradients(found):
    """horovod.17"""
    for each in found:
        assert each["both"] == [0, 0]
        before, after = each["no broadcast"]
        assert before > 0.1 and after == pytest.approx(before, abs=1e-6)  # weights that begin apart stay as far apart
        before, after = each["no average"]
        assert before == 0 and after > 1e-3


def test_ranks_that_divide_the_batch_train_as_one_rank_does(found):
    """horovod.18"""
    for each in found:
        assert each["option 2"] == pytest.approx(each["1 rank"], abs=1e-5)
        for other in ("option 1", "option 1, as many updates"):  # not a, b
            assert abs(each[other] - each["1 rank"]) > 0.1


@pytest.fixture
def started(tmp_path, monkeypatch, needs_horovod):
    """started(name, *changes) -> a job of notebook 21, as students get it; ended after the test."""
    monkeypatch.setenv("LABS_RUNS", str(tmp_path / "runs"))
    made = []

    def started(name, *changes):
        text = regions.blank((SCRIPTS / f"{name}.py").read_text())
        for old, new in changes:
            assert text.count(old) == 1
            text = text.replace(old, new)
        (tmp_path / f"{name}.py").write_text(text)
        made.append(following.start(tmp_path / f"{name}.py", name))
        return made[-1]

    yield started
    for job in made:
        job.stop()


def said(job):
    """What `labs why` says of the job, in one line; nothing as long as no rank has begun."""
    try:
        return " ".join(why.sentences(why.ranks(job.stem)))
    except why.WhyError:
        return ""


def test_a_job_that_hangs_prints_nothing_and_does_not_end(started, monkeypatch):
    """standing.1"""
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")  # as tree.NO_GREETING
    job = started("reports_loss")
    assert until(lambda: "They wait in different calls" in said(job)), job.err.read_text()
    assert following.letter(job) == "h" and job.state == "running"
    assert job.out.read_text() == job.err.read_text() == ""


def test_a_rank_that_computes_for_long_arrives(started, tmp_path):
    """standing.10"""
    looked = tmp_path / "looked"  # until it is there, rank 1 tries; a machine's speed does not matter
    tries = f"while hvd.rank() and not os.path.exists({str(looked)!r}): tried(line, 100)"
    job = started(
        "tries_many",
        ("import numpy as np", "import os\nimport numpy as np"),
        ("STEPS, RATE, TRIES = 400, 0.3, 20", "STEPS, RATE = 6, 0.9"),
        ("tried(line, TRIES * 100 ** hvd.rank())", tries),
    )
    late = r"Rank 0 waits in allreduce, .* Not there: rank 1\. Rank 1 computes"  # neither c nor d
    assert until(lambda: re.search(late, said(job))), job.err.read_text()
    looked.touch()
    assert until(lambda: job.state != "running") and job.state == "finished", job.explain()  # not a
    assert "slope" in job.out.read_text()
