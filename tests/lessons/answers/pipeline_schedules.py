"""Answers to the self-checks of 34_pipeline_schedules: the first wrong answer of a puzzle is right, but plain."""

from making import edited

HALVES = "ahead, behind = K - rank, rank"

RIGHT = [("pipeline.1", edited("pipeline.2"))]
WRONG = [
    ("pipeline.1", edited("pipeline.2", "ahead = K - rank", "ahead = 1")),
    ("pipeline.1", edited("pipeline.2", ", wait=False", "")),
    ("pipeline.2", edited("pipeline.1")),
    ("pipeline.3", edited("pipeline.2")),
]
STYLES = [("pipeline.1", "rank + 1)\n    for", "rank + 1, wait=False)\n    for")]
MISTAKES = [
    ("pipeline.2", "K - rank", "K - rank + 1"),
    ("pipeline.3", HALVES, "ahead, behind = M, rank"),
    ("pipeline.3", HALVES, "ahead, behind = K - rank, max(0, rank - 1)"),
]
