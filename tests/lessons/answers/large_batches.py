"""Answers to the self-checks of 23_large_batches: right ones, and wrong ones that students give."""

from concurrent.futures import ThreadPoolExecutor


def pooled(start, rates, n):
    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(lambda rate: start(rate).wait(show=False), rates))


WAITS = "if number >= at_a_time:\n            started[number - at_a_time].wait(show=False)"
LOOKS = 'while sum(job.state == "running" for job in started) == at_a_time:\n            pass'
GROUPS = "for job in started if number % at_a_time == 0 else ():\n            job.wait()"
CHANGES = {1: 0.005, 4: 0.02}  # of W in the notebook, by replicas

RIGHT = [("batches.8", (pooled,)), ("batches.17", (0.005 / 4, CHANGES))]
WRONG = [("batches.17", (bound, CHANGES)) for bound in (0.005, 0.0025, 0.0013, 0.001)]
STYLES = [("batches.8", WAITS, LOOKS)]
MISTAKES = [
    ("batches.8", WAITS, WAITS.replace(">=", ">").replace("- at_a_time", "- at_a_time - 1")),
    ("batches.8", WAITS, WAITS.replace("number - at_a_time]", "-1]")),
    ("batches.8", WAITS, GROUPS),
    ("batches.8", "return started", "return [job.rate for job in started]"),
    ("batches.8", "(rates)", "(rates[::-1])"),
    ("batches.8", "(rates)", "(rates[1:])"),
    ("batches.8", "in started:\n", "in started[:-1]:\n"),
]
