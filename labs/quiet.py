"""TensorFlow imported without its greeting: what it writes to standard error before it reads TF_CPP_MIN_LOG_LEVEL.

The libraries of 2.21 log two lines while they are loaded, at every level: no setting is read that early. Here, and only
while `import tensorflow` runs, standard error goes through a filter that leaves out these two lines, in exactly these
words. Everything else passes at once, also if the import ends in an exception or kills the process.
"""

import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

GREETING = (
    r"^WARNING: All log messages before absl::InitializeLog() is called are written to STDERR$",
    r"^I[0-9]\{4\} [0-9:.]* *[0-9]* port\.cc:[0-9]*\] oneDNN custom operations are on\. .*TF_ENABLE_ONEDNN_OPTS=0`\.$",
)


class Finder:
    """Finds `tensorflow` as the other finders do, and lets it be loaded behind the filter."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        if name != "tensorflow":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec and spec.loader:
            load = spec.loader.exec_module
            spec.loader.exec_module = lambda module: filtered(load, module)
        return spec


def filtered(function: Callable, *arguments) -> Any:
    """function(*arguments), its standard error without the greeting."""
    import subprocess

    words = [word for line in GREETING for word in ("-e", f"/{line}/d")]
    sys.stderr.flush()
    before = os.dup(2)
    try:
        passing = subprocess.Popen(["sed", "-u", *words], stdin=subprocess.PIPE, stdout=before, start_new_session=True)
    except OSError:  # no sed: then with the greeting
        os.close(before)
        return function(*arguments)
    assert passing.stdin  # a pipe
    try:
        os.dup2(passing.stdin.fileno(), 2)
        return function(*arguments)
    finally:
        os.dup2(before, 2)
        os.close(before)
        passing.stdin.close()
        try:
            passing.wait(10)
        except subprocess.TimeoutExpired:  # something that the import has started still writes to it
            pass


def install() -> None:
    """Put the filter in place, once, where TF_CPP_MIN_LOG_LEVEL asks for quiet and TensorFlow is not imported yet."""
    wanted = os.environ.get("TF_CPP_MIN_LOG_LEVEL", "0") != "0"
    if wanted and "tensorflow" not in sys.modules and not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
