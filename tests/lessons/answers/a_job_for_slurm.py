"""Answers to the self-checks of 06_a_job_for_slurm: right ones, and wrong ones that students give."""

BATCH = "batch=$((64 * workers))"

MISTAKES = [
    ("slurm.2", "#SBATCH --gres=gpu:2", "# SBATCH --gres=gpu:2"),
    ("slurm.2", "--cpus-per-task=4", "--cpus-per-task=40"),
    ("slurm.2", "--gres=gpu:2", "--gres=gpu:1", "--cpus-per-task=4", "--cpus-per-task=2"),
    ("slurm.2", "ResNet50.py", "ResNet152V2.py"),
    ("slurm.2", "done\n", "\n"),
    *(("slurm.2", BATCH, text) for text in ("batch=$((32 * workers))", "batch=64 * workers", "batch=$((64 * worker))")),
]
