"""Judges of 00_start_here."""

import re

from labs.checks.judging import judges


@judges("start.1")
def worker(answer):
    from labs import devices

    here = "gpu" if devices.gpus() else "core"
    text = re.sub(r"^(a|an|one|each) +", "", str(answer).strip().strip(".\"'").lower())
    text = re.sub(r"^(?:cpu[ -])?(core|gpu)s?$", r"\1", text)
    yield text == here, None
    yield (
        text in ("process", "machine", "node", "thread"),
        f"A {text} need not be the same as a worker. Look at the GPUs row of the doctor's table.",
    )
    yield (
        text == "cpu" and here == "core",
        "A CPU can contain several workers. What does the GPUs row of the doctor's table say?",
    )
    yield (
        text in ("gpu", "core", "cpu"),
        "That would be right on another machine. Look again at the GPUs row of the doctor's table.",
    )
    yield True, 'Write "gpu" or "core": the GPUs row of the doctor\'s table says which of the two a worker is here.'
