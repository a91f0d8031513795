"""Answers to the self-checks of 26_where_a_step_goes: right ones, and wrong ones that students give."""

from fractions import Fraction
from math import ceil


def workers_below(small=128, large=64, bandwidth=10, turn=1, order=("can't tell", "ResNet50V2")):
    def read(folder):
        from lessons.where_a_step_goes import pictures as what_if

        found = tuple(
            what_if.first_below(name, batch=batch, bandwidth=bandwidth)
            for name, batch in zip(what_if.NAMES, (small, large), strict=True)
        )
        return (*found[::turn], *order)

    return read


def in_steps(size, bandwidth, image_seconds):
    """Answer to 12.5 with a name for each step of the way."""
    message = size / bandwidth
    backward = image_seconds * 2 / 3
    return message / backward


def by_hand(size, bandwidth, image_seconds):
    """Answer to 12.5 that looks for the border instead of solving for it."""
    low, high = 0.0, 1e9
    for _ in range(100):
        batch = (low + high) / 2
        low, high = (batch, high) if 2 / 3 * batch * image_seconds < size / bandwidth else (low, batch)
    return high


def exact(size, bandwidth, image_seconds):
    """Answer to 12.5 in fractions."""
    return 3 * Fraction(size) / (2 * Fraction(bandwidth) * Fraction(image_seconds))


ANSWERS = {
    "step.2": dict(
        right=[
            (lambda a, t, e, i: (a, t - a, e - t, i - e),),
            (
                lambda alone, together, exchange, input: [
                    alone,
                    together - alone,
                    exchange - together,
                    input - exchange,
                ],
            ),
            (lambda *steps: tuple(later - earlier for earlier, later in zip((0, *steps), steps, strict=False)),),
        ],
        wrong=[
            (lambda a, t, e, i: (a, t, e, i),),
            (lambda a, t, e, i: (a, t - a, e - a, i - a),),
            (lambda a, t, e, i: (a, a - t, t - e, e - i),),
            (lambda a, t, e, i: (a, t - a, e - t),),
            (lambda a, t, e, i: (a, t - a, e - t, i),),
            (lambda a, t, e, i: (t - a, a, e - t, i - e),),
        ],
        secret=None,
    ),
    "step.5": dict(
        right=[
            (lambda size, bandwidth, image_seconds: size / bandwidth / (2 / 3 * image_seconds),),
            (lambda size, bandwidth, image_seconds: 1.5 * size / (bandwidth * image_seconds),),
            (in_steps,),
            (by_hand,),
            (exact,),
        ],
        wrong=[
            (lambda s, b, i: ceil(in_steps(s, b, i)),),
            (lambda s, b, i: s / b / i,),
            (lambda s, b, i: s / b / (i / 3),),
            (lambda s, b, i: s / b / i * 2 / 3,),
            (lambda s, b, i: 8 * in_steps(s, b, i),),
            (lambda s, b, i: 1 / in_steps(s, b, i),),
            (lambda s, b, i: s / b,),
            (lambda s, b, i: b * i,),
            (lambda s, b, i: b / s / i,),
            (lambda s, b, i: s * b * i,),
            (lambda s, b, i: in_steps(s, b, i) + 10,),
        ],
        secret=r"1\.5\b|3 / 2|26\.25",
    ),
    "step.6": dict(
        right=[workers_below()],
        wrong=[
            workers_below(turn=-1),
            workers_below(bandwidth=25),
            workers_below(64, 64),
            workers_below(64, 128),
            (3, 64, "can't tell", "ResNet50V2"),
            (8, 8, "can't tell", "ResNet50V2"),
            workers_below(order=("ResNet152V2", "ResNet50V2")),  # the order of the central curves
            workers_below(order=("ResNet50V2", "ResNet50V2")),
            workers_below(order=("can't tell", "can't tell")),
            workers_below(order=("can't tell", "ResNet152V2")),
            workers_below(order=("open", "ResNet50V2")),
            (1024, 128, "can't tell", "ResNet50V2"),
            (1024, 8, "can't tell", "ResNet50V2"),
            (4096, 32, "can't tell", "ResNet50V2"),
        ],
        secret=None,
        same=[(6, 7)],  # a network is named where the interval holds 1
    ),
    "step.7": dict(right=[("b",)], wrong=[("a",), ("c",), ("d",)], secret=r"\b514\b|\b174\b"),
}
