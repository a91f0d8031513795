"""Questions of 01_basic_concepts."""

from lessons.forms import Formula, formula, formulas, value

formula(
    "concepts.1",
    right=lambda months: 2 ** (12 / months),
    cases=[(12,), (6,), (24,), (3.4,)],
    wrong=[
        (lambda months: 12 / months, "These are doublings in a year. What does 1 become after that many doublings?"),
        (lambda months: 24 / months, "Doublings do not add up. After two of them there is 4 times as much."),
        (lambda months: 2 ** (months / 12), "This is upside down: what doubles sooner grows more in a year."),
    ],
    otherwise="How many doublings are there in a year? What doubles every 6 months doubles twice.",
)

value(
    "concepts.2",
    right=(2, 2, 0.5),
    wrong=[
        ([(150, ..., ...), (..., 150, ...)], "This is relative to the CPU. How many times as fast as 1 GPU is it?"),
        ([(75, ..., ...), (..., 75, ...)], "A difference of two factors. How many times as fast as 1 GPU is it?"),
        ((2, 4, ...), "4 would be the ideal. But training on 4 GPUs was no faster than on half as many."),
        ((2, 2, 0.25), "The speedups are right. But 1/4 is the efficiency for a speedup of 1. What is yours?"),
    ],
    otherwise=(
        "Begin with 2 GPUs: they are 150 times as fast as the CPU, and 1 GPU is 75 times as fast as the CPU.",
        "The first number is right. 4 GPUs gave no further gain: so what is their speedup?",
        "The speedups are right. Efficiency is speedup divided by the number of workers.",
    ),
)


def _scaling(first, row, devices=lambda first, row: row["devices"] / first["devices"]):
    speedup = first["minutes"] / row["minutes"]
    return speedup, speedup / devices(first, row)


formula(
    "concepts.4",
    right=_scaling,
    cases=[
        ({"devices": 4, "minutes": 100.0}, {"devices": 32, "minutes": 20.0}),
        ({"devices": 2, "minutes": 60.0}, {"devices": 6, "minutes": 24.0}),
    ],
    wrong=[
        (lambda first, row: _scaling(first, row)[::-1], "In the wrong order: first the speedup, then the efficiency."),
        (
            lambda first, row: (row["minutes"] / first["minutes"], ...),
            "Your speedup is upside down: `row` is faster, so it must be above 1.",
        ),
        (
            lambda first, row: _scaling(first, row, lambda first, row: row["devices"]),
            "The speedup is right. It is relative to `first`, not to one device: what would be the ideal speedup?",
        ),
        (
            lambda first, row: (..., row["devices"] / first["devices"]),
            "Your efficiency is the ideal speedup: what share of it was reached?",
        ),
    ],
    otherwise="Divide the two times; for the efficiency, divide that by how many times as many devices there are.",
)

formulas(
    "concepts.7",
    throughput=Formula(
        lambda images, seconds: images / seconds,
        cases=[(6000, 32.0), (900, 4.0)],
        wrong=[(lambda images, seconds: images * seconds, "The longer an epoch takes, the fewer per second.")],
        otherwise="How many images is that in one second?",
    ),
    speedup=Formula(
        lambda before, after: before / after,
        cases=[(30.0, 8.0), (9.0, 2.0)],
        wrong=[(lambda before, after: before - after, "A difference has a unit, seconds: a speedup must be a ratio.")],
        otherwise="What is the speedup if both times are equal, and if the second one is half of the first?",
    ),
    efficiency=Formula(
        lambda before, after, workers: before / after / workers,
        cases=[(30.0, 8.0, 5), (9.0, 2.0, 10)],
        wrong=[
            (lambda before, after, workers: before / after, "This is the speedup itself: divide it by the ideal one."),
            (
                [lambda one, p, workers: one / p * workers, lambda one, p, workers: workers * p / one],
                "This is above 1. But 5 workers give at best a speedup of 5.",
            ),
        ],
        otherwise="What would be the ideal speedup, and what share of it was reached?",
    ),
)

