"""Questions of 04_batch_and_rate."""

import math
import re

from labs.checks.judging import NotDone
from lessons.forms import formula, value

# Bytes of ResNet50V2 for 10 classes, as lessons.counts.memory counts them; activations: of one image of 32x32 pixels.
_WEIGHTS, _GRADIENTS, _ACTIVATIONS = 94_341_160, 94_159_400, 1_610_712
_REST = _WEIGHTS + 2 * _GRADIENTS  # momentum keeps one number for each gradient

value(
    "rate.1",
    right=[_REST / _ACTIVATIONS, math.ceil(_REST / _ACTIVATIONS)],
    wrong=[
        (_WEIGHTS / _ACTIVATIONS, "The weights are not the only part that does not grow: what are the others?"),
        ((_WEIGHTS + _GRADIENTS) / _ACTIVATIONS, "The optimizer stores something as well."),
        (_REST / _ACTIVATIONS + 1, "The activations are not one of the other three parts."),
        (_REST, "This is a number of bytes. The activations of how many images take up as much?"),
    ],
    otherwise="Divide the bytes of the other three parts by the bytes of the activations of one image.",
)


def _shape(result):
    """The shape of the tensor that did not fit."""
    found = result["evidence"] and re.search(r"shape\[([\d,]+)\]", result["evidence"]["line"])
    if not found:
        raise NotDone("No line names a tensor that did not fit: give the search less memory, or a higher limit.")
    return [int(number) for number in found[1].split(",")]


value(
    "rate.4",
    right=lambda result: 4 * math.prod(_shape(result)),
    wrong=[
        (lambda result: math.prod(_shape(result)), "The tensor has so many numbers. How many bytes does each take up?"),
        (lambda result: 4 * math.prod(_shape(result)[1:]), "Here the first number of the shape is left out."),
        (lambda result: 4 * sum(_shape(result)), "A table of 3 rows and 4 columns has more than 7 numbers."),
    ],
    otherwise="How many numbers are in a tensor of this shape, and how many bytes does each take up?",
)

formula(
    "rate.5",
    right=lambda fits, fails: (fits + fails) // 2,
    cases=[(64, 128), (192, 256), (512, 768)],
    wrong=[
        ([lambda fits, _: fits, lambda _, fails: fails], "This size has been tried already. Which lies in between?"),
        ([lambda fits, _: fits + 1, lambda _, fails: fails - 1], "In steps of 1 this takes long. What halves the gap?"),
        (
            [lambda _, fails: 2 * fails, lambda fits, fails: fits + fails],
            "A smaller size than this has already failed.",
        ),
        (lambda fits, fails: (fails - fits) // 2, "This is half of the gap. Where does the gap begin?"),
    ],
    otherwise="Take the size halfway between the largest that fits and the smallest that does not.",
)

value(
    "rate.6",
    right=(1024, 0.04),
    wrong=[
        ((256, ...), "256 is the local batch size. With MirroredStrategy you pass that of all workers together."),
        ((64, ...), "The local batch size stays at 256: more workers process more images, not smaller shares."),
        ((1024, 0.01), "This is the learning rate for one worker. By what factor did the batch size grow?"),
        ((1024, 0.02), "That is the square-root rule. The course uses the linear one (Goyal et al. 2017)."),
        ((1024, 0.0025), "You divided. But a larger batch gives a less noisy gradient, so steps can be larger."),
    ],
    otherwise=(
        "Global batch size = local batch size x number of workers.",
        "Learning rate = rate for one worker x number of workers.",
    ),
)

value(
    "rate.7",
    right=(7, 848),
    wrong=[
        ((6, ...), "6 full batches contain 49,152 images. Where do the others go?"),
        ((7, 8192), "7 x 8192 would be 57,344 images, which is more than there are."),
    ],
    otherwise=(
        "Divide 50,000 by 8192 and round up: the remaining images need a step, too.",
        "How many images are left over after 6 full batches?",
    ),
)
