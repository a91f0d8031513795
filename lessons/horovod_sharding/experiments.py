"""The runs of notebook 07: two ranks that take unequal steps, and a script on 1 and on 2 ranks."""

from labs import devices, jobs, presets, results


def unequal(steps_0, steps_1):
    """Run scripts/unequal.py with these steps of rank 0 and of rank 1 in each epoch; print each line once.

    Without Horovod, one line says so.
    """
    if not devices.has("horovod"):
        return
    steps = ["--rank0", *steps_0, "--rank1", *steps_1]
    job = jobs.run("scripts/unequal.py", *steps, name="unequal", ranks=2, launcher="horovodrun")
    lines = [line.partition(">:")[2] for line in job.out.read_text().splitlines()]
    print(*dict.fromkeys(lines), sep="\n")


def on_1_and_2_ranks(script, name, local_batch):
    """Train with a script on 1 and on 2 ranks, in turns, 6 epochs of 1792 images (a test trains for 2 of 256):
    {(name, ranks): run}, empty if one did not finish.

    local_batch: images per step of each rank. Empty, too, without Horovod; then one line says so.
    """
    images, side, epochs = (256, 32, 2) if presets.choose().name == "test" else (1792, 64, 6)
    options = ["--images", images, "--image_size", side, "--epochs", epochs]
    if not devices.has("horovod"):
        return {}
    with jobs.Turns() as turns:
        for ranks in (1, 2):
            asked = ["--batch_size", ranks * local_batch, *options]
            turns.start(script, *asked, name=f"{name}_w{ranks}", ranks=ranks)
    if turns.state != "finished":
        return {}
    return {(name, run.workers): run for run in results.load(job.record for job in turns.jobs)}
