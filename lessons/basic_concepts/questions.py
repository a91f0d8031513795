"""Judges of 01_basic_concepts."""

from labs.checks.judging import judges
from labs.checks.reading import CUT, PER_CENT, near

_BOTH = "right in one trial, but wrong in another. Does it use all its arguments?"


@judges("concepts.1")
def per_year(function):
    got = [float(function(months)) for months in (12, 6, 24, 3.4)]
    yield all(near(value, 2 ** (12 / months)) for value, months in zip(got, (12, 6, 24, 3.4), strict=True)), None
    yield (
        near(got[3], 12 / 3.4),
        "This is the number of doublings in a year. What does 1 become after that many doublings?",
    )
    yield (
        near(got[3], 2 * 12 / 3.4),
        "Doublings do not add up. After two of them there is 4 times as much; after three, 8 times.",
    )
    yield near(got[2], 4) and near(got[1], 2**0.5), "This is upside down: what doubles sooner grows more in a year."
    yield not near(got[0], 2), f"What doubles every 12 months doubles once in a year; your function gives {got[0]:.3g}."
    yield True, f"What doubles every 6 months doubles twice in a year, but your function gives {got[1]:.3g}."


@judges("concepts.2")
def photographs(speedup_2, speedup_4, efficiency_4):
    two, four, share = float(speedup_2), float(speedup_4), float(efficiency_4)
    yield 150 in (two, four), "This is still a comparison with the CPU. How many times as fast as 1 GPU is it?"
    yield (
        75 in (two, four),
        "That is the difference between two factors. Divide: how many times as fast as 1 GPU is it?",
    )
    yield (
        not near(two, 2),
        "Begin with 2 GPUs: they are 150 times as fast as the CPU, and 1 GPU is 75 times as fast as the CPU.",
    )
    yield near(four, 4), "4 would be the ideal. But training on 4 GPUs was no faster than on half as many."
    yield four != 2, "The first number is right. 4 GPUs gave no further gain: so what is their speedup?"
    yield near(share, 50), f"The speedups are right. {PER_CENT}"
    yield (
        share > 1,
        "The speedups are right. An efficiency is a share of the ideal: what is the ideal speedup on 4 GPUs?",
    )
    yield (
        near(share, 0.25),
        "The speedups are right. But 1/4 would be the efficiency for a speedup of 1. What is yours?",
    )
    yield not near(share, 0.5), "The speedups are right. Efficiency is speedup divided by the number of workers."


@judges("concepts.4")
def scaling(function):
    first, row = {"devices": 4, "minutes": 100.0}, {"devices": 32, "minutes": 20.0}
    speedup, efficiency = map(float, function(dict(first), dict(row)))
    tried = f"Going from {first['devices']} devices and 100 minutes to {row['devices']} devices and 20 minutes"
    other = tuple(map(float, function({"devices": 2, "minutes": 60.0}, {"devices": 6, "minutes": 24.0})))
    yield near(speedup, 0.2), f"{tried}: your speedup is {speedup:.3g}. `row` is faster, so it must be above 1."
    yield (
        near(speedup, 0.625) and near(efficiency, 5),
        "Both numbers are right, but in the wrong order: first the speedup, then the efficiency.",
    )
    yield not near(speedup, 5), f"{tried}: your speedup is {speedup:.3g}. Divide the two times."
    yield (
        near(efficiency, 5 / 32),
        "The speedup is right. It is relative to `first`, not to one device: what would be the ideal speedup?",
    )
    yield near(efficiency, 62.5), f"The speedup is right. {PER_CENT}"
    yield (
        near(efficiency, 8 / 5),
        "The speedup is right, but the efficiency is upside down: it is the share of the ideal that you reach.",
    )
    yield (
        near(efficiency, 8),
        "The speedup is right. Your efficiency is the ideal speedup: what share of it was reached?",
    )
    yield (
        not near(efficiency, 5 / 8),
        "The speedup is right. For the efficiency, divide it by the factor by which the number of devices grew.",
    )
    yield (
        not (near(other[0], 2.5) and near(other[1], 2.5 / 3)),
        "Right for one pair of rows, but wrong for another. Does it take all its numbers from `first` and `row`?",
    )


