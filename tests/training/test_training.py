"""labs.training and the programs built on it: the run record, repeats, and what is left when something breaks."""

import argparse
import errno
import hashlib
import json
import os
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from labs import results, training
from labs.results import metrics
from labs.results import run as records
from labs.results.record import Configuration

ROOT = Path(__file__).parents[2]
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def python(*arguments, cwd=ROOT, **kwargs):
    """Run Python as a student would; returns what it left (returncode, stdout, stderr)."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **kwargs.pop("env", {})}
    return subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=cwd, env=environment, capture_output=True, text=True, **kwargs
    )


def settings(folder, **changed):
    given = {
        "dataset": "digits",
        "image_size": 32,
        "images": 70,
        "repeats": 2,
        "seed": 3,
        "run": None,
        "runs": str(folder),
        "epochs": 2,
        "batch_size": 16,
    }
    return argparse.Namespace(**given | changed)


def small_model(seed=3):
    import keras

    from labs import models

    keras.utils.set_random_seed(seed)
    model = models.build("SmallCNN", 32, 10)
    model.compile(
        keras.optimizers.SGD(0.01, momentum=0.9),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
        jit_compile=False,
    )
    return model


def recorder_of(args, **changed):

    return training.Recorder(
        args,
        **{"model": "SmallCNN", "strategy": "single", "workers": 1, "images": args.images, "learning_rate": 0.01}
        | changed,
    )


def train(folder, **changed):
    """A whole training of 70 digits in batches of 16; (recorder, model, first weights of each repeat, traces)."""
    from labs import data, training

    args, model, starts, traces = settings(folder, **changed), small_model(), [], []
    step = model.train_step
    model.train_step = lambda batch: traces.append(1) or step(batch)  # runs when TensorFlow traces, not after
    recorder = recorder_of(args)
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
    return records.load(trained[0].path)


# The record of a training


def test_record_says_how_and_where_it_was_made(record):
    assert (record.version, record.kind, record.state, record.name) == (
        2,
        "measured",
        "finished",
        "SmallCNN_single_w1_b16",
    )
    assert record.configuration == Configuration(
        model="SmallCNN",
        strategy="single",
        workers=1,
        nodes=1,
        global_batch=16,
        local_batch=16,
        learning_rate=0.01,
        dataset="digits",
        images=70,
        image_size=32,
        precision="float32",
        seed=3,
        repeats=2,
        epochs_per_repeat=2,
    )
    assert record.started <= record.finished and record.started.endswith("+00:00")
    assert {"cpu", "cores", "memory", "gpus", "platform"} <= set(record.machine)
    assert {"python", "tensorflow", "keras", "labs"} <= set(record.versions)


def test_epochs_of_all_repeats_are_there_in_order(record):
    assert [(e.repeat, e.epoch) for e in record.epochs] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert all(set(e.metrics) == {"loss", "accuracy"} for e in record.epochs)


def test_steps_add_up_to_the_epoch(record):
    shares = []
    for epoch in record.epochs:
        assert len(epoch.step_seconds) == record.steps
        assert min(epoch.step_seconds) > 0
        shares.append(sum(epoch.step_seconds) / epoch.seconds)
    # What is left is the end of the epoch: reading the metrics. It may be slow on a busy machine, never negative.
    assert max(shares) <= 1 and np.median(shares) > 0.5


def test_dropped_remainder_is_not_counted(record):
    assert record.dataset_images == 70 and record.steps == 4  # 4 x 16 = 64, 6 images are left out
    assert [e.images for e in record.epochs] == [64] * 4


def test_kept_remainder_is_counted_once(tmp_path):
    recorder = recorder_of(settings(tmp_path, repeats=1))
    recorder.on_epoch_begin(0)
    for step in range(5):  # 4 x 16 and a last one of 6
        recorder.on_train_batch_begin(step)
    recorder.on_epoch_end(0, {"loss": np.float32(1)})
    assert recorder.record.epochs[0].images == 70


def test_validation_is_part_of_the_epoch_but_of_no_step(tmp_path):
    recorder = recorder_of(settings(tmp_path, repeats=1))
    recorder.on_epoch_begin(0)
    for step in range(4):
        recorder.on_train_batch_begin(step)
    recorder.on_test_begin()
    time.sleep(0.02)
    recorder.on_epoch_end(0, {"loss": 1.0})
    (epoch,) = recorder.record.epochs
    assert len(epoch.step_seconds) == 4 and epoch.seconds - sum(epoch.step_seconds) >= 0.02


def test_an_interrupted_epoch_leaves_no_step_behind(tmp_path):
    recorder = recorder_of(settings(tmp_path, repeats=1))
    for _ in range(2):  # the first ends without on_epoch_end, as after an interrupt
        recorder.on_epoch_begin(0)
        recorder.on_train_batch_begin(0)
    recorder.on_epoch_end(0, {"loss": 1.0})
    assert len(recorder.record.epochs) == 1 and len(recorder.record.epochs[0].step_seconds) == 1


def test_recorder_never_waits_for_the_device():
    """A callback with one of these hooks makes Keras fetch loss and metrics from the device after every step."""
    import keras

    for hook in ("on_train_batch_end", "on_batch_end"):
        assert getattr(training.Recorder, hook) is getattr(keras.callbacks.Callback, hook)


def test_metrics_read_the_record(trained, record):
    (run,) = results.load(trained[0].path)
    assert (run.model, run.workers, len(run.steady), metrics.epoch_images(run)) == ("SmallCNN", 1, 2, (64, None))
    steady = [e.seconds for e in record.epochs if e.epoch == 1]
    assert run.images_per_second.value == pytest.approx(64 / run.epoch_seconds.value)
    assert min(steady) <= run.epoch_seconds.value <= max(steady)


def test_name_given_by_the_user_the_job_or_slurm(tmp_path, monkeypatch):
    monkeypatch.setenv("LABS_RUN", "from_job")
    assert recorder_of(settings(tmp_path)).path.name == "from_job.json"
    assert recorder_of(settings(tmp_path, run="mine")).path.name == "mine.json"
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    monkeypatch.setenv("SLURM_JOB_NAME", "resnet")
    assert recorder_of(settings(tmp_path)).path.name == "from_job.json"  # a job inside of SLURM's
    monkeypatch.setenv("LABS_RUN", "")
    recorder = recorder_of(settings(tmp_path))
    assert recorder.path.name == "resnet_77_w1.json" and recorder.record.job_id == "77"


def test_the_record_of_an_earlier_run_moves_aside_and_the_log_of_this_one_stays(tmp_path):
    for number in range(2):
        path = recorder_of(settings(tmp_path, run="mine", seed=number)).path
        (tmp_path / "mine.out").write_text(f"log {number}")
    assert records.load(path).configuration.seed == 1 and records.load(tmp_path / "mine.1.json").configuration.seed == 0
    assert {file.name for file in tmp_path.iterdir()} == {"mine.json", "mine.1.json", "mine.out"}


@pytest.mark.parametrize(
    "changed", [{"images": 0}, {"image_size": 0}, {"batch_size": -1}, {"run": "../up"}, {"run": ""}]
)
def test_what_nothing_can_be_trained_with_is_refused_before_a_record_is_touched(tmp_path, changed):
    from labs.training.arguments import ArgumentError

    with pytest.raises(ArgumentError):
        recorder_of(settings(tmp_path, **changed))
    assert not list(tmp_path.iterdir())


# Repeats


def test_repeats_start_from_the_weights_of_a_new_model_with_seed_plus_repeat(trained):
    _, _, starts, _ = trained
    for repeat, start in enumerate(starts):
        new = small_model(seed=3 + repeat).get_weights()
        assert all(np.array_equal(a, b) for a, b in zip(start, new, strict=True))
    assert not np.array_equal(starts[0][0], starts[1][0])


def test_repeats_do_not_trace_again(trained):
    _, _, _, traces = trained
    first = len(traces)
    assert first > 0
    _, _, _, once = train(trained[0].path.parent, repeats=1, run="once")
    assert len(once) == first  # two repeats trace as often as one


def test_reinitialise_empties_the_optimizer_and_keeps_its_rate(trained):

    _, model, _, _ = trained
    momenta = [v for v in model.optimizer.variables if "momentum" in v.path]
    assert momenta and any(np.any(v.numpy()) for v in momenta)
    training.reinitialise(model, 9)
    assert not any(np.any(v.numpy()) for v in momenta)
    assert int(model.optimizer.iterations.numpy()) == 0
    assert float(model.optimizer.learning_rate.numpy()) == pytest.approx(0.01)


def test_same_seed_same_losses(trained, record, tmp_path):
    again = records.load(train(tmp_path)[0].path)

    def losses(r):
        return [e.metrics["loss"] for e in r.epochs]

    assert losses(again) == pytest.approx(losses(record), rel=1e-4)
    assert losses(record)[0] != pytest.approx(losses(record)[2], rel=1e-3)  # another repeat is another training


# Writing a record


def made(**more):
    return records.Run(state="running", configuration=Configuration(model="M", workers=1), **more)


def test_write_makes_the_folder_and_leaves_one_readable_file(tmp_path):

    path = tmp_path / "new" / "folder" / "a.json"
    records.save(path, made())
    assert records.load(path).model_dump() == made().model_dump()
    assert [p.name for p in path.parent.iterdir()] == ["a.json"]
    assert path.stat().st_mode & 0o444 == 0o444


def test_ranks_of_a_training_are_no_other_programs(monkeypatch):
    """In 10 s the 2 cores were busy for 12 s; this rank computed 2.5 s of them, as each of the training's ranks did."""
    monkeypatch.setattr(training.recorder.devices, "cores", lambda: 2)
    monkeypatch.setattr(training.recorder.devices, "moment", lambda: (12.0, 10.0, 2.5))
    epochs = [SimpleNamespace(_gate="turns", _processes=ranks, _begun=(0.0, 0.0, 0.0)) for ranks in (1, 4)]
    assert [training.Recorder._others(epoch) for epoch in epochs] == [9.5 / 20, 2.0 / 20]


