"""What the tests of grading share: submissions of a few cells."""

import json
import sys
from pathlib import Path

import pytest

from teaching.grading import handed, judge

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def run(needs_sandbox, tmp_path, monkeypatch):
    """run(notebook, *sources of its cells, seconds=..., **files) -> ({id: Result}, lines on what happened)."""

    def run(notebook, *sources, seconds=300, **files):
        limits = {**vars(judge.LIMITS), "seconds": seconds, "memory": 1 << 30}
        monkeypatch.setattr(judge, "LIMITS", type(judge.LIMITS)(**limits))
        cells = [{"cell_type": "code", "id": f"c{n}", "metadata": {}, "source": s} for n, s in enumerate(sources)]
        text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
        contents = {f"notebooks/{notebook}.ipynb": text.encode()} | files
        return judge.judged(handed.Submission("001", contents, tmp_path / "submission"), ROOT, notebook, "seed")

    return run
