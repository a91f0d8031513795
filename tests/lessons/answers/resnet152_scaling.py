"""Answers to the self-checks of 09_resnet152_scaling: right ones, and wrong ones that students give."""

from functools import partial
from types import SimpleNamespace

from answers.two_networks import RUNS
from making import changed, swapped, tried_out

script = partial(swapped, "scripts/ResNet152V2.py")
job = partial(swapped, "slurm/local/ResNet152V2.sh")
SMALL = SimpleNamespace(multiply_adds=71e6, gradient_bytes=94e6, tensors=174, activation_bytes=1.6e6)
LARGE = SimpleNamespace(multiply_adds=222.5e6, gradient_bytes=232e6, tensors=514, activation_bytes=5.6e6)
R_OPS, R_BYTES = 222.5 / 71, 232 / 94
FIRST, SECOND = {"largest": 512, "fails": 1024}, {"largest": 256, "fails": 512}


def step(seconds):
    return seconds, {1: 0.9, 2: 1.0}, 1.9, SMALL, LARGE


ANSWERS = {
    "T7": dict(
        right=[script()],
        wrong=[
            script(('f"Model ResNet152V2 {args', 'f"Model ResNet50V2 {args')),
            script(('print(f"Model ResNet152V2 {args.n_gpus} workers")', "")),
            script(("keras.applications.ResNet152V2", "keras.applications.ResNet50V2")),
        ],
        secret=r"0\.03\b|devices=workers",
    ),
    "resnet152.7": dict(
        right=[(1.0, 4.0, FIRST, SECOND)],
        wrong=[(2.0, 2.0, FIRST, SECOND), (1.0, 2.0, FIRST, SECOND), (1.0, 4.0, FIRST, SECOND | {"fails": None})],
        secret=r"\b4\.0|\b512\b|\b1024\b",
    ),
    "resnet152.8": dict(
        right=[*map(step, (1.9 + 0.1 * R_BYTES, 2.15, "2.14"))],
        wrong=[*map(step, (1.9 + 0.1 * R_OPS, 2.0, 1.9 + R_BYTES))],
        secret=r"2\.14",
    ),
    "resnet152.9": dict(
        right=[(RUNS,)],
        wrong=[(changed(RUNS, 2, kind="recorded"),), (changed(RUNS, 3, state="failed"),), (RUNS[1:],), (RUNS[:3],)],
    ),
    "resnet152.10": dict(
        right=[job()],
        wrong=[
            job(("ResNet152V2.py", "ResNet50.py")),
            job(("--time=00:30:00", "--time=00:30")),
            *tried_out(job, "batch=$((64 * workers))", "batch=$((64 * SLURM_CPUS_PER_TASK))"),
        ],
    ),
}
SAMPLES = {"resnet152.3": [(SMALL, LARGE)]}