@pytest.mark.parametrize("place", ["os.fsync", "tempfile.mkstemp", "os.replace"])
def test_full_disk_leaves_the_old_record_whole(tmp_path, monkeypatch, place):

    path = tmp_path / "a.json"
    records.save(path, made(old=True))

    def full(*_, **__):
        raise FULL

    monkeypatch.setattr(place, full)
    with pytest.raises(records.UnwritableError) as caught:
        records.save(path, made(old=False))
    monkeypatch.undo()
    text = str(caught.value)
    assert "\n" not in text and str(path) in text and "No space left" in text and "--runs" in text
    assert records.load(path).old is True
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]  # no half-written file either


def test_full_disk_during_the_training_warns_and_the_next_epoch_tries_again(tmp_path, monkeypatch, capsys):
    recorder = recorder_of(settings(tmp_path, repeats=1))
    for epoch in range(2):
        recorder.on_epoch_begin(epoch)
        recorder.on_train_batch_begin(0)
        with monkeypatch.context() as disk:
            if epoch == 0:
                disk.setattr("os.fsync", lambda _: (_ for _ in ()).throw(FULL))
            recorder.on_epoch_end(epoch, {"loss": 1.0})
        saved = records.load(recorder.path).epochs
        assert len(saved) == (0 if epoch == 0 else 2)
    warning = capsys.readouterr().err
    assert warning.count("Warning: Cannot write") == 1 and warning.count("\n") == 1


