"""Answers to the self-checks of 04_batch_and_rate: rounded ones, and those to a judge of its own."""

from making import ADVICE, ERR, OOM, evidence

ANSWERS = {
    "rate.1": dict(right=[(175,), (176,)]),  # rounded, also to the next whole number of images
    "rate.4": dict(
        right=[evidence(OOM), evidence(f"  {OOM}\n")],
        wrong=[*map(evidence, (*ERR[:2], ADVICE, OOM[4:], "\n".join(ERR))), evidence(OOM, found=False)],
        secret=r"allocating",
    ),
}
