"""Run All on an untouched student notebook: no blank may stop it."""

import shutil
from pathlib import Path

import pytest
from nbformat.v4 import reads_json

from teaching.author.execute import execute

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(path.stem for path in (ROOT / "solutions").glob("*.py"))
SECONDS = 1800  # a minute or two on a quiet machine
DEAR = ("00", "04", "07", "08", "09", "22", "24", "26", "27")
TWICE = pytest.mark.more(
    "student forms of 00, 04, 07 to 09, 22, 24, 26 and 27: they train what their solutions train, once more"
)


# Without notebooks the parameter is None, and the test fails instead of vanishing.
@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=TWICE if name[:2] in DEAR else ()) for name in NAMES] or [None], ids=str
)
def test_run_all_on_an_untouched_notebook(name, tmp_path, monkeypatch):
    assert name, "solutions/ holds no NN_name.py: nothing would be tested"
    path = tmp_path / "notebooks" / f"{name}.ipynb"
    assert (ROOT / "notebooks" / path.name).exists(), f"{path.name} is not built: run `uv run teach build`"
    shutil.copytree(ROOT / "notebooks", path.parent, ignore=shutil.ignore_patterns("runs", ".ipynb_checkpoints"))
    monkeypatch.setenv("LABS_PRESET", "test")
    monkeypatch.delenv("MORE", raising=False)  # 05 and 09 train their whole networks once, as solutions
    monkeypatch.setenv("LABS_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    notebook = reads_json(path.read_text(encoding="utf-8"))
    execute(notebook, path.parent, f"notebooks/{path.name}", timeout=SECONDS - 20)  # raises with the cell
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    assert code and [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
