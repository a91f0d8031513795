"""Judges of 06_a_job_for_slurm."""

from labs.checks.judging import judges
from labs.checks.reading import near
from lessons import batch_scripts


@judges("slurm.1")
def together(epochs):
    yield near(epochs, 6, 1e-9), None
    yield float(epochs) != int(epochs), "Only whole epochs can be timed: give a whole number."
    yield epochs > 6, "That is enough. Is it the smallest number that is enough?"
    yield (
        epochs == 5,
        "Take 5 x 45 s and 5 x 12 s, each off by half a second in the worse direction. By how many per cent does "
        "the speedup change?",
    )
    yield (
        1 <= epochs < 5,
        f"Half a second is already more than 1 % of {int(epochs)} x 12 s, and the 45 s is rounded as well.",
    )
    yield (
        True,
        "n x 12 s and n x 45 s may each be half a second off. Together, that must change the speedup by less than 1 %.",
    )


@judges("slurm.2")
def batch_script(path):
    yield from batch_scripts.judge(path, trains="ResNet50.py")


@judges("slurm.3")
def late(gpus):
    yield isinstance(gpus, str), "Write how many GPUs it gets, as a number."
    yield gpus == 0, None
    yield gpus == 4, "`module load` is a command. How far down does sbatch read a script?"
    yield (
        gpus == 1,
        "At this site a job gets only the GPUs that it requests. Is one requested in a line that sbatch reads?",
    )
    yield True, "Either the late line counts, or it does not. How many GPUs does the job get in each case?"
