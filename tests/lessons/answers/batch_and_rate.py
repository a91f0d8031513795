"""Answers to the checks of 04_batch_and_rate: rounded ones; and the result of a search for the largest batch."""

OOM = "OOM when allocating tensor with shape[512,64,8,8] and type float on device:CPU:0 by allocator cpu"

SAMPLES = {"rate.4": [({"evidence": {"file": "search.err", "line_number": 3, "line": OOM}},)]}
RIGHT = [
    ("rate.1", (175,)),  # rounded, also to the next whole number of images
    ("rate.1", (176,)),
]
