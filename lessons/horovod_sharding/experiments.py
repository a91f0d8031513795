"""The runs of notebook 07: two ranks that take unequal steps, and a script on 1 and on 2 ranks."""

import textwrap

import numpy as np

from labs import devices, jobs
from labs.results.run import load

TOLD = "averaged ", "is done", "mean loss", "has been shut down", "has waited"  # the lines that are shown


def unequal(name, steps_0, steps_1, *options):
    """Run scripts/unequal.py with these steps of rank 0 and of rank 1 in each epoch; print what the ranks and Horovod
    say, each line once. Without Horovod, one line says so."""
    if not devices.has("horovod"):
        return
    asked = ["--rank0", *steps_0, "--rank1", *steps_1, *options]
    job = jobs.run("scripts/unequal.py", *asked, name=f"unequal_{name}", ranks=2, launcher="horovodrun")
    lines = [line.partition(">:")[2] for file in (job.out, job.err) for line in file.read_text().splitlines()]
    for line in dict.fromkeys(line for line in lines if any(word in line for word in TOLD)):
        print(textwrap.shorten(line, 220, placeholder=" ..."))


def on_1_and_2_ranks(script, name, local_batch, *options):
    """Train with a script on 1 and on 2 ranks, in turns: {(name, ranks): run record}, empty if one did not finish.

    local_batch: images per step of each rank. Empty, too, without Horovod; then one line says so.
    """
    if not devices.has("horovod"):
        return {}
    turns = jobs.Turns()
    with turns:
        for ranks in (1, 2):
            asked = ["--batch_size", ranks * local_batch, *options]
            turns.start(script, *asked, name=f"{name}_w{ranks}", ranks=ranks)
    if turns.state != "finished":
        return {}
    return {(name, ranks): load(job.record) for ranks, job in zip((1, 2), turns.jobs, strict=True)}


def epoch_seconds(run):
    """Mean seconds of an epoch of a run record; the first one is left out."""
    return float(np.mean([epoch.seconds for epoch in run.epochs[1:]]))
