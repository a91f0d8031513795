"""Settings of all tests, and the machines that the tests of the set-up need."""

import importlib.util
import os
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest
from tree import ROOT, tracked

COMPILERS = re.compile(r"(.*-)?(cc|c\+\+|cpp|gcc|g\+\+|clang|clang\+\+|c[89]9|cmake|icp?x|nvcc|nvc\+\+)(-[\d.]+)?$")

# What a test starts is quiet and needs no display.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("MPLBACKEND", "Agg")
# The other half of the tests computes beside each: rounds that take turns do not wait until it has ended.
os.environ.setdefault("LABS_PATIENCE", "0")

# In the background of a shell an interrupt is ignored, and what a test starts inherits that; tests send interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests that occupy the whole machine, by folder, fixture or lesson: waiting ranks spin, and a cluster or a browser has
# time limits. `make test` runs them one after the other in one process, and what is left in another one beside it.
ALONE = {"browser", "cluster", "hvd", "needs_horovod", "nb09"}
# Tests that start programs or train, by folder, file or fixture: `make test-quick` leaves them out. What is not named
# here and is slow has the marker `slow` itself.
SLOW = ALONE | {"measure", "models", "report", "training"}
SLOW |= {
    "answers",
    "batch",
    "batch_scripts",
    "sandbox",
    "made_class",
    "course_zip",
    "red_team_notebooks",
    "judging_again",
    "trial",
    "counts",
    "devices",
    "facts",
    "horovod_script",
    "launch",
    "published",
    "scripts",
    "scaling_published",
    "student_notebooks",
    "tryout",
}


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config, items):
    """Mark what is slow, and group the tests for `--dist loadgroup`: those of a file share its fixtures."""

    def named(item):
        """Its folders, the name of its file without `test_`, its fixtures, the lesson that it is about."""
        place, about = item.path.relative_to(ROOT), getattr(item, "callspec", None)
        lesson = [about.params["name"]] if about and isinstance(about.params.get("name"), str) else []
        return {*place.parts[1:-1], place.stem.removeprefix("test_"), *getattr(item, "fixturenames", ()), *lesson}

    for item in items:
        names = named(item)
        group = "alone" if names & ALONE else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))
        if names & SLOW:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.get_closest_marker("xdist_group").args != ("alone",))  # they take longest


@pytest.fixture(scope="session")
def plain_path(tmp_path_factory):
    """A folder for PATH with links to all programs of this machine but compilers, cmake and this environment's."""
    folder = tmp_path_factory.mktemp("bin")
    for name in ("python", "python3", "python3.11"):  # not pyenv's shims, which need pyenv
        (folder / name).symlink_to(Path(sys._base_executable).resolve())
    for place in [*os.environ["PATH"].split(os.pathsep), "/usr/bin", "/bin"]:
        if not os.path.isdir(place) or Path(place).resolve().is_relative_to(Path(sys.prefix).resolve()):
            continue
        for program in os.scandir(place):
            link = folder / program.name
            if not link.is_symlink() and not COMPILERS.match(program.name) and os.access(program.path, os.X_OK):
                link.symlink_to(program.path)
    return folder


@pytest.fixture(scope="session")
def uv():
    """Path of uv itself: the one of this environment, of the set-up, or on PATH; None where there is none."""
    found = [Path(sys.prefix) / "bin/uv", ROOT / ".tools/bin/uv", Path(shutil.which("uv") or "none")]
    return next((path.resolve() for path in found if path.exists()), None)


@pytest.fixture(scope="session")
def checkout(tmp_path_factory):
    """A copy of the working tree's files that git tracks or would track."""
    folder = tmp_path_factory.mktemp("checkout") / "course"
    for name in tracked("--cached", "--others", "--exclude-standard"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="session")
def needs_horovod():
    """Skip where Horovod is not installed, but not in CI, which must have it."""
    if importlib.util.find_spec("horovod") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("Horovod is not installed (make horovod)")