@judges("concepts.7")
def metrics(throughput, speedup, efficiency):
    got = float(throughput(6000, 32.0))
    yield near(got, 32 / 6000), "throughput is upside down: this is seconds per image."
    yield (
        near(got, 6000 * 32),
        "throughput multiplies. But the longer an epoch takes, the fewer images per second are processed.",
    )
    yield got == 6000 // 32, f"throughput: {CUT}"
    yield (
        not near(got, 6000 / 32, 1e-3),
        f"throughput: for 6000 images in 32 s, your function gives {got:.4g} per second.",
    )
    yield not near(float(throughput(900, 4.0)), 225, 1e-3), f"throughput: {_BOTH}"
    got = float(speedup(30.0, 8.0))
    yield near(got, 8 / 30), "throughput is right. speedup is upside down: a shorter time must give more than 1."
    yield (
        near(got, 22),
        "throughput is right. Your speedup is a difference in seconds: it must be a ratio, without a unit.",
    )
    yield got == 3, f"throughput is right. speedup: {CUT}"
    yield not near(got, 3.75, 1e-3), f"throughput is right. speedup: from 30 s to 8 s your function gives {got:.4g}."
    yield not near(float(speedup(9.0, 2.0)), 4.5, 1e-3), f"throughput is right. speedup: {_BOTH}"
    got = float(efficiency(30.0, 8.0, 5))
    yield (
        near(got, 3.75),
        "throughput and speedup are right. Your efficiency is the speedup itself: divide it by the ideal one.",
    )
    yield near(got, 75), f"throughput and speedup are right. efficiency: {PER_CENT.lower()}"
    yield (
        near(got, 3.75 * 5) or near(got, 5 / 3.75),
        "throughput and speedup are right. efficiency is above 1: 5 workers give at best a speedup of 5.",
    )
    yield near(got, 8 / 30 / 5), "throughput and speedup are right. In efficiency the speedup is upside down."
    yield got in (0, 3 / 5), f"throughput and speedup are right. efficiency: {CUT}"
    yield (
        not near(got, 0.75, 1e-3),
        f"throughput and speedup are right. efficiency: 5 workers, 30 s to 8 s: your function gives {got:.4g}.",
    )
    yield not near(float(efficiency(9.0, 2.0, 9)), 0.5, 1e-3), f"throughput and speedup are right. efficiency: {_BOTH}"


@judges("concepts.8")
def rounding(lowest, highest):
    lowest, highest = float(lowest), float(highest)

    def are(low, high):
        return near(lowest, low, 0.003) and near(highest, high, 0.003)

    yield are(44.5 / 12.5, 45.5 / 11.5) or (lowest, highest) == (3.6, 4.0), None  # or rounded to 2 digits
    yield are(45.5 / 11.5, 44.5 / 12.5), "Both are right, but in the wrong order: the lowest comes first."
    yield are(3.75, 3.75), "This would be the speedup if 45 s and 12 s were exact. In what range may each of them lie?"
    yield (
        are(45.5 / 12.5, 44.5 / 11.5),
        "You made both times too long, or both too short, so the errors nearly cancel. Which pair is the worst?",
    )
    yield are(45 / 12.5, 45 / 11.5), "You varied only the 12 s. The 45 s is rounded, too."
    yield are(44.5 / 12, 45.5 / 12), "You varied only the 45 s. The 12 s is rounded, too."
    yield (
        are(44 / 13, 46 / 11),
        "These are errors of a whole second. Rounding changes a number by at most half of that.",
    )
    yield are(44.5 / 12.5 / 4, 45.5 / 11.5 / 4), "These are the efficiencies. The question is about the speedup."
    yield (
        True,
        "Each of the two times may be too long or too short. By how much at most, and which pairs give the extremes?",
    )


