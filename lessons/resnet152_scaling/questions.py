"""Judges of 09_resnet152_scaling."""

from functools import partial
from types import SimpleNamespace

from labs.checks import reading
from labs.checks.judging import NotDone, judges
from lessons import batch_scripts, own_runs, training_scripts
from lessons.asked import refuse_noise

near = partial(reading.near, relative=0.005)
close = partial(reading.close, relative=0.005)


@judges("resnet152.3")
def ratios(operations, gradient, small, large):
    wanted = large.multiply_adds / small.multiply_adds, large.gradient_bytes / small.gradient_bytes
    got = float(operations), float(gradient)
    yield all(map(close, got, wanted)), None
    yield (
        all(map(close, got, wanted[::-1])),
        "The two numbers are swapped: the multiply-adds come first, then the bytes.",
    )
    yield (
        all(near(a, 1 / b) for a, b in zip(got, wanted, strict=True)),
        "Upside down: how many times as many does the larger network have?",
    )
    yield (
        near(gradient, large.tensors / small.tensors),
        "The second number is the ratio of the numbers of tensors. How many bytes do they take up in total?",
    )
    yield (
        near(gradient, large.activation_bytes / small.activation_bytes),
        "The second number is the ratio of the activations, which are never exchanged. Use the gradient.",
    )
    yield (
        not close(operations, wanted[0]),
        "The first ratio is wrong: divide the multiply-adds of the larger network by those of the smaller one.",
    )
    yield True, "The second ratio is wrong: divide the bytes of the larger gradient by those of the smaller one."


@judges("resnet152.4")
def bytes_per_operation(function):
    network = SimpleNamespace(gradient_bytes=6000, multiply_adds=50, tensors=7, activation_bytes=11, parameters=1500)
    on_8, on_16 = (float(function(network, batch)) for batch in (8, 16))
    yield near(on_8, 15) and near(on_16, 7.5), None
    yield (on_8, on_16) == (15, 7), reading.CUT
    yield near(on_8, 120), "This does not depend on the batch size. How many images does a worker process in a step?"
    yield near(on_16, 120 * 16), "The gradient does not grow with the batch size. Only the computation does."
    yield near(on_8, 8 / 120), "Upside down: this is the number of multiply-adds for each byte."
    yield (
        near(on_8, 2 * 15) or near(on_8, 15 / 3),
        "This is off by a constant factor: count only the forward pass, and each byte of the gradient once.",
    )
    yield True, "Divide the bytes of the gradient by the multiply-adds of all images in the batch."


@judges("T7")
def script(path):
    yield from training_scripts.not_mirrored(path, "ResNet152V2")


@judges("resnet152.7")
def batch_ratio(low, high, first, second):
    yield (
        not all(result[key] for result in (first, second) for key in ("largest", "fails")),
        "One search did not find both a batch that fits and one that does not: change its memory or its limit.",
    )
    fits, fails = ([result[key] for result in (first, second)] for key in ("largest", "fails"))
    yield near(low, fits[0] / fails[1]) and near(high, fails[0] / fits[1]), None
    yield (
        near(low, high),
        "The two bounds are equal. Each limit lies between what fits and what does not: which ratios are possible?",
    )
    yield low > high, "The lower bound is above the upper one: which of the two limits must be small for a small ratio?"
    yield (
        near(low, fits[1] / fails[0]) and near(high, fails[1] / fits[0]),
        "Upside down: divide the first network's limit by the second one's.",
    )
    yield (
        True,
        "For the lower bound, divide the lowest possible limit of the first network by the highest possible one of "
        "the second. For the upper bound, it is the other way round.",
    )


@judges("resnet152.8")
def step_by_hand(seconds, small_steps, alone, small, large):
    one, two = small_steps[1], small_steps[2]
    added = two - one
    bytes_, operations = (getattr(large, key) / getattr(small, key) for key in ("gradient_bytes", "multiply_adds"))

    by_bytes, by_operations = alone + added * bytes_, alone + added * operations
    yield close(seconds, by_bytes) and abs(seconds - by_bytes) <= abs(by_operations - by_bytes) / 2, None

    def is_(value):
        return abs(seconds - value) <= max(1e-3 * alone, abs(by_operations - by_bytes) / 3)

    yield (
        is_(by_operations),
        "You scaled the exchange with the multiply-adds. It grows with the bytes, so use the other ratio.",
    )
    yield is_(alone + added), "The gradient of the larger network has more bytes, and the extra time grows with them."
    yield is_(alone), "This is the step time on one worker. What do 2 workers add to it?"
    yield (
        is_(alone / 2),
        "This is half the step time. But each worker still processes as many images as before (weak scaling).",
    )
    yield (
        is_(alone * two / one),
        "Here, the extra time grows with the computation. Assume that it grows with the bytes.",
    )
    yield is_(added * bytes_), "This is only the extra time. Add it to the step time on one worker."
    yield (
        is_(alone + two * bytes_),
        "You scaled ResNet50V2's whole step. Only the time that 2 workers add is spent on exchange and waiting.",
    )
    yield (
        True,
        "The step has two parts: the time on one worker, and what the second one adds. Which of the two do you know?",
    )


@judges("resnet152.9")
def own_study(runs, lacks=""):
    """lacks: which own runs are missing, where recorded ones stand for them. Raises NotDone then."""
    if lacks:
        raise NotDone(f"These runs are recorded, so there is nothing of yours to judge. {lacks}")
    yield from own_runs.no_runs(runs)
    large = [run for run in runs if run.model == "ResNet152V2"]
    yield not large, "There is no run of ResNet152V2. Which network does the record of your run name?"
    yield from own_runs.not_yours(large, runs)
    for name in ("ResNet50V2", "ResNet152V2"):
        workers = {run.workers for run in runs if run.model == name}
        yield 1 not in workers, f"{name} has no run on 1 worker: without a baseline, nothing can be called faster."
        yield len(workers) < 2, f"{name} has runs on only one number of workers: use at least two."
    refuse_noise(*runs)


@judges("resnet152.10")
def batch_script(path):
    yield from batch_scripts.judge(path, trains="ResNet152V2.py")
