"""Files are replaced whole: the old text or the new one, whatever happens in between."""

import os

import pytest

from labs import files


def test_write_makes_the_folder_and_a_file_that_all_may_read(tmp_path):
    path = tmp_path / "new" / "folder" / "a.json"
    files.write(path, "größer\n")
    assert path.read_text(encoding="utf-8") == "größer\n"
    assert path.stat().st_mode & 0o777 == 0o644
    files.write(path, "")
    assert path.read_text() == "" and [p.name for p in path.parent.iterdir()] == ["a.json"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, SystemExit])
@pytest.mark.parametrize("place", ["replace", "fsync", "chmod"])
def test_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, place, error):
    path = tmp_path / "a.txt"
    files.write(path, "old")

    def stop(*_):
        raise error

    monkeypatch.setattr(os, place, stop)
    with pytest.raises(error):
        files.write(path, "new")
    monkeypatch.undo()
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_folder_that_is_a_file_is_an_error(tmp_path):
    (tmp_path / "taken").write_text("x")
    with pytest.raises(OSError):
        files.write(tmp_path / "taken" / "a.txt", "new")
    assert (tmp_path / "taken").read_text() == "x"
