"""Logs as Keras 2 and 3 write them, generated with known times: each number that is read is one that was written."""

import itertools

import pytest

from labs import results
from labs.errors import LabsError
from labs.results import log

STEPS = 98
PREEMPTED = "slurmstepd: error: *** JOB 8 ON a04 CANCELLED AT 2024-02-11T03:12:45 DUE TO PREEMPTION ***\n"
HEADER = "Model ResNet50V2 2 GPUs\nBatch_size: 64\n"
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
    "letters": lambda texts: "".join(f"{text}{'^H' * 40}^M" for text in texts[:-1]) + texts[-1],
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


TAGS = ("[1,0]<stdout>:", "[0]<stdout>:", "0: ", "[0] ")
FORMS = [*((form, "") for form in CAPTURED), *(("lines", tag) for tag in TAGS), ("terminal", TAGS[0])]


@pytest.mark.parametrize("validated", [False, True])
@pytest.mark.parametrize("captured, tag", FORMS)
@pytest.mark.parametrize("keras, verbose", [(2, 1), (2, 2), (3, 1), (3, 2)])
def test_each_number_is_one_that_was_written(load, keras, verbose, captured, tag, validated):
    """Bars in every form, and lines of two ranks with each launcher's prefix.

    horovodrun and mpirun put theirs behind each carriage return: pieces of several ranks stand in one line.
    """
    lines = training([31.0, 12.0, 11.0], keras, verbose, captured=captured, validated=validated).splitlines(True)
    others = [tag.replace("0", "1") + line.replace("31s", "39s") for line in lines if tag]
    own = [tag + line.replace("\n", "\r" if tag and captured == "terminal" else "\n") for line in lines]
    mixed = (line for pair in itertools.zip_longest(own, others) for line in pair if line)
    (run,) = load("".join(mixed), workers=2, global_batch=64, images=6250)
    assert seconds([run])[0] == pytest.approx([31, 12, 11], abs=0.1)
    assert run.epochs[1].resolution == pytest.approx(1.0 if verbose == 1 else 0.098)
    assert run.steps == STEPS and not run.truncated and run.loss == pytest.approx([2.9, 2.8, 2.7])
    assert run.images_per_second.value == pytest.approx(6250 / 11.5, rel=0.01)
    assert any("include validation" in note for note in run.notes) == validated


@pytest.mark.parametrize("keras", [2, 3])
@pytest.mark.parametrize("verbose", [1, 2])
def test_cut_anywhere_gives_epochs_of_the_whole_log_or_none(load, keras, verbose):
    text = HEADER + training([31.0, 12.0, 23.0], keras, verbose, validated=True)
    known = load(text)[0].epochs
    for end in range(len(text) - 1, 60, -3):
        try:
            (run,) = load(text[:end])
        except LabsError:
            continue
        assert run.epochs == known[: len(run.epochs)] and run.truncated == (len(run.epochs) < 3), text[:end][-150:]


@pytest.mark.parametrize("verbose", [1, 2])
@pytest.mark.parametrize("steps", [40, STEPS])
def test_of_evaluate_in_a_callback_no_line_is_taken_for_the_epoch(load, verbose, steps):
    """It prints before the epoch's own line."""
    lines = training([31.0, 12.0, 11.0], 3, verbose, captured="lines").splitlines()
    own = [n for n, line in enumerate(lines) if n + 1 == len(lines) or lines[n + 1].startswith("Epoch")]
    for number in reversed(own):
        lines.insert(number, result(3, verbose, 3.0, 9.0, steps=steps))
    with pytest.raises(log.LogError, match="epoch 1, 2.*several lines of results.*not used"):
        load("\n".join(lines) + "\n")


# A training that is ended, cut, or goes on

