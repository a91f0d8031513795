"""Runs, records and logs that the tests of this folder make."""

import json
from itertools import zip_longest

from epochs import numbered

from labs.results.run import Configuration, Epoch, Run


def run(workers=1, times=((9.0, 4.0, 4.0),), *, rounds=None, first=1, others=(), resolution=0.0, **fields):
    """A weak scaling run. times: seconds of the epochs of each repeat. rounds: where trainings took turns, those of
    each round from number `first` on, after a warm-up; others: what other programs took of the cores in them.
    fields: of the Run or its configuration; images: of each epoch; batch: of each worker."""
    images, batch = fields.pop("images", 1792), fields.pop("batch", 64)
    how_timed = {"resolution": resolution, "images": images}
    repeats = [[Epoch(seconds=float(t), **how_timed) for t in repeat] for repeat in times]
    if rounds is not None:
        turns = enumerate(zip_longest(map(float, rounds), others), first)
        warm = Epoch(seconds=99.0, **how_timed)
        repeats = [[warm, *(Epoch(seconds=t, **how_timed, round=n, others=share) for n, (t, share) in turns)]]
    all_images = batch * (workers or 2)
    how = {"model": "M", "strategy": "mirrored", "workers": workers, "global_batch": all_images, "local_batch": batch}
    how |= {key: fields.pop(key) for key in list(fields) if key in Configuration.model_fields and key != "repeats"}
    made = {"source": "a.json", "steps": -(-1792 // all_images), "epochs": numbered(*repeats)}
    return Run(**made | {"configuration": Configuration(**how)} | fields)


def write(folder, file, workers=1, seconds=40.0, rounds=0, count=3, gpus="", **fields):
    """Write a record of so many rounds and a warm-up, or of `count` epochs, on a machine with these GPUs; its path."""
    how = {"model": "M", "strategy": "mirrored", "workers": workers, "global_batch": 64 * workers}
    how |= {"dataset": "digits", "image_size": 32}
    how |= {key: fields.pop(key) for key in how.keys() & fields.keys()}
    epochs = [
        {"epoch": n, "round": n if rounds and n else None, "seconds": seconds, "metrics": {"loss": 2.0 / (n + 1)}}
        for n in range(rounds + 1 if rounds else count)
    ]
    epochs = [epoch | {"images": 512} for epoch in epochs]
    made = {"version": 2, "name": file, "state": "finished", "machine": {"cpu": "a CPU", "gpus": gpus.split()}}
    made |= {"configuration": how, "steps": 8 // workers, "epochs": epochs} | fields
    (folder / f"{file}.json").write_text(json.dumps(made))
    return folder / f"{file}.json"


def log(workers, seconds=40, epochs=3, done=True):
    """What the training of such a record prints; the end of the last epoch is missing where it is not done."""
    lines = [f"Model M {workers} GPUs", f"Batch_size: {64 * workers}"]
    for n in range(1, epochs + 1):
        lines.append(f"Epoch {n}/{epochs}")
        if done or n < epochs:
            lines.append(f"{8 // workers}/{8 // workers} - {seconds}s - loss: {2 / n:.4f} - accuracy: 0.2000")
    return "\n".join(lines) + "\n"