KILLED = """
import os, random, signal, sys, time
from labs.results.run import Epoch, Run, load, save
path, times = sys.argv[1], int(sys.argv[2])
epochs = [Epoch(seconds=1.0, step_seconds=[0.1] * 200) for _ in range(20)]
record = Run(state="running", epochs=epochs, turn=-1)
begin = time.monotonic()
save(path, record)
took = time.monotonic() - begin
for turn in range(times):
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        record.turn = turn
        while True:
            save(path, record)
            os.write(writing, b"!")
    os.close(writing)
    assert os.read(reading, 1), "the child ended by itself"
    time.sleep(random.uniform(0.0, 2 * took))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reading)
    found = load(path)
    assert len(found.epochs) == 20 and len(found.epochs[19].step_seconds) == 200
    print(found.turn)
"""


def test_kill_during_a_write_never_leaves_half_a_record(tmp_path):
    done = python("-c", KILLED, tmp_path / "a.json", 60)
    assert done.returncode == 0, done.stderr
    assert [int(line) for line in done.stdout.split()] == list(range(60))  # written each time, and read whole


@pytest.mark.parametrize("folder", ["file/runs", "/proc/runs"])
def test_unwritable_folder_is_found_before_the_training(tmp_path, folder):

    (tmp_path / "file").write_text("a file, no folder")
    with pytest.raises(records.UnwritableError) as caught:
        recorder_of(settings(tmp_path / folder))
    text = str(caught.value)
    assert "\n" not in text and folder in text and "--runs" in text


