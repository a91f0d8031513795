"""Answers to the self-checks of 09_why_scaling_fails: right ones, and wrong ones that students give."""

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tensorflow as tf
from making import swapped

LOOP = """    for number, (images, labels) in enumerate(batches, 1):
        step(images, labels)
        if number % k == 0:
            for variable in [*weights, *optimizer.momentums]:
                variable.assign(horovod.allreduce(variable.value, op=horovod.Average))
"""
MEAN = """            for variable in [*weights, *optimizer.momentums]:
                variable.assign(horovod.allreduce(variable.value, op=horovod.Average))
"""
APPLY = "        optimizer.apply(tape.gradient(value, weights), weights)\n"
AVERAGED = """        gradients = [horovod.allreduce(gradient) for gradient in tape.gradient(value, weights)]
        optimizer.apply(gradients, weights)
"""
VALUE = "horovod.allreduce(variable.value, op=horovod.Average)"
PARAMETERS = 1000

# Loops that are written otherwise
GROUPED = """    changed = [v.value for v in [*weights, *optimizer.variables] if v.dtype == "float32"]
    batches = iter(batches)
    while group := [batch for _, batch in zip(range(k), batches)]:
        for images, labels in group:
            step(images, labels)
        for variable, mean in zip(changed, horovod.grouped_allreduce(changed)):
            variable.assign(mean)
"""
ONE_VECTOR = """    taken = 0
    for images, labels in batches:
        step(images, labels)
        taken += 1
        if taken == k:
            taken, parts = 0, [*weights, *optimizer.momentums]
            flat = tf.concat([tf.reshape(part.value, [-1]) for part in parts], 0)
            mean = horovod.allreduce(flat, op=horovod.Sum) / hvd.size()
            for part, new in zip(parts, tf.split(mean, [tf.size(part.value) for part in parts])):
                part.assign(tf.reshape(new, part.shape))
"""
OF_KERAS = """    model.compile(optimizer, loss)
    for number, batch in enumerate(batches):
        model.train_on_batch(*batch)
        if number % k == k - 1:
            model.set_weights([horovod.allreduce(each).numpy() for each in model.get_weights()])
            for speed in optimizer.momentums:
                speed.assign(hvd.allreduce(speed))
"""
# and three that are wrong
COLLECTED = """    total = [tf.zeros_like(weight.value) for weight in weights]
    for number, (images, labels) in enumerate(batches, 1):
        with tf.GradientTape() as tape:
            value = loss(labels, model(images))
        total = [a + b for a, b in zip(total, tape.gradient(value, weights))]
        if number % k == 0:
            optimizer.apply([horovod.allreduce(each / k) for each in total], weights)
            total = [0 * each for each in total]
"""
REPEATED = """    for images, labels in batches:
        for _ in range(k):
            step(images, labels)
""" + MEAN.replace("\n    ", "\n").removeprefix("    ")
ALL_TAKEN = "    batches = list(batches)\n" + LOOP
BY_HAND = """    speeds = [tf.Variable(tf.zeros_like(weight.value)) for weight in weights]
    momentum, rate = optimizer.momentum, float(optimizer.learning_rate)
    for number, (images, labels) in enumerate(batches):
        with tf.GradientTape() as tape:
            value = loss(labels, model(images, training=True))
        for speed, weight, gradient in zip(speeds, weights, tape.gradient(value, [w.value for w in weights])):
            speed.assign(momentum * speed - rate * gradient)
            weight.assign_add(speed)
        if (number + 1) % k == 0:
            for variable in speeds + [weight.value for weight in weights]:
                variable.assign(horovod.allreduce(variable))
"""


def script(*pairs):
    """Answer: the script with some text replaced."""
    return swapped("scripts/local_sgd.py", *pairs)


def mean(*pairs):
    """The script with some text of its last line replaced."""
    return script(*((MEAN, MEAN.replace(*pair)) for pair in pairs))


def loop(text):
    return script((LOOP, text))


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


def two_points(batches, steps):
    first, last = steps[0], steps[-1]
    slope = (first - last) / (1 / batches[0] - 1 / batches[-1])
    return last - slope / batches[-1], slope / (last - slope / batches[-1])


