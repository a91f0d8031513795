"""Questions of 08_resnet152_scaling, second half: the runs, both networks, the verdict, the parts (T9, T10)."""

import ast
import math
from pathlib import Path

from labs.checks import batch_scripts
from labs.checks.judging import NotDone, choice, prediction, question, written
from labs.lessons.nb05.questions import _calls
from labs.lessons.nb08.questions import HERE, _built, _names, _near

KEYS = {"epoch_seconds": "seconds per epoch", "images_per_second": "images per second", "speedup": "speedup"}


@question(
    "08.12",
    "The Horovod script for the larger network",
    HERE,
    points=2,
    why="The network's name changes in model, log and record; the training stays the same.",
)
def horovod_script(changed, original):
    from labs import blanks

    for line, text in blanks.blanks(Path(original)):
        raise NotDone(f"Line {line} of {Path(original).name} is still blank (notebook 07): {text.strip()}")
    if not isinstance(changed, str):
        return "Give the text of the new script: a string, made from `text`."
    before = Path(original).read_text()
    try:
        calls = _calls(ast.parse(changed))
    except SyntaxError as error:
        return f"This is no Python script any more: line {error.lineno}, {error.msg}."
    if hint := _built(calls) or _names(calls, "horovod"):
        return hint
    if ast.dump(ast.parse(changed.replace("ResNet152V2", "ResNet50V2"))) != ast.dump(ast.parse(before)):
        return "More than the network's name is different from your script of notebook 07: nothing else may change."
    return None


@question(
    "08.13",
    "slurm/<site>/ResNet152V2.sh, before it is submitted",
    HERE,
    points=3,
    why="It asks for what its trainings need, within the rule, and starts your new script.",
)
def batch_script(path):
    return batch_scripts.judge(path, trains="ResNet152V2.py")


written("T9", "ResNet152V2 on 1, 2 and 4 workers: script, job script, .out and .err", HERE, points=6)


@question(
    "08.14",
    "The three plots for both networks together",
    HERE,
    points=6,
    why="Both networks in three plots, with units and a legend.",
)
def plots(figure, rows):
    axes = list(getattr(figure, "axes", []))
    if len(axes) < 3:
        return f"The figure has {len(axes)} plot(s): epoch time, images/second and speedup are three."
    if not all(axis.get_xlabel() and axis.get_ylabel() for axis in axes[:3]):
        return "An axis has no label: what is shown, and in which unit?"
    legends = [text.get_text() for axis in axes for text in (axis.get_legend() or figure).findobj(_is_text)]
    names = sorted({row["model"] for row in rows})
    if not all(any(name in text for text in legends) for name in names):
        return "No legend names both networks: whoever reads the plot cannot tell one curve from the other."
    lines = [list(line.get_ydata()) for axis in axes for line in axis.get_lines()]
    for name in names:
        curve = sorted((r for r in rows if r["model"] == name), key=lambda r: r["workers"])
        for key, what in KEYS.items():
            values = [row[key] for row in curve]
            if any(_alike(line, values) for line in lines):
                continue
            if key == "speedup" and any(_alike(line, [1 / v for v in values if v]) for line in lines):
                return "The speedup is upside down: a faster run must lie above 1."
            return f"No curve shows the {what} of {name}, ordered by workers."


def _is_text(artist):
    from matplotlib.text import Text

    return isinstance(artist, Text)


def _alike(line, values):
    return len(line) == len(values) and all(
        v is not None and abs(x - v) <= 0.02 * abs(v) for x, v in zip(line, values, strict=True)
    )


@question(
    "08.15",
    "How many times as long is the epoch, measured?",
    HERE,
    why="Both on one worker, with the same images and batch: what differs is the network.",
)
def epoch_ratio(ratio, rows):
    seconds = {(row["model"], row["workers"]): row["epoch_seconds"] for row in rows}
    small, large = seconds["ResNet50V2", 1], seconds["ResNet152V2", 1]
    if _near(ratio, large / small):
        return None
    if _near(ratio, small / large):
        return "Upside down: the longer epoch over the shorter one."
    if _near(ratio, large - small):
        return "This is a difference in seconds. How many *times* as long is it?"
    two = seconds.get(("ResNet152V2", 2))
    if two and (_near(ratio, two / small) or _near(ratio, large / two)):
        return "A run on 2 workers is in this ratio: compare the networks on one worker each."
    return "Epoch seconds of ResNet152V2 on 1 worker, over those of ResNet50V2 on 1 worker."