# Programs


BROKEN = """
import argparse, sys
import numpy as np
from labs import models, training
import keras
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch_size", type=int, default=8)
training.arguments(parser)
args = training.parse(parser)
model = models.build("SmallCNN", 32, 10)
model.compile("sgd", "sparse_categorical_crossentropy", jit_compile=False)
recorder = training.Recorder(args, model="SmallCNN", strategy="single", workers=1, images=16, learning_rate=0.01)


class Trouble(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            raise RuntimeError("the second epoch breaks")


for _ in training.repeats(args, recorder, model):
    model.fit(np.zeros((16, 32, 32, 3), np.uint8), np.zeros(16), batch_size=8, epochs=args.epochs, verbose=2,
              callbacks=[recorder, Trouble()])
"""


def test_crash_in_a_training_leaves_a_failed_record_with_what_was_measured(tmp_path):
    script = tmp_path / "broken.py"
    script.write_text(BROKEN)
    done = python(script, "--runs", tmp_path, "--run", "broken")
    assert done.returncode == 1 and "RuntimeError: the second epoch breaks" in done.stderr
    record = records.load(tmp_path / "broken.json")
    assert record.state == "failed" and record.finished
    assert [e.epoch for e in record.epochs] == [0]
    assert not list(tmp_path.glob("*.progress"))


def test_rate_is_told_of_steady_epochs_only(tmp_path, monkeypatch):
    """The first step traces: 64 images over it are no rate."""
    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr(training.recorder.time, "perf_counter", lambda: float(next(clock)))
    recorder, told = recorder_of(settings(tmp_path, epochs=2, repeats=1)), []
    for epoch in range(2):
        recorder.on_epoch_begin(epoch)
        for batch in range(3):
            recorder.on_train_batch_begin(batch)
            if recorder.progress.exists():
                told.append(json.loads(recorder.progress.read_text())["images_per_second"])
        recorder.on_epoch_end(epoch)
    assert told[0] is None and told[1] is None and told[-1] == 16 / 2


def test_unwritable_folder_ends_a_program_before_it_trains(tmp_path):
    (tmp_path / "file").write_text("")
    script = tmp_path / "broken.py"
    script.write_text(BROKEN)
    done = python(script, "--runs", tmp_path / "file" / "runs")
    assert done.returncode != 0 and "Epoch" not in done.stdout
    last = done.stderr.strip().splitlines()[-1]
    assert "Cannot write the run record" in last and "--runs" in last


