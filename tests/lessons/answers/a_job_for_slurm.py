"""Answers to the self-checks of 06_a_job_for_slurm: right ones, and wrong ones that students give."""

from functools import partial

import numpy as np
from making import swapped, tried_out

from labs import sandbox

batch = partial(swapped, "slurm/local/ResNet50.sh")
BATCHES = ("batch=64*$workers", "batch=64 * workers", "batch = $((64 * workers))", "batch=$((32 * workers))")
BATCHES += ("batch=$((128 * workers))", "batch=64*workers", "batch=$((64 * worker))", "batch=$(64 * workers)")
BATCHES += ("batch=workers * 64", "batch= $((workers * 64))")

ANSWERS = {
    "slurm.1": dict(
        right=[(6,), (6.0,), ("6",), (np.int64(6),)],
        wrong=[(5,), (5.28,), (4,), (1,), (7,), (0,)],
        secret=r"\b6\b",
        same=[(2, 3)],
    ),
    "slurm.2": dict(
        right=[batch(), batch(("batch=$((64 * workers))", "batch=$((workers * 32 + workers * 32))"))],
        wrong=[
            batch(("#SBATCH --gres=gpu:2", "# SBATCH --gres=gpu:2")),
            batch(("--cpus-per-task=4", "--cpus-per-task=2")),
            batch(("--cpus-per-task=4", "--cpus-per-task=40")),
            batch(("#SBATCH --gres=gpu:2", "#SBATCH --gres=gpu:1"), ("--cpus-per-task=4", "--cpus-per-task=2")),
            batch(("#SBATCH --ntasks=1", "#SBATCH --ntasks=2"), ("--cpus-per-task=4", "--cpus-per-task=2")),
            batch(("batch=$((64 * workers))", "batch=64")),
            batch(("ResNet50.py", "ResNet152V2.py")),
            batch(("done\n", "\n")),
            *tried_out(batch, "batch=$((64 * workers))", *BATCHES),
        ],
        secret=r"64 \* workers",
        same=[] if sandbox.sandbox_missing() else [(9, 16)],  # what stands left and right of the `*`
    ),
    "slurm.3": dict(right=[(0,), ("0",), (0.0,)], wrong=[(4,), (1,), ("none",), (2,)], secret=r"\b0\b|\bnone\b"),
}
