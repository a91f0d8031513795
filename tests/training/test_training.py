"""labs.training and the programs built on it: the run record, repeats, and what is left when something breaks."""

import argparse
import errno
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from labs import results, training
from labs.errors import LabsError, UseError
from labs.results import metrics
from labs.results import run as records
from labs.results.run import Configuration

ROOT = Path(__file__).parents[2]


def python(*arguments, cwd=ROOT):
    """What Python left (returncode, stdout, stderr), run as a student would."""
    words, environment = [sys.executable, *map(str, arguments)], {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True)


def settings(folder, **changed):
    given = {"dataset": "digits", "image_size": 32, "images": 70, "repeats": 2, "seed": 3, "run": None}
    return argparse.Namespace(**given | {"runs": str(folder), "epochs": 2, "batch_size": 16} | changed)


def small_model(seed=3):
    import keras

    from labs import models

    keras.utils.set_random_seed(seed)
    model = models.build("SmallCNN", 32, 10)
    optimizer = keras.optimizers.SGD(0.01, momentum=0.9)
    model.compile(optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"], jit_compile=False)
    return model


def recorder_of(args, model=None):
    return training.Recorder(args, model or small_model(), images=args.images)


def train(folder, **changed):
    """A whole training of 70 digits in batches of 16; (recorder, model, first weights of each repeat, traces)."""
    from labs import data

    args, model, starts, traces = settings(folder, **changed), small_model(), [], []
    step = model.train_step
    model.train_step = lambda batch: traces.append(1) or step(batch)  # runs when TensorFlow traces, not after
    recorder = recorder_of(args, model)
    dataset = data.load("digits", images=args.images)
    train_pipeline = data.pipeline(dataset, args.batch_size, seed=args.seed)
    for _ in training.repeats(args, recorder, model):
        starts.append(model.get_weights())
        model.fit(train_pipeline, epochs=args.epochs, shuffle=False, verbose=0, callbacks=[recorder])
    return recorder, model, starts, traces


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return train(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def record(trained):
    return records.load_record(trained[0].path)


# The record of a training


def test_record_says_how_and_where_it_was_made(trained, record):
    assert (record.version, record.kind, record.state) == (2, "measured", "finished")
    assert record.name == "SmallCNN_single_w1_b16" and not trained[0].progress.exists()
    how = {"model": "SmallCNN", "strategy": "single", "workers": 1, "nodes": 1, "global_batch": 16, "local_batch": 16}
    how |= {"learning_rate": 0.01, "dataset": "digits", "images": 70, "image_size": 32, "precision": "float32"}
    assert record.configuration == Configuration(**how, seed=3, repeats=2, epochs_per_repeat=2)
    assert record.started <= record.finished and record.started.endswith("+00:00")
    assert {"cpu", "cores"} <= set(record.machine) and {"python", "tensorflow"} <= set(record.versions)
    assert record.observed == {"optimizer": "SGD", "parameters": trained[1].count_params()}


def test_epochs_of_all_repeats_are_there_in_order_and_steps_add_up_to_them(trained, record):
    assert [(e.repeat, e.epoch) for e in record.epochs] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert record.dataset_images == 70 and record.steps == 4  # 4 x 16 = 64, 6 images are left out
    shares = []
    for epoch in record.epochs:
        assert set(epoch.metrics) == {"loss", "accuracy"} and epoch.images == 64
        assert len(epoch.step_seconds) == record.steps and min(epoch.step_seconds) > 0
        shares.append(sum(epoch.step_seconds) / epoch.seconds)
    # What is left is the end of the epoch: reading the metrics. It may be slow on a busy machine, never negative.
    assert max(shares) <= 1 and np.median(shares) > 0.5
    (run,) = results.load(trained[0].path)
    assert (run.model, run.workers, len(run.steady), metrics.epoch_images(run)) == ("SmallCNN", 1, 2, (64, None))
    assert run.images_per_second.value == pytest.approx(64 / run.epoch_seconds.value)


def play(recorder, steps, epoch=0, validates=False, ends=True):
    """Call the recorder's hooks as Keras does in an epoch, of a model that counts no samples."""
    recorder.set_model(SimpleNamespace(compiled=False, count_params=lambda: 0))
    recorder.on_epoch_begin(epoch)
    for step in range(steps):
        recorder.on_train_batch_begin(step)
    if validates:
        recorder.on_test_begin()
        recorder.on_test_end()
    if ends:
        recorder.on_epoch_end(epoch, {"loss": np.float32(1)})
    return recorder.record.epochs


@pytest.fixture
def clock(monkeypatch):
    """Two seconds pass from each look at the clock to the next."""
    ticks = iter(range(0, 1000, 2))
    monkeypatch.setattr(training.recorder.time, "perf_counter", lambda: float(next(ticks)))


def test_images_of_an_epoch_that_is_longer_than_the_data_set_all_count(tmp_path, monkeypatch):
    for ranks, counted, images in ((1, 140, 140), (2, 140, 70), (2, 210, 210), (2, 64, 64)):
        recorder = recorder_of(settings(tmp_path))
        recorder._ranks, recorder._steps = ranks, [0.1]  # of 70 images: two ranks that take 140 did not shard
        monkeypatch.setattr(training.recorder.observed, "images", lambda *_, counted=counted: counted)
        assert recorder._consumed() == images


def test_what_an_epoch_counts(tmp_path, clock):
    assert play(recorder_of(settings(tmp_path)), 5)[0].images == 70, "4 x 16 and a last one of 6 that was kept"
    (epoch,) = play(recorder_of(settings(tmp_path)), 4, validates=True)
    assert len(epoch.step_seconds) == 4 and epoch.seconds == sum(epoch.step_seconds) + 2, "validation is in no step"
    recorder = recorder_of(settings(tmp_path))
    play(recorder, 1, ends=False)  # as after an interrupt
    (epoch,) = play(recorder, 1)
    assert len(epoch.step_seconds) == 1


def test_rate_is_told_of_steady_epochs_only(tmp_path, clock):
    """The first step traces: 64 images over it are no rate."""
    recorder = recorder_of(settings(tmp_path, repeats=1))
    for epoch, rate in ((0, None), (1, 16 / 2)):
        play(recorder, 3, epoch)
        state = json.loads(recorder.progress.read_text())
        assert (state["images_per_second"], state["epochs_done"]) == (rate, epoch)
    assert state["fraction"] == 1.0


def test_name_given_by_the_user_the_job_or_slurm(tmp_path, monkeypatch):
    def name(**changed):
        return recorder_of(settings(tmp_path, **changed)).path.name

    monkeypatch.setenv("LABS_JOB", "study_7")
    recorder = recorder_of(settings(tmp_path))  # one of several trainings of a batch script, without SLURM
    assert recorder.path.name == "study_7_w1.json" and recorder.record.job_id == "study_7"
    monkeypatch.setenv("LABS_RUN", "from_job")
    assert (name(), name(run="mine")) == ("from_job.json", "mine.json")
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    monkeypatch.setenv("SLURM_JOB_NAME", "resnet")
    assert name() == "from_job.json"  # a job inside of SLURM's
    monkeypatch.setenv("LABS_RUN", "")
    recorder = recorder_of(settings(tmp_path))
    assert recorder.path.name == "resnet_77_w1.json" and recorder.record.job_id == "77"


def test_the_record_of_an_earlier_run_moves_aside_and_the_log_of_this_one_stays(tmp_path):
    for number in range(2):
        path = recorder_of(settings(tmp_path, run="mine", seed=number)).path
        (tmp_path / "mine.out").write_text(f"log {number}")
    seeds = [records.load_record(file).configuration.seed for file in (path, tmp_path / "mine.1.json")]
    assert seeds == [1, 0]
    assert {file.name for file in tmp_path.iterdir()} == {"mine.json", "mine.1.json", "mine.out"}


def test_what_nothing_can_be_trained_with_is_refused_before_a_record_is_touched(tmp_path):
    for what in ("epochs", "repeats", "batch_size", "images", "image_size"):
        with pytest.raises(UseError, match=f"0 {what}"):
            recorder_of(settings(tmp_path, **{what: 0}))
    with pytest.raises(UseError, match="--run ../up"):
        recorder_of(settings(tmp_path, run="../up"))
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("a file, no folder")
    with pytest.raises(LabsError, match="file/runs.* cannot be written"):
        recorder_of(settings(tmp_path / "file/runs"))


# Repeats


def test_repeats_start_from_the_weights_of_a_new_model_with_seed_plus_repeat(trained):
    _, _, starts, _ = trained
    for repeat, start in enumerate(starts):
        new = small_model(seed=3 + repeat).get_weights()
        assert all(np.array_equal(a, b) for a, b in zip(start, new, strict=True))
    assert not np.array_equal(starts[0][0], starts[1][0])


def test_repeats_do_not_trace_again_and_the_same_seed_gives_the_same_losses(trained, record, tmp_path):
    again, _, _, traces = train(tmp_path, repeats=1)
    assert len(trained[3]) == len(traces) > 0  # two repeats trace as often as one
    losses, others = ([e.metrics["loss"] for e in run.epochs] for run in (record, again.record))
    assert others == pytest.approx(losses[:2], rel=1e-4) and losses[0] != pytest.approx(losses[2], rel=1e-3)


def test_reinitialise_empties_the_optimizer_and_keeps_its_rate(trained):
    _, model, _, _ = trained
    momenta = [v for v in model.optimizer.variables if "momentum" in v.path]
    assert momenta and any(np.any(v.numpy()) for v in momenta)
    training.recorder.reinitialise(model, 9)
    assert not any(np.any(v.numpy()) for v in momenta)
    assert int(model.optimizer.iterations.numpy()) == 0
    assert float(model.optimizer.learning_rate.numpy()) == pytest.approx(0.01)


def test_a_repeat_begins_with_the_optimizer_of_a_new_model(tmp_path):
    import keras

    from labs import compat

    rate, of = 0.02, keras.optimizers
    for make in (lambda: of.LossScaleOptimizer(of.Nadam(rate)), lambda: of.Adagrad(rate), lambda: of.Ftrl(rate)):
        model, new = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)], name="flat"), make()
        model.compile(make(), "mse", jit_compile=False)
        args = settings(tmp_path, images=8)
        for _ in training.repeats(args, recorder_of(args, model), model):
            assert float(model.optimizer.learning_rate) == pytest.approx(rate)
            starts = [variable.numpy() for variable in compat.state(model.optimizer)]
            model.fit(np.ones((8, 4)), np.ones((8, 2)), batch_size=8, epochs=2, verbose=0)
            model.optimizer.learning_rate = rate / 2  # as a callback may
        new.build(model.trainable_variables)
        assert starts == [pytest.approx(variable.numpy()) for variable in compat.state(new)], type(new)
        assert starts != [pytest.approx(variable.numpy()) for variable in compat.state(model.optimizer)]