def line(batches, steps, x=lambda b: 1 / b, **options):
    return np.polyfit(x(np.array(batches, float)), steps, 1, **options)


def curve(batches, steps):
    from scipy.optimize import curve_fit

    return curve_fit(lambda b, least, size: least * (1 + size / b), batches, steps, p0=(10, 10))[0]


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
    "09.1": dict(
        right=[(443 / 73,), (6,), (6.07,), (6.1,)],
        wrong=[(73 / 443,), (370,), (370 / 73,), (8,), (4,), (2,)],
        secret=r"\b6\b|\bsix\b|6\.",
    ),
    "09.3": dict(
        right=[
            (lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k + e),),
            (lambda s, c, e, k: 1 / ((s + e + 32 / k * c) / (s + 32 * c)),),
            (lambda s, c, e, k: np.float32(s + 32 * c) / (s + c * (32 / k) + (e if k > 1 else 0)),),
        ],
        wrong=[
            (lambda s, c, e, k: (s + 32 * c / k + e) / (s + 32 * c),),
            (lambda s, c, e, k: (s + 32 * c) / ((s + 32 * c) / k + e),),
            (lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k),),
            (lambda s, c, e, k: 32 * c / (32 * c / k + e),),
            (lambda s, c, e, k: (s + 32 * c) / (s + 32 * c + e),),
            (lambda s, c, e, k: k * (s + 32 * c) / (s + 32 * c + e),),
            (lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k + e / k),),
            (lambda s, c, e, k: (s + c) / (s + c / k + e),),
            (lambda s, c, e, k: k,),
            (lambda s, c, e, k: (s + 32 * k * c) / (s + 32 * c + e),),
            (lambda s, c, e, k: (s + 32 * c + e) / (s + 32 * c / k + e),),
            (lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k + k * e),),
            (lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k + (k - 1) * e),),
            (lambda s, c, e, k: (s + 32 * c) / (32 * c / k + e),),
            (lambda s, c, e, k: (s + 32 * c) - (s + 32 * c / k + e),),
            (lambda s, c, e, k: s + 32 * c / k + e,),
            (lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k + e) / k,),
            (lambda s, c, e, k: s + 32 * c / (s + 32 * c / k + e),),
        ],
        secret=r"32 \*|/ ranks",
        same=[(11, 12)],  # the exchange is counted several times
    ),
    "09.7": dict(
        right=[(4, 16000, PARAMETERS), (4.0, 16e3, PARAMETERS), ("4", "16000", PARAMETERS)],
        wrong=[
            (512, 16000, PARAMETERS),
            (128, 16000, PARAMETERS),
            (384, 16000, PARAMETERS),
            (3, 16000, PARAMETERS),
            (4, 4000, PARAMETERS),
            (4, 1000, PARAMETERS),
            (4, 2048000, PARAMETERS),
            (4, 0.016, PARAMETERS),
            (4, 5, PARAMETERS),
        ],
        secret=r"16,?000|512 / 128",
    ),
    "09.11": dict(
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
    "09.14": dict(
        right=[
            (lambda b, s: (lambda v: (v[1], v[0] / v[1]))(line(b, s, w=1 / np.array(s))),),
            (lambda b, s: (lambda v: [v[1], v[0] / v[1]])(line(b, s)),),
            (curve,),
            (over_batches,),
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
        ],
        secret=r"polyfit",
        same=[(6, 12), (8, 9)],  # not two numbers; the slope stands first
    ),
    "09.15": dict(
        right=[(2, 2), (2.0, 2.0)], wrong=[(1, 2), (4, 2), (2, 1), (2, 4), (2, 3)], secret=r"\btwice\b|\bis 2\b"
    ),
    "09.17": dict(
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
            (lambda s, m, b, k: np.mean(trace(s, m, b, k) / signal(s, m, b, k)),),
        ],
        secret=r"local_square - mean_square|/ \(",
        same=[(6, 12)],  # the larger batch is taken for K
        raises=[15],
    ),
    "09.20": dict(
        right=[
            (lambda start, rates, n: polled(start, rates, n),),
            (pooled,),
            (in_groups,),
            (lambda start, rates, n: pooled(start, rates, n),),
            (queued,),
            (sliding,),
        ],
        wrong=[
            (lambda start, rates, n: [start(rate).wait() for rate in rates],),
            (lambda start, rates, n: [job.wait() for job in [start(rate) for rate in rates]],),
            (lambda start, rates, n: [start(rate) for rate in rates][:n],),
            (lambda start, rates, n: pooled(start, rates, n + 1),),
            (lambda start, rates, n: in_groups(start, rates, n)[:1],),
            (lambda start, rates, n: [job.rate for job in in_groups(start, rates, n)],),
            (lambda start, rates, n: in_groups(start, rates[::-1], n),),
            (lambda start, rates, n: in_groups(start, rates[1:], n),),
            (lambda start, rates, n: in_groups(start, [*rates, *rates], n),),
            (lambda start, rates, n: rates,),
            (lambda start, rates, n: [*in_groups(start, rates[:-1], n), start(rates[-1])],),
            (for_the_newest,),
            (for_the_first,),
            (taken_away,),
            (lambda start, rates, n: start(rates).wait(),),
            (lambda start, rates, n: (job for job in in_groups(start, rates, n)),),
            (lambda start, rates, n: in_groups(start, rates[: len(rates) // n * n], n),),
            (lambda start, rates, n: dict(zip(rates, in_groups(start, rates, n), strict=True)),),
        ],
        secret=r"\.wait\(",
        same=[(1, 2)],  # both start all at once
        raises=[13],
    ),
    "09.21": dict(right=[(81,), (27 + 18 + 18 + 18,)], wrong=[(729,), (108,), (40,), (27,), (100,)], secret=r"\b81\b"),
    "09.26": dict(
        right=[
            ("can't tell", [0.01, -0.02, 0.004, 0.02, 0.012]),
            ("Better ", [0.01, 0.012, 0.009]),
            ("worse", [-0.01, -0.012, -0.009]),
        ],
        wrong=[
            ("better", [0.01, -0.02, 0.004, 0.02, 0.012]),
            ("can't tell", [0.01, 0.012, 0.009]),
            ("better", [-0.01, -0.012, -0.009]),
            ("yes", [0.01, 0.012, 0.009]),
        ],
        secret=r"\b(better|worse)\b.*\b(is|are) right",
    ),
    "09.24": dict(
        right=[(1 - 0.99**64,), (0.474,), (0.47,), ("0.4744",)],
        wrong=[(47.4,), (0.99**64,), (0.64,), (0.01,), (1e-128,), (0.9,)],
        secret=r"0\.47|\*\*",
    ),
    "09.5": dict(
        right=[script(), loop(GROUPED), loop(ONE_VECTOR), loop(BY_HAND), loop(OF_KERAS)],
        wrong=[
            mean(("op=horovod.Average", "op=horovod.Sum")),
            mean((VALUE, "horovod.allreduce(variable.value, op=horovod.Sum) / k")),
            mean(("[*weights, *optimizer.momentums]", "weights")),
            mean((VALUE, "horovod.broadcast(variable.value, 0)")),
            script((LOOP, "    for images, labels in batches:\n        step(images, labels)\n"), (APPLY, AVERAGED)),
            script((LOOP, LOOP.replace("batches, 1", "batches"))),
            script((LOOP, LOOP.replace("number % k == 0", "False"))),
            script((LOOP, LOOP.replace("number % k == 0", "number % k == 1"))),
            loop("    return step\n"),
            script(("def local_sgd(", "def train(")),
            script(("[*weights, *optimizer.momentums]", "[*model.weight, *optimizer.momentums]")),
            mean((VALUE, f"{VALUE} / horovod.size()")),
            script((LOOP, LOOP.replace("number % k == 0", "number % k == k - 1"))),
            loop(COLLECTED),
            loop(REPEATED),
            loop(ALL_TAKEN),
            loop("    optimizer = hvd.DistributedOptimizer(optimizer)\n" + LOOP.partition("        if")[0]),
        ],
        same=[(4, 16)],  # both average the gradients of every step
        secret=r"momentums|Average|number % k",
    ),
}
