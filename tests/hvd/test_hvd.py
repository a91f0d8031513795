"""labs.hvd and labs.ranks with real processes: what 2 and 4 ranks train together is what one process trains."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest
from tree import NO_GREETING
from waiting import until

from labs import jobs, ranks
from labs.jobs import launch
from labs.results import run as records
from lessons import connected
from lessons.faster_steps import by_hand

ROOT = Path(__file__).parents[2]
PROGRAMS, SCRIPTS = ROOT / "tests/programs", ROOT / "solutions/scripts"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "HOROVOD_GLOO_TIMEOUT_SECONDS": "600"}
OTHER = pytest.mark.more("under the other launcher too: training, dying in each way, stopping")


def start(program, count, launcher, *arguments):
    """What `count` ranks of tests/programs/<program> print."""
    command = [*launch.command(count, launcher), sys.executable, PROGRAMS / program, *arguments]
    done = subprocess.run(
        list(map(str, command)), cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, f"{launcher} with {count} ranks failed:\n{done.stderr[-4000:]}\n{done.stdout[-2000:]}"
    return done.stdout


def written(folder, count):
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(count)]


# Equivalence


@pytest.fixture(
    scope="module",
    params=[
        (2, "mpiexec"),
        pytest.param((4, "horovodrun"), marks=pytest.mark.more("four ranks over Gloo are equivalent to one process")),
    ],
    ids=lambda param: f"{param[0]} ranks, {param[1]}",
)
def found(request, tmp_path_factory, needs_horovod):
    folder = tmp_path_factory.mktemp("ranks")
    start("equivalence.py", *request.param, folder)
    return written(folder, request.param[0])


def test_each_process_is_another_rank_and_knows_its_place(found):
    for rank, each in enumerate(found):
        assert (each["rank"], each["size"]) == (rank, len(found))
        assert each["place"] == [rank, 1, len(found) > each["cores"]]


def rows(size, factor=1.0):
    return np.arange(2 * (2 * size + 1), dtype="float32").reshape(-1, 2) * factor


def test_collectives_give_each_rank_what_their_docstrings_say(found):
    size = len(found)
    mean = rows(size, (size + 1) / 2)
    parts, summed = np.array_split(mean, size), np.array_split(mean * size, size)
    joined = np.concatenate([rows(size, rank + 1)[: rank + 1] for rank in range(size)])
    for rank, each in enumerate(found):
        expected = {"allreduce": mean, "sum": mean * size, "grouped": mean[0], "graph": 3 * mean, "allgather": joined}
        expected |= {"reducescatter": parts[rank], "reducescatter_sum": summed[rank], "broadcast": rows(size, 2)}
        expected |= {"slices": np.full((2, 2), [0.5, 1.0])}
        assert set(each["collectives"]) == set(expected) and len(parts[0]) == 3 and len(parts[-1]) == 2
        for name, values in expected.items():
            assert np.allclose(each["collectives"][name], values), name
        assert [text.split()[0] for text in each["refused"]] == ["reducescatter", "allgather"]


def test_the_world_of_the_checks_gives_what_horovod_gives(found):
    """lessons.connected stands in for Horovod: the same values on every rank."""
    size = len(found)
    world = connected.World(size)

    def program():
        mine = rows(size, world.rank() + 1)
        return {
            "allreduce": world.allreduce(mine),
            "grouped": world.grouped_allreduce([mine, mine[0]])[1],
            "reducescatter": world.reducescatter(mine),
            "reducescatter_sum": world.reducescatter(mine, op=world.Sum),
            "allgather": world.allgather(mine[: world.rank() + 1]),
            "broadcast": world.broadcast(mine, 1),
        }

    for real, played in zip(found, world.play(program), strict=True):
        for name, values in played.items():
            assert np.allclose(real["collectives"][name], values), name


def test_shards_are_disjoint_complete_and_give_equal_steps_in_another_order_each_epoch(found):
    for epoch in (0, 1):
        shards = [each["samples"][epoch] for each in found]
        problem = ranks.shard_problem(shards, 72, dropped=8)  # names the rank and the sample numbers
        assert problem is None, problem
        assert sum(len(shard) for shard in shards) == 64
    for each in found:
        assert each["steps"] == 4 and set(each["samples"][0]) != set(each["samples"][1])
        assert each["checked"] == [other["samples"][0] for other in found]


def test_averaged_gradient_is_that_of_the_whole_batch(found):
    for each in found:
        assert each["gradient_error"] < 1e-6 * max(1, each["gradient_scale"]), f"rank {each['rank']}"
        assert each["own_gradient_error"] > 0.01, f"rank {each['rank']}: its own gradient differs, or nothing is shown"


@pytest.mark.parametrize("training", ["momentum_clipped", "adam_schedule", "every_2nd"])
def test_weights_are_those_of_one_process_with_the_effective_batch(found, training):
    """every_2nd: averaging in every second step is a batch twice as large."""
    for each in found:
        result, weights = each[training], each[training]["weights"]
        assert result["error"] < 2e-6, f"rank {each['rank']}: weights differ from one process by {result['error']}"
        assert result["moved"] > 0.01, "the training changed nothing"
        assert weights["identical"] and weights["ranks"] == len(found), f"rank {each['rank']}: {weights['different']}"
        for key, values in result.get("history", {}).items():
            assert values == pytest.approx(result["reference"][key], rel=1e-5)
    assert len({each[training]["weights"]["sha256"] for each in found}) == 1


def test_ranks_start_apart_and_end_identical(found):
    assert len({each["adam_schedule"]["start"] for each in found}) == len(found)
    assert all(each["adam_schedule"]["weights"]["identical"] for each in found)


def test_moving_statistics_are_equal_if_they_are_averaged(found):
    assert all(each[what]["identical"] for each in found for what in ("batch_normalisation", "statistics_broadcast"))
    other = found[0]["statistics_not_averaged"]
    assert not other["identical"] and {d["rank"] for d in other["different"]} == set(range(1, len(found)))
    assert not any(d["trainable"] for d in other["different"])  # batch normalisation's, and nothing that is trained


def test_metrics_of_uneven_shards_are_those_of_all_samples(found):
    for each in found:
        for key in ("loss", "accuracy"):
            assert each["validation"][f"val_{key}"] == pytest.approx(each["validation_of_all"][key], rel=1e-5)
    shares = [each["validation_of_this_rank"]["loss"] for each in found]
    assert abs(sum(shares) / len(shares) / found[0]["validation_of_all"]["loss"] - 1) > 1e-3  # the plain mean is wrong


def test_saved_model_trains_on_with_the_state_of_its_optimizer_and_loads_without_horovod(found):
    for each in found:
        result = each["resumed"]
        assert result["error"] < 1e-6 and result["weights"]["identical"], f"rank {each['rank']}"
        assert result["moved"] > 1e-3 and result["iterations"] == 16, "without the state it would be another one"
        assert each["loaded_optimizer_averages"] is False


def test_overflow_of_one_rank_is_skipped_by_all_and_nobody_waits(found):
    assert len({tuple(each["scaled_moved"]) for each in found}) == 1
    first, overflowing, third = found[0]["scaled_moved"]
    assert first > 0 and overflowing == 0 and third > 0


# What students write


@pytest.mark.parametrize("count, launcher", [(2, "mpiexec"), (4, "horovodrun")])
def test_what_students_write_trains_as_one_process_does(count, launcher, needs_horovod):
    """Batch normalisation sees the passes, so that accumulated.py trains another network with it."""
    scripts = ("accumulated.py", "sharded_optimizer.py") if count == 2 else ("sharded_optimizer.py",)
    runs = [(name, network) for name in scripts for network in ("dense", "frozen", "tied")]
    runs += [("accumulated.py", "batch_norm")] if count == 2 else []
    words = [[str(SCRIPTS / name), "--model", network, "--hidden", "32"] for name, network in runs]
    said = re.split(r"== \d+", start("students.py", count, launcher, json.dumps(words)))
    for run, text in zip(runs, said[1:], strict=True):
        told = by_hand.told(text)
        apart, fixed, moved = (float(told[key]) for key in ("apart", "fixed", "moved"))
        if run[1] == "batch_norm":
            assert apart > 1e-3
        else:
            assert told["alike"] == "True" and apart < 1e-5 and fixed == 0.0 and moved > 1e-3, run


@pytest.mark.parametrize("launcher", ["horovodrun", pytest.param("mpiexec", marks=OTHER)])
def test_solution_ends_with_identical_weights_on_both_ranks(tmp_path, launcher, needs_horovod):
    """solutions/scripts/ResNet50_horovod.py with the small network."""
    text = (SCRIPTS / "ResNet50_horovod.py").read_text()
    small = 'network = models.network("SmallCNN", args.image_size, len(dataset.classes))\n'
    text, replaced = re.subn(r"network = keras\.applications\.ResNet50V2\(\n.*\n\)\n", small, text)
    assert replaced == 1
    (tmp_path / "small.py").write_text(text)
    arguments = ["--images", 64, "--batch_size", 32, "--epochs", 1, "--runs", tmp_path]
    how = {"runs": tmp_path, "ranks": 2, "launcher": launcher, "env": {"PYTHONPATH": str(ROOT), **NO_GREETING}}
    job = jobs.run(tmp_path / "small.py", *arguments, name="small", show=False, **how)
    assert job.state == "finished", job.err.read_text()
    found, out = records.load_record(job.record), job.out.read_text()
    has = found.configuration
    assert (found.state, has.workers, has.local_batch, found.steps) == ("finished", 2, 16, 2)
    assert found.weights["identical"] and found.weights["ranks"] == 2 and not found.weights["different"]
    assert "Weights identical on all 2 ranks: True" in out and job.err.read_text() == ""
    assert out.count("Rank 0 of 2") == out.count("Rank 1 of 2") == out.count("2/2 - ") == 1


# Refusals


@pytest.fixture(scope="module")
def refusals(tmp_path_factory, needs_horovod):
    folder = tmp_path_factory.mktemp("refusals")
    start("refusals.py", 2, "horovodrun", folder)
    return folder


def test_mistakes_are_refused_on_all_ranks_in_one_line_and_what_is_right_is_not(refusals):
    for said in written(refusals, 2):
        assert len(said) > 42
        for expected, text in said:
            assert (expected in text) if expected else (text == ""), (expected, text)
            assert "\n" not in text, text


def test_what_rank_0_saves_is_read_after_the_job(refusals):
    import keras

    model = keras.models.load_model(refusals / "saved.keras")
    for rank in range(2):
        np.testing.assert_array_equal(model.layers[-1].kernel, np.load(refusals / f"best{rank}.npy"))
    assert model.optimizer.iterations == 12  # 3 epochs of 4 steps


# Without processes


@pytest.mark.parametrize("scaled", [False, True])
def test_wrapping_keeps_what_weight_decay_leaves_out(one_rank, scaled):
    import keras
    import tensorflow as tf

    optimizer = keras.optimizers.AdamW(0.1, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    optimizer = keras.optimizers.LossScaleOptimizer(optimizer) if scaled else optimizer
    kernel, bias = keras.Variable([1.0], name="kernel"), keras.Variable([1.0], name="bias")
    one_rank.DistributedOptimizer(optimizer).apply([tf.zeros(1), tf.zeros(1)], [kernel, bias])
    assert float(kernel[0]) == pytest.approx(0.95) and float(bias[0]) == 1.0


@pytest.mark.parametrize("name", ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"])
def test_processes_that_see_themselves_alone_are_refused(needs_horovod, monkeypatch, name):
    from labs import hvd

    monkeypatch.setattr(hvd.horovod, "init", lambda: None)
    monkeypatch.setattr(hvd.horovod, "size", lambda: 1)
    monkeypatch.setenv(name, "1")
    hvd.init()
    monkeypatch.setenv(name, "4")
    with pytest.raises(hvd.HorovodError, match="4 processes were started, but each sees itself alone"):
        hvd.init()


def test_ranks_have_seeds_of_their_own_and_one_process_the_shared_one(monkeypatch, needs_horovod):
    import horovod.tensorflow as horovod

    seeds = set()
    for rank in range(4):
        monkeypatch.setattr(horovod, "rank", lambda rank=rank: rank)
        seeds |= {ranks.own_seed(seed) for seed in range(4)}
        assert rank or seeds == {0, 1, 2, 3}
    assert len(seeds) == 16 and all(isinstance(seed, int) and 0 <= seed < 2**32 for seed in seeds)


def test_the_settings_of_every_rank_are_compared(monkeypatch):
    monkeypatch.setattr(ranks, "gather", lambda *_: [{"batch_size": batch} for batch in (64, 64, 32)])
    with pytest.raises(ranks.RankError, match="rank 0 has 64, rank 2 has 32"):
        ranks.agree(batch_size=64)


def test_problem_of_shards_names_rank_and_samples():
    for shards, samples, dropped, says in (
        ([[0, 2, 4], [1, 3, 5]], 6, 0, None),
        ([[0, 2], [1, 3]], 6, 2, None),
        ([[0, 2], [1, 3]], 7, 2, "No rank reads samples 4, 5, 6."),
        ([[0, 2, 4], [1, 2, 5]], 6, 0, "Ranks 0 and 1 both read sample 2"),
        ([[0, 2], [1, 3], [4, 3]], 6, 0, "Ranks 1 and 2 both read sample 3"),
        ([[0, 0, 4], [1, 3, 5]], 6, 0, "Rank 0 reads twice in one epoch: sample 0."),
        ([[0, 2, 4], [1, 3]], 6, 0, "Rank 0 reads 3 samples and rank 1 2"),
    ):
        problem = ranks.shard_problem(shards, samples, dropped)
        assert says in problem if says else problem is None


def test_a_changed_bit_is_seen_in_the_fingerprint():
    import keras

    for dtype, shape in (("float32", (3, 5)), ("float16", (3,)), ("float32", ()), ("bfloat16", (7,))):
        variable, changed = keras.Variable(np.ones(shape), dtype=dtype), np.ones(shape)
        before = ranks.fingerprints([variable, variable])
        changed.flat[-1] = 1.01
        variable.assign(changed)
        after = ranks.fingerprints([variable, variable])
        assert before[0] == before[1] and after[0] == after[1] and before[0] != after[0]


# Ranks that die, and jobs that end


def living(folder):
    """Processes of the tests' jobs in this folder."""
    lines = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    return [line for line in lines if "dying.py" in line and str(folder) in line]


