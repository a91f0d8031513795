"""Answers to the self-checks of 26_where_a_step_goes: right ones, and wrong ones that students give."""


def workers_below(small=128, large=64, bandwidth=10, order=("can't tell", "ResNet50V2")):
    def read(folder):
        from lessons.where_a_step_goes import what_if

        found = tuple(
            what_if.first_below(name, batch=batch, bandwidth=bandwidth)
            for name, batch in zip(what_if.NAMES, (small, large), strict=True)
        )
        return (*found, *order)

    return read


def in_steps(size, bandwidth, image_seconds):
    """Answer to 12.5 with a name for each step of the way."""
    message = size / bandwidth
    backward = image_seconds * 2 / 3
    return message / backward


def formulas(names, arguments, *texts):
    """Answers: functions of these arguments, each by what it returns; names: what else stands in it."""
    return [(eval(f"lambda {arguments}: {text}", names),) for text in texts]


ANSWERS = {
    "step.2": dict(
        right=[
            (lambda a, t, e, i: [a, t - a, e - t, i - e],),
            (lambda *steps: tuple(later - earlier for earlier, later in zip((0, *steps), steps, strict=False)),),
        ],
        wrong=formulas(
            {}, "a, t, e, i", "(a, t, e, i)", "(a, t - a, e - t)", "(t - a, a, e - t, i - e)",
        ),
    ),
    "step.5": dict(
        right=[(in_steps,)],
        wrong=formulas(
            globals(), "s, b, i", "1 + int(in_steps(s, b, i))", "s / b / i", "1.02 * in_steps(s, b, i)",
        ),
        secret=r"1\.5\b|3 / 2|26\.25",
    ),
    "step.6": dict(
        right=[workers_below()],
        wrong=[
            workers_below(64, 64),
            workers_below(order=("ResNet152V2", "ResNet50V2")),  # the order of the central curves
            workers_below(order=("can't tell", "can't tell")),
            *[(*values, "can't tell", "ResNet50V2") for values in ((8, 8), (4096, 32))],
        ],
    ),
}  # fmt: skip
