"""What a training script in Python does with its workers and its learning rate, read from its syntax tree."""

import ast
import functools
import re
from pathlib import Path
from typing import NamedTuple

_OPTIMIZERS = {"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Nadam", "Ftrl", "LAMB", "Lion"}
_WORKERS = re.compile(
    r"(?i)^(n_?gpus?|num_gpus|size|local_size|num_replicas_in_sync|n?_?(workers|ranks|replicas)|"
    r"(num|n)_(workers|ranks|replicas|tasks)|world_size|SLURM_NTASKS|(global_)?batch(_size)?)$"
)
LARGEST = 2**20  # bytes of a script that is read
_RATES = ("learning_rate", "lr", "rate", "base_lr", "base_learning_rate")


class Program(NamedTuple):
    """kind: "horovod", "mirrored" or None. rate: where its learning rate comes from, a set of "workers" (it grows with
    them), "option" (an option of the command); empty for a constant; None if it cannot be told. line_number: of the
    optimizer. option: name of the option without dashes. options: the names of all its options, if they can be told."""

    kind: str | None
    rate: set | None
    line_number: int | None = None
    option: str | None = None
    options: frozenset | None = None


def read(path):
    """The Program at a path; one that says nothing if Python cannot read it."""
    try:
        if Path(path).stat().st_size > LARGEST:
            return Program(None, None)
        text = Path(path).read_text(encoding="utf-8")
        tree = ast.parse(text)
        return Program(_kind(tree, text), *_rate(tree), _arguments(tree))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return Program(None, None)


def _arguments(tree):
    """The names of all options of a script that reads them with argparse, without dashes; None if that is not sure."""
    names, course = set(), False
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name, words = _name(node.func), [one.value for one in node.args if isinstance(one, ast.Constant)]
        if name == "add_argument":
            if len(words) < len(node.args) or not words:
                return None
            options = [word[2:] for word in words if isinstance(word, str) and word.startswith("--")]
            switch = any(
                word.arg == "action" and _name(word.value) == "BooleanOptionalAction" for word in node.keywords
            )
            names |= {*options, *(f"no-{option}" for option in options if switch)}
        elif name == "arguments" and _name(getattr(node.func, "value", None)) == "training":
            course = True
        elif name in ("parse_known_args", "parse_known_intermixed_args", "add_subparsers"):
            return None
        elif name not in ("parse", "parse_args") and any(_PARSER.match(_name(arg) or "") for arg in node.args):
            return None  # another function may add more
    if any(_name(node) == "argv" for node in ast.walk(tree) if isinstance(node, ast.Attribute)) or not names:
        return None
    return frozenset(names | (_shared() if course else set()))


@functools.cache
def _shared():
    """The options of labs.training.arguments, by its text: to import it starts TensorFlow."""
    tree = ast.parse((Path(__file__).parents[2] / "training" / "arguments.py").read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _name(node.func) == "add"]
    words = [str(node.args[0].value) for node in calls if node.args and isinstance(node.args[0], ast.Constant)]
    return {word[2:] for word in words if word.startswith("--")}


_PARSER = re.compile(r"(?i)^(arg_?)?parser$")


def _kind(tree, text):
    imports = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    if any(re.search(r"\b(hvd|horovod)\b", line) for line in imports):
        return "horovod"
    return "mirrored" if "MirroredStrategy" in text else None


def _rate(tree):
    assigned = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            for target in getattr(node, "targets", None) or [node.target]:
                if isinstance(target, ast.Name):
                    assigned.setdefault(target.id, []).append(node.value)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _name(node.func) in _OPTIMIZERS]
    if not calls:
        words = [node.value for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == "optimizer"]
        named = [word for word in words if isinstance(word, ast.Constant) and isinstance(word.value, str)]
        return (set(), named[0].lineno, None) if named else (None, None, None)
    call = calls[-1]
    given = [word.value for word in call.keywords if word.arg in ("learning_rate", "lr")] + call.args[:1]
    if any(word.arg is None for word in call.keywords) or any(isinstance(arg, ast.Starred) for arg in call.args):
        return None, call.lineno, None
    rate, option = set(), []
    known = all(_follow(value, assigned, rate, option, set()) for value in given[:1])
    if _set_later(tree):
        return None, call.lineno, None
    return (rate if known or "workers" in rate else None), call.lineno, next(iter(option), None)


def _set_later(tree):
    """Is the rate changed after the optimizer is made (by an assignment or a callback)?"""
    nodes = list(ast.walk(tree))
    stored = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    called = {_name(node.func) for node in nodes if isinstance(node, ast.Call)}
    return bool(stored & {"learning_rate", "lr"} or called & {"LearningRateScheduler", "LearningRateWarmupCallback"})


def _follow(node, assigned, rate, option, seen):
    """Add to `rate` and `option` what an expression depends on; False if a part of it is not known."""
    known = True
    for part in ast.walk(node):
        name = _name(part) if isinstance(part, ast.Name | ast.Attribute) else None
        name = part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else name
        if isinstance(part, ast.Constant) and part.value is Ellipsis:
            known = False
        elif name is None:
            continue
        elif _WORKERS.match(name):
            rate.add("workers")
        elif isinstance(part, ast.Attribute) and name in _RATES:
            rate.add("option")
            option.append(name)
        elif isinstance(part, ast.Name) and name in assigned and name not in seen:
            known &= all([_follow(value, assigned, rate, option, seen | {name}) for value in assigned[name]])
        elif isinstance(part, ast.Name) and name not in assigned and name not in _HARMLESS:
            known = False
    return known


_HARMLESS = {"args", "hvd", "math", "np", "tf", "keras", "float", "int", "os", "max", "min", "strategy", "arguments"}


def _name(node):
    return getattr(node, "attr", getattr(node, "id", None))
