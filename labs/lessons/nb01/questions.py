"""Questions of 01_basic_concepts, first half: why distribute, what faster means, how it is measured."""

import math

from labs.checks.judging import choice, prediction, question

HERE = "01_basic_concepts"

prediction("01.4", "How much of the factor 1450 did the number of devices give", HERE)
prediction("01.11", "Speedup of 64 workers with a serial share of 5 %", HERE)


def near(value, right, tolerance=0.01):
    """Whether two numbers are equal up to a relative tolerance."""
    return math.isclose(value, right, rel_tol=tolerance, abs_tol=1e-9)


@question(
    "01.1",
    "Growth in a year of what doubles every few months",
    HERE,
    why="12 / months doublings fit into a year, and each of them is a factor of 2.",
)
def per_year(function):
    got = [float(function(months)) for months in (12, 6, 24, 3.4)]
    if all(near(value, 2 ** (12 / months)) for value, months in zip(got, (12, 6, 24, 3.4), strict=True)):
        return None
    if near(got[3], 12 / 3.4):
        return "This is how many doublings fit into a year. What do that many doublings make of 1?"
    if near(got[3], 2 * 12 / 3.4):
        return "Doublings do not add up. After two of them it is 4 times as much, after three of them 8 times."
    if near(got[2], 4) and near(got[1], 2**0.5):
        return "Upside down: what doubles sooner grows more in a year."
    if not near(got[0], 2):
        return f"What doubles every 12 months doubles in a year, but your function gives {got[0]:.3g}."
    return f"What doubles every 6 months doubles twice in a year, but your function gives {got[1]:.3g}."


@question(
    "01.2",
    "GPT-3: how many times as fast, and what is left beside the number",
    HERE,
    why="One factor is the number of devices. The other holds all that changed besides it.",
)
def gpt3(times_as_fast, rest):
    times_as_fast, rest = float(times_as_fast), float(rest)
    if near(times_as_fast, 355 / 34):
        return "Years and days cannot be divided: bring both times to one unit."
    if near(times_as_fast, 34 / (355 * 365)):
        return "Upside down: a factor above 1 says faster."
    if near(times_as_fast, 355 * 365):
        return "These are the days on one V100. How many times 34 days is that?"
    if near(times_as_fast, 1024):
        return "This is the number of devices. How many times as fast it was, the two times say."
    if not near(times_as_fast, 355 * 365 / 34):
        return "First factor: how many times do 34 days fit into 355 years?"
    if near(rest, 1024 / times_as_fast):
        return "The first factor is right, the second is upside down: which factor times 1024 gives the first?"
    if near(rest, times_as_fast - 1024, 0.05):
        return "The first factor is right. Factors multiply: a difference says nothing here."
    if not near(rest, times_as_fast / 1024):
        return "The first factor is right. The second one, times the number of devices, must give the first."


@question(
    "01.3",
    "Speedup and efficiency of GPUs against one GPU",
    HERE,
    points=2,
    why="The CPU drops out: the second GPU doubled the speed, the third and fourth brought nothing.",
)
def photographs(speedup_2, speedup_4, efficiency_4):
    speedup_2, speedup_4, efficiency_4 = float(speedup_2), float(speedup_4), float(efficiency_4)
    if near(speedup_2, 150) or near(speedup_4, 150):
        return "This still compares with the CPU. How many times as fast as 1 GPU is it?"
    if near(speedup_2, 75) or near(speedup_4, 75):
        return "That is a difference of two factors. Divide: how many times as fast as 1 GPU is it?"
    if not near(speedup_2, 2):
        return "Begin with 2 GPUs: 1 GPU is 75 times as fast as the CPU, 2 GPUs are 150 times as fast as the CPU."
    if near(speedup_4, 4):
        return "4 would be the ideal. What was measured with 4 GPUs is no faster than with half as many."
    if not near(speedup_4, 2):
        return "The first is right. With 4 GPUs there was no further gain: what follows for their speedup?"
    if near(efficiency_4, 2 / 1) or efficiency_4 > 1:
        return "The speedups are right. An efficiency is a share of the ideal: what is the ideal speedup of 4 GPUs?"
    if near(efficiency_4, 150 / 4 / 75 / 2):
        return "The speedups are right, but the efficiency divides by the workers twice."
    if not near(efficiency_4, 0.5):
        return "The speedups are right. Efficiency: the speedup, divided by the number of workers."


@question(
    "01.5",
    "Speedup and efficiency from a row with few devices to one with many",
    HERE,
    points=2,
    why="As many times as fast, divided by as many times the devices: 1 would be ideal.",
)
def scaling(function):
    first, row = {"devices": 4, "minutes": 100.0}, {"devices": 32, "minutes": 20.0}
    speedup, efficiency = map(float, function(first, row))
    other = tuple(map(float, function({"devices": 2, "minutes": 60.0}, {"devices": 6, "minutes": 24.0})))
    if near(speedup, 0.2):
        return "The speedup is upside down: row is faster than first, so it must be above 1."
    if near(speedup, 0.625) and near(efficiency, 5):
        return "Both numbers are there, in the other order: first the speedup, then the efficiency."
    if not near(speedup, 5):
        return f"From 100 minutes down to 20 your function gives a speedup of {speedup:.3g}. Divide the two times."
    if near(efficiency, 5 / 32):
        return "The speedup is right. It is one against 4 devices, not against 1: what would be the ideal from 4 to 32?"
    if near(efficiency, 8 / 5):
        return "The speedup is right, the efficiency is upside down: it says which share of the ideal is reached."
    if near(efficiency, 8):
        return "The speedup is right. This is the ideal one. Which share of it is reached?"
    if not near(efficiency, 5 / 8):
        return "The speedup is right. Efficiency: this speedup, divided by how many times the devices it takes."
    if not (near(other[0], 2.5) and near(other[1], 2.5 / 3)):
        return "Right for one pair of rows, wrong for another: use the fields of `first` and `row`, not fixed numbers."


