"""Judges of 07b_going_on_and_many_nodes. The training that goes on is played on ranks with a disk each."""

import numpy as np

from labs.checks import batch_scripts, connected
from labs.checks.judging import judges
from labs.lessons.nb07.questions import callbacks, log, optimizer, pin, shard, start
from labs.lessons.nb07b import going_on


@judges("07.27")
def four_mistakes(path):
    for judge in (start, pin, shard, optimizer, callbacks, log):
        if hint := (yield from judge(path)):
            return hint


@judges("07.21")
def died(rank):
    yield rank == 0, "This rank was left waiting in its all-reduce. Whose traceback comes first, and what does it say?"
    yield rank != 1, "Find the experiment's RuntimeError in the .err: the launcher writes the rank before each line."


@judges("07.28")
def goes_on(path):
    yield from going_on.refused(path)
    script = going_on.Script(path)
    for name in script.missing():
        return f"The script does not define {name} any more: keep its name and arguments."
    try:
        saved = script.save(2)
        yield from _kept(saved)
        yield from _given_back(script.resume(saved[0].kept))
        yield from _first_time(script.resume(None))
        yield from _trained(script)
    except connected.ConnectedError as problem:
        return str(problem)


def _kept(saved):
    """Cases of what `save` leaves on the disk of each rank."""
    first, *others = saved
    for rank, seen in enumerate(others, 1):
        files = ", ".join(seen.files)
        yield (
            files,
            f"`save` runs on all ranks: rank {rank} writes, too ({files}). All hold the same state, so who writes it?",
        )
    there = f": it holds {', '.join(first.files)}." if first.files else "."
    yield first.kept is None, f"After `save` there is no file {going_on.NAME} on the disk of rank 0{there}"
    over = "The new checkpoint is written over the bytes of the old one. If the job ends meanwhile, half a file is left"
    yield first.in_place, f"{over}, and the old checkpoint is lost. Where else could the bytes go at first?"


def _given_back(seen):
    """Cases of what `resume` gives the ranks from the checkpoint of state 1, after 2 epochs."""
    weights, momentum = going_on.state(1)
    for rank, each in enumerate(seen):
        right = [np.array_equal(*pair) for pair in zip(each.weights, weights, strict=True)]
        frozen = right.pop(going_on.FROZEN)
        began = f"After `save` and `resume` the weights of rank {rank} are those that it began with"
        why = "though it has the file" if rank == 0 else "what rank 0 has read has not reached it"
        yield going_on.equal(each.weights, going_on.state(10 + rank)[0]), f"{began}: {why}."
        part = f"On rank {rank} the trained weights are those of the checkpoint, but those of a frozen layer are not."
        yield all(right) and not frozen, part
        yield not all(right), f"On rank {rank} the weights after `resume` are not those that `save` was given."
    for rank, each in enumerate(seen):
        same, any_ = going_on.equal(each.momentum, momentum), any(map(np.any, each.momentum))
        lost = f"The weights come back, but not the optimizer's momentum: on rank 0 it is {'another' if any_ else '0'}"
        yield rank == 0 and not same, f"{lost} after `resume`. What does a step change besides the weights?"
        yield (
            not same,
            f"Rank 0 has the momentum of the checkpoint, and rank {rank} has another one: their steps will differ.",
        )
    for rank, each in enumerate(seen):
        yield (
            each.returned is None,
            f"`resume` returns nothing on rank {rank}. It should return how many epochs are done.",
        )
        told = f"`save` was told that 2 epochs are done, but `resume` returns {each.returned!r:.20}"
        here = "" if rank == 0 else ". How does this rank learn what rank 0 has read?"
        yield not np.array_equal(each.returned, 2), f"{told} on rank {rank}{here or '.'}"


def _first_time(seen):
    """Cases of what `resume` does in the first job, without a checkpoint."""
    for rank, each in enumerate(seen):
        none = np.array_equal(each.returned, 0)
        yield (
            not none,
            f"Without a checkpoint `resume` returns {each.returned!r:.20} on rank {rank}, but no epoch is done yet.",
        )
        other = not going_on.equal(each.weights, seen[0].weights)
        yield other, f"Without a checkpoint rank {rank} begins with other weights than rank 0."


def _trained(script):
    """Cases of a training in two jobs: the first one stops after 1 of 3 epochs."""
    first = script.train(None, stop_after=1)
    yield from _epochs(first, range(1), "The first job")
    lost = "A job that is stopped after 1 of 3 epochs leaves no checkpoint, so its work is lost."
    yield first[0].kept is None, lost
    done = script.resume(first[0].kept)[0].returned
    yield done != 1, f"When the first job stops after 1 epoch, its checkpoint says that {done} are done."
    second = script.train(first[0].kept)
    yield from _epochs(second, range(1, 3), "The job that goes on after 1 of 3 epochs")
    done = script.resume(second[0].kept)[0].returned
    yield (
        done != 3,
        f"When all 3 epochs are over, the checkpoint says that {done} are done: the last ones are not kept.",
    )


def _epochs(seen, numbers, who):
    """Cases of a job of `train` that trains on other images than in the epochs `numbers`, or gives another accuracy."""
    for rank, each in enumerate(seen):
        count = len(each.steps) / going_on.STEPS
        trains = f"{who} trains {count:g} epoch{'s' * (count != 1)}"
        yield (
            numbers[0] > 0 and count == going_on.EPOCHS,
            f"{trains}: it starts again with the first one. Which epochs are left?",
        )
        yield count != len(numbers), f"{trains}, but {len(numbers)} are left for it."
        anew = sum((going_on.images_of(number, rank) for number in range(len(numbers))), [])
        order = f"{trains}, but reads the samples in the order of the very first epochs"
        yield numbers[0] > 0 and each.steps == anew, f"{order}. With which epoch must the order begin?"
        wanted = sum((going_on.images_of(number, rank) for number in numbers), [])
        yield each.steps != wanted, f"{trains}, but rank {rank} does not read the samples in the order of these epochs."
    for rank, each in enumerate(seen):
        here, mean = np.array(each.returned, float, ndmin=1), np.mean(going_on.ACCURACY)
        ranks = " and ".join(map(str, going_on.ACCURACY))
        own = np.allclose(here, going_on.ACCURACY[rank])
        yield (
            own,
            f"`mean` on rank {rank} is its own accuracy, that of a part of the images. How do you get that of all?",
        )
        yield (
            np.allclose(here, 2 * mean),
            f"The accuracies of the ranks are {ranks}, and `mean` is {here[0]:.3g}: this is their sum.",
        )
        yield not np.allclose(here, mean), f"The accuracies of the ranks are {ranks}, but `mean` is {here[0]:.3g}."


@judges("07.22")
def cores_per_rank(cores):
    yield cores == 160, "With 4 tasks on the node this asks for 640 threads, more than it has."
    if cores in (4, 1):
        return "That leaves most threads of the node idle. The rule speaks of the threads of all GPUs together."
    yield cores != 40, "Divide all threads of the node among its ranks."


@judges("07.23")
def batch_script(path):
    return batch_scripts.judge(path, trains="ResNet50_horovod.py", nodes=(3, 64))
