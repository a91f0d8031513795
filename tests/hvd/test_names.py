"""Names of labs.hvd: what stands in one of its modules is told, without any Horovod."""

import subprocess
import sys

import pytest
from tree import ROOT

# Stands for Horovod: its names are there, and nothing of it can be called.
PROGRAM = """
import sys
from types import ModuleType
from unittest import mock

horovod, tensorflow = ModuleType("horovod"), mock.MagicMock(__spec__=None)
horovod.tensorflow, horovod.__path__ = tensorflow, []
sys.modules |= {"horovod": horovod, "horovod.tensorflow": tensorflow}
from labs import hvd

for name in sys.argv[1:]:
    try:
        getattr(hvd, name)
        print(name, "is there")
    except AttributeError as problem:
        print(problem)
"""
SAID = {
    "BroadcastGlobalVariablesCallback": "labs.hvd itself has no {}: it lives in labs.hvd.callbacks",
    "MetricAverageCallback": "labs.hvd itself has no {}: it lives in labs.hvd.callbacks",
    "DistributedOptimizer": "{} is there",
    "callbacks": "{} is there",
    "keras": "module 'labs.hvd' has no attribute '{}'",
    "_Callback": "module 'labs.hvd' has no attribute '{}'",
    "BroadcastCallback": "module 'labs.hvd' has no attribute '{}'",
}


@pytest.fixture(scope="module")
def said():
    command = [sys.executable, "-c", PROGRAM, *SAID]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(zip(SAID, done.stdout.splitlines(), strict=True))


@pytest.mark.parametrize("name", SAID)
def test_a_name_that_a_module_of_it_has_is_told_where_it_lives(said, name):
    assert said[name] == SAID[name].format(name)
