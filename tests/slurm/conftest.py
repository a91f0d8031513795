"""A course's folder for the tests of batch scripts."""

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def course(needs_sandbox, tmp_path, monkeypatch):
    """A course's folder with the sites, complete training scripts and no personal settings but these."""
    for name in [name for name in os.environ if name.startswith(("SBATCH_", "SLURM_", "LABS_", "SRUN_"))]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("SCRIPTS", raising=False)
    monkeypatch.setenv("SBATCH_ACCOUNT", "project")
    monkeypatch.setenv("SBATCH_QOS", "course")
    shutil.copytree(ROOT / "slurm" / "sites", tmp_path / "slurm" / "sites", ignore=shutil.ignore_patterns("*.local.*"))
    shutil.copytree(ROOT / "solutions" / "scripts", tmp_path / "notebooks" / "scripts")
    (tmp_path / "notebooks" / "runs").mkdir()
    return tmp_path
