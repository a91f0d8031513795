"""Judges of 08_resnet152_scaling."""

import ast
import math
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from labs.checks import batch_scripts, reading
from labs.checks.judging import judges

near = partial(reading.near, relative=0.005)


@judges("08.3")
def ratios(operations, gradient, small, large):
    wanted = large.multiply_adds / small.multiply_adds, large.gradient_bytes / small.gradient_bytes
    got = operations, gradient
    if all(map(near, got, wanted)):
        return None
    if all(map(near, got, wanted[::-1])):
        return "The two are exchanged: first the multiply-adds, then the bytes."
    if all(near(a, 1 / b) for a, b in zip(got, wanted, strict=True)):
        return "Upside down: how many times as many has the larger network?"
    if near(gradient, large.tensors / small.tensors):
        return "The second one is the ratio of the tensors. How many bytes are they together?"
    if near(gradient, large.activation_bytes / small.activation_bytes):
        return "The second one is the ratio of the activations, which are never exchanged. Take the gradient."
    if not near(operations, wanted[0]):
        return "The first ratio is another one: multiply-adds of the larger network over those of the smaller one."
    return "The second ratio is another one: bytes of the larger gradient over those of the smaller one."


@judges("08.4")
def bytes_per_operation(function):
    network = SimpleNamespace(gradient_bytes=6000, multiply_adds=50, tensors=7, activation_bytes=11, parameters=1500)
    trials = {batch: function(network, batch) for batch in (8, 16)}
    if all(reading.near(trials[batch], 120 / batch, 1e-9) for batch in trials):
        return None
    if reading.near(trials[8], 120, 1e-9):
        return "This does not depend on the batch. For how many images does a worker compute in a step?"
    if reading.near(trials[16], 120 * 16, 1e-9):
        return "The gradient does not grow with the batch; what grows is what is computed."
    if reading.near(trials[8], 8 / 120, 1e-9):
        return "Upside down: these are multiply-adds for each byte."
    if reading.near(trials[8], 2 * 120 / 8, 1e-9) or reading.near(trials[8], 120 / 8 / 3, 1e-9):
        return "The factor is another one: count forward only, and the gradient once, as the text says."
    return "Bytes of the gradient, over the multiply-adds of one image times the images of the batch."


@judges("T7")
def script(path):
    tree = ast.parse(Path(path).read_text())
    reading.refuse_blanks(path)
    calls = reading.calls(tree)
    if "MirroredStrategy" not in calls:
        return "No MirroredStrategy is created. How does your ResNet50.py do it?"
    if not calls["MirroredStrategy"][0].keywords and not calls["MirroredStrategy"][0].args:
        return "MirroredStrategy() without devices takes all that it finds, and --n_gpus would not count."
    rates = reading.learning_rate(tree, 1), reading.learning_rate(tree, 4)
    if rates[0] is None or not near(rates[0], 0.01) or not near(rates[1], 0.04):
        return "The learning rate is not that of the linear rule. Compare with your ResNet50.py."
    return _network(tree, calls) or _names(calls) or reading.untrained(calls)


def _built(calls):
    built = [name for name in calls if name.startswith(("ResNet", "SmallCNN"))]
    if built == ["ResNet50V2"]:
        return "It still builds ResNet50V2: this script is for the larger network."
    if built != ["ResNet152V2"]:
        return f"It builds {', '.join(built) or 'no network of keras.applications'}: one ResNet152V2 is wanted."
    return None


def _network(tree, calls):
    if hint := _built(calls):
        return hint
    network = calls["ResNet152V2"][0]
    if hint := reading.outside_scope(tree, network):
        return hint
    words = {word.arg: word.value for word in network.keywords}
    if getattr(words.get("weights", 0), "value", 0) is not None:
        return "Pass weights=None: a trained network would be downloaded, and its training is not yours."
    if "classes" not in words or "input_shape" not in words:
        return "The network needs `classes` and `input_shape`, or it is one for ImageNet."
    return None


def _names(calls, strategy="mirrored"):
    def text(node):
        return "".join(str(part.value) for part in ast.walk(node) if isinstance(part, ast.Constant))

    printed = " ".join(text(call) for call in calls.get("print", []))
    if "Model " not in printed:
        return "The log's first line is missing: print `Model`, the network and the workers, as ResNet50.py does."
    if "ResNet152V2" not in printed:
        return "The log's first line names another network: whoever reads the .out takes one for the other."
    recorders = calls.get("Recorder", [])
    if not recorders:
        return "No recorder is created: the run would leave no record."
    words = reading.options(recorders[0])
    if words.get("model") != "ResNet152V2":
        return "The recorder gets another name for the network: its times would stand under that name."
    if words.get("strategy") != strategy:
        return "The recorder is told another strategy. Which one does this script use?"
    return None


judges("08.8")(reading.no_evidence)


@judges("08.9")
def batch_ratio(low, high, first, second):
    if not all(result[key] for result in (first, second) for key in ("largest", "fails")):
        return "One of the searches did not reach its border: give it less memory, or a higher limit."
    fits, fails = ([result[key] for result in (first, second)] for key in ("largest", "fails"))
    if near(low, fits[0] / fails[1]) and near(high, fails[0] / fits[1]):
        return None
    if near(low, high):
        return "This is one number. Which borders are possible between what fits and what does not?"
    if low > high:
        return "The lower end is above the upper one: which of the two borders must be small for a small ratio?"
    if near(low, fits[1] / fails[0]) and near(high, fails[1] / fits[0]):
        return "Upside down: the first network's border over the second one's."
    return "Lowest possible border of the first over the highest possible one of the second; then the other way round."


