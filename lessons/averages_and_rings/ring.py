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
import runpy
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import wait

import numpy as np

from labs import devices, files, jobs, presets
from labs.errors import LabsError
from labs.results import metrics

KINDS = "ring", "server"


def run(reduce_scatter, all_gather, name="ring", **options):
    """Run both functions among processes, in a job; returns what `measure` gives, None if the job failed and said why.

    Rounds in which other programs ran are left out as in a study (labs.results.metrics.undisturbed), which is printed.
    The functions go along as text, with `np`: what else they use they must import themselves. The preset `test`, which
    measures nothing that is read, has three rounds.
    """
    written = [textwrap.dedent(inspect.getsource(function)) for function in (reduce_scatter, all_gather)]
    program = (jobs.folder() / f"{name}_functions.py").resolve()
    files.write(program, "\n\n".join(["import numpy as np\n", *written]).encode())
    if presets.choose().name == "test":
        options["rounds"] = 3
    options |= {"functions": [reduce_scatter.__name__, all_gather.__name__], "program": str(program)}
    job = jobs.run("-m", "lessons.averages_and_rings.ring", json.dumps(options), name=name)
    if job.state != "finished":
        return None
    found = json.loads(job.out.read_text().splitlines()[-1])
    counted, note = metrics.undisturbed(dict(enumerate(found["others"])))
    if note:
        print(f"Mind that {note}.")
    return found | {"seconds": {kind: [times[n] for n in counted] for kind, times in found["seconds"].items()}}


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
    working = processes
    while working:
        wait([process.sentinel for process in working])
        working = [process for process in processes if process.is_alive()]
        if any(process.exitcode for process in processes):  # also of one that had failed before
            raise LabsError("A worker has failed, and the others would wait for it: its message is above.")
    rows = [row for _, row in sorted(told.get() for _ in processes)]
    seconds = {kind: np.max([row["seconds"][kind] for row in rows], axis=0)[1:].tolist() for kind in KINDS}
    return {
        "sums": {kind: all(row["sums"][kind] for row in rows) for kind in KINDS},
        "bytes": {kind: [row["bytes"][kind] for row in rows] for kind in KINDS},
        "seconds": seconds,
        "others": devices.others([row["moments"] for row in rows])[1:],
    }


def _work(worker, reduce_scatter, all_gather, ring, star, start, told, numbers, rounds):
    """One worker: it does each kind of sum in turn, and tells what it saw."""
    workers, cores = len(ring), sorted(os.sched_getaffinity(0))
    threads, sent = ThreadPoolExecutor(), dict.fromkeys(KINDS, 0)

    def exchange(array):
        """Send to the next worker, and receive from the one before, at once: else all would wait to be heard."""
        array = np.ascontiguousarray(array, np.float32)
        sent["ring"] += array.nbytes
        sending = threads.submit(ring[worker][1].send_bytes, array)
        received = np.frombuffer(ring[worker - 1][0].recv_bytes(), np.float32).copy()  # bytes cannot be changed
        sending.result()
        return received

    def by_ring(gradient):
        chunks = np.array_split(gradient, workers)
        for function in (reduce_scatter, all_gather):
            given = function(worker, workers, chunks, exchange)
            chunks = chunks if given is None else given
        return np.concatenate(chunks)

    def by_server(gradient):
        server, others = star[worker][0], [pipe for _, pipe in star[1:]]
        if worker:
            server.send_bytes(gradient)
            sent["server"] += gradient.nbytes
            return np.frombuffer(server.recv_bytes(), np.float32)
        for pipe in others:
            gradient += np.frombuffer(pipe.recv_bytes(), np.float32)
        list(threads.map(lambda pipe: pipe.send_bytes(gradient), others))
        sent["server"] += gradient.nbytes * len(others)
        return gradient

    seconds, right, moments = {kind: [] for kind in KINDS}, dict.fromkeys(KINDS, True), [devices.moment()]
    own, whole = np.arange(numbers) % 100 + worker, np.arange(numbers) % 100 * workers + sum(range(workers))
    ways, order = [("ring", by_ring), ("server", by_server)], random.Random(0)  # one order for all workers
    for _ in range(rounds):
        os.sched_setaffinity(0, {cores[worker % len(cores)]})
        for kind, summed in order.sample(ways, len(ways)):
            gradient = own.astype(np.float32)
            start.wait()
            begin = time.perf_counter()
            total = summed(gradient)
            seconds[kind].append(time.perf_counter() - begin)
            right[kind] &= np.array_equal(total, whole)
        os.sched_setaffinity(0, cores)  # only from all of them a moment tells what other programs do
        moments.append(devices.moment())
    found = {"sums": right, "bytes": {k: n // rounds for k, n in sent.items()}, "seconds": seconds}
    told.put((worker, found | {"moments": moments}))


def main():
    options = json.loads(sys.argv[1])
    written = runpy.run_path(options.pop("program"))
    found = measure(*map(written.get, options.pop("functions")), **options)
    for kind, right in found["sums"].items():
        print(f"{kind}: every worker had the whole sum each time: {right}")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
