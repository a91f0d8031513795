"""A course's folder for the tests of batch scripts as jobs, and the end of what tests leave running."""

import shutil

import pytest
from tree import ROOT


@pytest.fixture
def ended():
    """A list: jobs in it are ended after the test."""
    started = []
    yield started
    for job in started:
        job.stop()


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course's top folder with its sites, in which the test works, without settings of SLURM's or the kit's."""
    root = tmp_path / "course"
    shutil.copytree(ROOT / "slurm" / "sites", root / "slurm" / "sites", ignore=shutil.ignore_patterns("*.local.toml"))
    (root / "slurm/sites/cte-power.local.toml").write_text('data = "/data"\naccount = "other"\nqos = "training"\n')
    for name in ("LABS_SITE", "LABS_PYTHON", "LABS_RUNS", "SLURM_JOB_ID", "SCRIPTS", "SBATCH_ACCOUNT", "SBATCH_QOS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(root)
    return root
