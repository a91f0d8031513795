"""Questions of 04_batch_size_and_learning_rate (T4)."""

from pathlib import Path

from labs.checks.judging import choice, prediction, question, written

HERE = "04_batch_size_and_learning_rate"

choice(
    "04.1",
    "Which part of the memory grows with the batch?",
    HERE,
    right="d",
    wrong={
        "a": "The weights are the same for 1 image and for 1000: compare two bars.",
        "b": "There is one gradient per weight, however many images were averaged into it.",
        "c": "The optimizer keeps numbers per weight, not per image.",
    },
    why="Only activations are kept per image, until backward has used them.",
)


@question("04.2", "Bytes of the weights of ResNet50V2", HERE, why="4 bytes for each float32 weight.")
def weights(size):
    from labs import models
    from labs.lessons.nb03.questions import gradient_sizes

    parts = gradient_sizes(models)
    count = parts["all"] / 4
    for factor, hint in (
        (1, "This is the number of weights, not their bytes."),
        (2, "2 bytes would be float16; the weights are float32."),
        (8, "8 bytes would be float64; the weights are float32."),
        (32, "A float32 has 32 bits: how many bytes is that?"),
    ):
        if abs(size - count * factor) < 1e-3 * count * factor:
            return hint
    if abs(size - parts["all"]) > 1e-3 * parts["all"]:
        return "Number of weights (`network.count_params()`) times bytes per weight."


prediction("04.3", "Largest batch size that fits", HERE)


@question(
    "04.4", "The next batch size to try", HERE, why="Halving the gap: each trial says in which half the border lies."
)
def bisect(function):
    if function(64, 128) == 96:
        return None if function(96, 128) == 112 else "Right for the first step, not for the second: use both arguments."
    if function(64, 128) in (64, 128):
        return "This size has been tried already. Which size in between tells most?"
    if function(64, 128) == 65:
        return "One by one finds the border too, with up to 63 trials. Which size halves the gap?"
    if function(64, 128) == 256:
        return "Larger than a size that already failed: it will fail as well."
    return "Take the size in the middle of the largest that fits and the smallest that does not."


@question(
    "04.5",
    "Evidence: the line that says memory ran out",
    HERE,
    points=2,
    why="The line stands in the .err file of your own run.",
)
def evidence(line, result):
    line = str(line).strip()
    if not result.get("evidence"):
        return "The search has not run out of memory yet: give it less memory, or a higher limit."
    file = Path(result["evidence"]["file"])
    lines = file.read_text(errors="replace").splitlines() if file.exists() else []
    if not line or line not in map(str.strip, lines):
        return f"This line does not stand in {file}. Copy it from there, whole."
    if "Traceback" in line or line.startswith("File "):
        return "That is where Python was when it happened. Look for the line that names what could not be had."
    if "OOM" not in line and "RESOURCE_EXHAUSTED" not in line and "out of memory" not in line.lower():
        return "This line is in the file, but does not say that memory ran out. Look for the word OOM."


@question(
    "04.6",
    "Global batch and learning rate of 4 workers",
    HERE,
    points=2,
    why="The global batch is what is passed; the rate grows as it does.",
)
def linear_rule(batch, rate):
    if batch == 256:
        return "256 is the local batch. With MirroredStrategy you pass the images of a step over all workers."
    if batch == 64:
        return "The local batch stays 256: with more workers, a step takes more images, not smaller shares."
    if batch != 1024:
        return "Global batch = local batch x workers."
    if abs(rate - 0.01) < 1e-9:
        return "The rate of one worker: the linear rule multiplies it by the same factor as the batch."
    if abs(rate - 0.02) < 1e-9:
        return "That is the square-root rule. The course uses the linear one (Goyal et al. 2017)."
    if abs(rate - 0.0025) < 1e-9:
        return "Divided instead of multiplied: a larger batch gives a less noisy gradient, so the step may be longer."
    if abs(rate - 0.04) > 1e-9:
        return "Rate = rate of one worker x number of workers."


@question(
    "04.7",
    "Steps of an epoch and images in the last one",
    HERE,
    why="The last step is smaller, yet it costs most of a full step.",
)
def last_batch(steps, last):
    if (steps, last) == (6, 848) or steps == 6:
        return "6 full batches are 49,152 images. Where do the others go?"
    if steps != 7:
        return "Divide 50,000 by 8192 and round up: a rest needs a step too."
    if last == 8192:
        return "7 x 8192 would be 57,344 images: more than there are."
    if last != 848:
        return "The images that 6 full batches leave over."


choice(
    "04.8",
    "What do the curves say?",
    HERE,
    right="c",
    wrong={
        "a": "More workers were never part of this experiment: one worker ran all three. What changed was the batch.",
        "b": "The large batch sees the same images per epoch; but how many updates does it make?",
        "d": "Compare the two curves of batch 256: same batch, same images, another rate.",
    },
    why="With 8 times the batch there are 8 times fewer updates; a larger rate makes up for part of it.",
)

written("T4", "Largest batch size that fits: the steps and the line of the .err file", HERE, points=4)
