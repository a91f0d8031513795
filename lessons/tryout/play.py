"""One performance: a script runs in this process, among stand-ins, and what it does is written down as JSON.

The facts, where the script came so far:

error        None, or {"line", "code", "says"}: the script's own line, and the exception in one sentence
stopped      it did not come to an end
log          what it printed
strategies   for each MirroredStrategy the names of its devices
networks     for each network of keras.applications: what it was called with, and whether in a strategy's scope
fits         for each `fit`: what it was given, the compiled model, two epochs as lists of sample numbers
record       the run record that it left, or None
hvd          of a Horovod rank: whether it was started, asked too early, pinned
"""

import ast
import importlib
import json
import linecache
import os
import sys
import traceback
import types
from pathlib import Path
from unittest import mock

from labs import blanks, files
from labs.checks.student_code import error_text


def nothing():
    """The facts before the first line of a script."""
    hvd = {"started": False, "early": False, "pins": []}
    lists = {"strategies": [], "networks": [], "fits": []}
    return lists | {"error": None, "stopped": False, "record": None, "hvd": hvd}


def prepare():
    """Import what every script imports. Nothing may be computed here: a fork of a used TensorFlow does not work."""
    keras = "tensorflow.keras", "keras._tf_keras.keras", "keras"  # tf.keras is the second, by another name
    for name in (*(f"{each}.applications.resnet_v2" for each in keras), "labs.models", "lessons.tryout.ranks"):
        importlib.import_module(name)


def play(script, to, *, arguments, images, rank, size, local_size):
    """Run a script with its command line, write the facts to the file `to`, and end this process."""
    from lessons.tryout import ranks, standins

    facts = nothing()

    def leave():
        sys.stdout.flush()
        for record in Path(os.environ["LABS_RUNS"]).glob("*.json"):  # there is one at most
            facts["record"] = json.loads(record.read_text())
        files.write(to, json.dumps(facts, default=standins.plain))
        os._exit(0)

    sys.dont_write_bytecode = True
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).parent))
    try:
        standins.put(facts, images)
        if rank is not None:
            ranks.put(facts, rank, size, local_size, leave)
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        main.__file__, main.__blank__ = script, mock.MagicMock()
        blanks.blanks = lambda _: []  # training.parse refuses a script that has some
        tree = _Filled().visit(ast.parse(Path(script).read_bytes(), script))
        exec(compile(ast.fix_missing_locations(tree), script, "exec"), vars(main))
    except BaseException as problem:
        facts["error"] = _error(problem, script)
    leave()


class _Filled(ast.NodeTransformer):
    """Puts a mock where a value is still blank: the steps of a script are tried out one by one."""

    def visit_Assign(self, node):
        if isinstance(node.value, ast.Constant) and node.value.value is ...:
            node.value = ast.copy_location(ast.Name("__blank__", ast.Load()), node.value)
        return node


def mistake(script, line, says):
    """An error as facts: the number of the script's line, or None, its text, and what happened there."""
    linecache.checkcache(script)
    return {"line": line, "code": linecache.getline(script, line).strip() if line else "", "says": says}


def _error(problem, script):
    """The mistake that an exception shows; None for a program that ends itself without an error."""
    says = error_text(problem)
    if isinstance(problem, SystemExit):
        if problem.code in (None, 0):
            return None
        if isinstance(problem.code, int):  # as argparse ends: it has said why
            sys.stderr.flush()
            says = f"SystemExit: {Path('../err').read_text(errors='replace').strip().split(chr(10))[-1][:300]}."
    lines = [frame.lineno for frame in traceback.extract_tb(problem.__traceback__) if frame.filename == script]
    if isinstance(problem, SyntaxError) and problem.filename == script:
        lines = [problem.lineno]
    return mistake(script, lines[-1] if lines else None, says)
