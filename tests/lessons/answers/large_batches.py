"""Answers to the self-checks of 23_large_batches: right ones, and wrong ones that students give."""

import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tensorflow as tf


def pooled(start, rates, n):
    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(lambda rate: start(rate).wait(show=False), rates))


def polled(start, rates, n):
    jobs = []
    for rate in rates:
        while sum(job.state == "running" for job in jobs) >= n:
            pass
        jobs.append(start(rate))
    return [job.wait() for job in jobs]


def queued(start, rates, n):
    """Each waits for its place in a thread of its own."""
    places, jobs = threading.Semaphore(n), {}

    def one(rate):
        with places:
            jobs[rate] = start(rate)
            jobs[rate].wait(show=False)

    threads = [threading.Thread(target=one, args=(rate,)) for rate in rates]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {rate: jobs[rate] for rate in rates}.values()


def sliding(start, rates, n):
    """Waits for the oldest of those that run."""
    running, jobs = deque(), []
    for rate in rates:
        if len(running) == n:
            running.popleft().wait()
        running.append(start(rate))
        jobs.append(running[-1])
    while running:
        running.popleft().wait()
    return np.array(jobs, dtype=object)


def oldest_first(start, rates, n):
    return list(sliding(start, rates, n))


def not_to_the_end(start, rates, n):
    jobs = []
    for rate in rates:
        if len(jobs) >= n:
            jobs[-n].wait()
        jobs.append(start(rate))
    return jobs


def for_the_newest(start, rates, n):
    jobs = []
    for number, rate in enumerate(rates, 1):
        jobs.append(start(rate))
        if number >= n:
            jobs[-1].wait(show=False)
    return [job.wait(show=False) for job in jobs]


def for_the_first(start, rates, n):
    jobs = []
    for rate in rates:
        if len(jobs) >= n:
            jobs[0].wait(show=False)
        jobs.append(start(rate))
    return [job.wait(show=False) for job in jobs]


def taken_away(start, rates, n):
    jobs = []
    while rates:
        group = [start(rates.pop(0)) for _ in range(min(n, len(rates)))]
        jobs += [job.wait(show=False) for job in group]
    return jobs


def in_groups(start, rates, n):
    jobs = []
    for first in range(0, len(rates), n):
        group = [start(rate) for rate in rates[first : first + n]]
        jobs += [job.wait(show=False) for job in group]
    return jobs


def in_groups_polled(start, rates, n):
    jobs = []
    for first in range(0, len(rates), n):
        jobs += [start(rate) for rate in rates[first : first + n]]
        while any(job.state == "running" for job in jobs):
            time.sleep(0.001)
    return jobs


def looking(start, rates, n):
    """Starts the next one in the place of any that has ended."""
    jobs, left = [], list(rates)
    while left or any(job.state == "running" for job in jobs):
        while left and len([job for job in jobs if job.state == "running"]) < n:
            jobs.append(start(left.pop(0)))
        time.sleep(0.001)
    return jobs


def two_points(batches, steps):
    first, last = steps[0], steps[-1]
    slope = (first - last) / (1 / batches[0] - 1 / batches[-1])
    return last - slope / batches[-1], slope / (last - slope / batches[-1])


def line(batches, steps, x=lambda b: 1 / b, **options):
    return np.polyfit(x(np.array(batches, float)), steps, 1, **options)


def curve(batches, steps, **options):
    from scipy.optimize import curve_fit

    return curve_fit(lambda b, least, size: least * (1 + size / b), batches, steps, p0=(10, 10), **options)[0]


def of_logarithms(batches, steps):
    from scipy.optimize import curve_fit

    return curve_fit(lambda b, least, size: np.log(least * (1 + size / b)), batches, np.log(steps), p0=(10, 10))[0]


def over_batches(batches, steps):
    """Examples S x B are a line over B."""
    least, crossing = np.polyfit(batches, [size * count for size, count in zip(batches, steps, strict=True)], 1)
    return least, crossing / least


def by_least_squares(batches, steps):
    rows = np.column_stack([np.ones(len(batches)), 1 / np.array(batches)]) / np.array(steps)[:, None]
    least, slope = np.linalg.lstsq(rows, np.ones(len(steps)), rcond=None)[0]
    return tf.constant([least, slope / least])


def trace(s, m, b, k):
    return (s - m) / (1 / b - 1 / (b * k))


def signal(s, m, b, k):
    return (k * m - s) / (k - 1)


def if_there_is_a_signal(s, m, b, k):
    square = signal(s, m, b, k)
    if square <= 0:
        return float("nan")
    return trace(s, m, b, k) / square


