"""Logs as Keras 2 and 3 write them, generated with known times: each number that is read is one that was written."""

import itertools
import random

import pytest

from labs import results
from labs.errors import LabsError
from labs.results import log

STEPS = 98
PREEMPTED = "slurmstepd: error: *** JOB 8 ON a04 CANCELLED AT 2024-02-11T03:12:45 DUE TO PREEMPTION ***\n"
STARTED = "== job 8 started on node a11 ==\n"


def metrics(keras, loss, accuracy, validated=False):
    texts = [f"loss: {loss:.4f}", f"accuracy: {accuracy:.4f}"][:: 1 if keras == 2 else -1]
    texts += ["val_loss: 1.5000", "val_accuracy: 0.4000"] if validated else []
    return " - ".join(texts)


def result(keras, verbose, seconds, loss, steps=STEPS, validated=False):
    """The line that ends an epoch."""
    step, values = f"{1000 * seconds / steps:.0f}ms/step", metrics(keras, loss, 0.3, validated)
    if verbose == 1:
        bar = f"[{'=' * 30}] - " if keras == 2 else "━" * 20 + " "
        return f"{steps}/{steps} {bar}{seconds:.0f}s {step} - {values}"
    parts = [values, f"{seconds:.0f}s/epoch", step] if keras == 2 else [step, values]
    return " - ".join([f"{steps}/{steps}", f"{seconds:.0f}s", *parts])


