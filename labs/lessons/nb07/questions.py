"""Judges of 07_horovod_training. The six steps are judged by what the script's own expressions give."""

import ast
import re
from functools import cache

from labs.checks import batch_scripts
from labs.checks.judging import judges
from labs.checks.reading import name_of, near
from labs.lessons.nb07.script import LOCAL_RANK, LOCAL_SIZE, RANK, SIZE, Numbers, step

BROADCAST, AVERAGE = "BroadcastGlobalVariablesCallback", "MetricAverageCallback"


@judges("07.2")
def size(count):
    yield count == 2, "That would be one process per node: on each, three GPUs would stay idle."
    yield count == 4, "That is one node's share. How many nodes are there?"
    yield count == 6, "Nodes and tasks per node are multiplied, not added."
    yield count != 8, "K = nodes x tasks per node, with one task for each GPU of a node."


@judges("07.3")
def place(node, local):
    yield local == 6, "No node has a GPU with this number: they have 4 each. Count anew on each node."
    if (node, local) in ((0, 2), (2, 2)):
        return "The local rank is right. Which node is it, if the first one is node 0 and holds the ranks 0 to 3?"
    yield (node, local) == (2, 1), "The two numbers are swapped: first the node, then the local rank."
    yield node == 1 and local == 3, "Both counts begin at 0: the first rank of a node has local rank 0."
    yield (node, local) != (1, 2), "Write the ranks 0 to 7 in two rows of four, one row for each node, and find 6."


@judges("07.4")
@step(1)
def start(script):
    starts = [n for n in script.calls("init") if name_of(getattr(n.func, "value", None)) == "hvd"]
    if not starts:
        return "Horovod is never started: without it, every process believes to be alone, or fails."
    asked = [n for name in ("rank", "size", "local_rank", "local_size") for n in script.calls(name)]
    if any(node.lineno < starts[0].lineno for node in asked):
        return "Something asks Horovod for a rank or the size before it is started. Start it first."


@judges("07.5")
@step(2)
def pin(script):
    pins = script.calls("pin")
    if not pins:
        return "No worker is pinned: all ranks of a node would compute on the same GPU, or fight for the same cores."
    options = {word.arg: word.value for word in pins[0].keywords}
    given = [*pins[0].args, *(options[name] for name in ("local_rank", "local_size") if name in options)]
    values = [script.value("pin", node) for node in given]
    if not values:
        return "`devices.pin` must be told which of the node's workers this rank takes, and how many share the node."
    if values[0] == RANK:
        return (
            "This counts over all nodes: on a second node with 4 GPUs, rank 5 would ask for GPU 5, which is not "
            "there. Which number begins anew on each node?"
        )
    if values[0] in (LOCAL_SIZE, SIZE):
        return "This is how many there are, the same number on every rank: all would take one worker."
    if values[0] != LOCAL_RANK:
        return "All ranks of a node must take different workers: a number that Horovod gives, not one that you write."
    if len(values) < 2:
        return "`devices.pin` is not told how many ranks share this machine: it could not refuse two on one GPU."
    if values[1] != LOCAL_SIZE:
        return "The second number says how many ranks share *this machine*, not all of them."


@judges("07.6")
@step(3)
def shard(script):
    value = script.value("mine")
    if isinstance(value, Numbers):
        return "Not sharded: every rank would read all samples, and an epoch on K ranks would be K epochs."
    yield value == (RANK, SIZE), "The two numbers are swapped: first into how many shards, then which of them."
    if not isinstance(value, tuple) or len(value) != 2:
        return "`mine` is no shard of `numbers`: take every size-th number, from this rank's on."
    if value == (LOCAL_SIZE, LOCAL_RANK):
        return "These numbers begin anew on each node: two nodes would read the same samples."
    yield value[0] != SIZE, "Into how many shards? As many as there are ranks, over all nodes."
    if value[1] == LOCAL_RANK:
        return "Which shard is counted per node here: ranks of different nodes would read the same one."
    yield value[1] != RANK, "Each rank must take another shard: which number tells all of them apart?"


