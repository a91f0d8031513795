"""Questions of 26_where_a_step_goes."""

import numpy as np

from lessons.forms import formula, value
from lessons.where_a_step_goes import what_if

formula(
    "step.2",
    right=lambda alone, together, exchange, input: (alone, together - alone, exchange - together, input - exchange),
    cases=[(1.0, 1.1, 1.4, 1.45), (2.0, 2.5, 2.6, 3.4)],
    wrong=[
        (lambda *times: times, "These are the times of the steps. What does each kind add to the one before it?"),
        (lambda a, t, e, i: (a, t - a, e - a, i - a), "You compare each with the step alone. Do the parts add up?"),
        (lambda a, t, e, i: (a, a - t, t - e, e - i), "Parts are negative: what must be subtracted from what?"),
    ],
    otherwise="The parts add up to the last kind of step: each kind adds one thing to the kind before it.",
)

formula(
    "step.5",
    right=lambda size, bandwidth, image_seconds: size / bandwidth / (2 / 3 * image_seconds),
    cases=[(70e6, 1e9, 0.004), (35e6, 1e9, 0.004), (35e6, 4e9, 0.006)],
    wrong=[
        (lambda s, b, i: s / b / i, "Here the message takes as long as both passes. Which of the two can hide it?"),
        (lambda s, b, i: s / b / (i / 3), "A third of an image's time is the forward pass. Which pass has gradients?"),
        (lambda s, b, i: s / b / i * 2 / 3, "The batch is too small: how long is the backward pass of one image?"),
        (lambda s, b, i: 8 * s / b / (2 / 3 * i), "This is 8 times too large: the bandwidth is in bytes per second."),
        (lambda s, b, i: s / b, "This is the message's time. How many images does the backward pass process in it?"),
        (lambda s, b, i: np.ceil(s / b / (2 / 3 * i)), "You rounded up: the number need not be whole."),
    ],
    otherwise="At the threshold, how long does the message take, and how long the backward pass?",
    tolerance=0.005,
)


def _below(small=128, large=64, bandwidth=10):
    """From how many workers on each network is below 0.8, with these batches."""
    batches = zip(what_if.NAMES, (small, large), strict=True)
    return [what_if.first_below(name, batch=batch, bandwidth=bandwidth) for name, batch in batches]


def _efficiency(place):
    """Advice on the number of workers of a network, a function of the answers: the efficiency there."""

    def advice(*answers):
        name, batch, workers = what_if.NAMES[place], (128, 64)[place], answers[place]
        if workers not in what_if.WORKERS:
            return f"The plot has no point at {workers!r}. Read the number after `below 0.8 from`."
        found = what_if.efficiencies(name, batch=batch, bandwidth=10)[workers]
        return f"{name}, batch {batch}, 10 Gbit/s: {found:.3f} with {workers} workers. Is that the first below 0.8?"

    return advice


SPELLING = "Spell the answers on 64 workers as in the text."

value(
    "step.6",
    right=lambda: (*_below(), "can't tell", "ResNet50V2"),
    wrong=[
        (lambda: (*_below()[::-1], ..., ...), "The two numbers are swapped: give ResNet50V2 first, then ResNet152V2."),
        (lambda: (*_below(64, 64, 25), ..., ...), "These are for 25 Gbit/s and a batch of 64. Change both first."),
        (lambda: (*_below(64, 64), ..., ...), "These are for a batch of 64. Give each network its own largest batch."),
        (lambda: (*_below(64, 128), ..., ...), "The batches are swapped. For which network do more images fit?"),
        (
            [(..., ..., name, ...) for name in what_if.NAMES],
            "Equal batches: does the range of the *ratio* in the table contain 1?",
        ),
        ((..., ..., ..., "can't tell"), "Largest batches: does the range of the *ratio* in the table contain 1?"),
        ((..., ..., ..., "ResNet152V2"), "Largest batches: which network's efficiency is the numerator of the ratio?"),
    ],
    otherwise=(_efficiency(0), _efficiency(1), SPELLING, SPELLING),
)
