"""Logs of other people's programs: older Keras, Horovod's own benchmarks, a file for each number of GPUs, strangers."""

import json

import pytest

from labs import cli
from labs.results import collect, log
from labs.results import text as pieces
from labs.results.run import MetricsError

KERAS_2 = "\n - ".join(
    [
        "Using TensorFlow backend.\nTrain on 60000 samples, validate on 10000 samples\nEpoch 1/3",
        "10s - loss: 0.2593 - acc: 0.9199 - val_loss: 0.0584 - val_acc: 0.9813\nEpoch 2/3",
        "6s - loss: 0.0871 - acc: 0.9742 - val_loss: 0.0399 - val_acc: 0.9863\nEpoch 3/3",
        "6s - loss: 0.0641 - acc: 0.9809 - val_loss: 0.0353 - val_acc: 0.9881\nTest loss: 0.0353\n",
    ]
)
TF_2_0 = (
    "Train on 50000 samples\n"
    + "".join(
        f"Epoch {epoch}/2\n   64/50000 [......................] - ETA: 31:10 - loss: 2.3026 - accuracy: 0.1094"
        f"\b\b\b\b\b\r 1024/50000 [......................] - ETA: 2:02 - loss: 2.2961 - accuracy: 0.1211\b\b\b\r"
        f"50000/50000 [======================] - {seconds}s {each}us/sample - loss: 1.5321 - accuracy: 0.4507\n"
        for epoch, seconds, each in ((1, 14, 274), (2, 12, 236))
    )
    + "10000/1 - 1s - loss: 1.1 - accuracy: 0.51\n"
)
# tf.keras 1.13 shows the validation's own bar above that of the epoch.
TF_1_13 = "Train on 60000 samples, validate on 10000 samples\n" + "".join(
    f"Epoch {epoch}/2\n10000/10000 [=====] - 1s 52us/sample - loss: 0.0600 - acc: 0.9800\n"
    f"60000/60000 [=====] - 5s 80us/sample - loss: 0.2500 - acc: 0.9200 - val_loss: 0.0600 - val_acc: 0.9800\n"
    for epoch in (1, 2)
)
STEPS = "Train for 196 steps, validate for 40 steps\n" + "".join(
    f"Epoch {n}/2\n196/196 - 45s - loss: 1.7626 - accuracy: 0.3536\n" for n in (1, 2)
)


def horovod(gpus, rates=("214.5", "215.7", "215.4"), device="GPU", prefix=""):
    lines = [
        "Model: ResNet50",
        "Batch size: 32",
        f"Number of {device}s: {gpus}",
        "Running warmup...",
        "Running benchmark...",
    ]
    lines += [f"Iter #{number}: {rate} img/sec per {device}" for number, rate in enumerate(rates)]
    mean = sum(map(float, rates)) / len(rates)
    lines += [f"Img/sec per {device}: {mean:.1f} +-1.3"]
    lines += [f"Total img/sec on {gpus} {device}(s): {gpus * mean:.1f} +-{gpus * 1.3:.1f}"]
    return "".join(f"{prefix}{line}\n" for line in lines)


@pytest.fixture
def read(tmp_path):
    def read(text, **options):
        (tmp_path / "a.out").write_text(text)
        return log.read(tmp_path / "a.out", **options)

    return read


def rows(folder, *said, same_machine=True, **texts):
    for name, text in texts.items():
        (folder / f"{name}.out").write_text(text)
    return collect.rows([f"{folder}/{one}" for one in said], same_machine=same_machine)


@pytest.mark.parametrize(
    "text, seconds, resolution, samples, loss",
    [
        (KERAS_2, [10, 6, 6], 1.0, 60000, 0.0641),
        (TF_2_0, [50000 * 274e-6, 50000 * 236e-6], 0.05, 50000, 1.5321),
        (TF_1_13, [60000 * 80e-6] * 2, 0.06, 60000, 0.25),
        (TF_2_0.replace("us/sample", "us/step"), [14, 12], 1.0, 50000, 1.5321),  # as Keras 2.1 to 2.3 has it
        (TF_2_0.partition("\n")[2], [50000 * 274e-6, 50000 * 236e-6], 0.05, 50000, 1.5321),
    ],
    ids=["keras 2, verbose 2", "tf 2.0", "tf 1.13", "keras 2.3", "without a header"],
)
def test_samples_are_not_steps(read, text, seconds, resolution, samples, loss):
    (run,) = read(text)
    (repeat,) = run.repeats
    assert [epoch.seconds for epoch in repeat] == pytest.approx(seconds)
    assert repeat[0].resolution == pytest.approx(resolution) and repeat[-1].metrics["loss"] == loss
    assert (run.steps, run.samples, run.images) == (None, samples, samples)
    assert {epoch.images for epoch in repeat} == {samples} and not run.truncated