# Writing a record


def test_ranks_of_a_training_are_no_other_programs(monkeypatch):
    """In 10 s the 2 cores were busy for 12 s; this rank computed 2.5 s of them, as each of the training's ranks did."""
    monkeypatch.setattr(training.recorder.devices, "cores", lambda: 2)
    monkeypatch.setattr(training.recorder.devices, "moment", lambda: (12.0, 10.0, 2.5))
    epochs = [SimpleNamespace(_gate="turns", _processes=ranks, _moment_begun=(0.0, 0.0, 0.0)) for ranks in (1, 4)]
    assert [training.Recorder._others(epoch) for epoch in epochs] == [9.5 / 20, 2.0 / 20]


def test_a_full_disk_leaves_the_old_record_whole_and_the_next_epoch_tries_again(tmp_path, monkeypatch, capsys):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    recorder = recorder_of(settings(tmp_path, repeats=1))
    monkeypatch.setattr("os.replace", full)
    play(recorder, 1)
    monkeypatch.undo()
    assert records.load_record(recorder.path).epochs == []
    assert [p.name for p in tmp_path.iterdir() if p != recorder.progress] == [recorder.path.name]  # no half-written one
    warning = capsys.readouterr().err
    assert warning.startswith(f"Warning: {recorder.path} cannot be written: No space left") and warning.count("\n") == 1
    play(recorder, 1, epoch=1)
    assert len(records.load_record(recorder.path).epochs) == 2 and not capsys.readouterr().err


