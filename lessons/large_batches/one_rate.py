"""One run of the course's small network with a given rate, on given cores: python -m lessons.large_batches.one_rate

    --rate 0.1 --cores 0 1      the cores by their place in the list of those that this process may use

A search for a rate starts several of these, which exchange nothing. Each writes a record with
val_accuracy among its metrics.
"""

import argparse
import os
import time

from labs import jobs
from labs.jobs.job import GOING

VALIDATION = 297  # images, the last ones


class Starts:
    """start(rate) starts a run on the first free one of `places`, tuples of cores, and returns its job.

    options: the program's options; prefix: what the jobs' names begin with. Raises LabsError (labs.errors).
    """

    def __init__(self, places, options, prefix):
        self._places, self._options, self._prefix, self._started = places, options, prefix, []

    def __call__(self, rate):
        taken, begin = [place for place, job, _ in self._started if job.state in GOING], time.time()
        place = next(place for place in self._places if place not in taken)
        options = "--rate", rate, "--cores", *place, *self._options
        job = jobs.start("-m", "lessons.large_batches.one_rate", *options, name=f"{self._prefix}_{rate:g}")
        self._started.append((place, job, begin))
        return job

    def times(self):
        """[{run, from, to (its last line)}] of all runs, which have ended, in seconds from the start of the first."""
        zero = self._started[0][2]
        return [
            {"run": job.name, "from": begin - zero, "to": job.out.stat().st_mtime - zero}
            for _, job, begin in self._started
        ]


def main():
    from labs import data, models, training  # import this first: it sets up TensorFlow

    # isort: split
    import keras

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--cores", type=int, nargs="+", required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--batch_size", type=int, default=32)
    training.arguments(parser)
    args = training.parse(parser)

    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {allowed[core % len(allowed)] for core in args.cores})
    keras.utils.set_random_seed(args.seed)
    dataset = data.load(args.dataset, images=args.images)
    kept = data.Dataset(dataset.name, dataset.images[:-VALIDATION], dataset.labels[:-VALIDATION], dataset.classes)
    train = data.pipeline(kept, args.batch_size, seed=args.seed)
    model = models.build("SmallCNN", args.image_size, len(dataset.classes))
    optimizer = keras.optimizers.SGD(args.rate)
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"], jit_compile=False)
    recorder = training.Recorder(args, model, images=len(kept.images))
    held_back = dataset.images[-VALIDATION:], dataset.labels[-VALIDATION:]
    model.fit(train, validation_data=held_back, epochs=args.epochs, shuffle=False, verbose=2, callbacks=[recorder])


if __name__ == "__main__":
    main()
