"""Questions of 22_when_workers_do_not_help."""

from labs.checks.judging import judges
from lessons.forms import formula, value
from lessons.when_workers_do_not_help import equal_ranks

value(
    "workers.1",
    right=443 / 73,
    wrong=[
        (443 - 73, "This is a difference in seconds. How many *times* as long is it?"),
        (370 / 73, "This is the extra time, divided by 73 s. How many times as long did they take in total?"),
        (8, "This is what the text says. Divide the two times yourself."),
        (4, "This is the number of processes. Divide the two times."),
    ],
    otherwise="Divide the time that four processes take by the time that one takes.",
    tolerance=0.02,
)


def _speedup(start, per_image, exchange, ranks):
    alone = start + 32 * per_image
    return alone / (start + 32 * per_image / ranks + exchange)


formula(
    "workers.3",
    right=_speedup,
    cases=((2.0, 0.5, 3.0, 2), (1.0, 0.25, 4.0, 8), (0.5, 1.0, 0.0, 1), (1.5, 0.3, 2.0, 3), (0.7, 0.6, 1.0, 5)),
    wrong=[
        (lambda s, c, e, k: (s + 32 * c) / (s + 32 * c / k), "Every rank has to wait for the exchange. Where is it?"),
        (lambda s, c, e, k: (s + c) / (s + c / k + e), "`per_image` is for one image. How many per step?"),
        (lambda s, c, e, k: (s + 32 * c) / (s + 32 // k * c + e), "This rounds a rank's share: keep the fraction."),
        (lambda s, c, e, k: (s + 32 * c + e) / (s + 32 * c / k + e), "Does one rank exchange anything?"),
        (lambda s, c, e, k: (s + 32 * c) / (s + 32 * c + e), "Each rank computes all 32 images. What is its share?"),
        (lambda s, c, e, k: (s + 32 * c) / ((s + 32 * c) / k + e), "Do the ranks also share the start of operations?"),
        (lambda s, c, e, k: (s + 32 * c) / (32 * c / k + e), "With several ranks, the start of operations is missing."),
    ],
    otherwise="What does a step consist of on one rank, and what on several?",
)

_LIKE = {
    "nothing": "The weights do not change: no step is taken. Take a step for each batch.",
    "never": "The ranks never average their weights, so each rank trains a network of its own.",
    "every step": "With k = 3 the ranks exchange at every step. That is synchronous SGD, whatever k is.",
    "early": "You take the mean after steps 1, 1 + k, ... With which number do you start to count the batches?",
    "not at k": "You take the mean after all steps except each k-th. Look at the condition again.",
    "at the end": "The mean comes only after the last batch. Take it after every k-th step.",
    "only k-th": "You use only one batch in k. Take a step for every batch, and average after every k-th.",
    "sum": "You add up the weights over the ranks, but do not divide the sum by the number of ranks.",
    "gradients at k": "At every k-th step you average the gradients. By then the weights differ: average the weights.",
    "weights alone": "With momentum, you average only the weights, so each rank continues with its own velocity.",
}


@judges("workers.5")
def local_sgd(path):
    cases = yield from equal_ranks.facts(path)
    yield any(case["moved_frozen"] for case in cases), "A layer that must not be trained has changed."
    wrong = [case for case in cases if case["like"] != ["right"]]
    for some in (wrong, [case for case in wrong if not case["momentum"]]):  # momentum may add a mistake of its own
        for mistake, hint in _LIKE.items():
            yield bool(some) and all(mistake in case["like"] for case in some), hint
    first = [*wrong, *cases][0]
    after = "are equal" if first["equal"] else "differ"
    yield (
        bool(wrong),
        f"With k = {first['k']} and momentum {first['momentum']}, this is not local SGD. The weights of the two ranks "
        f"{after} after the last step. What does a step change, and after which steps do the ranks average all of it?",
    )
    yield (
        any(case["ahead"] == equal_ranks.STEPS for case in cases),
        "The weights are right, but you read all the batches before the first step. The script measures the time from "
        "one batch to the next: read a batch, take its step, then read the next one.",
    )
    alone, eager = yield from equal_ranks.alone(path, graphs=False)
    in_a_graph, traced = yield from equal_ranks.alone(path, graphs=True)
    lost = "This is right on 2 ranks, but not on 1. Does your function take the number of ranks for granted?"
    yield not (alone and in_a_graph), lost
    once = f"On 1 rank, {len(eager)} exchanges are due, but with `tf.function` there are {len(traced)}"
    yield traced != eager, f"{once}: what Python decides inside of it is decided once, when it is traced."


value(
    "workers.7",
    right=lambda parameters: (8, 32 * parameters),
    wrong=[
        ((512, ...), "This is right for k = 1. How many times do 64 steps fit into 512?"),
        ((64, ...), "This is k, the number of steps from one exchange to the next."),
        (lambda parameters: (8, 4 * parameters), "These are the bytes of one exchange. How many are there?"),
        (lambda parameters: (8, 4 * 512 * parameters), "This is right for k = 1, with an exchange after each step."),
        (
            [lambda parameters: (8, parameters), lambda parameters: (8, 8 * parameters)],
            "This counts weights. How many bytes does each one take up?",
        ),
    ],
    otherwise=(
        "There is an exchange after every k-th of 512 steps. How many is that?",
        "The number of exchanges is right. Each one contains all the weights, and a float32 takes up 4 bytes.",
    ),
)

value(
    "workers.10",
    right=(500, 500),
    wrong=[
        ((0.5, 0.5), "These are shares. Give numbers of samples, out of 1000."),
        ((0, 0), "Then the ranks would read different halves. What makes the generator of rank 1 different?"),
        ((250, 250), "Different orders would give this. Here both generators have the same seed."),
        ((500, 0), "Half of the samples are read by nobody, that is right. Then who reads the other half?"),
        ([(0, 1000), (0, 500)], "Each rank takes half of the steps. Which samples are in these, and which are not?"),
    ],
    otherwise=(
        "Both ranks follow the same order from its beginning, and stop after half of the steps.",
        "The first number is right. But how many samples do both ranks read?",
    ),
)
