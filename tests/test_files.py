"""Files are replaced whole: the old text or the new one, whatever happens in between."""

import os
import subprocess
import sys

import pytest

from labs import files
from labs.errors import LabsError


def test_write_makes_the_folder_and_a_file_that_all_may_read(tmp_path):
    path = tmp_path / "new" / "folder" / "a.json"
    files.write(path, "größer\n")
    assert path.read_text(encoding="utf-8") == "größer\n" and path.stat().st_mode & 0o777 == 0o644
    files.write(path, b"")
    assert path.read_bytes() == b"" and [p.name for p in path.parent.iterdir()] == ["a.json"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
@pytest.mark.parametrize("place", ["replace", "fsync", "chmod"])
def test_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, place, error):
    path = tmp_path / "a.txt"
    files.write(path, "old")

    def stop(*_):
        raise error

    with monkeypatch.context() as patch, pytest.raises(error if isinstance(error, type) else files.WriteError):
        patch.setattr(os, place, stop)
        files.write(path, "new")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_is_the_users_to_mend(tmp_path):
    (tmp_path / "taken").write_text("x")
    for path, reason in ((tmp_path / "taken" / "a.txt", "File exists"), (tmp_path, "Is a directory")):
        with pytest.raises(files.WriteError) as caught:
            files.write(path, "new")
        assert str(caught.value) == f"{path} cannot be written: {reason}. Is the folder yours, and has the disk room?"
        assert isinstance(caught.value, LabsError) and caught.value.strerror == reason
    assert (tmp_path / "taken").read_text() == "x"


def test_a_lock_is_waited_for_and_ends_with_its_process(tmp_path):
    path, other = tmp_path / "a.json", "with files.locked(path): print('has it', flush=True); time.sleep(60)"
    code = f"import sys, time; from labs import files; path = sys.argv[1]\n{other}"
    process = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "has it\n"
    with (
        pytest.raises(files.WriteError, match="another process keeps it locked; try"),
        files.locked(path, patience=0.1),
    ):
        pass
    process.kill()
    process.wait()
    with files.locked(path):
        files.write(path, "mine")
    assert path.read_text() == "mine"


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        files.read(tmp_path / "pipe")


def test_what_belongs_to_another_run_is_not_moved(tmp_path):
    names = ["a.out", "a.err", "a.json", "a_w1.json", "a.b.out", "ab.out", "a.maxbatch.json", "a.7.out", "x.a.out"]
    names += ["a.rank0.samples", "a.rank12.samples", "ab.rank0.samples"]
    for name in names:
        (tmp_path / name).write_text(name)
    assert files.move_aside(tmp_path, "a") == "a.8"
    gone = {"a.out": "a.8.out", "a.err": "a.8.err", "a.json": "a.8.json"}
    gone |= {f"a.rank{rank}.samples": f"a.8.rank{rank}.samples" for rank in (0, 12)}
    assert {path.name for path in tmp_path.iterdir()} == {gone.get(name, name) for name in names}
    assert files.move_aside(tmp_path, "a") is None and files.move_aside(tmp_path, "a", batch=True) == "a.9"
    assert (tmp_path / "a.9_w1.json").read_text() == "a_w1.json"
    for name, newer in (("a.9_w1", ["a", "a_w1"]), ("a.8", ["a"]), ("a.0", [])):
        assert files.newer_names(name) == newer