def _rate(script):
    one, many = script.value("learning_rate", size=1, rank=0, local_size=1, local_rank=0), script.value("learning_rate")
    yield not isinstance(one, float | int) or not isinstance(many, float | int), "The learning rate must be a number."
    fixed, less = near(many, 0.01), near(many, 0.01 / SIZE)
    yield fixed, "The rate does not depend on the ranks, and Horovod does not scale it. What does the linear rule say?"
    yield not near(one, 0.01), "With one rank the learning rate must be 0.01."
    yield near(many, 0.01 * LOCAL_SIZE), "Scaled by the ranks of one machine. The global batch grows with all ranks."
    yield less, "Divided: with more ranks the batch is larger and the gradient less noisy, so the step may be longer."
    yield not near(many, 0.01 * SIZE), "With 8 ranks the linear rule gives another rate than your script."


@judges("07.7")
@step(4)
def optimizer(script):
    imported = [name.name for node in ast.walk(script.tree) if isinstance(node, ast.Import) for name in node.names]
    imported += [node.module or "" for node in ast.walk(script.tree) if isinstance(node, ast.ImportFrom)]
    if any(re.match(r"horovod\b.*keras", name) for name in imported):
        return (
            "Horovod's own Keras classes do not know Keras 3: they average nothing, without any error, and every "
            "rank trains a network of its own. Take them from `labs.hvd`."
        )
    yield from _rate(script)
    value = script.value("optimizer")
    if not isinstance(value, tuple) or value[0] in (BROADCAST, AVERAGE, "pin"):
        return "`optimizer` must be one of keras.optimizers, wrapped so that it averages gradients."
    if value[0] != "DistributedOptimizer":
        return "The optimizer is not wrapped: nobody averages the gradients, and each rank would train its own network."
    inner = [*value[1], *value[2].values()][:1]
    if not inner or not isinstance(inner[0], tuple):
        return "The distributed optimizer wraps an optimizer of keras.optimizers: give it one."
    yield inner[0][0] != "SGD", "Runs with different optimizers cannot be compared: take SGD, as in ResNet50.py."
    if [*inner[0][1], *inner[0][2].values()][:1] != ["learning_rate"]:
        return "The rate is computed, but the optimizer does not get it."


@judges("07.8")
@step(5)
def callbacks(script):
    value, other = script.value("callbacks"), script.value("callbacks", rank=2, local_rank=2)
    if not isinstance(value, list | tuple) or (value and isinstance(value[0], str)):
        return "`callbacks` must be a list: in square brackets, with a comma between the two."
    kinds = {item[0]: item for item in value if isinstance(item, tuple)}
    if BROADCAST not in kinds:
        return (
            "No broadcast: the ranks begin with different random weights. Equal gradients added to different "
            "weights leave them different for ever."
        )
    yield AVERAGE not in kinds, "Metrics are not averaged: your log would show the loss of rank 0's share only."
    root, own = (_root(item) for item in (kinds[BROADCAST], dict((i[0], i) for i in other)[BROADCAST]))
    yield root != own, "Each rank names another root, so none takes the weights of another: all must name the same one."
    yield root != 0, "Any root would do, if all ranks name the same one; but with one rank, only one number exists."


def _root(item):
    return next(iter([*item[1], *item[2].values()]), 0)


@judges("07.9")
@step(6)
def log(script):
    here = script.value("verbose", rank=0, local_rank=0)
    there, next_node = script.value("verbose"), script.value("verbose", rank=4, local_rank=0)
    yield here == there == 2, "Every rank would print every epoch: with K ranks, each line comes K times."
    yield here != 2 and there == 2, "The wrong way round: one rank is to print, all others to be silent."
    yield here == 1, "1 is a progress bar, which fills a log with half lines. Which value gives one line per epoch?"
    yield here != 2, "Rank 0 prints nothing: there would be no log. Which value of verbose gives one line per epoch?"
    yield there != 0, "The other ranks still print: which value of verbose is silence?"
    yield next_node != 0, "One rank of each node would print. Which number is 0 on a single rank of the whole job?"


