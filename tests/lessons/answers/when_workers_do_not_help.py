"""Answers to the self-checks of 22_when_workers_do_not_help: right ones, and wrong ones that students give."""

import numpy as np
from answers.memory_and_exchange import solution
from answers.where_a_step_goes import formulas
from making import swapped

LOOP = solution("scripts/local_sgd.py", 1)
MEAN = LOOP[LOOP.index("            for variable") :]
VALUE = "horovod.allreduce(variable.value, op=horovod.Average)"
PARAMETERS = 1000


def script(*pairs):
    """Answer: the script with some text replaced."""
    return swapped("scripts/local_sgd.py", *pairs)


def mean(*pairs):
    """The script with some text of its last line replaced."""
    return script(*((MEAN, MEAN.replace(*pair)) for pair in pairs))


def loop(text):
    return script((LOOP, text))


ANSWERS = {
    "workers.1": dict(right=[(6,), (6.1,)], wrong=[(73 / 443,), (370 / 73,)], secret=r"\b6\b|\bsix\b|6\."),
    "workers.3": dict(
        right=[
            (lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k + e),),
            (lambda s, c, e, k: np.float32(s + 32 * c) / (s + c * (32 / k) + (e if k > 1 else 0)),),
        ],
        wrong=formulas(
            {},
            "s, c, e, k",
            "(s + 32 * c) / (s + 32 * c / k)",
            "(s + 32 * c) / (s + 32 // k * c + e)",
            "round((s + 32 * c) / (s + 32 * c / k + e), 2)",
        ),
        secret=r"32 \*|/ ranks",
    ),
    "workers.7": dict(
        right=[(8.0, 32e3, PARAMETERS), ("8", "32000", PARAMETERS)],
        wrong=[(512, 32000, PARAMETERS), (8, 8000, PARAMETERS)],
        secret=r"32,?000|512 / 64",
    ),
    "workers.5": dict(
        right=[script()],
        wrong=[  # what weights show: test_why_scaling_fails.py
            mean(("op=horovod.Average", "op=horovod.Sum")),
            mean((VALUE, "horovod.allreduce(variable.value, op=horovod.Sum) / 2")),
            mean(("[*weights, *optimizer.momentums]", "weights")),
            loop("    batches = list(batches)\n" + LOOP),
        ],
        secret=r"momentums|Average|number % k",
    ),
    "workers.10": dict(right=[(500, 500.0)], wrong=[(500, 0), (0.5, 0.5)], secret=r"\b500\b"),
}
