"""Judges of 20_going_on_and_two_nodes. The training that goes on is played on ranks with a disk each."""

from functools import cache

import numpy as np

from labs.checks.judging import judges
from labs.checks.reading import close, near
from lessons import batch_scripts, connected, training_scripts
from lessons.going_on_and_two_nodes import going_on


@judges("nodes.1")
def four_mistakes(path):
    for judge in training_scripts.STEPS:
        yield from judge(path)


@judges("nodes.2")
def died(rank):
    yield rank == 0, "This rank was left waiting in its all-reduce. Whose traceback comes first, and what does it say?"
    yield rank != 1, "Find the experiment's RuntimeError in the .err file: the launcher puts the rank before each line."


@judges("nodes.4")
def goes_on(path):
    yield from going_on.refused(path)
    script = going_on.PlayedScript(path)
    for name in script.missing():
        yield True, f"The script no longer defines {name}: keep its name and arguments."
    try:
        saved = script.save(2)
        yield from _kept(saved)
        yield from _given_back(script.resume(saved[0].kept))
        yield from _first_time(script.resume(None))
        yield from _trained(script)
    except connected.ConnectedError as problem:
        yield True, str(problem)


def _kept(saved):
    """Cases of what `save` leaves on the disk of each rank."""
    first, *others = saved
    for rank, seen in enumerate(others, 1):
        files = ", ".join(seen.files)
        yield (
            files,
            f"`save` runs on all ranks, and rank {rank} writes, too ({files}). Which one should write this state?",
        )
    there = f", which holds {', '.join(first.files)}." if first.files else "."
    yield first.kept is None, f"After `save`, there is no file {going_on.NAME} on the disk of rank 0{there}"
    over = "The new checkpoint overwrites the old one. If the job ends during the write, only half a file is left"
    yield first.in_place, f"{over}, and the old checkpoint is lost. Where else could you write the bytes first?"


def _given_back(seen):
    """Cases of what `resume` gives the ranks from the checkpoint of state 1, after 2 epochs."""
    weights, momentum = going_on.state(1)
    for rank, each in enumerate(seen):
        right = [np.array_equal(*pair) for pair in zip(each.weights, weights, strict=True)]
        frozen = right.pop(going_on.FROZEN)
        began = f"After `save` and `resume`, rank {rank} still has the weights that it started with"
        why = ", although it has the file" if rank == 0 else ": what rank 0 read has not reached it"
        yield going_on.equal(each.weights, going_on.state(10 + rank)[0]), f"{began}{why}."
        part = f"On rank {rank}, the trained weights are those in the checkpoint, but those of a frozen layer are not."
        yield all(right) and not frozen, part
        yield not all(right), f"On rank {rank}, the weights after `resume` are not those that `save` was given."
    for rank, each in enumerate(seen):
        same, any_ = going_on.equal(each.momentum, momentum), any(map(np.any, each.momentum))
        lost = f"The weights come back, but the optimizer's momentum does not: it is {'different' if any_ else '0'}"
        yield rank == 0 and not same, f"{lost} on rank 0 after `resume`. Besides the weights, what does a step change?"
        yield (
            not same,
            f"Rank 0 has the momentum from the checkpoint, but rank {rank} does not: their steps will differ.",
        )
    for rank, each in enumerate(seen):
        yield (
            each.returned is None,
            f"`resume` returns nothing on rank {rank}. It should return the number of finished epochs.",
        )
        told = f"`save` was told that 2 epochs are done, but `resume` returns {each.returned!r:.20}"
        here = "" if rank == 0 else ". How does this rank learn what rank 0 read?"
        yield not np.array_equal(each.returned, 2), f"{told} on rank {rank}{here or '.'}"


def _first_time(seen):
    """Cases of what `resume` does in the first job, without a checkpoint."""
    for rank, each in enumerate(seen):
        none = np.array_equal(each.returned, 0)
        yield (
            not none,
            f"Without a checkpoint, `resume` returns {each.returned!r:.20} on rank {rank}, but no epoch is done yet.",
        )
        other = not going_on.equal(each.weights, seen[0].weights)
        yield other, f"Without a checkpoint, rank {rank} starts with different weights from rank 0."


def _trained(script):
    """Cases of a training in two jobs: the first one stops after 1 of 3 epochs."""
    first = script.train(None, stop_after=1)
    yield from _epochs(first, range(1), "The first job")
    lost = "A job that stops after 1 of 3 epochs leaves no checkpoint, so its work is lost."
    yield first[0].kept is None, lost
    done = script.resume(first[0].kept)[0].returned
    yield done != 1, f"When the first job stops after 1 epoch, its checkpoint says that {done} epochs are done."
    second = script.train(first[0].kept)
    yield from _epochs(second, range(1, 3), "The job that continues after 1 of 3 epochs")
    done = script.resume(second[0].kept)[0].returned
    yield done != 3, f"After all 3 epochs, the checkpoint says that {done} are done: the last ones are not saved."