def test_script_with_blanks_says_so_in_one_line(tmp_path):
    from labs import blanks
    from teaching.author import regions

    source = (ROOT / "solutions/scripts/ResNet50.py").read_text()
    script = tmp_path / "ResNet50.py"
    script.write_text(regions.blank(source))
    line, text = blanks.blanks(script)[0]
    done = python(script, "--runs", tmp_path / "runs")
    assert done.returncode == 1
    assert done.stderr == f"ResNet50.py, line {line}: not done yet: {text}\n"
    assert not (tmp_path / "runs").exists()


def test_script_and_study_program_do_the_same(tmp_path):
    """The student's own script and `python -m labs.training.program` give the same losses for the same settings."""
    common = ["--epochs", 1, "--batch_size", 32, "--images", 64, "--image_size", 32, "--seed", 5, "--runs", tmp_path]
    script = ROOT / "solutions/scripts/ResNet50.py"
    for command in (
        [script, "--n_gpus", 1, "--run", "script"],
        ["-m", "labs.training.program", "--model", "ResNet50V2", "--workers", 1, "--run", "study"],
    ):
        done = python(*command, *common)
        assert done.returncode == 0, done.stderr
        assert "Model ResNet50V2 1 workers" in done.stdout and "Batch_size: 32" in done.stdout
    one, other = (records.load(tmp_path / f"{name}.json") for name in ("script", "study"))
    assert one.command[0].endswith("ResNet50.py")
    assert other.command[:4] == ["-m", "labs.training.program", "--model", "ResNet50V2"]
    assert one.epochs[0].metrics == pytest.approx(other.epochs[0].metrics, rel=1e-4)
    assert one.script_sha256 == hashlib.sha256(script.read_bytes()).hexdigest()
    program = ROOT / "labs/training/program.py"
    assert other.script_sha256 == hashlib.sha256(program.read_bytes()).hexdigest()
    own = {"name", "command", "script_sha256", "started", "finished", "epochs", "machine"}
    assert one.model_dump(exclude=own) == other.model_dump(exclude=own)


REFUSED = [
    (["--batch_size", "0"], "global_batch is 0"),
    (["--batch_size", "-32"], "global_batch is -32"),
    (["--batch_size", "2", "--workers", "4"], "leaves some of 4 workers idle"),
    (["--batch_size", "30", "--workers", "4"], "no multiple of 4 workers"),
    (["--workers", "0"], "0 workers"),
    (["--batch_size", "128"], "more than the 64 images"),
    (["--model", "ResNet51"], "Unknown model 'ResNet51'"),
    (["--dataset", "mnist"], "No dataset is called 'mnist'"),
    (["--epochs", "0"], "0 epochs"),
    (["--repeats", "0"], "0 repeats"),
    (["--strategy", "single", "--workers", "2"], "--strategy single uses one worker"),
]


