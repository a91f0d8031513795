"""The student's ring among real processes, and a server beside it: how long, and how many bytes leave each process?

    python -m lessons.averages_and_rings.ring OPTIONS        OPTIONS: JSON, the arguments of `measure`

Each worker is a process with a core of its own as far as there are cores. A ring joins it with the next one, a second
connection with worker 0, which is the server.
"""

import inspect
import json
import multiprocessing
import os
import random
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np

from labs import devices, files, jobs, presets
from labs.errors import LabsError
from labs.results import metrics
from lessons import reduce


class RingError(LabsError):
    """The ring cannot run: the message says what to do."""


def run(reduce_scatter, all_gather, name="ring", **options):
    """Run both functions among processes, in a job; returns what `measure` gives, None if the job failed and said why.

    Rounds in which other programs ran are left out as in a study (labs.results.metrics.quiet), which is printed.
    The functions go along as text, with `np`: what else they use they must import themselves. The preset `test`, which
    measures nothing that is read, has three rounds at most.
    """
    try:
        written = [textwrap.dedent(inspect.getsource(function)) for function in (reduce_scatter, all_gather)]
    except (OSError, TypeError):
        raise RingError(
            "The text of a function was not found: define both with `def`, in a cell that you ran."
        ) from None
    program = (jobs.folder() / f"{name}_functions.py").resolve()
    files.write(program, "\n\n".join(["import numpy as np\n", *written]).encode())
    result = (jobs.folder() / f"{name}.seconds.json").resolve()
    result.unlink(missing_ok=True)
    if presets.choose().name == "test":
        options["rounds"] = min(options.get("rounds", 3), 3)
    options |= {"functions": [reduce_scatter.__name__, all_gather.__name__]}
    options |= {"program": str(program), "result": str(result)}
    job = jobs.run("-m", "lessons.averages_and_rings.ring", json.dumps(options), name=name)
    if job.state != "finished":
        return None
    found = json.loads(result.read_text(encoding="utf-8"))
    counted, note = metrics.quiet(dict(enumerate(found["others"])), "the ratio")
    if note:
        print(f"Mind that {note}.")
    return found | {"seconds": {kind: [all_[n] for n in counted] for kind, all_ in found["seconds"].items()}}


def measure(reduce_scatter, all_gather, workers=4, numbers=23_500_000, rounds=6):
    """Ring and server in turn, in random order, the first round of each left out: {sums, bytes, seconds, others}.

    sums: whether all workers had the whole sum each time, by kind ("ring", "server"); bytes: sent by each worker, by
    kind; seconds: of each round, by kind, until the last worker had the sum; others: see labs.devices.others.
    numbers: of a gradient, in float32.
    """
    forked = multiprocessing.get_context("fork")
    ring = [forked.Pipe(duplex=False) for _ in range(workers)]  # worker w sends by ring[w], and w + 1 receives
    star = [forked.Pipe() for _ in range(workers)]
    start, told = forked.Barrier(workers), forked.SimpleQueue()
    shared = reduce_scatter, all_gather, ring, star, start, told, numbers, rounds
    processes = [forked.Process(target=_work, args=(worker, *shared), daemon=True) for worker in range(workers)]
    for process in processes:
        process.start()
    for pipe in [end for pair in (*ring, *star) for end in pair]:
        pipe.close()
    rows = []
    while len(rows) < workers:
        if told.empty() and any(process.exitcode for process in processes):
            raise RingError("A worker has failed, and the others would wait for it: its message is above.")
        if told.empty():
            time.sleep(0.01)
        else:
            rows.append(told.get())
    rows = [row for _, row in sorted(rows)]
    kinds = "ring", "server"
    return {
        "sums": {kind: all(row["sums"][kind] for row in rows) for kind in kinds},
        "bytes": {kind: [row["bytes"][kind] for row in rows] for kind in kinds},
        "seconds": {
            kind: [max(times) for times in zip(*(row["seconds"][kind] for row in rows), strict=True)][1:]
            for kind in kinds
        },
        "others": devices.others([row["moments"] for row in rows])[1:],
    }


def _work(worker, reduce_scatter, all_gather, ring, star, start, told, numbers, rounds):
    """One worker: it does each kind of sum in turn, and tells what it saw."""
    workers = len(ring)
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[worker % len(cores)]})
    sent, parts = dict.fromkeys(("ring", "server"), 0), reduce.chunks(numbers, workers)

    def exchange(array):
        """Send to the next worker, and receive from the one before, at once: else all would wait to be heard."""
        array = np.ascontiguousarray(array, np.float32)
        sent["ring"] += array.nbytes
        sending = threading.Thread(target=ring[worker][1].send_bytes, args=(array,))
        sending.start()
        received = np.frombuffer(ring[worker - 1][0].recv_bytes(), np.float32).copy()  # bytes cannot be changed
        sending.join()
        return received

    def by_ring(gradient):
        chunks = [gradient[part] for part in parts]
        for function in (reduce_scatter, all_gather):
            given = function(worker, workers, chunks, exchange)
            chunks = chunks if given is None else given
        return np.concatenate(chunks)

    def by_server(gradient):
        if worker == 0:
            for _, pipe in star[1:]:
                gradient += np.frombuffer(pipe.recv_bytes(), np.float32)
            threads = [threading.Thread(target=pipe.send_bytes, args=(gradient,)) for _, pipe in star[1:]]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            sent["server"] += gradient.nbytes * len(threads)
            return gradient
        star[worker][0].send_bytes(gradient)
        sent["server"] += gradient.nbytes
        return np.frombuffer(star[worker][0].recv_bytes(), np.float32)

    def moment():
        """On all cores for an instant: only they tell what other programs do."""
        own = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cores)
        found = devices.moment()
        os.sched_setaffinity(0, own)
        return found

    seconds, right, moments = {"ring": [], "server": []}, {"ring": True, "server": True}, [moment()]
    own, whole = np.arange(numbers) % 100 + worker, np.arange(numbers) % 100 * workers + sum(range(workers))
    ways, order = [("ring", by_ring), ("server", by_server)], random.Random(0)  # one order for all workers
    for _ in range(rounds):
        for kind, summed in order.sample(ways, len(ways)):
            gradient = own.astype(np.float32)
            start.wait()
            begin = time.perf_counter()
            total = summed(gradient)
            seconds[kind].append(time.perf_counter() - begin)
            right[kind] &= np.array_equal(total, whole)
        moments.append(moment())
    found = {"sums": right, "bytes": {k: n // rounds for k, n in sent.items()}, "seconds": seconds}
    told.put((worker, found | {"moments": moments}))


def main():
    options = json.loads(sys.argv[1])
    names, program, result = {}, options.pop("program"), options.pop("result")
    exec(compile(Path(program).read_text(encoding="utf-8"), program, "exec"), names)
    found = measure(*map(names.get, options.pop("functions")), **options)
    files.write(Path(result), json.dumps(found).encode())
    for kind, right in found["sums"].items():
        print(f"{kind}: every worker had the whole sum each time: {right}")


if __name__ == "__main__":
    main()
