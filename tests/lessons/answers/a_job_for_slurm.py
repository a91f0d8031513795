"""Answers to the self-checks of 06_a_job_for_slurm: right ones, and wrong ones that students give."""

from functools import partial

from making import swapped, tried_out

batch = partial(swapped, "slurm/local/ResNet50.sh")
BATCHES = ("batch=64 * workers", "batch = $((64 * workers))", "batch=$((32 * workers))", "batch=64*workers")

ANSWERS = {
    "slurm.2": dict(
        right=[batch(), batch(("batch=$((64 * workers))", "batch=$((workers * 32 + workers * 32))"))],
        wrong=[
            batch(("#SBATCH --gres=gpu:2", "# SBATCH --gres=gpu:2")),
            batch(("--cpus-per-task=4", "--cpus-per-task=40")),
            batch(("#SBATCH --gres=gpu:2", "#SBATCH --gres=gpu:1"), ("--cpus-per-task=4", "--cpus-per-task=2")),
            batch(("#SBATCH --ntasks=1", "#SBATCH --ntasks=2"), ("--cpus-per-task=4", "--cpus-per-task=2")),
            batch(("batch=$((64 * workers))", "batch=64")),
            batch(("ResNet50.py", "ResNet152V2.py")),
            batch(("done\n", "\n")),
            *tried_out(batch, "batch=$((64 * workers))", *BATCHES, "batch=$((64 * worker))", "batch=$(64 * workers)"),
        ],
        secret=r"64 \* workers",
    )
}
