"""Answers to the self-checks of 04_batch_and_rate: right ones, and wrong ones that students give."""

import numpy as np
from making import ADVICE, ERR, OOM, evidence

WEIGHTS, GRADIENTS, ACTIVATIONS = 94_341_160, 94_159_400, 1_610_712  # bytes (tests/models)
REST = WEIGHTS + 2 * GRADIENTS

ANSWERS = {
    "rate.1": dict(
        right=[(REST / ACTIVATIONS,), (175,), (176,), ("175.5",), (np.float64(175.49),)],
        wrong=[
            (WEIGHTS / ACTIVATIONS,),
            ((WEIGHTS + GRADIENTS) / ACTIVATIONS,),
            ((REST + ACTIVATIONS) / ACTIVATIONS,),
            (ACTIVATIONS / REST,),
            (REST,),
            (256,),
        ],
        secret=r"\b17[56]\b",
    ),
    "rate.5": dict(
        right=[
            (lambda fits, fails: (fits + fails) // 2,),
            (lambda fits, fails: fits + (fails - fits) / 2,),
            (lambda fits, fails: np.mean([fits, fails]),),
        ],
        wrong=[
            (lambda a, b: a,),
            (lambda a, b: a + 1,),
            (lambda a, b: 2 * b,),
            (lambda a, b: 96,),
            (lambda a, b: b - 1,),
            (lambda fits, fails: (fits + 128) / 2,),
            (lambda fits, fails: fits + 32,),
        ],
        secret=r"\b96\b|\b112\b",
        same=[(3, 5), (3, 6), (5, 6)],  # right for one pair only
    ),
    "rate.4": dict(
        right=[evidence(OOM), evidence(f"  {OOM}\n")],
        wrong=[
            evidence(ERR[0]),
            evidence("OOM"),
            evidence("I ran out of memory"),
            evidence(ERR[1]),
            evidence(OOM, found=False),
            evidence(ADVICE),
            evidence(ERR[2]),
            evidence("\n".join(ERR)),
        ],
        secret=r"allocating",
        same=[(1, 2), (0, 3)],  # neither is a line of the file; both are about where Python was
    ),
    "rate.6": dict(
        right=[(1024, 0.04), (4 * 256, 4 * 0.01), ("1024", "0.04")],
        wrong=[(256, 0.04), (64, 0.04), (512, 0.04), (1024, 0.01), (1024, 0.02), (1024, 0.0025), (1024, 0.4)],
        secret=r"1024|0\.04\b",
    ),
    "rate.7": dict(
        right=[(7, 848), (np.int64(7), 848.0)],
        wrong=[(6, 848), (6.1, 848), (7, 8192), (7, 7344)],
        secret=r"\b7\b|\b848\b|\bseven\b",
    ),
}