value(
    "concepts.8",
    right=(44.5 / 12.5, 45.5 / 11.5),
    wrong=[
        ((45.5 / 11.5, 44.5 / 12.5), "Both are right, but in the wrong order: the lowest comes first."),
        ((3.75, 3.75), "This would be the speedup if 45 s and 12 s were exact. In what range may each of them lie?"),
        (
            [(45.5 / 12.5, 44.5 / 11.5), (44.5 / 11.5, 45.5 / 12.5)],
            "Both times are too long, or both too short. Which pair is the worst?",
        ),
        ((45 / 12.5, 45 / 11.5), "You varied only the 12 s. The 45 s is rounded, too."),
        ((44.5 / 12, 45.5 / 12), "You varied only the 45 s. The 12 s is rounded, too."),
        ((44 / 13, 46 / 11), "These are errors of a whole second. How much does rounding change a number at most?"),
    ],
    otherwise="Each of the two times may be too long or too short. By how much, and which pairs give the extremes?",
)

value(
    "concepts.11",
    right=(4, 8, 2),
    wrong=[
        ((8, ..., ...), "First number: a process cannot use the GPUs of another node. How many are in its own?"),
        ((1, ..., ...), "First number: a program without a strategy uses one GPU. What does MirroredStrategy use?"),
        ([(4, 2, ...), (4, 1, ...)], "Second number: MirroredStrategy needs no more processes. Does Horovod?"),
        ((4, 8, 8), "Third number: that is how many GPUs the job has. What does hvd.size() count?"),
        ((4, 8, 4), "Third number: that is how many GPUs a node has. What does hvd.size() count?"),
    ],
    otherwise=(
        "First number: count the GPUs that one process can reach.",
        "Second number: you need one process for each GPU, on all nodes.",
        "Third number: hvd.size() counts the processes that were started.",
    ),
)

formula(
    "concepts.13",
    right=lambda k, m: (k - 1) / (m + k - 1),
    cases=[(4, 4), (2, 1), (8, 3), (1, 5)],
    wrong=[
        (lambda k, m: (k - 1) / m, "You divide by the working turns. In what share of *all* turns does a device wait?"),
        (lambda k, m: m / (m + k - 1), "In this share of the turns a device works. In what share does it wait?"),
        (lambda k, m: (k - 1) / (m + k), "Nearly. Count the turns for 2 devices and 1 micro-batch."),
        (lambda k, m: (k - 1) / (m * k), "The turns overlap, so the number of turns is not the product of the two."),
    ],
    otherwise="Count the boxes and the gaps in the picture.",
)


def _idle_share(count):
    """What a number of micro-batches does on 4 devices; advice."""
    share = 3 / (count + 3) if count > 0 else 1.0
    if count > 0 and count % 1:
        return "The number of micro-batches is whole: round it so that the share stays at or below 10 %."
    if share > 0.1:
        return f"With {count:g} the idle share is {share:.1%}. That is more than 10 %."
    return f"With {count:g} the idle share is {share:.1%}, so this is enough. But a smaller number is enough, too."


value(
    "concepts.14",
    right=27,
    wrong=[
        (4, "This is the number of devices. The picture above shows the idle share with 4 micro-batches."),
        (30, "This is ten times the 3 waiting turns. But the 10 % refers to *all* turns, waiting and working."),
    ],
    otherwise=_idle_share,
)

formula(
    "concepts.16",
    right=lambda parameters: 12 * parameters,
    cases=[(1000,), (25_613_800,)],
    wrong=[
        (lambda n: 4 * n, "The weights alone take up that much. What else stores one number for each of them?"),
        (lambda n: 8 * n, "That is enough for only two of the three parts: weights, gradients, momentum."),
        (lambda n: 3 * n, "This counts numbers, one for each part. How many bytes does a float32 take up?"),
        (lambda n: 16 * n, "That would be right for Adam, which keeps two numbers. How many does momentum keep?"),
        (lambda n: 96 * n, "That would be right in bits. How many bits make a byte?"),
        ([lambda n: 6 * n, lambda n: 24 * n], "That would be right for numbers of 16 or 64 bits. A float32 has 32."),
    ],
    otherwise="How many numbers of how many bytes are needed?",
)