@pytest.fixture(scope="module")
def refusals(tmp_path_factory):
    """What `labs.training.program` says to each of REFUSED, from one process: none of them gets as far as computing."""
    code = f"""
# warm
import contextlib, io, json, warnings
from labs.errors import LabsError
from labs.training import program
warnings.simplefilter("ignore")
for arguments, _ in {REFUSED!r}:
    screen = io.StringIO()
    try:
        with contextlib.redirect_stderr(screen), contextlib.redirect_stdout(screen):
            program.main(["--model", "SmallCNN", "--images", "64", "--batch_size", "16", *arguments])
        text = "it trained"
    except SystemExit:
        text = screen.getvalue().strip().splitlines()[-1]
    except (ValueError, LabsError) as problem:
        text = str(problem)
    print(json.dumps(text))
"""
    folder = tmp_path_factory.mktemp("refused")
    done = python("-c", code, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert not list(folder.rglob("*.json"))  # no record of a training that never was
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(("number", "says"), list(enumerate(says for _, says in REFUSED)))
def test_settings_that_cannot_train_are_refused(refusals, number, says):
    assert says in refusals[number] and "\n" not in refusals[number]


# What the recorder was told, and what it sees


def told(folder, arrays=False, compiled=None, **declared):
    """Train for an epoch with a recorder that was told so; returns its record."""
    import keras

    from labs import data

    args = settings(folder, repeats=1, epochs=1)
    model = small_model()
    if compiled:
        options = {"optimizer": keras.optimizers.SGD(0.01), "loss": "sparse_categorical_crossentropy"} | compiled
        model.compile(**options, jit_compile=False)
    recorder = recorder_of(args, **declared)
    dataset = data.load("digits", images=args.images)
    given = (dataset.images, dataset.labels) if arrays else (data.pipeline(dataset, args.batch_size, seed=args.seed),)
    model.fit(*given, epochs=1, shuffle=False, verbose=0, callbacks=[recorder])
    return recorder.record


def test_observed_is_on_record(tmp_path):
    found = told(tmp_path)
    assert found.observed == {"network": None, "optimizer": "SGD", "parameters": small_model_parameters()}
    assert (found.epochs[0].images, found.steps) == (64, 4)


def small_model_parameters():
    from labs import models

    model = models.build("SmallCNN", 32, 10)
    model.build((None, 32, 32, 3))
    return model.count_params()


@pytest.mark.parametrize(
    "case, message",
    [
        ({"arrays": True}, "told 16 images a step .* 70 images were taken in 3 steps, 23.33 a step"),
        ({"compiled": {"steps_per_execution": 2}}, "steps_per_execution=2"),
        ({"learning_rate": 0.02}, "learning rate of 0.02, but the optimizer begins with 0.01"),
        ({"workers": 2, "strategy": "mirrored"}, "told 2 workers, strategy 'mirrored', .* 1 replica"),
    ],
)
def test_what_the_recorder_was_told_otherwise_is_an_error_that_names_both(tmp_path, case, message):
    from labs.training.observed import ObservedError

    with pytest.raises(ObservedError, match=message):
        told(tmp_path, **case)


@pytest.mark.parametrize(
    "layer, told, right",
    [
        ("resnet50", "ResNet50V2", False),
        ("resnet50v2", "ResNet50", False),
        ("resnet50v2", "ResNet152V2", False),
        ("resnet50v2", "baseline", False),
        ("mobilenet_1.00_224", "MobileNetV2", False),
        ("mobilenetv2_1.00_224", "MobileNet", False),
        ("inception_resnet_v2", "InceptionV3", False),
        ("efficientnetv2-b0", "EfficientNetB0", False),
        ("resnet50", "ResNet50", True),
        ("resnet50v2", "ResNet50V2", True),
        ("resnet50v2", "resnet50v2", True),
        ("resnet50v2_1", "my ResNet50V2 with dropout", True),
        ("mobilenet_1.00_224", "MobileNet", True),
        ("inception_resnet_v2", "InceptionResNetV2", True),
        ("efficientnetv2-b0", "EfficientNetV2B0", True),
        ("SmallCNN", "SmallCNN", True),
        ("my_resnet", "my_resnet", True),
    ],
)
def test_a_network_is_told_apart_from_those_whose_names_contain_its_own(layer, told, right):
    import keras

    from labs.training import observed

    model = keras.Sequential([keras.Input((4,)), keras.Sequential([keras.layers.Dense(2)], name=layer)])
    model.compile(keras.optimizers.SGD(0.01), loss="mse", jit_compile=False)
    declared = Configuration(model=told, strategy="single", workers=1, learning_rate=0.01)
    with nullcontext() if right else pytest.raises(observed.ObservedError, match=f"told model='{told}', but"):
        observed.start(model, declared)


def test_the_network_under_another_name_is_an_error():
    import keras

    from labs.training import observed

    def of(network):
        model = keras.Sequential([keras.Input((32, 32, 3)), network])
        model.compile(keras.optimizers.SGD(0.01), loss="mse", jit_compile=False)
        return model

    small = of(keras.applications.ResNet50V2(weights=None, classes=10, input_shape=(32, 32, 3)))
    declared = Configuration(model="ResNet152V2", strategy="single", workers=1, learning_rate=0.01)
    with pytest.raises(
        observed.ObservedError, match="told model='ResNet152V2', but the network that trains is ResNet50V2"
    ):
        observed.start(small, declared)
    for name in ("ResNet50V2", "my ResNet50V2 with dropout"):
        seen = observed.start(small, declared.model_copy(update={"model": name}))
        assert seen["network"] == "ResNet50V2"
    own = of(keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(10)], name="resnet"))
    assert observed.start(own, declared)["network"] is None


