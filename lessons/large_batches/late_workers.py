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

import numpy as np

from labs import jobs
from lessons.when_workers_do_not_help import small, trials

WORKERS = 4


def run(name, **options):
    """Train in a job and return what `train` returns, or None if the job failed, which it has explained."""
    job = jobs.run("-m", "lessons.large_batches.late_workers", json.dumps(options), name=name)
    return json.loads(job.out.read_text().splitlines()[-1]) if job.state == "finished" else None


def train(backup=0, late_ms=20, order="shuffled", steps=300):
    """One run: {seconds (of each step), used (gradients of each worker that counted), accuracy (on the test)}.

    The last worker is the late one. order: of the shards of the data, as trials.shards of when_workers_do_not_help.
    """
    pipes, forked = [], multiprocessing.get_context("fork")
    for worker, numbers in enumerate(trials.shards(WORKERS, order)):
        ours, theirs = forked.Pipe()
        pause = late_ms / 1000 if worker == WORKERS - 1 else 0.0
        forked.Process(target=_work, args=(theirs, numbers, pause, (0, worker)), daemon=True).start()
        pipes.append(ours)
    weights, seconds, used, resting = small.begin(0), [], [0] * WORKERS, list(pipes)
    for step in range(steps):
        begin, came = time.perf_counter(), []
        for pipe in resting:
            pipe.send((step, weights))
        resting = []
        while len(came) < WORKERS - backup:
            for pipe in connection.wait(pipes):
                of_step, gradient = pipe.recv()
                resting.append(pipe)
                if of_step == step and len(came) < WORKERS - backup:
                    came.append(gradient)
                    used[pipes.index(pipe)] += 1
        weights = weights - 0.1 * np.mean(came, axis=0)
        seconds.append(time.perf_counter() - begin)
    for pipe in pipes:
        pipe.send(None)
    return {"seconds": seconds, "used": used, "accuracy": float(small.accuracy(weights, small.digits("test")))}


def _work(pipe, numbers, pause, seed):
    """Gradients of this worker's share, one for each weights that come, until None comes."""
    part, source = small.digits("train"), small.batches(16, seed, numbers)
    while (asked := pipe.recv()) is not None:
        step, weights = asked
        drawn = next(source)
        found = small.gradient(weights, part.images[drawn], part.labels[drawn])
        time.sleep(pause)
        pipe.send((step, found))


if __name__ == "__main__":
    print(json.dumps(train(**json.loads(sys.argv[1]))))
