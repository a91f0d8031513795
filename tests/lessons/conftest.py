"""What all tests of lessons share."""

import pytest


@pytest.fixture(autouse=True)
def runs(tmp_path, monkeypatch):
    """The folder of the runs, where none is yet."""
    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    return tmp_path