ANSWERS = {
    "batches.2": dict(
        right=[
            (lambda n, b, e: n // b * e,),
            (lambda n, b, e: sum(len(range(0, n - b + 1, b)) for _ in range(e)),),
            (lambda n, b, e: np.floor(n / b) * e,),
            (lambda n, b, e: e * (n - n % b) / b,),
        ],
        wrong=[
            (lambda n, b, e: n // b,),
            (lambda n, b, e: n * e,),
            (lambda n, b, e: -(-n // b) * e,),
            (lambda n, b, e: n * e // b,),
            (lambda n, b, e: n * e / b,),
            (lambda n, b, e: b * e,),
            (lambda n, b, e: (n // b + 1) * e,),
            (lambda n, b, e: round(n / b) * e,),
            (lambda n, b, e: n // b * b * e,),
            (lambda n, b, e: n // (b * e),),
        ],
        secret=r"//",
    ),
    "batches.5": dict(
        right=[
            (lambda b, s: (lambda v: (v[1], v[0] / v[1]))(line(b, s, w=1 / np.array(s))),),
            (lambda b, s: (lambda v: [v[1], v[0] / v[1]])(line(b, s, w=100 / np.array(s))),),
            (lambda b, s: curve(b, s, sigma=s),),
            (of_logarithms,),
            (by_least_squares,),
        ],
        wrong=[
            (lambda b, s: (lambda v: (v[0] / v[1], v[1]))(line(b, s)),),
            (lambda b, s: (lambda v: (v[1], v[0]))(line(b, s)),),
            (lambda b, s: (lambda v: (v[1], v[1] / v[0]))(line(b, s)),),
            (lambda b, s: tuple(line(b, s, lambda x: x)),),
            (lambda b, s: (min(s), b[0] * (s[0] / min(s) - 1)),),
            (two_points,),
            (lambda b, s: line(b, s)[1],),
            (lambda b, s: (s.sort() or 1, 2),),
            (lambda b, s: line(b, s),),
            (lambda b, s: (line(b, s)[0], line(b, s)[1] / line(b, s)[0]),),
            (lambda b, s: (line(b, s)[1], -line(b, s)[0] / line(b, s)[1]),),
            (lambda b, s: (lambda v: (np.exp(v[1]), -v[0]))(np.polyfit(np.log(b), np.log(s), 1)),),
            (lambda b, s: dict(zip(("S_min", "B_crit"), curve(b, s), strict=True)),),
            (lambda b, s: (lambda v: (v[1], v[0] / v[1]))(line(b, s)),),
            (lambda b, s: (lambda v: (v[1], v[0] / v[1]))(line(b, s, w=s)),),
            (lambda b, s: (lambda v: (v[1], v[0] / v[1]))(line(b, s, w=1 / np.array(s) ** 2)),),
            (over_batches,),
            (curve,),
            (lambda b, s: (lambda v: (v[1], v[0] / v[1]))(line(b, s, w=1 / np.array(b))),),
            (lambda b, s: (lambda v: (v[1], v[0] / v[1]))(line(b, s, lambda x: x, w=1 / np.array(s))),),
            (lambda b, s: tuple(map(round, by_least_squares(b, s).numpy().tolist())),),
            (lambda b, s: (lambda v: (int(v[0]), v[1]))(by_least_squares(b, s).numpy().tolist()),),
        ],
        secret=r"1 ?/ ?(np\.array\()?steps",
        same=[(6, 12), (8, 9), (13, 17), (3, 19), (20, 21)],  # not two; slope stands first; no weights; over B; rounded
    ),
    "batches.6": dict(
        right=[(2, 2), (2.0, 2.0)], wrong=[(1, 2), (4, 2), (2, 1), (2, 4), (2, 3)], secret=r"\btwice\b|\bis 2\b"
    ),
    "batches.13": dict(
        right=[
            (lambda s, m, b, k: trace(s, m, b, k) / signal(s, m, b, k),),
            (lambda s, m, b, k: b * k * (s - m) / (k * m - s),),
            (lambda s, m, b, k: (lambda t: t / (s - t / b))((s - m) * b * k / (k - 1)),),
            (lambda s, m, b, k: (lambda x: x[1] / x[0])(np.linalg.solve([[1, 1 / b], [1, 1 / b / k]], [s, m])),),
            (lambda s, m, b, k: (lambda t, g: t / g)(*np.polyfit([1 / b, 1 / (b * k)], [s, m], 1)),),
            (lambda s, m, b, k: np.where(signal(s, m, b, k) > 0, trace(s, m, b, k) / signal(s, m, b, k), np.nan),),
        ],
        wrong=[
            (lambda s, m, b, k: signal(s, m, b, k) / trace(s, m, b, k),),
            (lambda s, m, b, k: trace(s, m, b, k) / m,),
            (lambda s, m, b, k: trace(s, m, b, k) / s,),
            (trace,),
            (signal,),
            (lambda s, m, b, k: (s - m) / (1 - 1 / k) / signal(s, m, b, k),),
            (lambda s, m, b, k: (s - m) / (1 / b - 1 / k) / ((k * m - b * s) / (k - b)),),
            (lambda s, m, b, k: s / m,),
            (lambda s, m, b, k: b * k,),
            (lambda s, m, b, k: np.round(trace(s, m, b, k) / signal(s, m, b, k)),),
            (lambda s, m, b, k: trace(m, s, b, k) / signal(s, m, b, k),),
            (lambda s, m, b, k: (s - m) / signal(s, m, b, k),),
            (lambda s, m, b, k: (s - m) / (1 / b - 1 / k) / signal(s, m, b, k) if k != b else 0,),
            (lambda s, m, b, k: b * (s - m) / m,),
            (lambda s, m, b, k: np.sqrt(trace(s, m, b, k) / signal(s, m, b, k)),),
            (if_there_is_a_signal,),
            (lambda s, m, b, k: int(trace(s, m, b, k) / signal(s, m, b, k)),),
            (lambda s, m, b, k: np.mean(trace(s, m, b, k) / signal(s, m, b, k)),),
            (lambda s, m, b, k: round(trace(s, m, b, k) / signal(s, m, b, k), 2),),
        ],
        secret=r"local_square - mean_square|/ \(",
        same=[(6, 12), (9, 16), (9, 18), (16, 18)],  # the larger batch is taken for K; rounded
        raises=[15],
    ),
    "batches.8": dict(
        right=[
            (lambda start, rates, n: polled(start, rates, n),),
            (pooled,),
            (looking,),
            (lambda start, rates, n: pooled(start, rates, n),),
            (queued,),
            (sliding,),
        ],
        wrong=[
            (lambda start, rates, n: [start(rate).wait() for rate in rates],),
            (lambda start, rates, n: [job.wait() for job in [start(rate) for rate in rates]],),
            (lambda start, rates, n: [start(rate) for rate in rates][:n],),
            (lambda start, rates, n: pooled(start, rates, n + 1),),
            (lambda start, rates, n: oldest_first(start, rates, n)[:1],),
            (lambda start, rates, n: [job.rate for job in oldest_first(start, rates, n)],),
            (lambda start, rates, n: oldest_first(start, rates[::-1], n),),
            (lambda start, rates, n: oldest_first(start, rates[1:], n),),
            (lambda start, rates, n: oldest_first(start, [*rates, *rates], n),),
            (lambda start, rates, n: rates,),
            (not_to_the_end,),
            (for_the_newest,),
            (for_the_first,),
            (in_groups,),
            (in_groups_polled,),
            (taken_away,),
            (lambda start, rates, n: start(rates).wait(),),
            (lambda start, rates, n: (job for job in oldest_first(start, rates, n)),),
            (lambda start, rates, n: oldest_first(start, rates[: len(rates) // n * n], n),),
            (lambda start, rates, n: dict(zip(rates, oldest_first(start, rates, n), strict=True)),),
        ],
        secret=r"\.wait\(",
        same=[(1, 2), (13, 14)],  # all at once; a whole group
        raises=[15],
    ),
    "batches.15": dict(
        right=[(81,), (27 + 18 + 18 + 18,)], wrong=[(729,), (108,), (40,), (27,), (100,)], secret=r"\b81\b"
    ),
    "batches.16": dict(
        right=[
            ("can't tell", [0.01, -0.02, 0.004, 0.02, 0.012]),
            ("Better ", [0.01, 0.012, 0.009]),
            ("worse", [-0.01, -0.012, -0.009]),
            ("cannot tell", [0.01, -0.02, 0.004, 0.02, 0.012]),
        ],
        wrong=[
            ("better", [0.01, -0.02, 0.004, 0.02, 0.012]),
            ("can't tell", [0.01, 0.012, 0.009]),
            ("better", [-0.01, -0.012, -0.009]),
            ("yes", [0.01, 0.012, 0.009]),
        ],
        secret=r"\b(better|worse)\b.*\b(is|are) right",
    ),
    "batches.11": dict(
        right=[(1 - 0.99**64,), (0.474,), (0.47,), ("0.4744",)],
        wrong=[(47.4,), (0.99**64,), (0.64,), (0.01,), (1e-128,), (0.9,), (1 - 0.99**63,), (1 - 0.01**64,)],
        secret=r"0\.47|\*\*",
    ),
}
