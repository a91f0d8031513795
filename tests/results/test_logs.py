"""Logs of Keras 2 and 3 in their true formats; keras3*.out were printed by Keras 3.15, the others follow theirs."""

from pathlib import Path

import pytest

from labs import recorded
from labs.results import log

DATA = Path(__file__).parents[1] / "data" / "logs"
HEADER = "Model ResNet50V2 2 GPUs\nBatch_size: 512\nN_replicas: 2\n"
FIRST = "Epoch 1/2\n98/98 - 26s - loss: 2.0000 - accuracy: 0.2500\n"
TWO = f"{FIRST}Epoch 2/2\n98/98 - 24s - loss: 1.7000 - accuracy: 0.3600\n"


@pytest.fixture
def read(tmp_path):
    def read(content, **options):
        (tmp_path / "a.out").write_bytes(content if isinstance(content, bytes) else content.encode())
        return log.read(tmp_path / "a.out", **options)

    return read


NET, BARS = "ResNet50V2", (None, None, None, None)
GOLDEN = {  # of each run: model, strategy, workers, batch, steps; seconds, their rounding; accuracy at the end; notes
    "keras2": [
        ("ResNet50", None, 1, 256, 196, [49.196, 44.884, 45.08], 0.196, 0.4164, []),
        ("ResNet50", None, 2, 512, 98, [26.068, 24.01, 23.814], 0.098, 0.4207, []),
    ],
    "keras3": [("SmallCNN", "mirrored", 2, 128, 8, [0.392, 0.088, *[0.056] * 4], 0.008, 0.0940, [])],
    "keras2_bars": [(*BARS, 196, [53, 45, 45], 1.0, 0.4164, ["whole seconds only"])],
    "keras3_bars": [(*BARS, 10, [1, 0], 1.0, 0.097, ["whole seconds only"])],
    "crlf_latin1": [(NET, None, 1, 256, 196, [49.196, 44.884, 45.08], 0.196, 0.1, [])],
    "truncated": [(NET, None, 2, 512, 98, [26.068, 24.01], 0.098, 0.3641, ["in epoch 3 of 5, repeat 1 of 1"])],
    **{
        name: [(NET, "horovod", 2, None, 14, [8.96, 4.214, 4.186], 0.014, 0.4, ["2 ranks print epochs into this log"])]
        for name in ("horovod", "horovod_times", "mpirun_tagged", "srun_label", "mpiexec_prepend")
    },
    recorded.CTE_POWER.stem: [
        (NET, None, 1, 256, 196, [49, 45, 45, 45, 45], 1.0, 0.5070, []),
        (NET, None, 2, 512, 98, [26, 24, 24, 24, 24], 1.0, 0.5049, []),
        (NET, None, 4, 1024, 49, [14, 12, 12, 12, 12], 1.0, 0.5010, []),
    ],
}


@pytest.mark.parametrize("name", GOLDEN)
def test_a_log_of_each_format(name):
    path = recorded.CTE_POWER if name == recorded.CTE_POWER.stem else DATA / f"{name}.out"
    runs = log.read(path)
    for number, (run, expected) in enumerate(zip(runs, GOLDEN[name], strict=True), 1):
        *has, seconds, resolution, accuracy, notes = expected
        assert [run.model, run.strategy, run.workers, run.global_batch, run.steps] == has
        assert [epoch.seconds for epoch in run.epochs] == pytest.approx(seconds)
        assert [epoch.resolution for epoch in run.epochs] == pytest.approx([resolution] * len(seconds))
        assert run.epochs[-1].metrics["accuracy"] == accuracy and (run.index, run.kind) == (number, "recorded")
        assert len(run.notes) == len(notes) and all(part in run.notes[0] for part in notes)
        assert run.truncated == (name == "truncated") and run.failure is None


def test_what_else_stands_in_them():
    (run,) = log.read(DATA / "keras3.out")
    assert (run.dataset_images, run.configuration.learning_rate) == (1000, 0.02)
    assert [len(repeat) for repeat in run.repeats] == [3, 3] and run.repeats[1][2].metrics["loss"] == 2.3262
    first, second, third = log.read(DATA / "crlf_latin1.out")[0].epochs
    assert first.metrics["loss"] == 2.0408 and second.metrics["loss"] != second.metrics["loss"]