# Programs


def test_crash_in_a_training_leaves_a_failed_record_with_what_was_measured(tmp_path):
    done = python(ROOT / "tests/programs/dying.py", "exception", 0, "--runs", tmp_path, "--run", "broken")
    assert done.returncode == 1 and "ZeroDivisionError: a mistake of rank 0" in done.stderr
    record = records.load_record(tmp_path / "broken.json")
    assert record.state == "failed" and record.finished
    assert [e.epoch for e in record.epochs] == [0] and [p.name for p in tmp_path.iterdir()] == ["broken.json"]


def test_script_with_blanks_says_so_in_one_line(tmp_path, monkeypatch):
    script = tmp_path / "ResNet50.py"
    script.write_text("# begin\nbatch = ...\n")
    monkeypatch.setattr(sys, "argv", [str(script)])
    with pytest.raises(SystemExit, match=re.escape("ResNet50.py, line 2: not done yet: batch = ...")):
        training.parse(argparse.ArgumentParser())


def test_script_and_study_program_do_the_same(tmp_path):
    """The student's own script and `python -m labs.training.program` give the same losses for the same settings. The
    network is the small one, which takes a tenth of the time."""
    common = ["--epochs", 1, "--batch_size", 32, "--images", 64, "--image_size", 32, "--seed", 5, "--runs", tmp_path]
    text = (ROOT / "solutions/scripts/ResNet50.py").read_text()
    text = re.sub(r"keras\.applications\.ResNet50V2\(\n.*\n +\)", 'models.network("SmallCNN", 32, 10)', text)
    script, program = tmp_path / "ResNet50.py", ROOT / "labs/training/program.py"
    script.write_text(text.replace("ResNet50V2", "SmallCNN"))
    for command in (
        [script, "--n_gpus", 1, "--run", "script"],
        ["-m", "labs.training.program", "--model", "SmallCNN", "--workers", 1, "--run", "study"],
    ):
        done = python(*command, *common)
        assert done.returncode == 0, done.stderr
        assert "Model SmallCNN 1 workers" in done.stdout and "Batch_size: 32" in done.stdout
    one, other = (records.load_record(tmp_path / f"{name}.json") for name in ("script", "study"))
    assert one.command[0].endswith("ResNet50.py") and other.command[:2] == ["-m", "labs.training.program"]
    assert one.epochs[0].metrics == pytest.approx(other.epochs[0].metrics, rel=1e-4)
    for found, file in ((one, script), (other, program)):
        assert found.script_sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    own = {"name", "command", "script_sha256", "started", "finished", "epochs", "machine"}
    assert one.model_dump(exclude=own) == other.model_dump(exclude=own)


