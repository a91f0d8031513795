"""What the tests of grading share: submissions of a few cells."""

from contextlib import closing
from pathlib import Path

import made_grading
import pytest

from teaching.grading import handed, judge, walled

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def run(needs_sandbox, tmp_path, monkeypatch):
    """run(notebook, *sources of its cells, seconds=..., **files) -> ({id: Result}, lines on what happened).

    run.each: [(id, Result)] of all that was judged, also where a later call of the same check has replaced it.
    """
    real = judge._Replay._judged

    def judged(self, id, packed):
        run.each.append((id, real(self, id, packed)))
        return run.each[-1][1]

    def run(notebook, *sources, seconds=300, **files):
        run.each = []
        limits = {**vars(walled.LIMITS), "seconds": seconds, "memory": 1 << 30}
        monkeypatch.setattr(walled, "LIMITS", type(walled.LIMITS)(**limits))
        monkeypatch.setattr(judge._Replay, "_judged", judged)
        contents = {f"notebooks/{notebook}.ipynb": made_grading.notebook(*sources)} | files
        submission = handed.Submission("001", contents, tmp_path / "submission")
        with closing(walled.Walled(submission, ROOT, [notebook])) as place:
            return judge.judged(submission, ROOT, notebook, "seed", place)

    return run
