"""Answers to the self-checks of 09_resnet152_scaling: right ones, and wrong ones that students give."""

from types import SimpleNamespace

from answers.two_networks import RUNS
from making import changed

SMALL = SimpleNamespace(multiply_adds=71e6, gradient_bytes=94e6, tensors=174, activation_bytes=1.6e6)
LARGE = SimpleNamespace(multiply_adds=222.5e6, gradient_bytes=232e6, tensors=514, activation_bytes=5.6e6)
R_OPS, R_BYTES = 222.5 / 71, 232 / 94
FIRST, SECOND = {"largest": 512, "fails": 1024}, {"largest": 256, "fails": 512}


def step(seconds):
    return seconds, {1: 0.9, 2: 1.0}, 1.9, SMALL, LARGE


RIGHT = [
    ("resnet152.7", (1.0, 4.0, FIRST, SECOND)),
    *(("resnet152.8", step(seconds)) for seconds in (1.9 + 0.1 * R_BYTES, 2.15)),
    ("resnet152.9", (RUNS,)),
]
WRONG = [
    ("resnet152.4", (lambda network, batch: network.gradient_bytes / (8 * network.multiply_adds),)),
    ("resnet152.7", (2.0, 2.0, FIRST, SECOND)),
    ("resnet152.7", (1.0, 2.0, FIRST, SECOND)),
    ("resnet152.7", (1.0, 4.0, FIRST, SECOND | {"fails": None})),
    *(("resnet152.8", step(seconds)) for seconds in (1.9 + 0.1 * R_OPS, 2.0, 1.9 + R_BYTES)),
    ("resnet152.9", (changed(RUNS, 2, kind="recorded"),)),
    ("resnet152.9", (changed(RUNS, 3, state="failed"),)),
    ("resnet152.9", (RUNS[1:],)),
    ("resnet152.9", (RUNS[:3],)),
]
MISTAKES = [
    ("T7", 'f"Model ResNet152V2 {args', 'f"Model ResNet50V2 {args'),
    ("T7", 'print(f"Model ResNet152V2 {args.n_gpus} workers")', ""),
    ("T7", "keras.applications.ResNet152V2", "keras.applications.ResNet50V2"),
    ("resnet152.10", "ResNet152V2.py", "ResNet50.py"),
    ("resnet152.10", "--time=00:30:00", "--time=00:30"),
    ("resnet152.10", "batch=$((64 * workers))", "batch=$((64 * SLURM_CPUS_PER_TASK))"),
]
SAMPLES = {"resnet152.3": [(SMALL, LARGE)]}