REFUSED = {
    "--batch_size 2 --workers 4": "leaves some of 4 workers idle",
    "--model ResNet51": "Unknown model 'ResNet51'",
    "--epochs 0": "0 epochs",
    "--strategy single --workers 2": "--strategy single uses one worker",
}
REFUSALS = """
# warm
import json, sys, warnings
from labs.training import program
warnings.simplefilter("ignore")
for arguments in json.loads(sys.argv[1]):
    try:
        program.main(["--model", "SmallCNN", "--images", "64", "--batch_size", "16", *arguments.split()])
    except (Exception, SystemExit) as problem:
        print(f"refused: {problem}", file=sys.stderr)
"""


def test_settings_that_cannot_train_are_refused(tmp_path):
    """What `labs.training.program` says to each, from one process: none of them gets as far as computing."""
    done = python("-c", REFUSALS, json.dumps([*REFUSED]), cwd=tmp_path)
    assert done.returncode == 0 and not list(tmp_path.rglob("*.json"))  # no record of a training that never was
    for says in REFUSED.values():
        assert says in done.stderr
    assert done.stderr.count("refused: ") == len(REFUSED)


# What the recorder sees


def seen(folder, arrays=False, batch=16, **compiled):
    """Train for an epoch with a recorder, which is told of batches of 16; returns its record."""
    import keras

    from labs import data

    args, model = settings(folder, repeats=1, epochs=1), small_model()
    options = {"optimizer": keras.optimizers.SGD(0.01), "loss": "sparse_categorical_crossentropy"} | compiled
    model.compile(**options, jit_compile=False)
    recorder, dataset = recorder_of(args, model), data.load("digits", images=args.images)
    given = (dataset.images, dataset.labels) if arrays else (data.pipeline(dataset, batch, seed=args.seed),)
    model.fit(*given, epochs=1, shuffle=False, verbose=0, callbacks=[recorder])
    return recorder.record


def test_what_cannot_be_measured_is_an_error_that_names_both(tmp_path):
    import keras

    for case, message in (
        ({"batch": 8}, "asks for 16 images a step.* 64 images were taken in 8 steps, 8 a step"),
        ({"arrays": True}, "asks for 16 images a step.* 70 images were taken in 3 steps, 23.33 a step"),
        ({"steps_per_execution": 2}, "steps_per_execution=2"),
    ):
        with pytest.raises(LabsError, match=message):
            seen(tmp_path, **case)
    with pytest.raises(LabsError, match="not compiled"):
        recorder_of(settings(tmp_path), keras.Sequential([keras.Input((4,))]))


