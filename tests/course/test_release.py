"""A release is read whole: what is damaged, or none, is refused in one line, before anything is written."""

import json
import zipfile

import pytest
from course import CONTENTS, packed, tree, write

from labs.course import CourseError, release, update_course

STAMP = release.STAMP


@pytest.fixture
def root(tmp_path):
    return write(tmp_path / "course")


@pytest.fixture
def newer(tmp_path):
    return write(tmp_path / "newer", CONTENTS | {"README.md": b"Newer\n"}, "2.0")


def refused(root, source, says):
    before = tree(root.parent)
    with pytest.raises(CourseError, match=says) as caught:
        update_course(root, source)
    assert tree(root.parent) == before and "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_the_same_input_gives_the_same_stamp_and_a_zip_may_have_a_top_folder_or_none(newer, tmp_path):
    assert tree(write(tmp_path / "again", CONTENTS | {"README.md": b"Newer\n"}, "2.0")) == tree(newer)
    for top in ("", "course/", "a/b/"):
        made = packed(newer, tmp_path / "some.zip", top)
        with zipfile.ZipFile(made, "a") as file:  # what macOS adds, and a student's own run
            file.writestr(f"__MACOSX/{top}.release/._release.json", "x")
            file.writestr(f"{top}notebooks/runs/w1.json", "{}")
        assert release.load(made) == release.load(newer)


def test_paths_that_students_fill_in_and_paths_that_nothing_may_be_written_to():
    names = ["notebooks/05_a.ipynb", "notebooks/scripts/a.py", "slurm/local/a.sh"]
    others = ["slurm/sites/a.sh", "notebooks/runs/.gitkeep", "labs/a.py", "notebooks/a/b.ipynb"]
    assert [name for name in names + others if release.filled_in(name)] == names
    said = dict.fromkeys(names + others) | dict.fromkeys(("a\\b", "a\nb", "a" * 300, "a//b", ""), "is no plain path")
    said |= {"/tmp/a": "is an absolute path", "C:a": "is an absolute path", "../a": "leads out of the folder"}
    assert {name: release.unsafe(name) for name in said} == said


def test_a_stamp_that_cannot_be(root, newer):
    table = json.loads((newer / STAMP).read_text())
    for change, says in (
        ({"files": {"../outside.py": "0" * 64}}, "names '../outside.py', which no release may replace"),
        ({"files": {"notebooks/runs/progress.json": "0" * 64}}, "which no release may replace"),
        ({"files": {".release/release.json": "0" * 64}}, "which no release may replace"),
        ({"files": {"missing.py": "0" * 64}}, "No such file .*missing.py"),
        ({"files": {"README.md": "0" * 64}}, "README.md differs from the release's stamp"),
        ({"format": 2}, "not the stamp of a release: format must be 1, not 2"),
        ({"version": "9" * 5000}, "not the stamp of a release: version"),
    ):
        (newer / STAMP).write_text(json.dumps(table | change))
        refused(root, newer, says)


def test_damaged_files_and_files_that_are_no_release(root, newer, tmp_path):
    whole, bad = packed(newer, tmp_path / "whole.zip").read_bytes(), tmp_path / "bad.zip"
    place = whole.index(b"README.md") + 12
    for content in (b"", whole[: len(whole) // 2], whole[:place] + b"\0\0\0" + whole[place + 3 :]):
        bad.write_bytes(content)
        refused(root, bad, "damaged|stamp")
    with zipfile.ZipFile(bad, "w") as file:
        file.writestr("README.md", "not of this course")
    for source in (bad, tmp_path / "missing.zip", tmp_path):
        refused(root, source, r"is no release, or a damaged one \(.*release.json|missing.zip.*\): get it again")


def test_releases_that_do_not_belong_here(root, newer):
    refused(newer, root, "is 1.0 of 2026-01-01, older than this course")
    (root / STAMP).unlink()
    refused(root, newer, "git pull")
