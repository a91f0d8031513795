"""The six steps of ResNet50_horovod.py, judged without running it.

Each step's expression is evaluated with stand-ins for Horovod and Keras, as rank 5 of 8 on the second of two nodes.
"""

import ast
import re
from pathlib import Path
from types import SimpleNamespace

from labs.checks.judging import NotDone

SIZE, RANK, LOCAL_SIZE, LOCAL_RANK = 8, 5, 4, 1
TITLES = {1: "start", 2: "one worker for each rank", 3: "shard", 4: "rate and optimizer", 5: "callbacks", 6: "one log"}
WHY = {
    1: "Horovod is started before anything asks it for a rank.",
    2: "Local ranks count within a node, as GPUs and cores do.",
    3: "K disjoint shards of one common order: every sample once in an epoch, on one rank.",
    4: "The rate grows with the global batch, and every update uses the gradient averaged over all ranks.",
    5: "Equal weights at the start, and metrics of all the data instead of one share.",
    6: "One line per epoch in the log, whatever the number of ranks.",
}


class Refused(Exception):
    """The script's expression does something that the stand-ins know to be wrong; the text is the hint."""


class Script:
    """A script as a syntax tree, with the values that its expressions give."""

    def __init__(self, path):
        from labs import blanks

        self.name, text = Path(path).name, Path(path).read_text()
        self.tree, self.blanks = ast.parse(text), blanks.blanks(Path(path))
        begins = {int(m[1]): text.count("\n", 0, m.start()) + 1 for m in re.finditer(r"^# ([1-6])\. ", text, re.M)}
        self.ranges = {step: (line, begins.get(step + 1, 10**6)) for step, line in begins.items()}

    def refuse_blanks(self, step):
        first, last = self.ranges.get(step, (0, 10**6))
        for line, text in self.blanks:
            if first <= line < last:
                raise NotDone(f"Line {line} of {self.name} is still blank: {text.strip()}")

    def calls(self, name):
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.Call) and _last(node.func) == name]

    def value(self, name, node=None, **place):
        """What the last assignment to `name` (or the expression `node`) gives on a rank; see `_names`."""
        found = [n for n in ast.walk(self.tree) if isinstance(n, ast.Assign) and _last(n.targets[0]) == name]
        if node is None and not found:
            raise Refused(f"Nothing is assigned to `{name}`, which the script uses further down.")
        node = node or max(found, key=lambda n: n.lineno).value
        known = _names(**place)
        if name == "optimizer":
            known["learning_rate"] = "learning_rate"
        code = compile(ast.Expression(node), name, "eval")
        try:
            return eval(code, {"__builtins__": {"int": int, "float": float}}, known)  # nothing but these names
        except Refused:
            raise
        except Exception as problem:
            raise Refused(
                f"`{name}` cannot be followed without running the script ({problem}). Use the functions of "
                "`hvd` that the comment above it needs."
            ) from None


def _last(node):
    return getattr(node, "attr", getattr(node, "id", None))


class _Numbers:
    """Stands for the data set of sample numbers; `shard` remembers with what it was called."""

    def shard(self, num_shards, index):
        return num_shards, index

    def __getattr__(self, name):
        if name in ("batch", "take", "skip", "shuffle", "repeat"):
            raise Refused(f"`{name}` changes what the others find: the numbers are in their order already. Shard them.")
        raise AttributeError(name)