@judges("concepts.11")
def platforms(first, second, third):
    first, second, third = float(first), float(second), float(third)
    yield first == 8, "First number: a process cannot use the GPUs of another node. How many are in its own?"
    yield first == 1, "First number: a program without a strategy uses one GPU. What does MirroredStrategy use?"
    yield first != 4, "First number: count the GPUs that one process can reach."
    yield second == 2, "Second number: one process per node would be enough for MirroredStrategy. Horovod needs more."
    yield second == 1, "Second number: with one process, Horovod trains on one GPU."
    yield second != 8, "Second number: you need one process for each GPU, on all nodes."
    yield third == 8, "Third number: that is how many GPUs the job has. What does hvd.size() count?"
    yield third == 4, "Third number: that is how many GPUs a node has. What does hvd.size() count?"
    yield third != 2, "Third number: hvd.size() counts the processes that were started."


@judges("concepts.13")
def bubble(function):
    pairs = [(4, 4), (2, 1), (8, 3), (1, 5)]
    got = [float(function(*pair)) for pair in pairs]

    def are(formula):
        return all(near(value, formula(k, m), 1e-6) for value, (k, m) in zip(got, pairs, strict=True))

    yield are(lambda k, m: (k - 1) / (m + k - 1)), None
    yield are(lambda k, m: 100 * (k - 1) / (m + k - 1)), PER_CENT
    yield not any(got), "In all four trials your function gives 0. Does it cut off everything after the decimal point?"
    yield are(lambda k, m: (k - 1) / k), "This is the share without micro-batches. Where does their number come in?"
    yield (
        are(lambda k, m: (k - 1) / m),
        "This divides the waiting turns by the working turns. For what share of *all* turns does a device wait?",
    )
    yield (
        are(lambda k, m: m / (m + k - 1)),
        "This is the share of turns in which a device works. In what share does it wait?",
    )
    yield (
        are(lambda k, m: (m - 1) / (m + k - 1)),
        "You swapped devices and micro-batches: a single device alone never waits, with any number of micro-batches.",
    )
    yield (
        are(lambda k, m: (k - 1) / (m + k)),
        "Nearly: count the turns again, for 2 devices and 1 micro-batch. When is the last device done?",
    )
    yield (
        are(lambda k, m: (k - 1) / (m * k)),
        "The turns of the devices overlap, so the number of turns is not the product of the two.",
    )
    yield True, f"For 4 devices and 4 micro-batches you get {got[0]:.3g}. Count the boxes and the gaps in the picture."


@judges("concepts.14")
def enough(count):
    count = float(count)
    share = 3 / (count + 3) if count > 0 else 1.0
    yield count == 27, None
    yield (
        count > 0 and count % 1,
        "Micro-batches are whole: round in the direction that keeps the share at or below 10 %.",
    )
    yield count == 4, "This is the number of devices. The picture above shows the idle share with 4 micro-batches."
    yield not share <= 0.1, f"With {count:g} the idle share is {share:.1%}. That is more than 10 %."
    yield count == 30, "This is ten times the 3 waiting turns. But the 10 % refers to *all* turns, waiting and working."
    yield True, f"With {count:g} the idle share is {share:.1%}, so this is enough. But a smaller number is enough, too."


@judges("concepts.16")
def state_bytes(function):
    value, large = float(function(1000)), float(function(25_613_800))
    yield near(value, 12_000) and near(large, 12 * 25_613_800), None
    yield near(value, 12_000), "Right for 1000 parameters, wrong for 25,613,800. Does your function use its argument?"
    yield near(value, 4000), "The weights alone take up that much. What else stores one number for each of them?"
    yield near(value, 8000), "That is enough for only two of the three parts: weights, gradients, momentum."
    yield near(value, 3000), "This counts numbers, one for each part. How many bytes does a float32 take up?"
    yield near(value, 16_000), "That would be right for Adam, which keeps two numbers. How many does momentum keep?"
    yield near(value, 96_000), "That would be right in bits. How many bits make a byte?"
    yield near(value, 6000), "That would be right for 16-bit numbers. A float32 has 32."
    yield near(value, 24_000), "That would be right for 64-bit numbers. A float32 has 32."
    yield (
        True,
        f"For 1000 parameters your function gives {value:,.4g} bytes. How many numbers of how many bytes are needed?",
    )