def test_a_schedule_is_named(tmp_path):
    import keras

    rate = keras.optimizers.schedules.ExponentialDecay(0.01, 10, 0.9)
    assert told(tmp_path, compiled={"optimizer": keras.optimizers.SGD(rate)}).observed["learning_rate_schedule"] == (
        "ExponentialDecay"
    )


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
for options in json.loads(sys.argv[2]):
    replicas = options.pop("replicas")
    strategy = tf.distribute.MirroredStrategy(names[:replicas])
    with strategy.scope():
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
        model.layers[0].kernel.assign([[0.0]])
        model.compile(keras.optimizers.SGD(0.1, **options), "mse", jit_compile=False)
    recorder = training.Recorder(args, model="x", strategy="mirrored", workers=replicas, images=8, learning_rate=0.1)
    error = ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(x, y, batch_size=8, verbose=0, callbacks=[recorder])
        except Exception as problem:
            error = f"{type(problem).__name__}: {problem}"
    said = [str(warning.message) for warning in caught if "replicas" in str(warning.message)]
    found.append({"moved": abs(float(model.get_weights()[0][0, 0])), "said": said, "error": error})
print(json.dumps(found))
"""


def test_clipping_on_replicas_is_told_with_the_bound_that_is_meant(tmp_path):
    kinds = ("clipnorm", "global_clipnorm", "clipvalue")
    clipped = [{"replicas": n, kind: bound} for kind in kinds for n, bound in ((1, 0.05), (2, 0.05), (2, 0.025))]
    tried = [*clipped, *({"replicas": n, "gradient_accumulation_steps": 2} for n in (1, 2)), {"replicas": 2}]
    done = python("-c", MIRRORED, tmp_path, json.dumps(tried))
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    for kind, alone, twice, divided in zip(kinds, found[0:9:3], found[1:9:3], found[2:9:3], strict=True):
        assert alone["moved"] == pytest.approx(0.1 * 0.05) and alone["said"] == []
        assert twice["moved"] == pytest.approx(2 * 0.1 * 0.05) and divided["moved"] == pytest.approx(0.1 * 0.05)
        (said,) = twice["said"]
        assert f"{kind}=0.05 bounds no step" in said and f"{kind}=0.025." in said and "\n" not in said
    for refused in found[9:11]:
        assert refused["error"].startswith("MirroredError: gradient_accumulation_steps=2 does not work")
        assert "\n" not in refused["error"] and refused["moved"] == 0
    assert found[11]["moved"] == pytest.approx(0.1 * 200) and not found[11]["said"] and not found[11]["error"]


def test_a_script_with_a_pipeline_of_its_own_gets_buffers_without_a_tuning_thread(monkeypatch):
    """See labs.compat: on one core, epochs of such a script began 9 s late."""
    from types import SimpleNamespace

    import tensorflow as tf
    from tensorflow.python.data.ops import multi_device_iterator_ops as module

    from labs.training import mirrored

    monkeypatch.setattr(module, "_create_device_dataset", lambda: tf.data.Dataset.range(1))
    mirrored.check(SimpleNamespace(distribute_strategy=tf.distribute.get_strategy()))
    assert module._create_device_dataset().options().autotune.enabled is False
