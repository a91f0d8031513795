"""What tests of the whole working tree share: where it is, its files, and an environment for programs started in it."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# For jobs whose standard error is compared: TensorFlow does not say at its start that oneDNN is on.
NO_GREETING = {"TF_ENABLE_ONEDNN_OPTS": "0"}


def tracked(*options):
    """Names of the files that git lists in the working tree and that exist."""
    listed = subprocess.run(["git", "ls-files", "-z", *options], cwd=ROOT, capture_output=True, check=True, text=True)
    names = sorted({name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()})
    assert names, "git lists no files: nothing would be tested"
    return names


def clean_environment(**changes):
    """This process's environment without compilers, an active environment or settings of uv's own run."""
    dropped = "CC CXX VIRTUAL_ENV CONDA_PREFIX UV UV_NO_SYNC UV_PROJECT_ENVIRONMENT UV_CACHE_DIR MAKEFLAGS MAKELEVEL "
    dropped += "MFLAGS PYTHONDONTWRITEBYTECODE"
    return {key: value for key, value in os.environ.items() if key not in dropped.split()} | changes
