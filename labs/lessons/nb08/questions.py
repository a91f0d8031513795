"""Questions of 08_resnet152_scaling, first half: what grows, the script, largest batch, the step by hand (T7, T8)."""

import ast
from pathlib import Path
from types import SimpleNamespace

from labs.checks.judging import NotDone, choice, prediction, question, written
from labs.lessons.nb05.questions import _calls, _rate

HERE = "08_resnet152_scaling"

prediction("08.1", "Epoch of ResNet152V2 on 1 worker, as a multiple of ResNet50V2's", HERE)
prediction("08.2", "The network with the larger speedup on 2 workers, at an equal batch", HERE)
prediction("08.7", "Largest batch of ResNet50V2, as a multiple of ResNet152V2's", HERE)


def _near(value, wanted, relative=0.005):
    return abs(value - wanted) <= relative * abs(wanted)


@question(
    "08.3",
    "Multiply-adds and bytes of gradient, as ratios",
    HERE,
    points=2,
    why="Operations grow more than bytes: at an equal batch less is exchanged for what is computed.",
)
def ratios(operations, gradient, small, large):
    wanted = large.multiply_adds / small.multiply_adds, large.gradient_bytes / small.gradient_bytes
    got = operations, gradient
    if all(map(_near, got, wanted)):
        return None
    if all(map(_near, got, wanted[::-1])):
        return "The two are exchanged: first the multiply-adds, then the bytes."
    if all(_near(a, 1 / b) for a, b in zip(got, wanted, strict=True)):
        return "Upside down: how many times as many has the larger network?"
    if _near(gradient, large.tensors / small.tensors):
        return "The second one is the ratio of the tensors. How many bytes are they together?"
    if _near(gradient, large.activation_bytes / small.activation_bytes):
        return "The second one is the ratio of the activations, which are never exchanged. Take the gradient."
    if not _near(operations, wanted[0]):
        return "The first ratio is another one: multiply-adds of the larger network over those of the smaller one."
    return "The second ratio is another one: bytes of the larger gradient over those of the smaller one."


@question(
    "08.4",
    "Bytes of gradient for each multiply-add",
    HERE,
    points=2,
    why="The gradient is exchanged once in a step, however many images the worker computed.",
)
def bytes_per_operation(function):
    network = SimpleNamespace(gradient_bytes=6000, multiply_adds=50, tensors=7, activation_bytes=11, parameters=1500)
    trials = {batch: function(network, batch) for batch in (8, 16)}
    if all(_near(trials[batch], 120 / batch, 1e-9) for batch in trials):
        return None
    if _near(trials[8], 120, 1e-9):
        return "This does not depend on the batch. For how many images does a worker compute in a step?"
    if _near(trials[16], 120 * 16, 1e-9):
        return "The gradient does not grow with the batch; what grows is what is computed."
    if _near(trials[8], 8 / 120, 1e-9):
        return "Upside down: these are multiply-adds for each byte."
    if _near(trials[8], 2 * 120 / 8, 1e-9) or _near(trials[8], 120 / 8 / 3, 1e-9):
        return "The factor is another one: count forward only, and the gradient once, as the text says."
    return "Bytes of the gradient, over the multiply-adds of one image times the images of the batch."


choice(
    "08.5",
    "What pulls the other way?",
    HERE,
    right="c",
    wrong={
        "a": "It also computes more meanwhile, and by a larger factor: that is what the table shows.",
        "b": "Workers do not wait at each layer: a worker waits until the gradients of all of them are there.",
        "d": "Gradients are exchanged at each step, not each epoch; and speedup compares epochs of one network.",
    },
    why="Fewer images per exchange at its largest batch, and more messages that each cost a start.",
)

choice(
    "08.6",
    "The network is changed and the recorder's name is not",
    HERE,
    right="b",
    wrong={
        "a": "Nobody compares the two: the recorder is told a name and keeps it.",
        "c": "The recorder only writes down what it is told. Which line builds the network?",
        "d": "The record is written as always. What does it say?",
    },
    why="A record says what it is told. `labs results` then divides the times of two networks.",
)


