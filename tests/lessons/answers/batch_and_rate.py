"""Answers to the self-checks of 04_batch_and_rate: right ones, and wrong ones that students give."""

import numpy as np
from making import ADVICE, ERR, OOM, evidence

WEIGHTS, GRADIENTS, ACTIVATIONS = 94_341_160, 94_159_400, 1_610_712  # bytes (tests/models)
REST = WEIGHTS + 2 * GRADIENTS

ANSWERS = {
    "rate.1": dict(
        right=[(REST / ACTIVATIONS,), (175,), (176,)],
        wrong=[(WEIGHTS / ACTIVATIONS,), ((REST + ACTIVATIONS) / ACTIVATIONS,)],
        secret=r"\b17[56]\b",
    ),
    "rate.5": dict(
        right=[(lambda fits, fails: (fits + fails) // 2,), (lambda fits, fails: np.mean([fits, fails]),)],
        wrong=[
            (lambda fits, fails: fits,),
            (lambda fits, fails: (fits + 128) / 2,),  # right for one pair only
        ],
        secret=r"\b96\b|\b112\b",
    ),
    "rate.4": dict(
        right=[evidence(OOM), evidence(f"  {OOM}\n")],
        wrong=[evidence(ERR[0]), evidence(OOM, found=False), evidence(ADVICE), evidence("\n".join(ERR))],
        secret=r"allocating",
    ),
    "rate.6": dict(right=[(1024, 0.04), ("1024", "0.04")], wrong=[(512, 0.04), (1024, 0.02)], secret=r"1024|0\.04\b"),
    "rate.7": dict(
        right=[(7, 848), (np.int64(7), 848.0)], wrong=[(6.1, 848), (7, 7344)], secret=r"\b7\b|\b848\b|\bseven\b"
    ),
}