def test_a_schedule_is_named_and_its_first_rate_recorded(tmp_path):
    import keras

    rate = keras.optimizers.schedules.ExponentialDecay(0.02, 10, 0.9)
    record = seen(tmp_path, optimizer=keras.optimizers.SGD(rate))
    assert record.observed["learning_rate_schedule"] == "ExponentialDecay"
    assert record.configuration.learning_rate == pytest.approx(0.02)


def test_a_network_is_told_apart_from_those_whose_names_contain_its_own():
    import keras

    from labs.training import observed

    for layer, name in (
        ("resnet50", "ResNet50"),
        ("resnet50v2_1", "ResNet50V2"),
        ("inception_resnet_v2", "InceptionResNetV2"),
        ("efficientnetv2-b0", "EfficientNetV2B0"),
        ("my_net", "my_net"),  # a network of one's own
    ):
        inner = keras.Sequential([keras.layers.Dense(2)], name=layer)
        assert observed.network(keras.Sequential([keras.Input((4,)), inner])) == name
    assert observed.network(keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)], name="flat")) == "flat"


# What MirroredStrategy does otherwise


MIRRORED = """
# warm
import argparse, json, sys, warnings
from labs import devices, training
names = devices.workers(2)
import keras, numpy as np, tensorflow as tf
x, y = np.ones((8, 1), "float32"), np.full((8, 1), 100.0, "float32")  # one weight from 0: its gradient is -200
args = argparse.Namespace(dataset="digits", image_size=32, images=8, repeats=1, seed=0, runs=sys.argv[1], epochs=1,
                          batch_size=8, run=None)
found = []
for replicas, options in json.loads(sys.argv[2]):
    strategy = tf.distribute.MirroredStrategy(names[:replicas])
    with strategy.scope():
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
        model.layers[0].kernel.assign([[0.0]])
        model.compile(keras.optimizers.SGD(0.1, **options), "mse", jit_compile=False)
    recorder = training.Recorder(args, model, images=8)
    said = ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(x, y, batch_size=8, verbose=0, callbacks=[recorder])
        except Exception as problem:
            said = f"{type(problem).__name__}: {problem}"
    said += "".join(str(warning.message) for warning in caught if "replicas" in str(warning.message))
    found.append([abs(float(model.get_weights()[0][0, 0])), said])
print(json.dumps(found))
"""
ACCUMULATED = "LabsError: gradient_accumulation_steps=2 does not work"
CLIPPED = [  # replicas, options of SGD; how far the weight moves; what is said, "" for nothing
    (1, {"clipnorm": 0.05}, 0.005, ""),
    *((2, {kind: 0.05}, 0.01, f"{kind}=0.05 bounds no step") for kind in ("clipnorm", "global_clipnorm", "clipvalue")),
    *((replicas, {"gradient_accumulation_steps": 2}, 0, ACCUMULATED) for replicas in (1, 2)),
    (2, {}, 20, ""),
]


def test_clipping_on_replicas_is_told_with_the_bound_that_is_meant(tmp_path):
    done = python("-c", MIRRORED, tmp_path, json.dumps([case[:2] for case in CLIPPED]))
    assert done.returncode == 0, done.stderr[-2000:]
    for (*case, distance, says), (moved, said) in zip(CLIPPED, json.loads(done.stdout), strict=True):
        assert moved == pytest.approx(distance), case
        assert (says in said and "\n" not in said) if says else said == "", case


def test_a_pipeline_of_labs_or_of_a_script_gets_buffers_without_a_tuning_thread(monkeypatch):
    """See labs.compat: on one core, epochs of such a script began 9 s late."""
    import tensorflow as tf
    from tensorflow.python.data.ops import multi_device_iterator_ops as module

    from labs import data
    from labs.training import observed

    model, nine = SimpleNamespace(distribute_strategy=tf.distribute.get_strategy()), data.load("synthetic", images=9)
    for use in (lambda: data.order(nine, 3), lambda: observed.prepare(model)):
        monkeypatch.setattr(module, "_create_device_dataset", lambda: tf.data.Dataset.range(1))
        use()
        assert module._create_device_dataset().options().autotune.enabled is False