def ended(folder):
    """Whether no process is left, in the end."""
    return until(lambda: not living(folder))


RANKED = ["--strategy", "horovod", "--workers", "2"]


def begin(folder, launcher, die="never", rank=1):
    how = {"name": "long", "runs": folder, "ranks": 2, "launcher": launcher, "env": {"PYTHONPATH": str(ROOT)}}
    return jobs.start(PROGRAMS / "dying.py", die, rank, "--runs", folder, *RANKED, **how)


# Each way to die with each launcher, on rank 0 and on another.
DEATHS = [
    ("mpiexec", "exception", 1),
    pytest.param("mpiexec", "kill", 0, marks=OTHER),
    pytest.param("horovodrun", "exception", 0, marks=OTHER),
    ("horovodrun", "kill", 1),
]


@pytest.mark.parametrize("launcher, die, rank", DEATHS)
def test_rank_that_dies_ends_the_job(tmp_path, launcher, die, rank, needs_horovod):
    job = begin(tmp_path, launcher, die, rank)
    until(lambda: "Epoch 2" in job.out.read_text() or job.state != "running", 240)
    job.wait(timeout=300, show=False)  # stops a job that still runs: its state is then another
    assert job.state == "failed"
    assert ended(tmp_path), living(tmp_path)
    found = records.load_record(job.record)
    assert found.state == "failed" and len(found.epochs) == 1
    if die == "exception":
        assert f"a mistake of rank {rank}" in job.explain() and "python error" in job.explain()
    else:
        assert ": killed (" in job.explain()


@pytest.mark.parametrize("launcher", ["mpiexec", pytest.param("horovodrun", marks=OTHER)])
def test_stop_ends_all_ranks(tmp_path, launcher, needs_horovod):
    job = begin(tmp_path, launcher)
    assert until(lambda: "Epoch 3" in job.out.read_text() or job.state != "running", 240)
    assert job.state == "running", job.err.read_text()
    assert len(living(tmp_path)) >= 3
    job.stop()
    assert ended(tmp_path), living(tmp_path)
    assert json.loads(job.record.read_text())["state"] == "stopped"