def updates(keras, steps=STEPS):
    """What a bar shows before an epoch is over; Keras 3 shows what is left where the time will stand."""
    for done in (1, 7, steps // 2, steps):
        left = f"{(steps - done) / 10:.0f}s"
        bar = f"[{'=' * 9}>{'.' * 20}] - ETA: {left} - " if keras == 2 else f"{'━' * 20} {left} 100ms/step - "
        yield f"{done:>2}/{steps} {bar}{metrics(keras, 2.5, 0.1)}"


CAPTURED = {  # how a line that is written over and over comes into a file
    "terminal": lambda texts: "\r".join(texts),
    "backspaces": lambda texts: "".join(f"{text}{chr(8) * 40}" for text in texts[:-1]) + texts[-1],
    "letters": lambda texts: "".join(f"{text}{'^H' * 40}^M" for text in texts[:-1]) + texts[-1],
    "colours": lambda texts: "\r".join(f"\x1b[1m{text}\x1b[0m" for text in texts),
    "nothing between": "".join,
    "lines": "\n".join,
}


def training(times, keras=2, verbose=2, first=1, planned=None, captured="terminal", **more):
    """The log of a training whose epochs took these seconds, from epoch number `first` on."""
    lines = []
    for number, seconds in enumerate(times, first):
        end, before = result(keras, verbose, seconds, 3.0 - number / 10, **more), []
        if verbose == 1:
            before = list(updates(keras, more.get("steps", STEPS)))
        lines += [f"Epoch {number}/{planned or first + len(times) - 1}", CAPTURED[captured]([*before, end])]
    return "\n".join(lines) + "\n"


@pytest.fixture
def load(tmp_path):
    def load(text, name="a.out", **options):
        (tmp_path / name).write_text(text)
        return results.load(tmp_path / name, **options)

    return load


def seconds(runs):
    """Of all epochs of each run."""
    return [[epoch.seconds for epoch in run.epochs] for run in runs]


@pytest.mark.parametrize("keras", [2, 3])
@pytest.mark.parametrize("captured", CAPTURED)
@pytest.mark.parametrize("validated", [False, True])
def test_bars_in_every_form(load, keras, captured, validated):
    text = training([31.0, 12.0, 11.0], keras, 1, captured=captured, validated=validated)
    (run,) = load(text, workers=2, global_batch=64, images=6250)
    assert seconds([run]) == [[31, 12, 11]] and run.steps == STEPS and not run.truncated
    assert run.loss == pytest.approx([2.9, 2.8, 2.7]) and run.images_per_second.value == pytest.approx(6250 / 11.5)
    assert any("include validation" in note for note in run.notes) == validated


@pytest.mark.parametrize("keras", [2, 3])
@pytest.mark.parametrize("prefix", ["", "[1,0]<stdout>:", "[0]<stdout>:", "0: ", "[0] "])
def test_lines_in_every_form(load, keras, prefix):
    lines = training([31.0, 12.0, 11.0], keras).splitlines()
    others = [f"{prefix.replace('0', '1')}{line.replace('31s', '39s')}" for line in lines] if prefix else []
    mixed = [line for pair in itertools.zip_longest([prefix + line for line in lines], others) for line in pair if line]
    (run,) = load("\n".join(mixed) + "\n")
    assert [round(each) for each in seconds([run])[0]] == [31, 12, 11] and run.epochs[1].resolution < 0.1


def test_between_the_epochs_callbacks_evaluate_and_warnings(load):
    between = (
        "\nEpoch 1: val_loss improved from inf to 1.50000, saving model to best.keras\n"
        "Epoch 00001: ReduceLROnPlateau reducing learning rate to 0.001.\n"
        "40/40 - 2s - loss: 1.6021 - accuracy: 0.4111 - 2s/epoch - 52ms/step\n"
        "WARNING:tensorflow:Your input ran out of data; interrupting training.\n"
        "2024-01-01 00:00:00.1: W tensorflow/core/x.cc:5] 3s later\n"
        "Downloading data: 8192/8192 [==============================] - 1s 1us/step\n"
    )
    text = training([31.0, 12.0, 11.0])
    (run,) = load(text.replace("Epoch 2/3", f"{between}Epoch 2/3") + between)
    assert seconds([run])[0] == pytest.approx([31, 12, 11], abs=0.1) and run.steps == STEPS and not run.truncated


def test_unknown_steps_show_until_the_first_epoch_is_over(load):
    unknown = [f"{done:>7}/Unknown - 9s 90ms/step - loss: 2.4 - accuracy: 0.1" for done in (1, 50, 98)]
    text = training([31.0, 12.0], 2, 1).replace("Epoch 1/2\n", "Epoch 1/2\n" + "\r".join(unknown) + "\r")
    (run,) = load(text)
    assert seconds([run]) == [[31, 12]] and run.steps == STEPS


def test_a_bar_that_is_full_before_its_validation_is_not_the_end_of_the_epoch(load):
    """Keras 3 shows 0 s there, which is what is left of the epoch."""
    whole = training([31.0, 12.0], 3, 1, captured="lines", validated=True)
    cut = whole[: whole.rindex(f"{STEPS}/{STEPS}")]
    (run,) = load(cut)
    assert seconds([run]) == [[31]] and run.truncated and "epoch 2 is not finished" in " ".join(run.notes)


# A training that is ended, or goes on


@pytest.mark.parametrize("sign", [PREEMPTED + STARTED, STARTED, PREEMPTED, "", "\n"])
@pytest.mark.parametrize("verbose", [1, 2])
def test_a_requeued_training_that_goes_on_is_two_parts(load, sign, verbose):
    """As BackupAndRestore has it: its first epoch counts steps that it did not train, and is warm-up."""
    before = training([96.0, 88.0], verbose=verbose, planned=5) + "Epoch 3/5\n"
    wrong, *rest = training([95.0, 89.0, 87.0], verbose=verbose, first=3).split("Epoch 4/5")
    after = wrong.replace(f"{STEPS}/{STEPS}", "196/196") + "Epoch 4/5" + "Epoch 4/5".join(rest)
    first, second = load(f"Model ResNet50V2 2 GPUs\nBatch_size: 64\n{before}{sign}{after}")
    assert [[round(each) for each in part] for part in seconds([first, second])] == [[96, 88], [95, 89, 87]]
    assert (first.steps, second.steps, first.truncated, second.truncated) == (STEPS, STEPS, True, False)
    assert (second.model, second.workers, second.configuration.global_batch) == ("ResNet50V2", 2, 64)
    assert round(first.epoch_seconds.value) == 88 and round(second.epoch_seconds.value) == 88
    assert "goes on at epoch 3" in " ".join(second.notes)
    assert (first.failure or {}).get("kind") == ("cancelled" if PREEMPTED in sign else None) and second.failure is None


def test_another_call_of_fit_that_counts_on_has_a_warm_up_of_its_own(load):
    first, second = load(training([31.0, 12.0]) + training([25.0, 12.0], first=3))
    assert [[round(each) for each in part] for part in seconds([first, second])] == [[31, 12], [25, 12]]
    assert not first.truncated and not second.truncated and "goes on at epoch 3" in " ".join(second.notes)


def test_a_requeued_training_that_starts_again_is_another_run(load):
    text = training([96.0, 88.0], planned=3) + "Epoch 3/3\n" + PREEMPTED + training([95.0, 87.0, 86.0])
    first, second = load("Model ResNet50V2 2 GPUs\n" + text)
    assert [len(part) for part in seconds([first, second])] == [2, 3] and not second.truncated
    assert (second.workers, first.failure["kind"]) == (None, "cancelled")


@pytest.mark.parametrize("keras", [2, 3])
def test_a_training_that_ended_itself_in_an_epoch_leaves_no_time_of_it(load, keras):
    """TerminateOnNaN: Keras prints the line of the epoch nevertheless, which is a shorter one."""
    text = training([31.0, 12.0], keras, 1, planned=5)
    cut = "Epoch 3/5\n" + "\r".join(list(updates(keras))[:2]) + "Batch 61: Invalid loss, terminating training\n"
    cut += result(keras, 1, 5.0, float("nan")) + "\n"
    (run,) = load(text + cut)
    assert seconds([run]) == [[31, 12]] and run.epoch_seconds.value == 12
    assert "epoch 3 is not finished" in " ".join(run.notes) and "Invalid loss" in " ".join(run.notes)


def test_a_training_that_goes_on_without_learning_has_times_and_no_accuracy(load):
    text = training([31.0, 12.0, 11.0]).replace("loss: 2.9000", "loss: nan").replace("loss: 2.8000", "loss: nan")
    (run,) = load(text.replace("loss: 2.7000", "loss: nan"))
    assert run.epoch_seconds.value == pytest.approx(11.5, abs=0.1) and run.final_accuracy.value is None
    assert "epoch 1: the training diverged" in " ".join(run.notes)


@pytest.mark.parametrize("end", ["Killed\n", "srun: error: n1: task 0: Killed\n", PREEMPTED])
def test_what_is_printed_after_a_kill_is_no_measurement(load, end):
    text = training([31.0, 12.0], planned=3) + "Epoch 3/3\n" + end + result(2, 2, 4.0, 2.0) + "\n"
    (run,) = load(text)
    assert len(run.epochs) == 2 and run.truncated and run.failure


@pytest.mark.parametrize("rest", ["98/98 - 4", "98/98 - 40s - loss: 2.7", "98/98 - 40s - loss: 2.7000 - acc"])
def test_a_line_that_a_kill_cut_is_no_result_whatever_is_written_behind_it(load, rest):
    text = training([31.0, 12.0], planned=6) + f"Epoch 3/6\n{rest}"
    cut, again = load(text + training([41.0, 13.0, 12.0, 12.0, 12.0, 12.0]))
    assert [[round(each) for each in part] for part in seconds([cut, again])] == [[31, 12], [41, 13, 12, 12, 12, 12]]
    assert "epoch 3 is not finished" in " ".join(cut.notes)
    for end in ("\n", "Killed\n", "\n00 - accuracy: 0.3000\n"):
        (run,) = load(text + end)
        assert len(run.epochs) == 2 and run.truncated


@pytest.mark.parametrize("verbose", [1, 2])
@pytest.mark.parametrize("steps", [40, STEPS])
def test_evaluate_in_a_callback_is_not_the_epoch(load, verbose, steps):
    """It prints before the epoch's own line. With validation that line is known, else none is."""
    for validated in (True, False):
        lines = training([31.0, 12.0, 11.0], 3, verbose, captured="lines", validated=validated).splitlines()
        own = [n for n, line in enumerate(lines) if n + 1 == len(lines) or lines[n + 1].startswith("Epoch")]
        for number in reversed(own):
            lines.insert(number, result(3, verbose, 3.0, 9.0, steps=steps))
        if validated:
            (run,) = load("\n".join(lines) + "\n")
            assert [round(each) for each in seconds([run])[0]] == [31, 12, 11] and run.steps == STEPS
        else:
            with pytest.raises(log.LogError, match="epoch 1, 2.*several lines of results.*not used"):
                load("\n".join(lines[:-2]) + "\n")


def test_evaluate_after_the_training_is_not_its_last_epoch(load):
    for steps in (40, STEPS):
        (run,) = load(training([31.0, 12.0]) + result(2, 2, 3.0, 9.0, steps=steps) + "\n")
        assert [round(each) for each in seconds([run])[0]] == [31, 12] and run.loss == pytest.approx([2.9, 2.8])


def test_repeats_that_were_cut_and_begun_again(load):
    whole, cut = training([31.0, 12.0, 11.0]), training([31.0, 19.0], planned=3)
    head = "Model ResNet50V2 2 GPUs\nRepeat 1 of 2\n"
    (run,) = load(f"{head}{whole}Repeat 2 of 2\n{cut}Repeat 2 of 2\n{whole}")
    assert [round(each) for each in seconds([run])[0]] == [31, 12, 11, 31, 12, 11] and not run.truncated
    assert "repeat 2 was cut, and begun again" in run.notes
    (run,) = load(f"{head}{whole}Repeat 2 of 2\n{cut}")
    assert run.truncated and "epoch 2 of 3" in " ".join(run.notes)


def test_the_epoch_of_a_loss_is_that_of_the_log(load):
    text = training([31.0, 12.0], planned=4) + "Epoch 3/4\n" + training([30.0, 11.0], first=3)
    _, second = load(text.replace("loss: 2.6000", "loss: nan"))
    assert [epoch.epoch for epoch in second.epochs] == [2, 3] and "in epoch 4: the training" in " ".join(second.notes)


# Several ranks in one file


def interleaved(*logs, seed):
    """Lines of logs, one after the other as chance has it; an epoch of one never a whole epoch before the others'."""
    pick, rest, mixed = random.Random(seed), [text.splitlines() for text in logs], []
    while any(rest):
        most = max(len(lines) for lines in rest)
        lines = pick.choice([lines for lines in rest if len(lines) > most - 2 and lines])
        mixed.append(lines.pop(0))
    return "\n".join(mixed) + "\n"


@pytest.mark.parametrize("seed", range(40))
def test_ranks_that_print_without_a_label_are_refused(load, seed):
    keras, ranks = random.Random(seed).choice([2, 3]), random.Random(seed).choice([2, 2, 3, 4])
    text = interleaved(*(training([31.0 + rank, 12.0, 11.0], keras) for rank in range(ranks)), seed=seed)
    with pytest.raises(log.LogError, match=r"begins twice: several ranks print into this log"):
        load(text)


@pytest.mark.parametrize("tag", ["[{}]<stdout>:", "[1,{}]<stdout>:"])
@pytest.mark.parametrize("keras", [2, 3])
def test_bars_of_labelled_ranks_in_one_line(load, keras, tag):
    """horovodrun and mpirun put their label behind each carriage return: pieces of several ranks stand in one line."""
    pieces = [f"{tag.format(rank)}Epoch 1/2\n" for rank in (0, 1)]
    for number, times in ((1, (31.0, 39.0)), (2, (12.0, 19.0))):
        drawn = [[*updates(keras), result(keras, 1, time, 2.0 + rank)] for rank, time in enumerate(times)]
        pieces += [
            f"{tag.format(rank)}{text}\r" for texts in zip(*drawn, strict=True) for rank, text in enumerate(texts)
        ]
        pieces += [f"\n{tag.format(rank)}Epoch 2/2\n" for rank in (0, 1)] if number == 1 else ["\n"]
    (run,) = load("".join(pieces))
    assert seconds([run]) == [[31, 12]] and run.loss == [2, 2]


def test_ranks_of_which_one_validates_are_refused(load):
    one, two = training([31.0, 12.0], validated=True), training([32.0, 13.0])
    mixed = [line for pair in zip(two.splitlines(), one.splitlines(), strict=True) for line in pair]
    with pytest.raises(log.LogError, match="begins twice: several ranks"):
        load("\n".join(mixed) + "\n")


@pytest.mark.parametrize("keras", [2, 3])
def test_ranks_that_print_equal_bars_are_refused(load, keras):
    """As the workers of MultiWorkerMirroredStrategy, whose metrics are those of all."""
    lines = training([31.0, 12.0], keras, 1, captured="terminal").splitlines()
    with pytest.raises(log.LogError, match="epoch 1 begins twice: several ranks"):
        load("\n".join(line for line in lines for _ in range(2)) + "\n")


def test_ranks_of_a_single_epoch_are_refused_too(load):
    begins, *ends = training([31.0]).splitlines()
    with pytest.raises(log.LogError, match="epoch 1 begins twice"):
        load("\n".join([begins, begins, *ends, *ends]) + "\n")


def test_runs_one_after_the_other_are_not_ranks(load):
    runs = load(training([31.0]) + training([12.0]) + training([11.0, 10.0]))
    assert [[round(each) for each in part] for part in seconds(runs)] == [[31], [12], [11, 10]]


# Whatever is cut, no other number


@pytest.mark.parametrize("keras", [2, 3])
@pytest.mark.parametrize("verbose", [1, 2])
def test_cut_anywhere_gives_epochs_of_the_whole_log_or_none(load, keras, verbose):
    text = "Model ResNet50V2 2 GPUs\nBatch_size: 64\n" + training([31.0, 12.0, 23.0], keras, verbose, validated=True)
    known = load(text)[0].epochs
    for end in range(len(text) - 1, 60, -3):
        try:
            (run,) = load(text[:end])
        except LabsError:
            continue
        assert run.epochs == known[: len(run.epochs)], text[:end][-150:]


# What is refused, by its name

SAMPLES = {
    "keras 2, verbose 2": "Train on 60000 samples, validate on 10000 samples\nEpoch 1/1\n - 10s - loss: 0.2593\n",
    "without a header": "Epoch 1/1\n - 10s 20us/step - loss: 0.2593 - acc: 0.9199\n",
    "bars": "Epoch 1/1\n  128/60000 [>....] - ETA: 40s - loss: 2.2\r  256/60000 [>....] - ETA: 40s - loss: 2.1\r"
    "60000/60000 [====] - 33s - loss: 0.3148 - acc: 0.8192\n",
    "a fast machine": "Epoch 1/1\n  128/60000 [>...] - ETA: 40s - loss: 2.2\r 7552/60000 [>...] - ETA: 9s - loss: 2.1\r"
    "60000/60000 [====] - 3s 50us/step - loss: 0.3148 - accuracy: 0.8192\n",
    "nothing between": "Epoch 1/1\n  128/60000 [>....] - ETA: 40s - loss: 2.2  256/60000 [>....] - ETA: 40s - loss: 2.1"
    "60000/60000 [====] - 3s 50us/step - loss: 0.3148 - accuracy: 0.8192\n",
    "tf 2.0": "Epoch 1/1\n50000/50000 [====] - 12s 236us/sample - loss: 1.5321 - accuracy: 0.4507\n",
}


@pytest.mark.parametrize("form", SAMPLES)
def test_samples_are_no_steps(load, form):
    with pytest.raises(log.LogError, match="counts samples and not steps, as Keras before") as error:
        load(SAMPLES[form])
    assert "\n" not in str(error.value)


def test_results_without_an_epoch_are_named(load):
    """Keras prints no `Epoch 1/1`, so fit of one epoch looks as evaluate does."""
    with pytest.raises(log.LogError, match="a fit of one epoch"):
        load("".join(result(3, 2, time, 2.0) + "\n" for time in (31.0, 12.0)))


def test_a_training_that_diverged_at_once_is_not_waited_for(load):
    with pytest.raises(log.LogError, match="Batch 0: Invalid loss, terminating training") as error:
        load("Epoch 1/3\nBatch 0: Invalid loss, terminating training\n")
    assert "Wait" not in str(error.value)


STRANGERS = {
    "a program of PyTorch": "Epoch 0/2\n----------\ntrain Loss: 0.5 Acc: 0.8\nEpoch 1/2\n----------\n",
    "tf_cnn_benchmarks": "Step\tImg/sec\ttotal_loss\n1\timages/sec: 205.3 +/- 0.0 (jitter = 0.0)\t9.111\n"
    "----\ntotal images/sec: 204.75\n----\n",
    "Horovod's synthetic benchmarks": "Model: ResNet50\nBatch size: 32\nNumber of GPUs: 4\n"
    "Iter #0: 214.5 img/sec per GPU\nImg/sec per GPU: 214.5 +-1.3\n",
    "PyTorch Lightning": "Epoch 0:  50%|#####     | 469/938 [00:05<00:05, 88.1it/s, loss=0.31, v_num=0]\n",
    "tqdm": "Training: 100%|##########| 938/938 [00:10<00:00, 90.2it/s]\n",
    "PyTorch's ImageNet example": "Epoch: [0][ 10/5005]\tTime  0.350 ( 1.2)\tLoss 6.9 (7.0)\n",
    "MXNet": "INFO:root:Epoch[0] Batch [20]\tSpeed: 1023.5 samples/sec\taccuracy=0.1\n",
    "a TensorFlow Estimator": "INFO:tensorflow:global_step/sec: 5.1\nINFO:tensorflow:loss = 2.3, step = 5\n",
    "Hugging Face's Trainer": " 33%|###  | 10/30 [00:05<00:05, 2it/s]\n{'loss': 0.51, 'epoch': 1.0}\n",
    "YOLO": "      Epoch    GPU_mem   box_loss   cls_loss\n        1/3      2.1G      1.03\n",
}


@pytest.mark.parametrize("who", STRANGERS)
def test_what_is_not_read_is_named_in_one_line(load, who):
    with pytest.raises(
        log.LogError, match=f"a log of {who}, which is not read. A log of Keras' fit is needed"
    ) as error:
        load(STRANGERS[who])
    assert "\n" not in str(error.value)


def test_nothing_is_claimed_from_nothing_found(load):
    for name, text in (("a.out", "hello\n"), ("a.err", "all is well\n")):
        with pytest.raises(log.LogError, match="no line that the kit knows"):
            load(text, name)


# What is said of a file behind its name


def test_a_file_for_each_number_of_gpus_gives_a_speedup_once_someone_says_so(tmp_path):
    for name, times in (("a", [14.0, 12.0]), ("b", [8.0, 6.0])):
        (tmp_path / f"{name}.out").write_text(training(times))
    one, two = (f"{tmp_path}/{name}.out:workers={n},model=CNN" for n, name in ((1, "a"), (2, "b")))
    apart = results.load([one, two])[1]
    assert apart.speedup.value is None and any("--same-machine" in note for note in apart.notes)
    with_steps = results.load([one, two], same_machine=True)[1]
    assert with_steps.speedup.value is None and "Is the data sharded?" in " ".join(with_steps.notes)
    (tmp_path / "b.out").write_text(training([8.0, 6.0], steps=49))
    speedup = results.load([one, two], same_machine=True)[1].speedup
    assert speedup.value == pytest.approx(2, rel=0.01) and any("not paired" in note for note in speedup.notes)


@pytest.mark.parametrize("given", ["workers=two", "workers=0", "workers=1.5", "images=-3"])
def test_what_is_said_of_a_file_must_be_a_number(tmp_path, given):
    (tmp_path / "a.out").write_text(training([9.0]))
    with pytest.raises(LabsError, match="must be a whole number of at least 1"):
        results.load(f"{tmp_path}/a.out:{given}")


def test_a_file_that_is_named_so_is_read(tmp_path):
    (tmp_path / "a.out:workers=4.out").write_text(training([9.0]))
    assert results.load([tmp_path / "a.out:workers=4.out"])[0].workers is None
