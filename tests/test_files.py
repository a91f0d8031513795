"""Files are replaced whole: the old text or the new one, whatever happens in between."""

import os

import pytest

from labs import files
from labs.errors import LabsError


def test_write_makes_the_folder_and_a_file_that_all_may_read(tmp_path):
    path = tmp_path / "new" / "folder" / "a.json"
    files.write(path, "größer\n")
    assert path.read_text(encoding="utf-8") == "größer\n"
    assert path.stat().st_mode & 0o777 == 0o644
    files.write(path, "")
    assert path.read_text() == "" and [p.name for p in path.parent.iterdir()] == ["a.json"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device"), SystemExit])
@pytest.mark.parametrize("place", ["replace", "fsync", "chmod"])
def test_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, place, error):
    path = tmp_path / "a.txt"
    files.write(path, "old")

    def stop(*_):
        raise error

    monkeypatch.setattr(os, place, stop)
    with pytest.raises(error if isinstance(error, type) else files.WriteError):
        files.write(path, "new")
    monkeypatch.undo()
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_is_the_users_to_mend(tmp_path):
    (tmp_path / "taken").write_text("x")
    for path, reason in ((tmp_path / "taken" / "a.txt", "File exists"), (tmp_path, "Is a directory")):
        with pytest.raises(files.WriteError) as caught:
            files.write(path, "new")
        assert str(caught.value) == f"{path} cannot be written: {reason}."
        assert isinstance(caught.value, LabsError) and caught.value.strerror == reason
    assert (tmp_path / "taken").read_text() == "x"
