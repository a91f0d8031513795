"""What a training script in Python is, read from its syntax tree: how it uses its workers, which options it takes."""

import argparse
import ast
import re
from pathlib import Path

LARGEST = 2**20  # bytes of a script that is read
_PARSER = re.compile(r"(?i)^(arg_?)?parser$")
_SHARED = Path(__file__).parents[2] / "training" / "arguments.py"  # read, as to import it starts TensorFlow


class _Options(argparse.ArgumentParser):
    def error(self, message):
        raise ValueError(message)


class PythonScript:
    """kind: "horovod" (its ranks share the global batch), "mirrored" (its --n_gpus do) or None. known: can its options
    be told?"""

    def __init__(self, path):
        self.kind, parser = None, None
        try:
            text = Path(path).read_text(encoding="utf-8") if Path(path).stat().st_size <= LARGEST else ""
            tree = ast.parse(text)
            self.kind, parser = _kind(tree, text), _options(tree)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            pass  # nothing is known of it
        self.known, self._parser = parser is not None, parser or _parser()
        if not self.known:
            self._parser.add_argument("--n_gpus")
            self._parser.add_argument("--batch_size")

    def take(self, words):
        """({name: text} of the options in a command line, the words that argparse does not take, its error or None)."""
        try:
            found, rest = self._parser.parse_known_args(words)
        except ValueError as problem:
            return {}, [], str(problem)
        return {name: value for name, value in vars(found).items() if isinstance(value, str)}, rest, None

    def names(self):
        """Its options, with their dashes."""
        return sorted(name for name in self._parser._option_string_actions if name not in ("-h", "--help"))


def _parser():
    parser = _Options(add_help=False, argument_default=argparse.SUPPRESS)
    parser.add_argument("-h", "--help", action="store_true")
    return parser


def _kind(tree, text):
    imports = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    if any(re.search(r"\b(hvd|horovod)\b", line) for line in imports):
        return "horovod"
    return "mirrored" if "MirroredStrategy" in text else None


def _options(tree):
    """A parser with the options of a script that reads them with argparse, without their types; None where that is not
    sure."""
    parser, added = _parser(), 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "argv":
            return None
        if not isinstance(node, ast.Call):
            continue
        name = _name(node.func)
        if name == "add_argument":
            added += _add(parser, node)
        elif name == "arguments" and _name(getattr(node.func, "value", None)) == "training":
            shared = ast.walk(ast.parse(_SHARED.read_text(encoding="utf-8")))
            added += sum(_add(parser, one) for one in shared if isinstance(one, ast.Call) and _name(one.func) == "add")
        elif name in ("parse_known_args", "parse_known_intermixed_args", "add_subparsers"):
            return None
        elif name not in ("parse", "parse_args") and any(_PARSER.match(_name(arg) or "") for arg in node.args):
            return None  # another function may add more
    return parser if added else None


def _add(parser, call):
    """Add an argument as a call of add_argument says; raises ValueError where that is not plain."""
    words = [ast.literal_eval(word) for word in call.args]
    given = {word.arg: word.value for word in call.keywords if word.arg in ("action", "nargs", "dest")}
    if _name(given.get("action")) == "BooleanOptionalAction":
        given["action"] = argparse.BooleanOptionalAction
    parser.add_argument(*words, **{k: ast.literal_eval(v) if isinstance(v, ast.AST) else v for k, v in given.items()})
    return 1


def _name(node):
    return getattr(node, "attr", getattr(node, "id", None))
