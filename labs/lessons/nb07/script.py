"""ResNet50_horovod.py, read without running it, for the judges of its six steps.

Each step's expression is evaluated with stand-ins for Horovod and Keras, as rank 5 of 8 on the second of two nodes.
"""

import ast
import re
from functools import wraps
from pathlib import Path
from types import SimpleNamespace

from labs.checks import reading, stage
from labs.checks.judging import decided

SIZE, RANK, LOCAL_SIZE, LOCAL_RANK = 8, 5, 4, 1


class Refused(Exception):
    """The script's expression does something that the stand-ins know to be wrong; the text is the hint."""


class Script:
    """A script as a syntax tree, with the values that its expressions give."""

    def __init__(self, path):
        self.path, text = Path(path), Path(path).read_text()
        self.tree = ast.parse(text)
        begins = {int(m[1]): text.count("\n", 0, m.start()) + 1 for m in re.finditer(r"^# ([1-6])\. ", text, re.M)}
        self.ranges = {step: (line, begins.get(step + 1, 10**6)) for step, line in begins.items()}

    def refuse_blanks(self, step):
        reading.refuse_blanks(self.path, lines=range(*self.ranges.get(step, (0, 10**6))))

    def calls(self, name):
        return reading.calls(self.tree).get(name, [])

    def value(self, name, node=None, **place):
        """What the last assignment to `name` (or the expression `node`) gives on a rank; see `_names`."""
        found = [n for n in ast.walk(self.tree) if isinstance(n, ast.Assign) and reading.name_of(n.targets[0]) == name]
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
            stuck = f"`{name}` cannot be followed without running the script ({problem})."
            raise Refused(f"{stuck} Use the functions of `hvd` that the comment above it needs.") from None


class Numbers:
    """Stands for the data set of sample numbers; `shard` remembers with what it was called."""

    def shard(self, num_shards, index):
        return num_shards, index

    def __getattr__(self, name):
        if name in ("batch", "take", "skip", "shuffle", "repeat"):
            raise Refused(f"`{name}` changes what the others find: the numbers are in their order already. Shard them.")
        raise AttributeError(name)


def _names(size=SIZE, rank=RANK, local_size=LOCAL_SIZE, local_rank=LOCAL_RANK):
    def made(name):
        return lambda *args, **options: (name, args, options)

    hvd = stage.horovod(size, rank, local_size, local_rank, made)
    optimizers = SimpleNamespace(**{name: made(name) for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad")})
    devices = SimpleNamespace(pin=made("pin"))
    return {"hvd": hvd, "numbers": Numbers(), "keras": SimpleNamespace(optimizers=optimizers), "devices": devices}


def step(number):
    """Decorator: turns a judge of a Script into one of a path, which looks at the blanks of one step only."""

    def decorate(judge):
        @wraps(judge)
        def judged(path):
            script = Script(path)
            script.refuse_blanks(number)
            try:
                return decided(judge(script))
            except Refused as problem:
                return str(problem)

        return judged

    return decorate
