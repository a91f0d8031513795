"""A server and K workers, each a process. One worker is late: the server waits for it at every step, or leaves it out.

    python -m lessons.large_batches.late_workers OPTIONS        OPTIONS: JSON, the arguments of `train`

The late worker sleeps before it sends its gradient. A step ends when K - b gradients have come. The others are
thrown away, and each worker that has finished begins again with the newest weights: b backup workers (J. Chen and
others, Revisiting distributed synchronous SGD, 1604.00981). b = 0 is the barrier.
"""

import json
import multiprocessing
import sys
import time
from multiprocessing import connection
from pathlib import Path

import numpy as np

from labs import files, jobs
from lessons.when_workers_do_not_help import small, trials


def run(name, **options):
    """Train in a job and return what `train` returns, or None if the job failed, which it has explained."""
    file = (jobs.folder() / f"{name}.late.json").resolve()
    file.unlink(missing_ok=True)
    job = jobs.run("-m", "lessons.large_batches.late_workers", json.dumps(options | {"file": str(file)}), name=name)
    return json.loads(file.read_text(encoding="utf-8")) if job.state == "finished" else None


def train(workers=4, backup=0, late_ms=20, order="shuffled", steps=300, local_batch=16, rate=0.1, seed=0):
    """One run: {seconds (of each step), used (gradients of each worker that counted), accuracy (on the test)}.

    The last worker is the late one. order: of the shards of the data, as trials.shards of when_workers_do_not_help.
    """
    pipes, processes, forked = [], [], multiprocessing.get_context("fork")
    for worker, numbers in enumerate(trials.shards(workers, order)):
        ours, theirs = forked.Pipe()
        pause = late_ms / 1000 if worker == workers - 1 else 0.0
        process = forked.Process(target=_work, args=(theirs, numbers, local_batch, pause, (seed, worker)), daemon=True)
        process.start()
        theirs.close()
        pipes.append(ours)
        processes.append(process)
    weights, seconds, used, resting = small.begin(seed), [], [0] * workers, set(range(workers))
    for step in range(steps):
        begin, came = time.perf_counter(), []
        for worker in resting:
            pipes[worker].send((step, weights))
        resting = set()
        while len(came) < workers - backup:
            for pipe in connection.wait(pipes):
                worker, (of_step, gradient) = pipes.index(pipe), pipe.recv()
                resting.add(worker)
                if of_step == step and len(came) < workers - backup:
                    came.append(gradient)
                    used[worker] += 1
        weights = weights - rate * np.mean(came, axis=0)
        seconds.append(time.perf_counter() - begin)
    for pipe, process in zip(pipes, processes, strict=True):
        pipe.send(None)
        process.join()
    return {"seconds": seconds, "used": used, "accuracy": float(small.accuracy(weights, small.digits().test))}


@small.one_thread
def _work(pipe, numbers, local_batch, pause, seed):
    """Gradients of this worker's share, one for each weights that come, until None comes."""
    part, source = small.digits().train, small.batches(local_batch, seed, numbers)
    while (asked := pipe.recv()) is not None:
        step, weights = asked
        drawn = next(source)
        found = small.gradient(weights, part.images[drawn], part.labels[drawn])
        time.sleep(pause)
        pipe.send((step, found))


def main(file, **options):
    small.digits()  # before the workers are forked: they share it
    files.write(Path(file), json.dumps({"kind": "measured", **options, **train(**options)}))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
