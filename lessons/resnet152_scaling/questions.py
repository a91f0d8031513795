"""Questions of 09_resnet152_scaling."""

from functools import partial
from types import SimpleNamespace

from labs.checks.judging import NotDone, judges
from labs.checks.reading import as_rounded, near
from lessons import batch_scripts, own_runs, training_scripts
from lessons.asked import refuse_noise
from lessons.forms import formula, value


def _ratio(field):
    return lambda small, large: getattr(large, field) / getattr(small, field)


_operations, _bytes = _ratio("multiply_adds"), _ratio("gradient_bytes")
value(
    "resnet152.3",
    right=lambda small, large: (_operations(small, large), _bytes(small, large)),
    wrong=[
        (
            lambda *networks: (..., _ratio("tensors")(*networks)),
            "The second number is the ratio of the numbers of tensors. How many bytes do they take up in total?",
        ),
        (
            lambda *networks: (..., _ratio("activation_bytes")(*networks)),
            "The second number is the ratio of the activations, which are never exchanged. Use the gradient.",
        ),
    ],
    otherwise=(
        "The first ratio is wrong: divide the multiply-adds of the larger network by those of the smaller one.",
        "The second ratio is wrong: divide the bytes of the larger gradient by those of the smaller one.",
    ),
    tolerance=0.005,
)
_NETWORK = SimpleNamespace(gradient_bytes=6000, multiply_adds=50, tensors=7, activation_bytes=11, parameters=1600)
_OTHER = SimpleNamespace(gradient_bytes=9000, multiply_adds=40, tensors=9, activation_bytes=17, parameters=2350)
formula(
    "resnet152.4",
    right=lambda network, batch: network.gradient_bytes / (network.multiply_adds * batch),
    cases=[(_NETWORK, 8), (_NETWORK, 16), (_OTHER, 8)],
    wrong=[
        (
            lambda network, batch: network.gradient_bytes / network.multiply_adds,
            "This does not depend on the batch size. How many images does a worker process in a step?",
        ),
        (
            lambda network, batch: network.gradient_bytes / network.multiply_adds * batch,
            "The gradient does not grow with the batch size. Only the computation does.",
        ),
    ],
    otherwise="Divide the bytes of the gradient by the multiply-adds of all images in the batch.",
)


judges("T7")(partial(training_scripts.not_mirrored, network="ResNet152V2"))


@judges("resnet152.7")
def batch_ratio(low, high, first, second):
    found = all(result[key] for result in (first, second) for key in ("largest", "fails"))
    yield not found, "One search did not find both a batch that fits and one that does not: change its memory or limit."
    fits, fails = ([result[key] for result in (first, second)] for key in ("largest", "fails"))
    yield near(low, fits[0] / fails[1]) and near(high, fails[0] / fits[1]), None
    yield near(high, low), "The two bounds are equal. Each limit lies between what fits and what does not: where?"
    yield low > high, "Your lower bound is above your upper one. For the smallest ratio, whose limit must be large?"
    upside_down = near(low, fits[1] / fails[0]) and near(high, fails[1] / fits[0])
    yield upside_down, "Upside down: divide the first network's limit by the second one's."
    yield True, "Which limit of each network, the lowest or the highest possible one, makes the ratio small, and large?"


@judges("resnet152.8")
def step_by_hand(seconds, small_steps, alone, small, large):
    one, two = small_steps[1], small_steps[2]
    added, by_bytes, by_operations = two - one, _bytes(small, large), _operations(small, large)
    wanted, other = alone + added * by_bytes, alone + added * by_operations
    yield as_rounded(seconds, wanted, 0.005) and abs(seconds - wanted) <= abs(other - wanted) / 2, None

    def is_(value):
        return abs(seconds - value) <= max(1e-3 * alone, abs(other - wanted) / 3)

    yield is_(other), "You scaled the exchange with the multiply-adds. It grows with the bytes, so use the other ratio."
    yield is_(alone + added), "The gradient of the larger network has more bytes, and the extra time grows with them."
    yield is_(alone), "This is the step time on one worker. What do 2 workers add to it?"
    yield is_(added * by_bytes), "This is only the extra time. Add it to the step time on one worker."
    yield is_(alone * two / one), "Here the extra time grows with the computation. Let it grow with the bytes."
    yield is_(alone + two * by_bytes), "You scaled ResNet50V2's whole step. What part of it is exchange and waiting?"
    yield True, "The step takes the time on one worker plus what a second worker adds. Which of the two do you know?"


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


judges("resnet152.10")(partial(batch_scripts.judge, trains="ResNet152V2.py"))
