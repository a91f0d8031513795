"""TensorFlow imported without its greeting: what it writes to standard error before it reads TF_CPP_MIN_LOG_LEVEL.

The libraries of 2.21 log these lines while they are loaded, at every level: no variable is read that early. Only while
`import tensorflow` runs, standard error goes through a filter that leaves out these lines, in exactly these words.
Everything else passes at once, also if the import ends in an exception or kills the process.
"""

import importlib.util
import os
import shutil
import subprocess
import sys

GREETING = (
    r"/^WARNING: All log messages before absl::InitializeLog() is called are written to STDERR$/d",
    r"/^I[0-9]\{4\} .* port\.cc:[0-9]*\] oneDNN custom operations are on\..*TF_ENABLE_ONEDNN_OPTS=0`\.$/d",
)


class _Finder:
    """Finds `tensorflow` as the other finders do, and lets it be loaded behind the filter."""

    def find_spec(self, name, path, target=None):
        if name != "tensorflow":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec and spec.loader:
            load = spec.loader.exec_module
            spec.loader.exec_module = lambda module: _filtered(load, module)
        return spec


def _filtered(load, module):
    sys.stderr.flush()
    before = os.dup(2)
    command = ["sed", "-u", *(f"-e{line}" for line in GREETING)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=before, start_new_session=True) as passing:
        assert passing.stdin  # a pipe
        os.dup2(passing.stdin.fileno(), 2)
        try:
            load(module)
        finally:
            os.dup2(before, 2)
            os.close(before)


def install() -> None:
    """Put the filter in place where TF_CPP_MIN_LOG_LEVEL asks for quiet and TensorFlow is not imported yet."""
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL", "0") != "0" and "tensorflow" not in sys.modules and shutil.which("sed"):
        sys.meta_path.insert(0, _Finder())
