"""Run All on an untouched student notebook: no blank may stop it."""

import shutil

import pytest
from nbformat import read
from tree import ROOT

from teaching.author.execute import execute

NAMES = sorted(path.stem for path in (ROOT / "solutions").glob("*.py"))
SECONDS = 1800  # a minute or two on a quiet machine


# Without notebooks the parameter is None, and the test fails instead of vanishing.
@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("name", NAMES or [None], ids=str)
def test_run_all_on_an_untouched_notebook(name, tmp_path, monkeypatch):
    path = tmp_path / "notebooks" / f"{name}.ipynb"
    shutil.copytree(ROOT / "notebooks", path.parent, ignore=shutil.ignore_patterns("runs", ".ipynb_checkpoints"))
    monkeypatch.setenv("LABS_PRESET", "test")
    monkeypatch.setenv("LABS_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    notebook = read(path, 4)
    execute(notebook, path.parent, f"notebooks/{path.name}", timeout=SECONDS - 20)  # raises with the cell
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    assert code and [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
