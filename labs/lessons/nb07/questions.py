"""Questions of 07_horovod_training (H1). The six steps are judged by what the script's own expressions give."""

from functools import cache

from labs.checks import batch_scripts
from labs.checks.judging import choice, prediction, question, written
from labs.lessons.nb07 import steps

HERE = "07_horovod_training"

prediction("07.1", "Lines that 4 ranks print", HERE)


@question(
    "07.2",
    "K on 2 nodes with 4 GPUs each",
    HERE,
    why="K = nodes x tasks per node: one task, one process, one rank for each GPU.",
)
def size(count):
    if count == 2:
        return "That would be one process per node: on each, three GPUs would stay idle."
    if count == 4:
        return "That is one node's share. How many nodes are there?"
    if count == 6:
        return "Nodes and tasks per node are multiplied, not added."
    if count != 8:
        return "K = nodes x tasks per node, with one task for each GPU of a node."


@question(
    "07.3",
    "Node and local rank of rank 6",
    HERE,
    points=2,
    why="Ranks count node by node; local ranks begin at 0 on every node, as the GPUs' numbers do.",
)
def place(node, local):
    if local == 6:
        return "No node has a GPU with this number: they have 4 each. Count anew on each node."
    if (node, local) in ((0, 2), (2, 2)):
        return "The local rank is right. Which node is it, if the first one is node 0 and holds the ranks 0 to 3?"
    if (node, local) == (2, 1):
        return "The two numbers are swapped: first the node, then the local rank."
    if node == 1 and local == 3:
        return "Both counts begin at 0: the first rank of a node has local rank 0."
    if (node, local) != (1, 2):
        return "Write the ranks 0 to 7 in two rows of four, one row for each node, and find 6."


for _id, _number, _points in (
    ("07.4", 1, 1),
    ("07.5", 2, 1),
    ("07.6", 3, 2),
    ("07.7", 4, 2),
    ("07.8", 5, 2),
    ("07.9", 6, 1),
):
    question(_id, f"ResNet50_horovod.py, step {_number}: {steps.TITLES[_number]}", HERE, _points, steps.WHY[_number])(
        steps.judge(_number)
    )

prediction("07.10", "Speedup on 2 ranks, beside MirroredStrategy's", HERE)


@question(
    "07.11",
    "Evidence: one network on 2 ranks",
    HERE,
    points=2,
    why="The ranks compared their trained weights bit by bit, and your run's record says so.",
)
def evidence(record):
    from labs.results.record import Record

    if not isinstance(record, Record):
        return "Give the run record of your job on 2 ranks, as `run_record.load(...)` read it."
    has = record.configuration
    if has.strategy != "horovod":
        return f"This record is of a run with strategy {has.strategy!r}. Which file did your ranks write?"
    if record.state != "finished":
        return f"This run is {record.state}: weights are compared when it has ended. Look at its .err."
    if (has.workers or 1) < 2:
        return "One rank is always equal to itself. Give the record of the run on 2 ranks."
    if not (record.weights or {}).get("identical"):
        return "The ranks hold different networks: look again at steps 4 and 5 of your script."


choice(
    "07.12",
    "Why must the trained weights be identical on all ranks, to the last bit?",
    HERE,
    right="b",
    wrong={
        "a": "Close is not enough for a reason: where could even a small difference come from, if all add the same update?",
        "c": "Rank 0 broadcasts at the begin of the training only. No later step repairs a difference.",
        "d": "Metrics are averaged so that you read one number; they change no weight.",
    },
    why="Equal start and equal averaged gradients: a difference means that one of the two is missing.",
)

choice(
    "07.13",
    "Who carries the gradients between 4 GPUs of one node?",
    HERE,
    right="a",
    wrong={
        "b": "Gloo carries between processes on CPUs. Which library knows the wires between GPUs?",
        "c": "MPI may start the processes and carry small messages. Gradients on GPUs have a faster way.",
        "d": "horovodrun starts the processes and is then out of the way: nothing passes through it.",
    },
    why="NCCL carries tensors between GPUs; MPI or Gloo start, negotiate, and carry between CPUs.",
)

prediction("07.14", "Are the weights identical without averaging, from an equal start?", HERE)


@question(
    "07.15",
    "Networks that 4 unconnected ranks train",
    HERE,
    why="Each rank follows its own share of the data, and what is kept in the end is rank 0's.",
)
def networks(count):
    if count == 1:
        return "They began as one. What do the first weights say that the ranks printed?"
    if count == 2:
        return "That is how many there were in the run above, which had two ranks."
    if count == 0:
        return "Each rank does train: its loss goes down."
    if count != 4:
        return "Every rank that updates with its own gradient alone has a network of its own: count the ranks."


