"""Questions of 20_going_on_and_two_nodes. The training that goes on is played on ranks with a disk each."""

from functools import partial

import numpy as np

from labs.checks.judging import judges
from lessons import batch_scripts, connected, scripts, training_scripts
from lessons.forms import value
from lessons.going_on_and_two_nodes import going_on


@judges("nodes.1")
def four_mistakes(path):
    for judge in training_scripts.STEPS:
        yield from judge(path)


value(
    "nodes.2",
    right=1,
    wrong=[
        (0, "This rank was left waiting in its all-reduce. Whose traceback comes first, and what does it say?"),
        (2, "Ranks are counted from 0, so which two are there? See the start of each line of the .err file."),
    ],
    otherwise="Find the experiment's RuntimeError in the .err file: the launcher puts the rank before each line.",
)


@judges("nodes.4")
def goes_on(path):
    yield from scripts.whole(path)
    script = going_on.PlayedScript(path)
    for name in script.missing():
        yield True, f"The script no longer defines {name}: keep its name and arguments."
    try:
        saved = script.save(2)
        yield from _kept(*saved)
        for rank, seen in enumerate(script.resume(saved[0].kept)):
            yield from _given_back(rank, seen)
        for rank, seen in enumerate(without := script.resume(None)):
            told = f"Without a checkpoint, `resume` returns {seen.returned!r:.20} on rank {rank}"
            yield not np.array_equal(seen.returned, 0), f"{told}, but no epoch is done yet."
            other = not going_on.equal(seen.weights, without[0].weights)
            yield other, f"Without a checkpoint, rank {rank} starts with different weights from rank 0."
        yield from _trained(script)
    except connected.ConnectedError as problem:
        yield True, str(problem)


def _kept(first, other):
    """Cases of what `save` leaves on the disk of each rank."""
    yield other.files, f"Rank 1 writes, too ({', '.join(other.files)}). Which rank should write this state?"
    there = f"After `save`, the disk of rank 0 holds {', '.join(first.files) or 'no file'}"
    yield first.kept is None, f"{there}, and not {going_on.NAME}."
    over = "The new checkpoint is written over the old one. If the job ends during the write, both are lost"
    yield first.in_place, f"{over}. Where else could you write the bytes first?"


def _given_back(rank, seen):
    """Cases of what `resume` gives a rank from the checkpoint of state 1, after 2 epochs."""
    weights, momentum = going_on.state(1)
    none = going_on.equal(seen.weights, going_on.state(10 + rank)[0])
    yield none, f"After `resume`, rank {rank} still has its first weights. Does it get those from the file?"
    wrong = [not np.array_equal(*pair) for pair in zip(seen.weights, weights, strict=True)]
    part = "the trained weights are those in the checkpoint, but those of a frozen layer are not"
    yield wrong[going_on.FROZEN] and sum(wrong) == 1, f"On rank {rank}, {part}."
    yield any(wrong), f"On rank {rank}, the weights after `resume` are not those that `save` was given."
    lost = f"On rank {rank}, the weights come back, but the optimizer's momentum does not"
    yield not going_on.equal(seen.momentum, momentum), f"{lost}. Was it saved, and has it reached this rank?"
    told = f"`save` was told that 2 epochs are done, but `resume` returns {seen.returned!r:.20} on rank {rank}"
    yield not np.array_equal(seen.returned, 2), f"{told}. Where does this rank get the number from?"


def _trained(script):
    """Cases of a training in two jobs: the first one stops after 1 of 3 epochs."""
    kept = None
    jobs = (("The first job", range(1), 1), ("The job that continues after 1 of 3 epochs", range(1, 3), None))
    for who, numbers, stop_after in jobs:
        seen = script.train(kept, stop_after)
        for rank, each in enumerate(seen):
            yield from _epochs(rank, each, who, numbers)
        kept = seen[0].kept
        yield kept is None, f"{who} leaves no checkpoint, so its work is lost."
        done = script.resume(kept)[0].returned
        yield done != numbers.stop, f"{who} ends with epoch {numbers.stop}, but its checkpoint says {done}."


def _epochs(rank, seen, who, numbers):
    """Cases of a rank that trains on other images than in the epochs `numbers`, or gives another accuracy."""
    count = len(seen.steps) / going_on.STEPS
    yield count != len(numbers), f"{who} trains for {count:g} epochs, not {len(numbers)}: which ones are left to it?"
    wanted = sum((going_on.images_of(number, rank) for number in numbers), [])
    order = f"{who} trains for {count:g} epochs, but on rank {rank} the samples are not in the order of these epochs"
    yield seen.steps != wanted, f"{order}. Which epoch does the order start from?"
    ranks, here = " and ".join(map(str, going_on.ACCURACY)), np.array(seen.returned, float, ndmin=1)
    mean = f"The accuracies of the ranks are {ranks}, but `mean` is {here.mean():.3g} on rank {rank}"
    yield not np.allclose(here, np.mean(going_on.ACCURACY)), f"{mean}. What is right for the images of all ranks?"


value(
    "nodes.6",
    right=40,
    wrong=[
        (160, "With 4 tasks on the node, this requests 640 threads, which is more than the node has."),
        ([4, 1], "That would leave most of the node's threads idle. The 160 threads are for all 4 GPUs together."),
    ],
    otherwise="Divide all the threads of the node among its ranks.",
)

judges("nodes.7")(partial(batch_scripts.judge, trains="ResNet50_horovod.py", nodes=(3, 64)))

value(
    "nodes.9",
    right=4,
    wrong=[
        (1, "The ranks began with equal weights. Compare the first weights that they printed at the end."),
        (2, "That is how many there were in the run above, which had two ranks."),
        (0, "Each rank does train: its loss goes down."),
    ],
    otherwise="A rank that uses only its own gradient trains a network of its own. Count the ranks.",
)

value(
    "nodes.10",
    right=0,
    wrong=[
        (1, "This rank announces its gradients last. What does the other one do until then?"),
        (2, "Ranks are counted from 0, so which two are there? See the curves of the picture."),
    ],
    otherwise="Whose curve rises first, and what does that rank do until the other one rises?",
)