choice(
    "01.6",
    "1450 / 256, an efficiency?",
    HERE,
    right="c",
    wrong={
        "a": "That is below 100 % and looks better. But what was divided is the same: which two devices are compared?",
        "b": "A little more than ideal does happen. But on which side of the ideal line of the picture are the P100?",
        "d": "The two differ by 0.2 points of accuracy. That is worth saying, but it makes no factor of 5.7.",
    },
    why="1450 mixes more devices and faster devices. An efficiency needs the same device on both sides.",
)

choice(
    "01.7",
    "Which epochs count?",
    HERE,
    right="b",
    wrong={
        "a": "You wait for it, but once, not in each epoch. In a longer training its share would be another one.",
        "c": "A single epoch may be lucky. With whole seconds all but the first look equal here, but not in general.",
        "d": "Then 49 s stand for an epoch. In which of the five does something happen that never happens again?",
    },
    why="Epoch 1 holds work that is done once. The mean of the others is what each further epoch costs.",
)


@question(
    "01.8",
    "Throughput, speedup and efficiency",
    HERE,
    points=3,
    why="Three divisions. The last one tells what a worker is still worth.",
)
def metrics(throughput, speedup, efficiency):
    value = float(throughput(6000, 30.0))
    if near(value, 30 / 6000):
        return "throughput is upside down: this is seconds per image."
    if near(value, 6000 * 30):
        return "throughput multiplies: the longer an epoch takes, the fewer images a second there are."
    if not near(value, 200):
        return f"throughput: 6000 images in 30 s, and your function gives {value:.4g} images a second."
    value = float(speedup(30.0, 10.0))
    if near(value, 1 / 3):
        return "throughput is right. speedup is upside down: three times as fast is a speedup of 3."
    if near(value, 20):
        return "throughput is right. speedup is a difference in seconds here: it must be a ratio, without a unit."
    if not near(value, 3):
        return f"throughput is right. speedup: from 30 s to 10 s your function gives {value:.4g}."
    value = float(efficiency(30.0, 10.0, 5))
    if near(value, 3):
        return "throughput and speedup are right. efficiency is the speedup itself here: divide it by the ideal one."
    if near(value, 15) or near(value, 5 / 3):
        return "throughput and speedup are right. efficiency is above 1: 5 workers give at best a speedup of 5."
    if near(value, 1 / 15):
        return "throughput and speedup are right. In efficiency the speedup is upside down."
    if not near(value, 0.6):
        return f"throughput and speedup are right. efficiency: 5 workers, from 30 s to 10 s, gives {value:.4g} here."


@question(
    "01.9",
    "Lowest and highest speedup that 45 s and 12 s allow",
    HERE,
    points=2,
    why="The extremes come from errors in opposite directions: long over short, short over long.",
)
def rounding(lowest, highest):
    lowest, highest = float(lowest), float(highest)

    def are(low, high):
        return near(lowest, low, 0.003) and near(highest, high, 0.003)

    if are(44.5 / 12.5, 45.5 / 11.5):
        return None
    if are(45.5 / 11.5, 44.5 / 12.5):
        return "Both are right, in the other order: the lowest first."
    if are(3.75, 3.75):
        return "This is the speedup as if 45 s and 12 s were exact. Between which times may each of them lie?"
    if are(45.5 / 12.5, 44.5 / 11.5):
        return "Both times are too long here, or both too short: the errors nearly cancel. Which pair is the worst?"
    if are(45 / 12.5, 45 / 11.5):
        return "Only the 12 s are uncertain here. The 45 s are rounded, too."
    if are(44.5 / 12, 45.5 / 12):
        return "Only the 45 s are uncertain here. The 12 s are rounded, too."
    if are(44 / 13, 46 / 11):
        return "These are errors of a whole second. Rounding moves a number by half of that at the most."
    if are(44.5 / 12.5 / 4, 45.5 / 11.5 / 4):
        return "These are the efficiencies. The question is about the speedup."
    return "Lowest: the shortest time that 1 GPU may have taken, over the longest one of 4 GPUs. Highest: the reverse."


choice(
    "01.10",
    "Strong or weak scaling?",
    HERE,
    right="b",
    wrong={
        "a": "That is true for any training. What counts is the batch of a step: look at Batch_size in the three runs.",
        "c": "That would be strong scaling. Look at Batch_size: what does one GPU get in a step, with 1 and with 4 GPUs?",
        "d": "The name is right, the reason is not: with 4 GPUs each reads a quarter of the images in an epoch.",
    },
    why="256 images for each GPU, on 1, 2 and 4: the work of a step grows with the workers.",
)