def test_steps_follow_from_samples_and_the_batch(read):
    (run,) = read(TF_2_0, global_batch=128)
    assert (run.steps, run.images) == (391, 50000)
    (run,) = read(TF_2_0, images=49000)
    assert run.images == 50000 and "49000 in the option: the file is used" in run.notes[0]


def test_bars_of_keras_2_without_a_header_are_told_by_the_images(read):
    """Nothing in the log tells 50,000 samples from as many steps: --images does."""
    text = TF_2_0.partition("\n")[2].replace("us/sample", "us/step")
    assert read(text)[0].steps == 50000
    (run,) = read(text, images=50000)
    assert (run.steps, run.samples, run.repeats[0][0].images) == (None, 50000, 50000)
    assert read(text, images=50000, global_batch=1)[0].steps == 50000


def test_steps_stay_steps(read):
    (run,) = read(STEPS)
    assert (run.steps, run.samples, run.images) == (196, None, None)


def test_the_samples_of_one_rank_are_not_those_of_all(read):
    (run,) = read("".join(f"[1,0]<stdout>:{line}\n" for line in KERAS_2.splitlines()))
    assert (run.images, run.repeats[0][0].images) == (None, None) and len(run.repeats[0]) == 3
    assert "the 60000 samples of one rank" in run.notes[0]
    assert read("horovodrun -np 2 python train.py\n" + KERAS_2)[0].images is None


def test_seconds_in_other_lines_end_no_epoch(read):
    between = "Epoch 1/3\n3s later - time: 4.0\n - 2s - step: 1.0\n1s - ETA: 5s - loss: 2.0"
    (run,) = read(KERAS_2.replace("Epoch 1/3", between))
    assert [epoch.seconds for epoch in run.repeats[0]] == [10, 6, 6]


def test_each_fit_of_old_keras_is_a_run(read):
    first, second = read(KERAS_2 + KERAS_2.replace("60000", "30000"))
    assert (first.images, second.images) == (60000, 30000)


def test_an_epoch_of_old_keras_that_does_not_end_is_still_told(read):
    with pytest.raises(log.LogError, match="began but did not end"):
        read(KERAS_2.partition("\n - ")[0] + "\n")
    (run,) = read(KERAS_2.rpartition("\n - ")[0])
    assert run.truncated and len(run.repeats[0]) == 2


@pytest.mark.parametrize("prefix", ["", "[1,0]<stdout>:", "[0]<stdout>:", "0: "])
@pytest.mark.parametrize("device", ["GPU", "CPU"])
def test_horovods_own_benchmark(tmp_path, prefix, device):
    (row,) = rows(tmp_path, "four.out", four=horovod(4, device=device, prefix=prefix))
    assert (row["model"], row["workers"], row["local_batch"], row["global_batch"]) == ("ResNet50", 4, 32, 128)
    assert (row["strategy"], row["truncated"], row["failure"]) == ("horovod", False, None)
    assert row["images_per_second"] == pytest.approx(4 * 215.2, rel=1e-3)
    assert row["images_per_second_interval"] is None, "iterations of one run hold no drift"
    assert any("synthetic benchmark of Horovod" in note for note in row["notes"])


def test_horovods_benchmark_without_iterations_cut_short_or_twice(read):
    (run,) = read("\n".join(line for line in horovod(2).splitlines() if "Iter" not in line))
    assert run.repeats[0][1].seconds == pytest.approx(32 / 215.2) and not run.truncated
    (run,) = read(horovod(2).partition("Img/sec per")[0])
    assert run.truncated and len(run.repeats[0]) == 4
    assert [run.workers for run in read(horovod(1) + horovod(2))] == [1, 2]
    for rate in ("0.0", "0." + "0" * 200 + "1", "1" + "0" * 200):
        assert len(read(horovod(2, ["214.5", rate, "215.9"]))[0].repeats[0]) == 3
    first, second = read((horovod(1) + horovod(2)).replace("ResNet50", "alexnet"))
    assert (first.workers, second.workers, second.configuration.local_batch) == (1, 2, 32)


def test_a_benchmark_of_each_number_of_gpus_gives_a_speedup(tmp_path):
    one, four = rows(tmp_path, "one.out", "four.out", one=horovod(1), four=horovod(4, ["193.6"] * 3))
    assert (one["speedup"], four["speedup"]) == (1, pytest.approx(4 * 193.6 / 215.2, rel=1e-3))
    assert any("not paired" in note for note in four["notes"])


