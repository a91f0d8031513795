"""A cluster for the tests, which are skipped with the reason where SLURM or root is missing, but not in CI."""

import os

import pytest

from labs.slurm import sites
from setup.cluster.practice import ROOT, Cluster, missing


def demand(problem):
    """Fail in CI, skip elsewhere, if there is a problem."""
    if problem and os.environ.get("CI"):
        pytest.fail(problem, pytrace=False)
    if problem:
        pytest.skip(problem)


@pytest.fixture(scope="session")
def needs_slurm():
    demand(missing())


# Not for the session: its daemons, and who looks after them, work as long as they live.
@pytest.fixture(scope="package")
def cluster(needs_slurm):
    """A cluster like site `local`; the processes that the tests start submit to it."""
    with pytest.MonkeyPatch.context() as patch:
        running = Cluster.start(sites.load("local", ROOT))
        for key, value in running.environment.items():
            patch.setenv(key, value)
        yield running
        running.stop()