TIMES = ([8.0, 8.2, 8.1], [4.4, 4.5, 4.3], [13.0, 13.3, 12.9, 13.1], [7.4, 7.2, 7.5])


@question(
    "08.16",
    "The ratio of two efficiencies and its standard error, on logarithms",
    HERE,
    points=4,
    why="Means of logarithms with their signs; variances of means add up, whatever the signs.",
)
def contrast(function):
    centre, error = map(float, function(*(list(times) for times in TIMES)))
    logs = [[math.log(t) for t in times] for times in TIMES]
    s1, s2, l1, l2 = (sum(values) / len(values) for values in logs)
    squares = [sum((x - sum(v) / len(v)) ** 2 for x in v) / (len(v) - 1) for v in logs]
    parts = [square / len(v) for square, v in zip(squares, logs, strict=True)]
    wanted = math.sqrt(sum(parts))
    said = {
        (l1 - l2) - (s1 - s2): None,
        (s1 - s2) - (l1 - l2): "The sign is turned round: E(large) stands above the line.",
        (l1 - l2) + (s1 - s2): "The product of the efficiencies. Which sign has the logarithm of a divisor?",
        (l1 - s1) - (s2 - l2): "The signs are mixed up: write the formula with its four terms first.",
        math.exp((l1 - l2) - (s1 - s2)): "This is the ratio itself. Give its logarithm.",
    }
    for value, hint in said.items():
        if abs(centre - value) < 1e-3:
            if hint:
                return hint
            break
    else:
        return "The first number is not the sum of the formula. Take the mean of the logarithms of each list."
    mistakes = {
        wanted: None,
        wanted**2: "This is the variance of the sum. The standard error is its square root.",
        math.sqrt(sum(squares)): "The variance of a mean of n values is smaller than that of one value: divide by n.",
        sum(map(math.sqrt, parts)): "Standard errors were added. Of independent means the *variances* add up.",
        math.sqrt(
            abs(parts[0] + parts[3] - parts[1] - parts[2])
        ): "Variances were subtracted: a difference is as uncertain as a sum.",
    }
    for value, hint in mistakes.items():
        if abs(error - value) < 2e-3 * wanted:
            return hint
    if abs(error - wanted * math.sqrt(2 / 3)) < 0.05 * wanted:
        return "Close: `variance` divides by n - 1, `pvariance` by n. The repeats are a sample."
    return "The second number is not the standard error: root of the sum of (variance of the logarithms / repeats)."


@question(
    "08.17", "Yes, no or can't tell", HERE, points=4, why='"No" needs evidence, as "yes" does; what is left is open.'
)
def answer(function):
    cases = {
        (1.01, 1.20, 0.05): "yes",
        (0.80, 0.97, 0.05): "yes",
        (1.005, 1.02, 0.05): "yes",
        (0.97, 1.03, 0.05): "no",
        (0.90, 1.10, 0.05): "can't tell",
        (0.90, 1.02, 0.05): "can't tell",
        (0.98, 1.10, 0.05): "can't tell",
        (0.97, 1.03, 0.01): "can't tell",
        (0.90, 1.08, 0.2): "no",
    }
    told = {case: function(*case) for case in cases}
    words = {"yes", "no", "can't tell"}
    strange = [value for value in told.values() if value not in words]
    if strange:
        return f"{strange[0]!r} is none of the three answers; spell them as the text does."
    if told == cases:
        return None
    if all(told[case] == "yes" for case in cases if case[1] < 1) and all(
        told[case] == "no" for case in cases if case[0] < 1 < case[1]
    ):
        return "An interval that holds 1 proves no absence: it may hold large differences as well."
    if "no" not in told.values():
        return "Some intervals are narrow enough to say that there is no difference that matters."
    if told[1.005, 1.02, 0.05] != "yes":
        return "This interval leaves out 1, so the difference is real, though it is small."
    if told[0.80, 0.97, 0.05] != "yes":
        return "A ratio can be below 1, too: then the interval ends before it."
    if told[0.97, 1.03, 0.01] == "no" or told[0.90, 1.08, 0.2] != "no":
        return "What counts as no difference depends on `matters`: use it."
    if told[0.90, 1.02, 0.05] == "no" or told[0.98, 1.10, 0.05] == "no":
        return 'For a "no" *both* ends must be within what does not matter.'
    return "Go through the three sentences in their order, with both ends of the interval."