@question(
    "T7",
    "scripts/ResNet152V2.py, before it runs",
    HERE,
    points=4,
    why="The same training with the other network, under its own name in log and record.",
)
def script(path):
    from labs import blanks

    tree = ast.parse(Path(path).read_text())
    for line, text in blanks.blanks(Path(path)):
        raise NotDone(f"Line {line} of {Path(path).name} is still blank: {text.strip()}")
    calls = _calls(tree)
    if "MirroredStrategy" not in calls:
        return "No MirroredStrategy is created. How does your ResNet50.py do it?"
    if not calls["MirroredStrategy"][0].keywords and not calls["MirroredStrategy"][0].args:
        return "MirroredStrategy() without devices takes all that it finds, and --n_gpus would not count."
    rates = _rate(tree, 1), _rate(tree, 4)
    if rates[0] is None or not _near(rates[0], 0.01) or not _near(rates[1], 0.04):
        return "The learning rate is not that of the linear rule. Compare with your ResNet50.py."
    return _network(tree, calls) or _names(calls) or _training(calls)


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
    scopes = [n for n in ast.walk(tree) if isinstance(n, ast.With) and "scope" in ast.dump(n.items[0])]
    if id(calls["ResNet152V2"][0]) not in {id(n) for scope in scopes for n in ast.walk(scope)}:
        return "The network is created outside `strategy.scope()`: it would have one copy only."
    words = {k.arg: k.value for k in calls["ResNet152V2"][0].keywords}
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
    words = {k.arg: getattr(k.value, "value", None) for k in recorders[0].keywords}
    if words.get("model") != "ResNet152V2":
        return "The recorder gets another name for the network: its times would stand under that name."
    if words.get("strategy") != strategy:
        return "The recorder is told another strategy. Which one does this script use?"
    return None


def _training(calls):
    if "fit" not in calls:
        return "The model is never trained: where is `fit`?"
    words = {k.arg: getattr(k.value, "value", None) for k in calls["fit"][0].keywords}
    if "callbacks" not in words:
        return "`fit` runs without the recorder: pass callbacks=[recorder], or there is no record of your run."
    if words.get("verbose") != 2:
        return "Pass verbose=2 to `fit`: one line per epoch, which is your log."
    return None


@question(
    "08.8",
    "Evidence: the line that says memory ran out",
    HERE,
    points=2,
    why="The line stands in the .err file of your own search.",
)
def evidence(line, result):
    from labs.lessons.nb04.questions import evidence

    return evidence(line, result)


@question(
    "08.9",
    "The ratio of the largest batches, as an interval",
    HERE,
    points=2,
    why="Each border is known up to a factor of 2, so their ratio up to a factor of 4.",
)
def batch_ratio(low, high, first, second):
    if not all(result[key] for result in (first, second) for key in ("largest", "fails")):
        return "One of the searches did not reach its border: give it less memory, or a higher limit."
    fits, fails = ([result[key] for result in (first, second)] for key in ("largest", "fails"))
    if _near(low, fits[0] / fails[1]) and _near(high, fails[0] / fits[1]):
        return None
    if _near(low, high):
        return "This is one number. Which borders are possible between what fits and what does not?"
    if low > high:
        return "The lower end is above the upper one: which of the two borders must be small for a small ratio?"
    if _near(low, fits[1] / fails[0]) and _near(high, fails[1] / fits[0]):
        return "Upside down: the first network's border over the second one's."
    return "Lowest possible border of the first over the highest possible one of the second; then the other way round."


written("T8", "Largest batch size of ResNet152V2: the steps and the line of the .err file", HERE, points=4)


@question(
    "08.10",
    "The step on 2 workers, predicted by hand",
    HERE,
    points=2,
    why="One worker's step, and what 2 workers add: scaled by the bytes that are exchanged.",
)
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


@question(
    "08.11",
    "Your own study of both networks, with labs",
    HERE,
    points=2,
    why="Both networks have their runs and their baseline on one worker.",
)
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
