"""The rendered scripts are clean bash: those with blanks and the complete ones."""

import subprocess
import sys
from pathlib import Path

from setup.cluster.practice import ROOT


def test_shellcheck_finds_nothing():
    scripts = [*ROOT.glob("slurm/*/*.sh"), *ROOT.glob("solutions/slurm/*/*.sh")]
    assert {path.relative_to(ROOT).parts[0] for path in scripts} == {"slurm", "solutions"}
    program = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run([program, "-S", "style", *scripts], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
