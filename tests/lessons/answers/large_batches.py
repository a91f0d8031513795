"""Answers to the self-checks of 23_large_batches: right ones, and wrong ones that students give."""

from collections import deque
from concurrent.futures import ThreadPoolExecutor


def pooled(start, rates, n):
    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(lambda rate: start(rate).wait(show=False), rates))


def sliding(start, rates, n, last=True, oldest=True):
    """Waits for the oldest of those that run."""
    running, jobs = deque(), []
    for rate in rates:
        if len(running) == n:
            (running.popleft() if oldest else running.pop()).wait()
        running.append(start(rate))
        jobs.append(running[-1])
    while running and last:
        running.popleft().wait()
    return jobs


def looking(start, rates, n):
    jobs = []
    for rate in rates:
        while sum(job.state == "running" for job in jobs) == n:
            pass
        jobs.append(start(rate))
    return [job.wait() for job in jobs]


def in_groups(start, rates, n):
    jobs = []
    for first in range(0, len(rates), n):
        jobs += [start(rate) for rate in rates[first : first + n]]
        for job in jobs[first:]:
            job.wait(show=False)
    return jobs


ALL, SOME = [0.01, 0.012, 0.009], [0.01, -0.02, 0.004, 0.02, 0.012]

CHANGES = {1: 0.005, 4: 0.02}  # of W in the notebook, by replicas

ANSWERS = {
    "batches.8": dict(
        right=[(pooled,), (sliding,), (looking,)],
        wrong=[
            (lambda start, rates, n: pooled(start, rates, n + 1),),
            (lambda start, rates, n: sliding(start, rates, n, oldest=False),),
            (in_groups,),
            (lambda start, rates, n: [job.rate for job in sliding(start, rates, n)],),
            (lambda start, rates, n: sliding(start, rates[::-1], n),),
            (lambda start, rates, n: sliding(start, rates[1:], n),),
            (lambda start, rates, n: sliding(start, rates, n, last=False),),
        ],
        secret=r"\.wait\(",
    ),
    "batches.16": dict(
        right=[("cannot tell", SOME), ("Better ", ALL), ("worse", [-gain for gain in ALL])],
        wrong=[("better", SOME), ("can't tell", ALL)],
    ),
    "batches.19": dict(
        right=[(0.005 / 4, CHANGES), ("1.25e-3", CHANGES)],
        wrong=[(bound, CHANGES) for bound in (0.005, 0.0025, 0.0013, 0.001)],
        secret=r"0?\.00125|1\.25e-0?3|/ ?4\b",
    ),
}
