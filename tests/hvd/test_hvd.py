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
from waiting import until

from labs import jobs, ranks
from labs.jobs import launch
from labs.results import run as records
from labs.results.text import split_rank

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parents[1] / "programs"
LOCAL = ("horovodrun", "mpiexec")  # srun needs a job of SLURM's: tests/cluster
TRAININGS = ("sgd", "momentum_clipped", "adam_schedule")


def start(program, count, launcher, *arguments, timeout=1200):
    """What each rank of tests/programs/<program>.py wrote, as a list of dicts."""
    folder = Path(arguments[0])
    done = subprocess.run(
        [*launch.command(count, launcher), sys.executable, str(PROGRAMS / program), *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HOROVOD_GLOO_TIMEOUT_SECONDS": "600"},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, f"{launcher} with {count} ranks failed:\n{done.stderr[-4000:]}\n{done.stdout[-2000:]}"
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
    return start("equivalence.py", *request.param, tmp_path_factory.mktemp("ranks"))


def test_each_process_is_another_rank(found):
    assert [each["rank"] for each in found] == list(range(len(found)))
    assert {each["size"] for each in found} == {len(found)}


def test_each_rank_knows_its_place(found):
    for each in found:
        assert each["place"] == [each["rank"], 1, len(found) > each["cores"]]


def test_shards_are_disjoint_complete_and_give_equal_steps(found):
    for epoch in (0, 1):
        shards = [each["samples"][epoch] for each in found]
        problem = ranks.shard_problem(shards, 72, dropped=8)  # names the rank and the sample numbers
        assert problem is None, problem
        assert sum(len(shard) for shard in shards) == 64
    assert {each["steps"] for each in found} == {4}


def test_every_epoch_has_another_order_that_all_ranks_share(found):
    assert all(set(each["samples"][0]) != set(each["samples"][1]) for each in found)
    assert all(each["checked"] == [other["samples"][0] for other in found] for each in found)


def test_averaged_gradient_is_that_of_the_whole_batch(found):
    for each in found:
        assert each["gradient_error"] < 1e-6 * max(1, each["gradient_scale"]), f"rank {each['rank']}"
        assert each["own_gradient_error"] > 0.01, f"rank {each['rank']}: its own gradient differs, or nothing is shown"


@pytest.mark.parametrize("training", TRAININGS)
def test_weights_are_those_of_one_process_with_the_effective_batch(found, training):
    for each in found:
        result = each[training]
        assert result["error"] < 2e-6, f"rank {each['rank']}: weights differ from one process by {result['error']}"
        assert result["moved"] > 0.01, "the training changed nothing"
        assert result["loss"] == pytest.approx(result["reference_loss"], rel=1e-5)
        assert result["accuracy"] == pytest.approx(result["reference_accuracy"], abs=1e-6)


@pytest.mark.parametrize("training", TRAININGS)
def test_ranks_start_apart_and_end_identical(found, training):
    assert len({each[training]["start"] for each in found}) == len(found)
    for each in found:
        assert each[training]["weights"]["identical"], f"rank {each['rank']}: {each[training]['weights']['different']}"
        assert each[training]["weights"]["ranks"] == len(found)
    assert len({each[training]["weights"]["sha256"] for each in found}) == 1
    assert len({tuple(each[training]["same_process"]) for each in found}) == 1


def test_averaging_every_second_step_is_a_batch_twice_as_large(found):
    assert all(each["every_2nd"]["error"] < 2e-6 and each["every_2nd"]["weights"]["identical"] for each in found)
    assert all(each["moved_before_the_third"] == 0.0 for each in found)


def test_moving_statistics_are_equal_if_they_are_averaged(found):
    assert all(each["batch_normalisation"]["identical"] for each in found)
    other = found[0]["statistics_not_averaged"]
    assert not other["identical"] and {d["rank"] for d in other["different"]} == set(range(1, len(found)))
    assert not any(d["trainable"] for d in other["different"])  # batch normalisation's, and nothing that is trained


def test_metrics_of_uneven_shards_are_those_of_all_samples(found):
    for each in found:
        for key in ("loss", "accuracy"):
            assert each["validation"][f"val_{key}"] == pytest.approx(each["validation_of_all"][key], rel=1e-5)
    shares = [each["validation_of_this_rank"]["loss"] for each in found]
    assert abs(sum(shares) / len(shares) / found[0]["validation_of_all"]["loss"] - 1) > 1e-3  # the plain mean is wrong


def test_two_optimizers_train_as_in_one_process(found):
    for each in found:
        result = each["two_optimizers"]
        assert result["error"] < 2e-6 and result["moved"] > 0.01 and result["weights"]["identical"]


@pytest.mark.parametrize("training", TRAININGS[1:])
def test_saved_model_trains_on_with_the_state_of_its_optimizer(found, training):
    for each in found:
        result = each[f"resumed_{training}"]
        assert result["error"] < 1e-6 and result["weights"]["identical"], f"rank {each['rank']}"
        assert result["error_without_state"] > 1e-3 and result["iterations"] == 16


def test_overflow_of_one_rank_is_skipped_by_all_and_nobody_waits(found):
    assert len({tuple(each["scaled_moved"]) for each in found}) == 1
    first, overflowing, third = found[0]["scaled_moved"]
    assert first > 0 and overflowing == 0 and third > 0


def test_horovod_itself_works_beside_and_saved_models_load_without_it(found):
    assert {each["sum_of_ranks"] for each in found} == {sum(range(len(found)))}
    assert found[0]["loaded_optimizer_averages"] is False


@pytest.fixture(scope="module")
def solution(tmp_path_factory, needs_horovod):
    """The records and logs of solutions/scripts/ResNet50_horovod.py with 2 ranks and the small network, by launcher."""
    folder, done = tmp_path_factory.mktemp("solution"), {}
    text = (ROOT / "solutions/scripts/ResNet50_horovod.py").read_text()
    small = 'network = models.network("SmallCNN", args.image_size, len(dataset.classes))\n'
    text, replaced = re.subn(r"network = keras\.applications\.ResNet50V2\(\n.*\n\)\n", small, text)
    assert replaced == 1
    (folder / "small.py").write_text(text)
    for launcher in LOCAL:
        arguments = ["--images", 64, "--batch_size", 32, "--epochs", 1, "--runs", folder]
        job = jobs.run(
            folder / "small.py",
            *arguments,
            name=launcher,
            runs=folder,
            ranks=2,
            launcher=launcher,
            show=False,
            env={"PYTHONPATH": str(ROOT)},
        )
        assert job.state == "finished", job.err.read_text()
        done[launcher] = records.load(job.record), job.out.read_text(), job.err.read_text()
    return done


@pytest.mark.parametrize("launcher", LOCAL)
def test_solution_ends_with_identical_weights_on_both_ranks(solution, launcher):
    found, out, err = solution[launcher]
    has = found.configuration
    assert (found.state, has.workers, has.local_batch, found.steps) == ("finished", 2, 16, 2)
    assert found.weights["identical"] and found.weights["ranks"] == 2 and not found.weights["different"]
    assert "Weights identical on all 2 ranks: True" in out and err == ""
    assert out.count("Rank 0 of 2") == out.count("Rank 1 of 2") == out.count("2/2 - ") == 1


def test_both_launchers_train_the_same_network(solution):
    assert len({found.weights["sha256"] for found, _, _ in solution.values()}) == 1


# Refusals


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("refusals")


@pytest.fixture(scope="module")
def said(folder, needs_horovod):
    return start("refusals.py", 2, "horovodrun", folder)


RIGHT = (
    "right",
    "right, unknown length with steps",
    "right shards",
    "agreed",
    "used before",
    "two optimizers",
    "rates set everywhere",
    "batches of 5",
    "stopped everywhere",
    "stopped everywhere within an epoch",
    "recorder last",
    "checkpoint of rank 0, backup of each",
    "equal weights, no broadcast",
    "equal weights in a loop",
    "a weight without gradient",
    "other names, initial weights, seeds",
    "restored after the mean",
    "mask that ends before the loss",
    "weighted metrics",
)
WARNED = {
    "dropout with equal seeds": "Several ranks draw the same random numbers: dropout leaves out the same units",
    "sum": "The loss is a sum, and the mean of its gradients over K ranks is K times too small",
    "masked": "or it is a mean over masked or weighted values",
}
LEFT = "stopped on one rank in step 1", "stopped on one rank in step 3"
REFUSED = {
    "not wrapped": "does not average gradients",
    "wrapped by Horovod": "Horovod's own DistributedOptimizer, which averages nothing on Keras 3",
    "wrapped by both": "Horovod's own DistributedOptimizer",
    "wrapped twice": "wrapped twice",
    "used with other passes": "with backward_passes_per_step=1",
    "no optimizer": "str is not an optimizer of Keras 3",
    "no passes": "backward_passes_per_step is 0",
    "half a pass": "backward_passes_per_step is 0.5",
    "passes and scaling": "cannot sum gradients over 2 passes",
    "scaling outside": "loss scaling around the distributed optimizer",
    "xla": "jit_compile=False",
    "no such root": "There is no rank 2",
    "uneven steps": "disagree on steps: rank 0 has 4, rank 1 has 3",
    "uneven epochs": "disagree on epochs: rank 0 has 1, rank 1 has 2",
    "unknown steps": "steps_per_epoch",
    "unlike networks": "disagree on network weight 0: rank 0 has (4, 2), rank 1 has (4, 3)",
    "batch": "disagree on batch_size: rank 0 has 64, rank 1 has 32",
    "data": "disagree on images: rank 0 has 1797, rank 1 has 1796",
    "not sharded": "Ranks 0 and 1 both read samples 0, 1, 2, 3, 4 and",
    "other seeds": "common order. No rank reads samples",
    "same shard": "No rank reads samples",
    "too many shards": "Is the number of shards the number of ranks (2)?",
    "uneven shards": "Rank 0 reads 30 samples and rank 1 29",
    "repeated": "Rank 0 reads twice in one epoch: samples",
    "out of range": "Rank 0 reads sample 60",
    "other weights": "Rank 1 and rank 0 have different networks",
    "second not wrapped": "one more optimizer, seconds['other'], that does not average",
    "first not wrapped": "The optimizer does not average gradients",
    "not wrapped beside": "one more optimizer, spare[0], that does not average",
    "rate set on one rank": "The learning rate of rank 0 is 0.05 and of rank 1 0.1, before epoch 2",
    "rate set in the first step": "different networks before the first step (first difference: sgd",
    "rate set in the last epoch": "The learning rate of rank 0 is 0.1 and of rank 1 0.05, after epoch 1",
    "other schedule": "learning_rate.config.decay_steps: rank 0 has 1, rank 1 has 2",
    "other momentum": "the optimizer's momentum: rank 0 has 0.0, rank 1 has 0.5",
    "other optimizer": "disagree on the optimizer: rank 0 has SGD, rank 1 has Adam",
    "weights set on one rank": "Rank 1 and rank 0 have different networks after epoch 1 (first difference: ",
    "batches of 8 and 5": "Rank 0 has trained on 8 samples in its first step and rank 1 on 5",
    "last batches of 3 and 2": "Rank 0 has trained on 7 samples in epoch 1 and rank 1 on 6",
    "validated on one rank": "Rank 0 has measured val_loss in epoch 1 and rank 1 has not",
    "validated on unknown samples": "Rank 0 has validated in 2 steps and rank 1 in 1, with a test_step of the model's",
    "stopped on one rank": "Rank 1 has ended its training after epoch 1, and rank 0 goes on",
    "begun later": "Rank 0 begins epoch 1 and rank 1 epoch 2",
    "synchronized": "BatchNormalization(synchronized=True), which shares its statistics under MirroredStrategy only",
    "callbacks of one rank": "disagree on callbacks: rank 0 has BroadcastGlobalVariablesCallback, MetricAverage",
    "not built": "The model has no weights yet",
    "checkpoint on every rank": "ModelCheckpoint would write to ",
    "log on every rank": "CSVLogger would write to ",
    "backup on every rank": "BackupAndRestore, which all need, gets a path for each rank",
    "nothing but the mean of metrics": "Rank 1 and rank 0 have different networks before the first step (first",
    "no callbacks": "Rank 1 and rank 0 have different networks before the first step (first",
    "train_on_batch": "Rank 1 and rank 0 have different networks before the first step (first",
    "every second batch": "Rank 1 and rank 0 have different networks before the first step (first",
    "other rate in a loop": "/learning_rate)",
    "other momentum in a loop": "bias_momentum)",
    "no gradient on one rank": "disagree on gradient 1 (second): rank 0 has a value, rank 1 has None",
    "no gradient on rank 0, in two passes": "disagree on gradient 0 (first): rank 0 has None, rank 1 has a value",
    "other activation": "disagree on layer 1 (Dense)'s activation: rank 0 has relu, rank 1 has tanh",
    "other activation in two": "(Dense)'s activation: rank 0 has relu, rank 1 has tanh",
    "other precision": "layer 1 (Dense)'s precision: rank 0 has float32, rank 1 has mixed_float16",
    "one more layer": "disagree on layer 1: rank 0 has Dense, rank 1 has ReLU",
    "other loss": "disagree on the loss: rank 0 has mse, rank 1 has mae",
    "other loss of a class": "delta: rank 0 has 1.0, rank 1 has 2.0",
    "restored before the mean": "Rank 1 and rank 0 have different networks at the end of fit (first difference: ",
    "recorder before the mean": "MetricAverageCallback stands after the recorder",
    "recorder before the broadcast": "BroadcastGlobalVariablesCallback stands after the recorder",
    "recorder at another place": "Rank 1: BroadcastGlobalVariablesCallback stands after the recorder",
}


def test_nothing_else_was_tried(said):
    assert set(said[0]) == {*RIGHT, *WARNED, *REFUSED, *LEFT}


def test_what_is_right_is_not_refused(said):
    assert [{name: each[name] for name in RIGHT} for each in said] == [dict.fromkeys(RIGHT, "")] * 2


@pytest.mark.parametrize("name", WARNED)
def test_what_trains_otherwise_than_is_meant_is_warned_of_once_by_rank_0(said, name):
    assert said[0][name].count("Warning: ") == 1 and WARNED[name] in said[0][name]
    assert said[1][name] == ""


def test_what_rank_0_saves_is_read_after_the_job(said, folder):
    import keras

    model = keras.models.load_model(folder / "saved.keras")
    for rank in range(2):
        np.testing.assert_array_equal(model.layers[-1].kernel, np.load(folder / f"best{rank}.npy"))
    assert model.optimizer.iterations == 12  # 3 epochs of 4 steps


@pytest.mark.parametrize("rank", [0, 1])
def test_mistake_is_refused_on_all_ranks_in_one_line(said, rank):
    for name, words in REFUSED.items():
        text = said[rank][name]
        assert words in text, name
        assert "\n" not in text and len(text) < 320, name


def test_rank_that_leaves_an_epoch_says_so_and_no_other_waits_for_ever(said):
    for name, step in zip(LEFT, (1, 3), strict=True):
        assert f"RankError: Rank 1 has left epoch 1 after step {step} of 4, and the others wait" in said[1][name]
    assert "Rank 0 compares its first batch and rank 1 why it has left an epoch early" in said[0][LEFT[0]]
    assert "Horovod has been shut down" in said[0][LEFT[1]]  # it was in the middle of a step


# Without processes


def test_wrapping_keeps_what_weight_decay_leaves_out(needs_horovod):
    import keras
    import tensorflow as tf

    from labs import hvd

    hvd.init()
    for scaled in (False, True):
        optimizer = keras.optimizers.AdamW(0.1, weight_decay=0.5)
        optimizer.exclude_from_weight_decay(var_names=["bias"])
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer) if scaled else optimizer
        kernel, bias = keras.Variable([1.0], name="kernel"), keras.Variable([1.0], name="bias")
        hvd.DistributedOptimizer(optimizer).apply([tf.zeros(1), tf.zeros(1)], [kernel, bias])
        assert float(kernel[0]) == pytest.approx(0.95) and float(bias[0]) == 1.0


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
    for shards in ([[0, 2, 4], [1, 3, 5]], [[0, 1, 2, 3, 4, 5]]):
        assert ranks.shard_problem(shards, 6) is None
    for shards, says in (
        ([[0, 2, 4], [1, 2, 5]], "Ranks 0 and 1 both read sample 2"),
        ([[0, 2], [1, 3], [4, 3]], "Ranks 1 and 2 both read sample 3"),
        ([[0, 2], [1, 3]], "No rank reads samples 4, 5."),
        ([[0, 0, 4], [1, 3, 5]], "Rank 0 reads twice in one epoch: sample 0."),
        ([[0, 2, 4], [1, 3]], "Rank 0 reads 3 samples and rank 1 2"),
        ([[0, 2, 4], [1, 3, 6]], "Rank 1 reads sample 6, but the 6 samples"),
        ([[0, 2, -1], [1, 3, 5]], "Rank 0 reads sample -1"),
    ):
        assert says in ranks.shard_problem(shards, 6)


def test_dropped_samples_are_no_problem_but_more_are():
    assert ranks.shard_problem([[0, 2], [1, 3]], 6, dropped=2) is None
    assert "No rank reads samples 4, 5, 6." in ranks.shard_problem([[0, 2], [1, 3]], 7, dropped=2)


def test_a_changed_bit_is_seen_in_the_fingerprint():
    import keras

    for dtype, shape in (("float32", (3, 5)), ("float16", (3,)), ("float32", ()), ("bfloat16", (7,))):
        variable = keras.Variable(np.ones(shape), dtype=dtype)
        before = ranks.fingerprints([variable, variable])
        changed = np.ones(shape)
        changed.flat[-1] = 1.01
        variable.assign(changed)
        after = ranks.fingerprints([variable, variable])
        assert before[0] == before[1] and after[0] == after[1] and before[0] != after[0]


# Ranks that die, and jobs that end


def living(folder):
    """Processes of the tests' jobs in this folder."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or [])
        if "dying.py" in line and str(folder) in line and process.pid != os.getpid():
            found.append(line)
    return found


def ended(folder):
    """Whether no process is left, in the end."""
    return until(lambda: not living(folder))


OTHER_LAUNCHER = pytest.mark.more("ranks die and are stopped in each way under each launcher, not under one of them")


# Each way to die with each launcher, on rank 0 and on another.
@pytest.mark.parametrize(
    "launcher, die, rank",
    [
        ("mpiexec", "exception", 1),
        pytest.param("mpiexec", "kill", 0, marks=OTHER_LAUNCHER),
        pytest.param("horovodrun", "exception", 0, marks=OTHER_LAUNCHER),
        ("horovodrun", "kill", 1),
    ],
)
def test_rank_that_dies_ends_the_job(tmp_path, launcher, die, rank, needs_horovod):
    arguments = ["--die", die, "--rank", rank, "--runs", tmp_path]
    job = jobs.start(
        PROGRAMS / "dying.py",
        *arguments,
        name="dies",
        runs=tmp_path,
        ranks=2,
        launcher=launcher,
        env={"PYTHONPATH": str(ROOT)},
    )
    until(lambda: "Epoch 2" in job.out.read_text() or job.state != "running", 240)
    job.wait(timeout=300, show=False)  # stops a job that still runs: its state is then another
    assert job.state == "failed"
    assert ended(tmp_path), living(tmp_path)
    found = records.load(job.record)
    assert found.state == "failed" and len(found.epochs) == 1
    if die == "exception":
        lines = [split_rank(line) for line in job.err.read_text().splitlines()]
        assert lines[0][1].startswith("Traceback")
        errors = [(by, line) for by, line in lines if line and not line.startswith((" ", "Traceback"))]
        # The launcher brings the lines of two ranks in any order: of the rank that died, its mistake comes first.
        assert next(line for by, line in errors if by == rank) == f"ZeroDivisionError: a mistake of rank {rank}"
        assert f"a mistake of rank {rank}" in job.explain() and "python error" in job.explain()
    else:
        assert ": killed (" in job.explain()


@pytest.mark.parametrize("launcher", ["mpiexec", pytest.param("horovodrun", marks=OTHER_LAUNCHER)])
def test_stop_ends_all_ranks(tmp_path, launcher, needs_horovod):
    job = jobs.start(
        PROGRAMS / "dying.py",
        "--runs",
        tmp_path,
        name="long",
        runs=tmp_path,
        ranks=2,
        launcher=launcher,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert until(lambda: "Epoch 3" in job.out.read_text() or job.state != "running", 240)
    assert job.state == "running", job.err.read_text()
    assert len(living(tmp_path)) >= 3
    job.stop()
    assert ended(tmp_path), living(tmp_path)
    assert json.loads(job.record.read_text())["state"] == "stopped"


@pytest.mark.parametrize("launcher", ["horovodrun", pytest.param("mpiexec", marks=OTHER_LAUNCHER)])
def test_ranks_end_when_the_process_that_started_them_is_killed(tmp_path, launcher, needs_horovod):
    code = (
        "import sys, time; from labs import jobs; "
        f"jobs.start({str(PROGRAMS / 'dying.py')!r}, '--runs', sys.argv[1], name='long', runs=sys.argv[1], "
        f"ranks=2, launcher={launcher!r}); time.sleep(1000)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    parent = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], env=environment)
    out = tmp_path / "long.out"
    until(lambda: (out.exists() and "Epoch 3" in out.read_text()) or parent.poll() is not None, 240)
    assert parent.poll() is None
    parent.kill()
    parent.wait()
    assert ended(tmp_path), living(tmp_path)
    assert json.loads((tmp_path / "long.json").read_text())["state"] == "failed"