@judges("07.11")
def evidence(run):
    from labs.results.record import Record

    yield not isinstance(run, Record), "Give the run record of your job on 2 ranks, as `run_record.load(...)` read it."
    has = run.configuration
    if has.strategy != "horovod":
        return f"This record is of a run with strategy {has.strategy!r}. Which file did your ranks write?"
    yield run.state != "finished", f"This run is {run.state}: weights are compared when it has ended. Look at its .err."
    yield (has.workers or 1) < 2, "One rank is always equal to itself. Give the record of the run on 2 ranks."
    if not (run.weights or {}).get("identical"):
        return "The ranks hold different networks: look again at steps 4 and 5 of your script."


@judges("07.15")
def networks(count):
    yield count == 1, "They began as one. What do the first weights say that the ranks printed?"
    yield count == 2, "That is how many there were in the run above, which had two ranks."
    yield count == 0, "Each rank does train: its loss goes down."
    yield count != 4, "Every rank that updates with its own gradient alone has a network of its own: count the ranks."


@judges("07.16")
def effective(batch):
    yield batch == 8, "That is what one rank sees. Over how many images is the gradient averaged?"
    yield batch == 2, "Divided: 8 images is already the share of one rank."
    yield batch == 4, "That is the number of ranks; each of them brings several images."
    yield batch != 32, "Local batch times number of ranks."


@judges("07.17")
def rules(function):
    cases = ((0.01, 1), (0.01, 16), (0.02, 8))
    values = [function(rate, ranks) for rate, ranks in cases]
    if any(not hasattr(value, "__len__") or len(value) != 3 for value in values):
        return "Return three rates: by the linear, the square-root and the 2/3-power rule, in this order."
    yield not all(abs(rate - 0.01) <= 1e-9 for rate in values[0]), "For a single rank no rule changes the rate."
    rows = [(list(value), rate, ranks) for value, (rate, ranks) in zip(values[1:], cases[1:], strict=True)]

    def wrong(place, power):
        return any(not abs(value[place] / (rate * ranks**power) - 1) <= 1e-6 for value, rate, ranks in rows)

    yield wrong(0, 1), "The first one, the linear rule: as many times the rate as there are ranks."
    if wrong(1, 0.5):
        return "The linear rule is right. The second one takes the square root of the number of ranks as its factor."
    if wrong(2, 2 / 3):
        return "Two are right. The third factor is the number of ranks to the power 2/3: mind brackets around 2/3."


@judges("07.19")
def tensors(count, size):
    trained, every, layers, gradient = _resnet()
    if count == every:
        return "These are all variables. Moving means and variances are not trained, so they have no gradient."
    yield count == layers, "These are the layers. A layer may have two variables with a gradient, or none."
    yield count != trained, "One tensor for each trainable variable: how long is `network.trainable_weights`?"
    if abs(size - gradient / 4) < 1e-3 * gradient:
        return "The tensors are right; this is how many numbers they hold. How many bytes has a float32?"
    if abs(size - 2 * gradient) < 1e-3 * gradient:
        return "The tensors are right. The bytes of one rank's gradient are asked, not of both ranks."
    yield (
        not abs(size - gradient) <= 1e-3 * gradient,
        "The tensors are right. Add up the sizes of all of them, in float32.",
    )


@cache
def _resnet():
    """Of ResNet50V2: trainable variables, all variables, layers, and bytes of its gradient."""
    from labs import models

    network = models.network("ResNet50V2", 32, 10)
    gradient = models.memory(network, batch=1)["gradients"]
    return len(network.trainable_weights), len(network.weights), len(network.layers), gradient


@judges("07.20")
def waits(rank):
    if rank == 1:
        return "This one announces last: it is late, and finds all others there already."
    if rank != 0:
        return "Look at the marks: whose come first in each row, and what does that rank do until the others' come?"


@judges("07.21")
def died(rank):
    yield rank == 0, "This one was left waiting in its all-reduce. Whose traceback stands first, and what does it say?"
    yield rank != 1, "Find the experiment's RuntimeError in the .err: the launcher writes the rank before each line."


@judges("07.22")
def cores_per_rank(cores):
    yield cores == 160, "With 4 tasks on the node this asks for 640 threads, more than it has."
    if cores in (4, 1):
        return "That leaves most threads of the node idle. The rule speaks of the threads of all GPUs together."
    yield cores != 40, "All threads of the node, divided among its ranks."


@judges("07.23")
def batch_script(path):
    return batch_scripts.judge(path, trains="ResNet50_horovod.py")
