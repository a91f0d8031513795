"""Settings of all tests: what they share, what `make test` leaves to `make test-more`, and what each has cost."""

import importlib.util
import os
import shutil
import signal
import tempfile
from pathlib import Path

import dearest
import notebook_cells
import pytest
import warm
from tree import ROOT

# What a test starts is quiet and needs no display.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("MPLBACKEND", "Agg")
# The other half of the tests computes beside each: rounds that take turns do not wait until it has ended.

# A folder that the processes of one run of the tests share; workers get it from the process that starts them.
SHARED = Path(os.environ.get("TESTS_SHARED") or tempfile.mkdtemp(prefix="labs-tests-"))
OWN = "TESTS_SHARED" not in os.environ
if OWN:
    os.environ["TESTS_SHARED"] = str(SHARED)
    (SHARED / "runs").mkdir()
    warm.begin(SHARED)

# In the background of a shell an interrupt is ignored, and what a test starts inherits that; tests send interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What `make test` leaves to `make test-more`, and why; a test of its own has the marker `more`.
MORE = {
    "cluster": "needs SLURM and root",
    "browser": "needs chromium and Playwright",
    "needs_jax": "needs JAX, which `make jax` installs",
    "keys": "what shows that the answers of choices are true",
    "experiment": "what happens to ranks that differ",
    "student_notebooks": "students' forms of the notebooks, each run once more",
    "made_class": "a whole class, from the hand-ins to the grades",
    "red_team": "hostile hand-ins at full length",
    "red_team_notebooks": "hostile hand-ins at full length",
    "optional": "notebooks 20 to 34",
    "whole": "notebooks with all blocks of their networks",
}


def names(item):
    """A test's folders, its file without `test_`, its fixtures; of a notebook, whether it is `optional` or `whole`."""
    folders, file = item.path.relative_to(ROOT).parts[1:-1], item.path.stem.removeprefix("test_")
    kinds = {"optional": item.path.name[0] in "23", "whole": notebook_cells.whole(item.path)}
    of_notebook = (kind for kind, is_it in kinds.items() if is_it and item.path.suffix == ".ipynb")
    return {*folders, file, *getattr(item, "fixturenames", ()), *of_notebook}


def group(item):
    """Tests of one group run one after the other, in one process: those of a file share its fixtures.

    Ranks over MPI spin, a browser has time limits, and the nodes of a practice cluster are there once: of each kind one
    runs at a time.
    """
    for kind, needed in {"cluster": {"cluster"}, "browser": {"browser"}, "ranks": {"hvd", "needs_horovod"}}.items():
        if names(item) & needed:
            return kind
    return item.nodeid if item.path.stem == "test_student_notebooks" else str(item.path)


@pytest.hookimpl(tryfirst=True)  # before pytest selects by `-m more`, and pytest-xdist reads the groups
def pytest_collection_modifyitems(items):
    """Mark what is for `make test-more`, and let begin first what takes longest."""
    order = ["cluster", "browser", "ranks", *map(str, notebook_cells.by_length(items))]
    places, last = {group: place for place, group in enumerate(order)}, notebook_cells.reports(items)
    for item in items:
        for name in names(item) & MORE.keys():
            item.add_marker(pytest.mark.more(MORE[name]))
        item.add_marker(pytest.mark.xdist_group(group(item)))
    items.sort(key=lambda item: (item.path in last, places.get(group(item), len(order))))


def pytest_configure(config):
    config.pluginmanager.register(dearest.Dearest(SHARED, config), "dearest")
    if getattr(config.option, "nbval_lax", False):
        notebook_cells.prepare(SHARED)


def pytest_unconfigure(config):
    if OWN:
        warm.end()
        shutil.rmtree(SHARED, ignore_errors=True)


@pytest.fixture
def cold(monkeypatch):
    """What this test starts imports TensorFlow itself, as a student's does."""
    monkeypatch.delenv("WARM_SERVER", raising=False)


def needs(reason):
    """Skip where there is a reason to, but not in CI, which must have everything."""
    if reason:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


@pytest.fixture(scope="session")
def needs_sandbox():
    """Skip on a machine that forbids user namespaces."""
    from labs import sandbox

    needs((reason := sandbox.sandbox_missing()) and f"no sandbox here: {reason}")


@pytest.fixture(scope="session")
def needs_jax():
    """Skip where JAX is not installed."""
    needs(not importlib.util.find_spec("jax") and "JAX is not installed (make jax)")


@pytest.fixture(scope="session")
def needs_horovod():
    """Skip where Horovod is not installed."""
    needs(not importlib.util.find_spec("horovod") and "Horovod is not installed (make horovod)")


@pytest.fixture(scope="session")
def _horovod_is_initialized(needs_horovod):
    import horovod.tensorflow as horovod

    return horovod.is_initialized


@pytest.fixture
def one_rank(_horovod_is_initialized):
    """labs.hvd on one rank. Horovod starts only once in a process: other tests do not see that it did."""
    from labs import hvd

    hvd.horovod.is_initialized = _horovod_is_initialized
    hvd.init()
    yield hvd
    hvd.horovod.is_initialized = lambda: False