@judges("08.10")
def step_by_hand(seconds, small_steps, large_step, small, large):
    added = small_steps[2] - small_steps[1]
    bytes_, operations = (getattr(large, key) / getattr(small, key) for key in ("gradient_bytes", "multiply_adds"))
    guesses = [
        (large_step + added * bytes_, None),
        (large_step + added * operations, "Exchange grows with bytes, not with operations: take the other ratio."),
        (large_step + added, "The gradient of the larger network has more bytes: what is added grows with them."),
        (large_step, "This is the step of one worker. What do 2 workers add to it?"),
        (large_step / 2, "Half of the step? Each worker still computes as many images as before: weak scaling."),
        (
            large_step * small_steps[2] / small_steps[1],
            "Here exchange grows as the computation does. Suppose that it grows as the bytes do.",
        ),
        (added * bytes_, "This is what is added alone. Add it to the step on one worker."),
        (
            large_step + small_steps[2] * bytes_,
            "The whole step of ResNet50V2 was scaled: only what 2 workers add to it is exchange and waiting.",
        ),
    ]
    distance, hint = min(((abs(seconds - value), hint) for value, hint in guesses), key=lambda pair: pair[0])
    if distance <= 1e-3 * large_step:
        return hint
    return "Step of ResNet152V2 on 1 worker + (what 2 workers add to the step of ResNet50V2) x ratio of the bytes."


@judges("08.11")
def own_study(rows):
    if not isinstance(rows, list) or not rows or not isinstance(rows[0], dict):
        return "Give the rows that `collect.rows(...)` returns."
    large = [row for row in rows if row["model"] == "ResNet152V2"]
    if not large:
        return "There is no row of ResNet152V2. What does the record of your run say about its network?"
    foreign = [row["source"] for row in large if row["kind"] != "measured"]
    if foreign:
        return f"{foreign[0]} was not measured by you: give the rows of the jobs that you ran yourself."
    failed = [row["source"] for row in rows if row["failure"] or row["truncated"]]
    if failed:
        return f"{failed[0]} did not run to its end: look into its .err."
    for name in ("ResNet50V2", "ResNet152V2"):
        workers = {row["workers"] for row in rows if row["model"] == name}
        if 1 not in workers:
            return f"{name} has no run with 1 worker: without a baseline nothing can be called faster."
        if len(workers) < 2:
            return f"{name} has runs with one number of workers only: run at least two."


@judges("08.12")
def horovod_script(changed, original):
    reading.refuse_blanks(original, " (notebook 07)")
    if not isinstance(changed, str):
        return "Give the text of the new script: a string, made from `text`."
    before = Path(original).read_text()
    try:
        calls = reading.calls(ast.parse(changed))
    except SyntaxError as error:
        return f"This is no Python script any more: line {error.lineno}, {error.msg}."
    if hint := _built(calls) or _names(calls, "horovod"):
        return hint
    if ast.dump(ast.parse(changed.replace("ResNet152V2", "ResNet50V2"))) != ast.dump(ast.parse(before)):
        return "More than the network's name is different from your script of notebook 07: nothing else may change."
    return None


@judges("08.13")
def batch_script(path):
    return batch_scripts.judge(path, trains="ResNet152V2.py")


@judges("08.14")
def plots(figure, rows):
    if hint := reading.no_plots(figure):
        return hint
    axes = figure.axes
    legends = [text.get_text() for axis in axes for text in (axis.get_legend() or figure).findobj(_is_text)]
    names = sorted({row["model"] for row in rows})
    if not all(any(name in text for text in legends) for name in names):
        return "No legend names both networks: whoever reads the plot cannot tell one curve from the other."
    hints = (reading.no_curve(figure, [row for row in rows if row["model"] == name], name) for name in names)
    return next(filter(None, hints), None)


def _is_text(artist):
    from matplotlib.text import Text

    return isinstance(artist, Text)


@judges("08.15")
def epoch_ratio(ratio, rows):
    seconds = {(row["model"], row["workers"]): row["epoch_seconds"] for row in rows}
    small, large = seconds["ResNet50V2", 1], seconds["ResNet152V2", 1]
    if near(ratio, large / small):
        return None
    if near(ratio, small / large):
        return "Upside down: the longer epoch over the shorter one."
    if near(ratio, large - small):
        return "This is a difference in seconds. How many *times* as long is it?"
    two = seconds.get(("ResNet152V2", 2))
    if two and (near(ratio, two / small) or near(ratio, large / two)):
        return "A run on 2 workers is in this ratio: compare the networks on one worker each."
    return "Epoch seconds of ResNet152V2 on 1 worker, over those of ResNet50V2 on 1 worker."


TIMES = ([8.0, 8.2, 8.1], [4.4, 4.5, 4.3], [13.0, 13.3, 12.9, 13.1], [7.4, 7.2, 7.5])


@judges("08.16")
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


@judges("08.17")
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


@judges("08.20")
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


@judges("08.22")
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
