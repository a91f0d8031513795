"""Answers to the self-checks of 04_batch_and_rate: rounded ones, and those to a judge of its own."""

from making import ADVICE, ERR, OOM, evidence

RIGHT = [
    ("rate.1", (175,)),  # rounded, also to the next whole number of images
    ("rate.1", (176,)),
    ("rate.4", evidence(OOM)),
    ("rate.4", evidence(f"  {OOM}\n")),
]
WRONG = [
    *(("rate.4", evidence(line)) for line in (*ERR[:2], ADVICE, OOM[4:], "\n".join(ERR))),
    ("rate.4", evidence(OOM, found=False)),
]