prediction("08.18", "Is the difference of the efficiencies real? (yes, no, can't tell)", HERE)

choice(
    "08.19",
    "12 s in every epoch of every repeat",
    HERE,
    right="b",
    wrong={
        "a": "The repeats agree because they were rounded: 11.6 s and 12.4 s are both written as 12 s.",
        "c": "More repeats reduce what is random. Rounding hides the same part of each of them.",
        "d": "It is little, but not nothing: 14 s would have been written in another way.",
    },
    why="Half a second either way, for each of the four times: repeats do not help against it.",
)


@question(
    "08.20",
    "The parts of a step as differences",
    HERE,
    points=2,
    why="Each kind of step has one thing more than the one before it.",
)
def parts(function):
    got = tuple(float(value) for value in function(1.0, 1.1, 1.4, 1.45))
    if len(got) != 4:
        return f"Four parts are wanted, these are {len(got)}."
    if all(abs(a - b) < 1e-9 for a, b in zip(got, (1.0, 0.1, 0.3, 0.05), strict=True)):
        return None
    if all(abs(a - b) < 1e-9 for a, b in zip(got, (1.0, 1.1, 1.4, 1.45), strict=True)):
        return "These are the steps themselves. What does each have that the one before has not?"
    if all(abs(a - b) < 1e-9 for a, b in zip(got, (1.0, 0.1, 0.4, 0.45), strict=True)):
        return "All are compared with the step alone: then the exchange holds the sharing as well, and counts it twice."
    if min(got) < 0:
        return "A part came out below 0 for growing steps: the later kind of step less the earlier one."
    if abs(sum(got) - 1.45) > 1e-9:
        return "The parts must add up to the last kind of step, in which everything is contained."
    return "Computation is the step alone; then the difference of each kind of step to the one before it."


choice(
    "08.21",
    'What does "exchange and waiting" say?',
    HERE,
    right="c",
    wrong={
        "a": "The ranks also agree on each tensor, and wait for the slower one: all this is in the difference.",
        "b": "What runs while backward still computes lengthens no step, and is in no difference.",
        "d": "How long a rank computes is in the step alone, and in both steps of this difference.",
    },
    why="A difference of two steps is what is added, not what happens.",
)


@question(
    "08.22",
    "Workers at which the efficiency falls below 0.8, each at its own largest batch",
    HERE,
    points=2,
    why="At its largest batch the smaller network spreads an exchange over twice as many images.",
)
def below(small, large):
    from labs.lessons.nb08 import pictures as what_if

    def at(small_batch, large_batch, bandwidth):
        return tuple(
            what_if.first_below(name, batch=batch, bandwidth=bandwidth)
            for name, batch in zip(what_if.NAMES, (small_batch, large_batch), strict=True)
        )

    got, right = (small, large), at(128, 64, 10)
    if got == right:
        return None
    if got == right[::-1]:
        return "The two are exchanged: first ResNet50V2, then ResNet152V2."
    if got == at(128, 64, 25):
        return "This is with 25 Gbit/s. Move the bandwidth first."
    if got in (at(64, 64, 10), at(128, 128, 10)):
        return "Both at the same batch: here each network has its own."
    if got == at(64, 128, 10):
        return "The batches are exchanged: which network fits more images?"
    if any(value not in what_if.WORKERS for value in got):
        return "Read the number of workers below the curves, where it says `below 0.8 from`."
    return "Bandwidth 10, all other controls as they were; batch 128 for one reading, 64 for the other."


choice(
    "08.23",
    "Why does ResNet152V2 fall behind without fusion?",
    HERE,
    right="b",
    wrong={
        "a": "The bytes are the same with and without fusion: only how they are packed differs.",
        "c": "Computation is the same; look at the right plot, which part has grown?",
        "d": "Fusion has nothing to do with the batch: the line would be dotted.",
    },
    why="With one message per tensor, latency counts, and it has three times as many tensors.",
)

written("T10", "Both networks together: why the epoch is longer and what the speedup does", HERE, points=6)