def _epochs(seen, numbers, who):
    """Cases of a job of `train` that trains on other images than in the epochs `numbers`, or gives another accuracy."""
    for rank, each in enumerate(seen):
        count = len(each.steps) / going_on.STEPS
        trains = f"{who} trains for {count:g} epoch{'s' * (count != 1)}"
        yield (
            numbers[0] > 0 and count == going_on.EPOCHS,
            f"{trains}: it starts again from the first one. Which epochs are left?",
        )
        yield count != len(numbers), f"{trains}, but it should train for {len(numbers)}."
        anew = sum((going_on.images_of(number, rank) for number in range(len(numbers))), [])
        order = f"{trains}, but reads the samples in the order of the first epochs"
        yield numbers[0] > 0 and each.steps == anew, f"{order}. Which epoch must the order start from?"
        wanted = sum((going_on.images_of(number, rank) for number in numbers), [])
        yield each.steps != wanted, f"{trains}, but rank {rank} does not read the samples in these epochs' order."
    for rank, each in enumerate(seen):
        here, mean = np.array(each.returned, float, ndmin=1), np.mean(going_on.ACCURACY)
        ranks = " and ".join(map(str, going_on.ACCURACY))
        own = np.allclose(here, going_on.ACCURACY[rank])
        yield (
            own,
            f"On rank {rank}, `mean` is its own accuracy, on part of the images. How do you get that for all images?",
        )
        yield (
            np.allclose(here, 2 * mean),
            f"The accuracies of the ranks are {ranks}, and `mean` is {here[0]:.3g}, which is their sum.",
        )
        yield not np.allclose(here, mean), f"The accuracies of the ranks are {ranks}, but `mean` is {here[0]:.3g}."


@judges("nodes.6")
def cores_per_rank(cores):
    yield cores == 160, "With 4 tasks on the node, this requests 640 threads, which is more than the node has."
    yield (
        cores in (4, 1),
        "That would leave most of the node's threads idle. The 160 threads are for all 4 GPUs together.",
    )
    yield cores != 40, "Divide all the threads of the node among its ranks."


@judges("nodes.7")
def batch_script(path):
    yield from batch_scripts.judge(path, trains="ResNet50_horovod.py", nodes=(3, 64))


@judges("nodes.9")
def networks(count):
    yield count == 1, "The ranks began with equal weights. Compare the first weights that they printed at the end."
    yield count == 2, "That is how many there were in the run above, which had two ranks."
    yield count == 0, "Each rank does train: its loss goes down."
    yield count != 4, "A rank that uses only its own gradient trains a network of its own. Count the ranks."


@judges("nodes.10")
def tensors(count, size):
    trained, every, layers, gradient = _resnet()
    yield (
        count == every,
        "This counts all variables. Moving means and variances are not trained, so they have no gradient.",
    )
    yield count == layers, "This counts the layers. A layer may have several variables with a gradient, or none at all."
    yield count != trained, "There is one tensor for each trainable variable: how long is `network.trainable_weights`?"
    yield close(size, gradient), None
    yield (
        any(near(size, gradient / unit) for unit in (1e6, 2**20)),
        "The number of tensors is right. Give bytes instead of megabytes.",
    )
    yield (
        abs(size - gradient / 4) < 1e-3 * gradient,
        "The number of tensors is right. This is how many values they hold. How many bytes does a float32 take?",
    )
    yield (
        abs(size - 2 * gradient) < 1e-3 * gradient,
        "The number of tensors is right. Give the bytes of one rank's gradient, not of both ranks.",
    )
    yield True, "The number of tensors is right. Add up the sizes of all the tensors, in float32."


@cache
def _resnet():
    """Of ResNet50V2: trainable variables, all variables, layers, and bytes of its gradient."""
    from labs import models
    from lessons import counts

    network = models.network("ResNet50V2", 32, 10)
    gradient = counts.memory(network, batch=1)["gradients"]
    return len(network.trainable_weights), len(network.weights), len(network.layers), gradient


@judges("nodes.11")
def waits(rank):
    yield rank == 1, "This rank announces its gradients last. What does the other one do until then?"
    yield (
        rank != 0,
        "Look at the marks in each row. Whose comes first, and what does that rank do until the other mark appears?",
    )
