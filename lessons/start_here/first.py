"""The first measurement: a small network trained on 1 and on 2 workers, in turns."""

from labs import devices, jobs, results
from labs.results import intervals

LOCAL_BATCH = 64  # images per worker and step


def measure():
    """Train SmallCNN on 1 and on 2 workers, 6 epochs of each, the first as warm-up, in turns.

    Returns the runs (labs.results.load) that came to be on record: none, or without a steady epoch, where a training
    was interrupted or failed, which is printed.
    """
    gpus, env = len(devices.gpus()), {}
    if gpus == 1:
        print("This machine has one GPU, and two workers need two: so here each worker is a CPU core.")
        env = {"CUDA_VISIBLE_DEVICES": "-1"}
    sizes = ["--model=SmallCNN", "--image_size=96", "--images=512", "--epochs=6"]
    with jobs.Turns() as turns:
        for workers in (1, 2):
            asked = [*sizes, f"--workers={workers}", f"--batch_size={workers * LOCAL_BATCH}"]
            turns.start("-m", "labs.training.program", *asked, name=f"first_w{workers}", env=env)
    return results.load(job.record for job in turns.jobs if job.record.exists())


def speedup(runs):
    """(speedup on 2 workers, its 95 % interval or None) of the runs of `measure`; (None, None): not measured."""
    estimate = next((run.speedup for run in runs if run.workers == 2), intervals.UNKNOWN)
    return estimate.value, estimate.interval
