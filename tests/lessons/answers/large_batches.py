"""Answers to the self-checks of 23_large_batches: right ones, and wrong ones that students give."""

from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tensorflow as tf
from answers.where_a_step_goes import formulas


def pooled(start, rates, n):
    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(lambda rate: start(rate).wait(show=False), rates))


def sliding(start, rates, n, last=True):
    """Waits for the oldest of those that run."""
    running, jobs = deque(), []
    for rate in rates:
        if len(running) == n:
            running.popleft().wait()
        running.append(start(rate))
        jobs.append(running[-1])
    while running and last:
        running.popleft().wait()
    return jobs


def in_groups(start, rates, n):
    jobs = []
    for first in range(0, len(rates), n):
        jobs += [start(rate) for rate in rates[first : first + n]]
        for job in jobs[first:]:
            job.wait(show=False)
    return jobs


def two_points(batches, steps):
    first, last = steps[0], steps[-1]
    slope = (first - last) / (1 / batches[0] - 1 / batches[-1])
    return last - slope / batches[-1], slope / (last - slope / batches[-1])


def line(w):
    """batches.5 by a line over 1 / B with these weights."""

    def fit(batches, steps):
        slope, least = np.polyfit(1 / np.array(batches, float), steps, 1, w=w(np.array(steps)))
        return least, slope / least

    return (fit,)


def by_least_squares(batches, steps):
    rows = np.column_stack([np.ones(len(batches)), 1 / np.array(batches)]) / np.array(steps)[:, None]
    least, slope = np.linalg.lstsq(rows, np.ones(len(steps)), rcond=None)[0]
    return tf.constant([least, slope / least])


def trace(s, m, b, k):
    return (s - m) / (1 / b - 1 / (b * k))


def signal(s, m, b, k):
    return (k * m - s) / (k - 1)


def right(s, m, b, k):
    return trace(s, m, b, k) / signal(s, m, b, k)


ALL = [0.01, 0.012, 0.009]
CHANGES = {1: 0.005, 4: 0.02}  # of W in the notebook, by replicas

ANSWERS = {
    "batches.2": dict(
        right=[(lambda n, b, e: n // b * e,), (lambda n, b, e: np.floor(n / b) * e,)],
        wrong=formulas({}, "n, b, e", "-(-n // b) * e", "n * e // b", "round(n / b) * e"),
        secret=r"//",
    ),
    "batches.5": dict(
        right=[line(lambda s: 1 / s), (by_least_squares,)],
        wrong=[
            (lambda b, s: line(lambda s: 1 / s)[0](b, s)[::-1],),
            (lambda b, s: (by_least_squares(b, s), s.sort())[0],),
            (two_points,),
            line(np.ones_like),
            line(lambda s: 1 / s**2),
        ],
        secret=r"1 ?/ ?(np\.array\()?steps",
    ),
    "batches.6": dict(right=[(2, 2)], wrong=[(1, 2), (2, 1)], secret=r"\btwice\b|\bis 2\b"),
    "batches.13": dict(
        right=[(right,), (lambda s, m, b, k: np.where(signal(s, m, b, k) > 0, right(s, m, b, k), np.nan),)],
        wrong=formulas(
            globals(),
            "s, m, b, k",
            "right(s, m, b, k) if signal(s, m, b, k) > 0 else float('nan')",
            "trace(s, m, b, k) / m",
            "np.mean(right(s, m, b, k))",
        ),
        secret=r"local_square - mean_square|/ \(",
        raises=[0],
    ),
    "batches.8": dict(
        right=[(pooled,), (sliding,)],
        wrong=[
            (lambda start, rates, n: [start(rate).wait() for rate in rates],),
            (lambda start, rates, n: pooled(start, rates, n + 1),),
            (lambda start, rates, n: sliding(start, rates, n)[:1],),
            (lambda start, rates, n: [job.rate for job in sliding(start, rates, n)],),
            (lambda start, rates, n: sliding(start, rates[::-1], n),),
            (lambda start, rates, n: sliding(start, rates[1:], n),),
            (lambda start, rates, n: sliding(start, [*rates, *rates], n),),
            (lambda start, rates, n: sliding(start, rates, n, last=False),),
            (in_groups,),
        ],
        secret=r"\.wait\(",
    ),
    "batches.15": dict(right=[(81,)], wrong=[(729,), (108,)], secret=r"\b81\b"),
    "batches.16": dict(
        right=[
            ("cannot tell", [0.01, -0.02, 0.004, 0.02, 0.012]),
            ("Better ", ALL),
            ("worse", [-0.01, -0.012, -0.009]),
        ],
        wrong=[("better", [0.01, -0.02, 0.004, 0.02, 0.012]), ("can't tell", ALL)],
        secret=r"\b(better|worse)\b.*\b(is|are) right",
    ),
    "batches.11": dict(right=[(0.474,), ("0.4744",)], wrong=[(47.4,), (1 - 0.99**63,)], secret=r"0\.47|\*\*"),
    "batches.19": dict(
        right=[(0.005 / 4, CHANGES), ("1.25e-3", CHANGES)],
        wrong=[(bound, CHANGES) for bound in (0.005, 0.005 / 2)],
        secret=r"0?\.00125|1\.25e-0?3|/ ?4\b",
    ),
    "batches.20": dict(
        right=[
            (lambda r, k: (r * k, r * k**0.5, r * k ** (2 / 3)),),
            (lambda r, k: [r * k, f"{r * k**0.5}", r * k**0.6666667],),
        ],
        wrong=[
            (lambda r, k: r * k,),
            (lambda r, k: (r * k**0.5, r * k, r * k ** (2 / 3)),),
            (lambda r, k: (r * k, r * k**0.5, r * k**2 / 3),),
        ],
        secret=r"\*\* ?0\.5|sqrt",
    ),
}