def _names(size=SIZE, rank=RANK, local_size=LOCAL_SIZE, local_rank=LOCAL_RANK):
    def made(kind):
        return lambda *args, **options: (kind, args, options)

    hvd = SimpleNamespace(
        size=lambda: size,
        rank=lambda: rank,
        local_rank=lambda: local_rank,
        local_size=lambda: local_size,
        cross_size=lambda: size // local_size,
        DistributedOptimizer=made("distributed"),
        callbacks=SimpleNamespace(
            BroadcastGlobalVariablesCallback=made("broadcast"), MetricAverageCallback=made("average")
        ),
    )
    optimizers = SimpleNamespace(**{name: made(name) for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad")})
    devices = SimpleNamespace(pin=made("pin"))
    return {"hvd": hvd, "numbers": _Numbers(), "keras": SimpleNamespace(optimizers=optimizers), "devices": devices}


def judge(step):
    """The judging function of one step: path of the script -> None, or the hint."""

    def judged(path):
        script = Script(path)
        script.refuse_blanks(step)
        try:
            return CHECKS[step](script)
        except Refused as problem:
            return str(problem)

    return judged


def _start(script):
    starts = [n for n in script.calls("init") if _last(getattr(n.func, "value", None)) == "hvd"]
    if not starts:
        return "Horovod is never started: without it, every process believes to be alone, or fails."
    asked = [n for name in ("rank", "size", "local_rank", "local_size") for n in script.calls(name)]
    if any(node.lineno < starts[0].lineno for node in asked):
        return "Something asks Horovod for a rank or the size before it is started. Start it first."


def _pin(script):
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


def _shard(script):
    value = script.value("mine")
    if isinstance(value, _Numbers):
        return "Not sharded: every rank would read all samples, and an epoch on K ranks would be K epochs."
    if value == (RANK, SIZE):
        return "The two numbers are swapped: first into how many shards, then which of them."
    if not isinstance(value, tuple) or len(value) != 2:
        return "`mine` is no shard of `numbers`: take every size-th number, from this rank's on."
    if value == (LOCAL_SIZE, LOCAL_RANK):
        return "These numbers begin anew on each node: two nodes would read the same samples."
    if value[0] != SIZE:
        return "Into how many shards? As many as there are ranks, over all nodes."
    if value[1] == LOCAL_RANK:
        return "Which shard is counted per node here: ranks of different nodes would read the same one."
    if value[1] != RANK:
        return "Each rank must take another shard: which number tells all of them apart?"


def _rate(script):
    one, many = script.value("learning_rate", size=1, rank=0, local_size=1, local_rank=0), script.value("learning_rate")
    if not isinstance(one, float | int) or not isinstance(many, float | int):
        return "The learning rate must be a number."
    if abs(many - 0.01) < 1e-9:
        return "The rate does not depend on the ranks, and Horovod does not scale it. What does the linear rule say?"
    if abs(one - 0.01) > 1e-9:
        return "With one rank the learning rate must be 0.01."
    if abs(many - 0.01 * LOCAL_SIZE) < 1e-9:
        return "Scaled by the ranks of one machine. The global batch grows with all ranks."
    if abs(many - 0.01 / SIZE) < 1e-9:
        return "Divided: with more ranks the batch is larger and the gradient less noisy, so the step may be longer."
    if abs(many - 0.01 * SIZE) > 1e-9:
        return "With 8 ranks the linear rule gives another rate than your script."


def _optimizer(script):
    imported = [name.name for node in ast.walk(script.tree) if isinstance(node, ast.Import) for name in node.names]
    imported += [node.module or "" for node in ast.walk(script.tree) if isinstance(node, ast.ImportFrom)]
    if any(re.match(r"horovod\b.*keras", name) for name in imported):
        return (
            "Horovod's own Keras classes do not know Keras 3: they average nothing, without any error, and every "
            "rank trains a network of its own. Take them from `labs.hvd`."
        )
    hint = _rate(script)
    if hint:
        return hint
    value = script.value("optimizer")
    if not isinstance(value, tuple) or value[0] in ("broadcast", "average", "pin"):
        return "`optimizer` must be one of keras.optimizers, wrapped so that it averages gradients."
    if value[0] != "distributed":
        return "The optimizer is not wrapped: nobody averages the gradients, and each rank would train its own network."
    inner = [*value[1], *value[2].values()][:1]
    if not inner or not isinstance(inner[0], tuple):
        return "The distributed optimizer wraps an optimizer of keras.optimizers: give it one."
    if inner[0][0] != "SGD":
        return "Runs with different optimizers cannot be compared: take SGD, as in ResNet50.py."
    if [*inner[0][1], *inner[0][2].values()][:1] != ["learning_rate"]:
        return "The rate is computed, but the optimizer does not get it."


def _callbacks(script):
    value, other = script.value("callbacks"), script.value("callbacks", rank=2, local_rank=2)
    if not isinstance(value, list | tuple) or (value and isinstance(value[0], str)):
        return "`callbacks` must be a list: in square brackets, with a comma between the two."
    kinds = {item[0]: item for item in value if isinstance(item, tuple)}
    if "broadcast" not in kinds:
        return (
            "No broadcast: the ranks begin with different random weights. Equal gradients added to different "
            "weights leave them different for ever."
        )
    if "average" not in kinds:
        return "Metrics are not averaged: your log would show the loss of rank 0's share only."
    root, elsewhere = (_root(item) for item in (kinds["broadcast"], dict((i[0], i) for i in other)["broadcast"]))
    if root != elsewhere:
        return "Each rank names another root, so none takes the weights of another: all must name the same one."
    if root != 0:
        return "Any root would do, if all ranks name the same one; but with one rank, only one number exists."


def _root(item):
    return next(iter([*item[1], *item[2].values()]), 0)


def _log(script):
    here = script.value("verbose", rank=0, local_rank=0)
    there, next_node = script.value("verbose"), script.value("verbose", rank=4, local_rank=0)
    if here == there == 2:
        return "Every rank would print every epoch: with K ranks, each line comes K times."
    if here != 2 and there == 2:
        return "The wrong way round: one rank is to print, all others to be silent."
    if here == 1:
        return "1 is a progress bar, which fills a log with half lines. Which value gives one line per epoch?"
    if here != 2:
        return "Rank 0 prints nothing: there would be no log. Which value of verbose gives one line per epoch?"
    if there != 0:
        return "The other ranks still print: which value of verbose is silence?"
    if next_node != 0:
        return "One rank of each node would print. Which number is 0 on a single rank of the whole job?"


CHECKS = {1: _start, 2: _pin, 3: _shard, 4: _optimizer, 5: _callbacks, 6: _log}