@question(
    "07.16",
    "Effective batch of 4 ranks with local batch 8",
    HERE,
    why="|B| = K |B_local|: the gradient is averaged over the images of all ranks.",
)
def effective(batch):
    if batch == 8:
        return "That is what one rank sees. Over how many images is the gradient averaged?"
    if batch == 2:
        return "Divided: 8 images is already the share of one rank."
    if batch == 4:
        return "That is the number of ranks; each of them brings several images."
    if batch != 32:
        return "Local batch times number of ranks."


@question(
    "07.17",
    "Three rules for the rate of K ranks",
    HERE,
    points=2,
    why="The batch grows K times; the rules differ in how much of that the rate takes over.",
)
def rules(function):
    cases = ((0.01, 1), (0.01, 16), (0.02, 8))
    values = [function(rate, ranks) for rate, ranks in cases]
    if any(not hasattr(value, "__len__") or len(value) != 3 for value in values):
        return "Return three rates: by the linear, the square-root and the 2/3-power rule, in this order."
    if max(abs(rate - 0.01) for rate in values[0]) > 1e-9:
        return "For a single rank no rule changes the rate."
    rows = [(list(value), rate, ranks) for value, (rate, ranks) in zip(values[1:], cases[1:], strict=True)]

    def wrong(place, power):
        return any(abs(value[place] / (rate * ranks**power) - 1) > 1e-6 for value, rate, ranks in rows)

    if wrong(0, 1):
        return "The first one, the linear rule: as many times the rate as there are ranks."
    if wrong(1, 0.5):
        return "The linear rule is right. The second one takes the square root of the number of ranks as its factor."
    if wrong(2, 2 / 3):
        return "Two are right. The third factor is the number of ranks to the power 2/3: mind brackets around 2/3."


choice(
    "07.18",
    "Which two curves are one, and why?",
    HERE,
    right="d",
    wrong={
        "a": "Look at both panels: per update these two are far apart.",
        "b": "The number of ranks is the same, the batch of an update is not.",
        "c": "Look closer: two of the three differ by less than the line is wide.",
    },
    why="Same effective batch, rate and order: the averaged gradient is the gradient of the whole batch.",
)


@question(
    "07.19",
    "Tensors and bytes that Horovod averages in a step of ResNet50V2",
    HERE,
    points=2,
    why="One all-reduce for each trainable variable; together they are the gradient's bytes.",
)
def tensors(count, size):
    trained, every, layers, gradient = _resnet()
    if count == every:
        return "These are all variables. Moving means and variances are not trained, so they have no gradient."
    if count == layers:
        return "These are the layers. A layer may have two variables with a gradient, or none."
    if count != trained:
        return "One tensor for each trainable variable: how long is `network.trainable_weights`?"
    if abs(size - gradient / 4) < 1e-3 * gradient:
        return "The tensors are right; this is how many numbers they hold. How many bytes has a float32?"
    if abs(size - 2 * gradient) < 1e-3 * gradient:
        return "The tensors are right. The bytes of one rank's gradient are asked, not of both ranks."
    if abs(size - gradient) > 1e-3 * gradient:
        return "The tensors are right. Add up the sizes of all of them, in float32."


@cache
def _resnet():
    """Of ResNet50V2: trainable variables, all variables, layers, and bytes of its gradient."""
    from labs import models

    network = models.network("ResNet50V2", 32, 10)
    gradient = models.memory(network, batch=1)["gradients"]
    return len(network.trainable_weights), len(network.weights), len(network.layers), gradient


@question(
    "07.20", "Which rank waits?", HERE, why="The rank that has announced its gradients waits for the one that has not."
)
def waits(rank):
    if rank == 1:
        return "This one announces last: it is late, and finds all others there already."
    if rank != 0:
        return "Look at the marks: whose come first in each row, and what does that rank do until the others' come?"


@question(
    "07.21",
    "Which rank brought the job down?",
    HERE,
    why="The first traceback names it; what the other ranks say comes after and because of it.",
)
def died(rank):
    if rank == 0:
        return "This one was left waiting in its all-reduce. Whose traceback stands first, and what does it say?"
    if rank != 1:
        return "Find the experiment's RuntimeError in the .err: the launcher writes the rank before each line."


@question(
    "07.22",
    "Cores for each rank of a Horovod job on CTE-POWER",
    HERE,
    why="--cpus-per-task counts for each task, the site's rule for all of a node.",
)
def cores_per_rank(cores):
    if cores == 160:
        return "With 4 tasks on the node this asks for 640 threads, more than it has."
    if cores in (4, 1):
        return "That leaves most threads of the node idle. The rule speaks of the threads of all GPUs together."
    if cores != 40:
        return "All threads of the node, divided among its ranks."


@question(
    "07.23",
    "slurm/<site>/ResNet50_horovod_nodes.sh, before it is submitted",
    HERE,
    points=3,
    why="A task for each GPU, cores within the site's rule, and a batch that follows the ranks.",
)
def batch_script(path):
    return batch_scripts.judge(path, trains="ResNet50_horovod.py")


written("H1", "Horovod: launch, evidence and speedup of your own runs", HERE, points=4)
