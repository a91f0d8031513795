"""Settings of all tests, and the machines that the tests of the set-up need."""

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import sys
import sysconfig
import tempfile
from pathlib import Path

import notebook_cells
import pytest
from dearest import Dearest
from tree import ROOT, tracked

COMPILERS = re.compile(r"(.*-)?(cc|c\+\+|cpp|gcc|g\+\+|clang|clang\+\+|c[89]9|cmake|icp?x|nvcc|nvc\+\+)(-[\d.]+)?$")

# What a test starts is quiet and needs no display.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("MPLBACKEND", "Agg")
# The other half of the tests computes beside each: rounds that take turns do not wait until it has ended.
os.environ.setdefault("LABS_PATIENCE", "0")

# What the processes of one run of the tests share; workers get it from the process that starts them. With WARM=1 what
# imports TensorFlow is forked from a process that has done so (warm/warm_client.py); a line in the environment's
# folder, where one can be written, lets each Python look for that process first.
SHARED = Path(os.environ.get("TESTS_SHARED") or tempfile.mkdtemp(prefix="labs-tests-"))
OWN = "TESTS_SHARED" not in os.environ
HOOK = Path(sysconfig.get_path("purelib"), "labs_tests_warm.pth")
LINE = "sys.path.insert(0, os.environ['WARM_CODE']); import warm_client; sys.path.pop(0); warm_client.hand_over()"
if OWN:
    os.environ["TESTS_SHARED"] = str(SHARED)
    (SHARED / "runs").mkdir()
if OWN and os.environ.get("WARM") == "1":
    os.environ |= {"WARM_SERVER": str(SHARED / "server"), "WARM_OWNER": str(os.getpid())}
    os.environ["WARM_CODE"] = str(Path(__file__).with_name("warm"))
    with contextlib.suppress(OSError):
        HOOK.write_text(f"import os, sys; exec(\"if os.environ.get('WARM_SERVER'): {LINE}\")\n")

# In the background of a shell an interrupt is ignored, and what a test starts inherits that; tests send interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests that share what only one of them may have, by folder, fixture or lesson: they run one after the other. Ranks
# over MPI spin, and a browser has time limits; the nodes of a practice cluster are there once.
TOGETHER = {"cluster": {"cluster"}, "alone": {"browser", "hvd", "needs_horovod"}}  # a test of both is in the first
ALONE = set().union(*TOGETHER.values())
APART = {"test_student_notebooks"}  # files whose tests share nothing
# Tests that start programs or train, by folder, file or fixture: `make test-quick` leaves them out. What is not named
# here and is slow has the marker `slow` itself.
SLOW = ALONE | {"measure", "models", "report", "training"}
SLOW |= {
    "answers",
    "batch",
    "batch_scripts",
    "check",
    "styles",
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
    "one_machine",
    "published",
    "scripts",
    "scaling_published",
    "student_notebooks",
    "tryout",
}


# What `make test` leaves to `make test-more`, and why; a test of its own has the marker `more` with its reason.
MORE = {
    "jax": "what needs JAX, which `make jax` installs",
    "machine": "what needs SLURM or a browser: `make test` skips it where they are missing",
    "fuzz": "files and command lines that nobody would write: 400 of each kind, of which `make test` draws 100",
    "warm": "the server of WARM=1 forks programs that do what cold ones do",
    "whole": "notebooks 05 and 09 with all blocks of their networks, of which `make test` has a few",
}


def more(item):
    """Why a test is one of `make test-more`, or None."""
    marker = item.get_closest_marker("more")
    if marker:
        return marker.args[0]
    if "needs_jax" in getattr(item, "fixturenames", ()):
        return MORE["jax"]
    if item.path.name == "test_warm.py":
        return MORE["warm"]
    if item.path.name == "test_fuzz.py":
        return MORE["fuzz"] if os.environ.get("MORE") else None
    if item.path.suffix == ".ipynb":
        return MORE["whole"] if os.environ.get("MORE") else None
    if not os.environ.get("MORE"):
        return None
    about = getattr(item, "callspec", None)
    if about and about.params.get("name") == "other_engines":
        return MORE["jax"]
    return MORE["machine"] if {"cluster", "browser"} & {*item.path.relative_to(ROOT).parts} else None


def pytest_terminal_summary(terminalreporter):
    if os.environ.get("MORE") and (SHARED / "reasons").exists():
        terminalreporter.section("what make test leaves to make test-more, and why")
        terminalreporter.write((SHARED / "reasons").read_text())


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config, items):
    """Mark what is slow, and group the tests for `--dist loadgroup`: those of a file share its fixtures."""

    def named(item):
        """Its folders, the name of its file without `test_`, its fixtures, the lesson that it is about."""
        place, about = item.path.relative_to(ROOT), getattr(item, "callspec", None)
        lesson = [about.params["name"]] if about and isinstance(about.params.get("name"), str) else []
        return {*place.parts[1:-1], place.stem.removeprefix("test_"), *getattr(item, "fixturenames", ()), *lesson}

    wanted = [item for item in items if bool(more(item)) == bool(os.environ.get("MORE"))]
    (SHARED / "reasons").write_text("".join(f"{reason}\n" for reason in sorted({*map(more, wanted)} - {None})))
    kept = set(wanted)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = wanted
    for item in items:
        names = named(item)
        of_its_file = item.nodeid if item.path.stem in APART else str(item.path)
        group = next((group for group, members in TOGETHER.items() if names & members), of_its_file)
        item.add_marker(pytest.mark.xdist_group(group))
        if names & SLOW:
            item.add_marker(pytest.mark.slow)
    order = [*TOGETHER, *(str(path) for path in notebook_cells.by_length(items))]  # what takes longest begins first
    places = {group: place for place, group in enumerate(order)}
    last = {str(path) for path in notebook_cells.reports(items)}

    def place(item):
        (group,) = item.get_closest_marker("xdist_group").args
        return group in last, places.get(group, len(order)), item.get_closest_marker("slow") is None

    items.sort(key=place)


def pytest_configure(config):
    config.pluginmanager.register(Dearest(SHARED, ROOT / "build/dearest.json", config), "dearest")
    if getattr(config.option, "nbval_lax", False):
        notebook_cells.prepare(SHARED)


@pytest.fixture
def cold(monkeypatch):
    """What this test starts imports TensorFlow itself, as a student's does."""
    monkeypatch.delenv("WARM_SERVER", raising=False)


def pytest_unconfigure(config):
    if OWN:
        shutil.rmtree(SHARED, ignore_errors=True)
        HOOK.unlink(missing_ok=True)


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
def needs_sandbox():
    """Skip on a machine that forbids user namespaces, but not in CI."""
    from labs import sandbox

    if reason := sandbox.sandbox_missing():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"no sandbox here: {reason}")


@pytest.fixture(scope="session")
def needs_jax():
    """Skip where JAX is not installed, but not in CI, whose `make test-more` has it."""
    if importlib.util.find_spec("jax") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("JAX is not installed (make jax)")


@pytest.fixture(scope="session")
def needs_horovod():
    """Skip where Horovod is not installed, but not in CI, which must have it."""
    if importlib.util.find_spec("horovod") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("Horovod is not installed (make horovod)")
