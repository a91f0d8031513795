"""Questions of 06_a_job_for_slurm."""

from labs.checks.judging import judges
from lessons import batch_scripts
from lessons.forms import value


def _together(epochs):
    if epochs > 6:
        return "That is enough. Is it the smallest number that is enough?"
    if 1 <= epochs < 5:
        return f"Half a second is already more than 1 % of {epochs} x 12 s, and the 45 s is rounded as well."
    return "n x 12 s and n x 45 s may each be off by half a second. By how many per cent does that change the speedup?"


value(
    "slurm.1",
    right=6,
    wrong=[
        (5.28, "Only whole epochs can be timed: give a whole number."),
        (5, "Take 5 x 45 s and 5 x 12 s, each off by half a second. By how many per cent does the speedup change?"),
    ],
    otherwise=_together,
)


@judges("slurm.2")
def batch_script(path):
    yield from batch_scripts.judge(path, trains="ResNet50.py")


value(
    "slurm.3",
    right=0,
    wrong=[
        (4, "`module load` is a command. How far down does sbatch read a script?"),
        (1, "At this site a job gets only the GPUs that it requests. Is one requested in a line that sbatch reads?"),
    ],
    otherwise="Write how many GPUs it gets, as a number: either the late line counts, or it does not.",
)