def test_finest_consistent_time(read):
    for end, seconds, resolution in (
        ("196/196 - 45s - 229ms/step - accuracy: 0.3536 - loss: 1.7626", 44.884, 0.196),
        ("196/196 - 45s - loss: 1.7626 - accuracy: 0.3536 - 45s/epoch - 229ms/step", 44.884, 0.196),
        ("196/196 - 392s - 2s/step - accuracy: 0.3536 - loss: 1.7626", 392.0, 1.0),
        ("268/268 - 1s - loss: 0.5686 - accuracy: 0.7198 - 514ms/epoch - 2ms/step", 0.514, 0.001),
        ("2000/2000 - 45s - 23ms/step - accuracy: 0.3536 - loss: 1.7626", 45.0, 1.0),  # ms/step is coarser
        ("196/196 - 45s - 225ms/step - accuracy: 0.3536 - loss: 1.7626", 45.0, 1.0),  # by more than their rounding
    ):
        (run,) = read(f"Epoch 1/1\n{end}\n")
        assert (run.epochs[0].seconds, run.epochs[0].resolution) == (pytest.approx(seconds), pytest.approx(resolution))
        assert run.epochs[0].metrics["accuracy"] > 0


def test_headers_say_what_is_certain():
    for text, expected in (
        ("Model ResNet50 2 GPUs", {"model": "ResNet50", "workers": 2}),
        ("Batch_size: 512", {"global_batch": 512}),
        ("N_replicas: 4", {"workers": 4}),
        ("Images: 1797", {"images": 1797}),
        ("Strategy: mirrored", {"strategy": "mirrored"}),
        ("Learning_rate: 0.02", {"learning_rate": 0.02}),
        *((line, {}) for line in ('Model: "functional"', "Model on 4 GPUs", "Batch_size: auto", "Batch_size: 0")),
    ):
        assert log.header_of_line(text) == expected


def test_what_the_file_does_not_say_is_not_guessed(read):
    (run,) = read("Model ResNet50V2 2 GPUs\nN_replicas: 4\nBatch_size: 512\n" + TWO)
    assert run.workers is None
    (run,) = read(HEADER + TWO, workers=4, images=50000, model="ResNet50V2")
    assert (run.workers, run.dataset_images) == (2, 50000)
    assert run.notes == ["workers is 2 in the file, 4 in the option: the file is used"]
    (run,) = read(TWO)
    assert (run.model, run.workers, run.configuration.global_batch, run.dataset_images) == (None, None, None, None)
    later = "".join(f"[{rank}]<stdout>:{line}\n" for line in TWO.splitlines() for rank in (3, 2))
    (run,) = read("[0]<stdout>:starting\n" + later)  # the lowest rank with epochs; workers are no ranks
    assert len(run.epochs) == 2 and run.workers is None


REFUSED = {  # with a part of what is said
    "": r"no line of it is known. Is the job done\? Only what Keras' fit prints",
    HEADER + "Epoch 1/5\n": "in epoch 1 of 5, repeat 1 of 1. Is the job done",
    "Traceback (most recent call last):\n  File x\nModuleNotFoundError: No module named 'keras'\n": "import error",
    "10/10 - 31s - loss: 2.0000\n" * 2: "no line of it is known",  # without `Epoch 1/1`, as evaluate
    "Epoch 1/3\nBatch 0: Invalid loss, terminating training\n": r"Invalid loss, terminating training\)",
    # Keras before TensorFlow 2.2, which counts samples and not steps; another program
    "Train on 60000 samples, validate on 10000 samples\nEpoch 1/1\n - 10s - loss: 0.2593\n": "in epoch 1 of 1",
    "Epoch 1/1\n50000/50000 [====] - 12s 236us/sample - loss: 1.5321 - accuracy: 0.4507\n": "in epoch 1 of 1",
    "Epoch 0/2\n----------\ntrain Loss: 0.5 Acc: 0.8\nEpoch 1/2\n----------\n": "in epoch 1 of 2",
}


@pytest.mark.parametrize("content", REFUSED)
def test_a_log_without_a_finished_epoch_says_in_one_line_what_is_there(read, content):
    with pytest.raises(log.LogError, match=REFUSED[content]) as error:
        read(content)
    assert "a.out" in str(error.value) and "\n" not in str(error.value)


def test_failure_belongs_to_the_run_that_did_not_end(read, tmp_path):
    (tmp_path / "a.err").write_text((DATA / "oom.err").read_text())
    first, second = read(HEADER + TWO + "Model ResNet50V2 4 GPUs\nEpoch 1/2\n")
    assert first.failure is None
    assert second.failure["kind"] == "out of memory" and second.failure["file"] == "a.err"
    assert (second.workers, second.repeats, second.truncated) == (4, [], True)
    (tmp_path / "a.err").write_text("E failed to allocate 15.75G: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n")
    assert read(HEADER + TWO)[0].failure is None, "a request was refused, and the run went on"
