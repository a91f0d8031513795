"""Judges of 04_batch_size_and_learning_rate."""

from labs.checks.judging import judges
from labs.checks.reading import bytes_of_resnet50v2, close, near, no_evidence


@judges("04.1")
def weights(size):
    _, right = bytes_of_resnet50v2()
    count = right / 4
    for factor, hint in (
        (1, "This is the number of weights, not their bytes."),
        (2, "2 bytes would be float16; the weights are float32."),
        (8, "8 bytes would be float64; the weights are float32."),
        (32, "A float32 has 32 bits: how many bytes is that?"),
        (4e-6, "This is in megabytes: give the bytes."),
        (4 / 2**20, "This is in megabytes: give the bytes."),
    ):
        yield near(size, count * factor), hint
    yield not close(size, right), "Number of weights (`network.count_params()`) times bytes per weight."


@judges("04.5")
def bisect(function):
    if near(function(64, 128), 96, 0):
        yield near(function(96, 128), 112, 0), None
        return "Right for the first step, not for the second: use both arguments."
    yield float(function(64, 128)) in (64, 128), "This size has been tried already. Which size in between tells most?"
    yield (
        float(function(64, 128)) == 65,
        "One by one finds the border too, with up to 63 trials. Which size halves the gap?",
    )
    yield float(function(64, 128)) == 256, "Larger than a size that already failed: it will fail as well."
    return "Take the size in the middle of the largest that fits and the smallest that does not."


judges("04.4")(no_evidence)


@judges("04.6")
def linear_rule(batch, rate):
    yield batch == 256, "256 is the local batch. With MirroredStrategy you pass the images of a step over all workers."
    yield batch == 64, "The local batch stays 256: with more workers, a step takes more images, not smaller shares."
    yield batch != 1024, "Global batch = local batch x workers."
    yield near(rate, 0.01), "The rate of one worker: the linear rule multiplies it by the same factor as the batch."
    yield near(rate, 0.02), "That is the square-root rule. The course uses the linear one (Goyal et al. 2017)."
    if near(rate, 0.0025):
        return "Divided instead of multiplied: a larger batch gives a less noisy gradient, so the step may be longer."
    yield not near(rate, 0.04), "Rate = rate of one worker x number of workers."


@judges("04.7")
def last_batch(steps, last):
    yield (steps, last) == (6, 848) or steps == 6, "6 full batches are 49,152 images. Where do the others go?"
    yield steps != 7, "Divide 50,000 by 8192 and round up: a rest needs a step too."
    yield last == 8192, "7 x 8192 would be 57,344 images: more than there are."
    yield last != 848, "The images that 6 full batches leave over."
