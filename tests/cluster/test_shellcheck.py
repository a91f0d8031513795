"""The rendered scripts are clean bash: those with blanks and the complete ones."""

import subprocess
import sys
from pathlib import Path

import pytest

from setup.cluster.practice import ROOT

SCRIPTS = sorted(path.relative_to(ROOT) for path in [*ROOT.glob("slurm/*/*.sh"), *ROOT.glob("solutions/slurm/*/*.sh")])


def test_there_are_scripts_to_check():
    assert {path.parts[0] for path in SCRIPTS} == {"slurm", "solutions"}


@pytest.mark.parametrize("path", SCRIPTS, ids=str)
def test_shellcheck_finds_nothing(path):
    program = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run([program, "-S", "style", path], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