WHOLE = training([31.0, 12.0])
FULL = training([31.0, 12.0], 3, 1, captured="lines", validated=True)
CUT = training([31.0, 12.0], planned=5) + "Epoch 3/5\n"
INVALID = "Batch 61: Invalid loss, terminating training\n"
AGAIN = training([41.0, 13.0, 12.0, 12.0, 12.0])
REPEAT = f"{HEADER}{WHOLE}Repeat 2 of 2\n"
BETWEEN = (  # what callbacks and TensorFlow print
    "\nEpoch 1: val_loss improved from inf to 1.50000, saving model to best.keras\n"
    "Epoch 00001: ReduceLROnPlateau reducing learning rate to 0.001.\n"
    "2024-01-01 00:00:00.1: W tensorflow/core/x.cc:5] 3s later\n"
    "Downloading data: 8192/8192 [==============================] - 1s 1us/step\n"
)
UNKNOWN = "".join(f"{done:>7}/Unknown - 9s 90ms/step - loss: 2.4 - accuracy: 0.1\r" for done in (1, 50, 98))
DONE, BROKEN = (([31, 12], None, cut, None) for cut in (False, True))
LATER = ([41, 13, 12, 12, 12], None, False, None)
OPEN = "in epoch 3 of 5, repeat 1 of 1"
PARTS = [  # a log; of each run in it: seconds, workers, whether it is truncated, kind of failure; a part of the notes
    (WHOLE.replace("Epoch 2/2", f"{BETWEEN}Epoch 2/2"), [DONE], ""),
    # the number of steps is unknown until the first epoch is over
    (training([31.0, 12.0], 2, 1).replace("Epoch 1/2\n", f"Epoch 1/2\n{UNKNOWN}"), [DONE], ""),
    (HEADER * 2 + WHOLE, [([31, 12], 2, False, None)], ""),  # every rank prints the header
    (WHOLE + training([25.0, 9.0], first=3), [DONE, ([25, 9], None, False, None)], "at epoch 3"),
    (training([31.0]) + AGAIN, [([31], None, False, None), LATER], "began again"),
    (HEADER + CUT + PREEMPTED + AGAIN, [([31, 12], 2, True, "cancelled"), LATER], OPEN),
    # Keras 3 shows 0 s in a bar that is full before its validation, which is what is left of the epoch
    (FULL[: FULL.rindex(f"{STEPS}/{STEPS}")], [([31], None, True, None)], "in epoch 2 of 2"),
    # where the end of the line can be missing: digits, an exponent, val_loss
    (training([31.0, 12.0], 3)[:-1], [([31], None, True, None)], "in epoch 2 of 2"),
    # TerminateOnNaN: Keras prints the line of the epoch nevertheless, which is a shorter one
    *((CUT + INVALID + result(k, 2, 5.0, 9.0) + "\n", [BROKEN], OPEN) for k in (2, 3)),
    # what is printed after a kill, or behind a line that it cut
    (f"{CUT}Killed\n{result(2, 2, 4.0, 2.0)}\n", [([31, 12], None, True, "killed")], OPEN),
    (f"{CUT}98/98 - 40s - loss: 2.7000 - acc\n00 - acc: 0.3000\n", [BROKEN], OPEN),
    (f"{CUT}98/98 - 4\nKilled\n", [([31, 12], None, True, "killed")], OPEN),
    *((WHOLE + result(2, 2, 3.0, 9.0, steps=n) + "\n", [DONE], "") for n in (40, STEPS)),  # evaluate
    (training([9.0, 31.0, 12.0]).replace("98/98 - 12s", "97/97 - 12s"), [([9, 31, 12], None, False, None)], "[97, 98]"),
    (training([31.0]) + training([12.0]), [([31], None, False, None), ([12], None, False, None)], ""),
    (f"{REPEAT}{CUT}Repeat 2 of 2\n{WHOLE}", [([31, 12, 31, 12], 2, False, None)], ""),
    (f"{REPEAT}{training([31.0], planned=2)}", [([31, 12, 31], 2, True, None)], "in epoch 1 of 2, repeat 2 of 2"),
]


@pytest.mark.parametrize("text, parts, says", PARTS)
def test_runs_and_repeats_end_and_begin_where_the_log_says_so(load, text, parts, says):
    runs = load(text)
    found = [(run.workers, run.truncated, run.failure and run.failure["kind"]) for run in runs]
    assert [[round(each) for each in part] for part in seconds(runs)] == [part for part, *_ in parts]
    assert found == [tuple(rest) for _, *rest in parts]
    assert says in " ".join(note for run in runs for note in run.notes)


def test_a_requeued_training_that_goes_on_is_two_parts(load):
    """As BackupAndRestore has it: its first epoch counts steps that it did not train, and is warm-up."""
    before = training([96.0, 88.0], planned=5) + "Epoch 3/5\n"
    after = training([95.0, 89.0, 87.0], first=3).replace(f"{STEPS}/{STEPS}", "196/196", 1).replace("2.6000", "nan")
    first, second = load(HEADER + before + PREEMPTED + STARTED + after)
    assert [[round(each) for each in part] for part in seconds([first, second])] == [[96, 88], [95, 89, 87]]
    assert (first.steps, second.steps, first.truncated, second.truncated) == (STEPS, STEPS, True, False)
    assert (second.model, second.workers, second.configuration.global_batch) == ("ResNet50V2", 2, 64)
    assert round(first.epoch_seconds.value) == 88 and round(second.epoch_seconds.value) == 88
    notes = " ".join(second.notes)
    assert [epoch.epoch for epoch in second.epochs] == [2, 3, 4] and "in epoch 4: the training" in notes
    assert first.failure["kind"] == "cancelled" and second.failure is None


# Several ranks in one file


def by_epoch(lines):
    return ["".join(pair) for pair in zip(lines[::2], lines[1::2], strict=True)]


def test_ranks_that_print_without_a_label_are_refused(load):
    for ranks, keras in itertools.product((2, 3), (2, 3)):
        logs = [training([31.0 + rank, 12.0, 11.0], keras).splitlines(True) for rank in range(ranks)]
        # Line by line; epoch by epoch; as the workers of MultiWorkerMirroredStrategy, whose metrics are those of all
        for parts in (zip(*logs, strict=True), zip(*map(by_epoch, logs), strict=True), zip(*logs[:1] * 2, strict=True)):
            with pytest.raises(log.LogError, match="several ranks print into this log"):
                load("".join(itertools.chain.from_iterable(parts)))