def test_a_file_for_each_number_of_gpus_gives_a_speedup_once_someone_says_so(tmp_path):
    texts = {"a": TF_2_0, "b": TF_2_0.replace("236us", "118us").replace("12s", "6s")}
    silent = rows(tmp_path, "a.out", "b.out", same_machine=False, **texts)
    assert [row["speedup"] for row in silent] == [None, None]
    assert any("FILE:workers=N" in note for note in silent[0]["notes"])
    said = "a.out:workers=1,model=CNN", "b.out:workers=2,model=CNN"
    apart = rows(tmp_path, *said, same_machine=False)
    assert apart[1]["speedup"] is None and any("--same-machine" in note for note in apart[1]["notes"])
    found = rows(tmp_path, *said)
    assert found[1]["speedup"] == pytest.approx(2) and found[1]["images_per_second"] == pytest.approx(50000 / 5.9)
    assert any("not paired" in note for note in found[1]["notes"])
    nameless = rows(tmp_path, "a.out:workers=1", "b.out:workers=2")
    assert nameless[1]["speedup"] == pytest.approx(2)


def test_files_of_equal_names_in_two_folders(tmp_path):
    for name, text in (("w1", TF_2_0), ("w2", TF_2_0.replace("236us", "118us").replace("12s", "6s"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.log").write_text(text)
    found = collect.rows([f"{tmp_path}/w1:workers=1", f"{tmp_path}/w2/train.log:workers=2"], same_machine=True)
    assert found[1]["speedup"] == pytest.approx(2)


def test_other_hardware_and_other_networks_are_not_divided_whatever_is_said(tmp_path):
    found = rows(tmp_path, "a.out:workers=1,model=A", "b.out:workers=2,model=B", a=TF_2_0, b=TF_2_0)
    assert found[1]["speedup"] is None and any("trained differently" in note for note in found[1]["notes"])


@pytest.mark.parametrize("said", ["workers=two", "workers=0", "workers=1.5", "images=-3"])
def test_what_is_said_of_a_file_must_be_a_number(tmp_path, said):
    with pytest.raises(MetricsError, match="must be a whole number of at least 1"):
        rows(tmp_path, f"a.out:{said}", a=TF_2_0)


def test_a_file_that_is_named_so_is_read(tmp_path):
    (tmp_path / "a.out:workers=4.out").write_text(TF_2_0)
    assert collect.rows([tmp_path / "a.out:workers=4.out"])[0]["workers"] is None


def test_the_command(tmp_path, capsys):
    (tmp_path / "a.out").write_text(TF_2_0)
    assert cli.main(["results", "--json", "--same-machine", f"{tmp_path}/a.out:workers=1"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["runs"]
    assert (row["workers"], row["strategy"], row["images_per_epoch"]) == (1, "single", 50000)


STRANGERS = {
    "tf_cnn_benchmarks": "Step\tImg/sec\ttotal_loss\n1\timages/sec: 205.3 +/- 0.0 (jitter = 0.0)\t9.111\n"
    "----\ntotal images/sec: 204.75\n----\n",
    "PyTorch Lightning": "Epoch 0:  50%|#####     | 469/938 [00:05<00:05, 88.1it/s, loss=0.31, v_num=0]\n",
    "tqdm": "Training: 100%|##########| 938/938 [00:10<00:00, 90.2it/s]\n",
    "PyTorch's ImageNet example": "Epoch: [0][ 10/5005]\tTime  0.350 ( 1.2)\tLoss 6.9 (7.0)\n",
    "MXNet": "INFO:root:Epoch[0] Batch [20]\tSpeed: 1023.5 samples/sec\taccuracy=0.1\n",
    "a TensorFlow Estimator": "INFO:tensorflow:global_step/sec: 5.1\nINFO:tensorflow:loss = 2.3, step = 5\n",
    "Hugging Face's Trainer": "{'loss': 0.51, 'learning_rate': 5e-05, 'epoch': 1.0}\n",
}


@pytest.mark.parametrize("who", STRANGERS)
def test_what_is_not_read_is_named_in_one_line(read, who):
    with pytest.raises(log.LogError, match="Horovod's synthetic benchmarks are read, too") as error:
        read(STRANGERS[who])
    assert f"like those of {who}, which are not read" in str(error.value) and "\n" not in str(error.value)


def test_a_large_log_of_old_keras_is_read_in_its_middle(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", 2**12)
    monkeypatch.setattr(pieces, "WHOLE", 2**13)
    filler = "0.125\n" * 3000
    (tmp_path / "a.out").write_text(filler.join(["", *KERAS_2.splitlines(keepends=True), ""]))
    (run,) = log.read(tmp_path / "a.out")
    assert [epoch.seconds for epoch in run.repeats[0]] == [10, 6, 6] and run.images == 60000
