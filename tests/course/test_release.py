"""A release is read with care: what is damaged, hostile or none is refused in one line, before anything is written."""

import io
import json
import os
import struct
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


def changed_stamp(folder, change):
    table = json.loads((folder / STAMP).read_text())
    change(table)
    (folder / STAMP).write_text(json.dumps(table))


def entry(name, mode=0o100644):
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


def test_the_same_input_gives_the_same_stamp_and_a_zip_may_have_a_top_folder_or_none(root, newer, tmp_path):
    assert tree(write(tmp_path / "again", CONTENTS | {"README.md": b"Newer\n"}, "2.0")) == tree(newer)
    for top in ("", "course/", "a/b/", "c\N{LATIN SMALL LETTER U WITH DIAERESIS} d/"):
        made = packed(newer, tmp_path / "some.zip", top)
        with zipfile.ZipFile(made, "a") as file:  # what macOS adds, and a student's own run
            file.writestr(f"__MACOSX/{top}.release/._release.json", "x")
            file.writestr(f"{top}notebooks/runs/w1.json", "{}")
        assert release.load(made) == release.load(newer)


def test_what_a_student_has_of_a_release_is_told_from_the_kits_own():
    names = ["notebooks/05_a.ipynb", "notebooks/scripts/a.py", "slurm/local/a.sh"]
    others = ["slurm/sites/a.toml", "slurm/sites/a.sh", "notebooks/runs/.gitkeep", "labs/a.py", "notebooks/a/b.ipynb"]
    assert [name for name in names + others if release.filled_in(name)] == names


@pytest.mark.parametrize(
    ("name", "mode", "says"),
    [
        ("../outside.py", 0o100644, "leads out of the folder"),
        ("course/../../outside.py", 0o100644, "leads out of the folder"),
        ("/tmp/outside.py", 0o100644, "is an absolute path"),
        ("C:/outside.py", 0o100644, "is an absolute path"),
        ("..\\outside.py", 0o100644, "is no plain path"),
        ("course/a\nb.py", 0o100644, "is no plain path"),
        ("course/" + "a" * 300, 0o100644, "is no plain path"),
        ("course/link", 0o120777, "a link or no plain file"),
        ("course/pipe", 0o010644, "a link or no plain file"),
        ("course/README.md", 0o100644, "two files with one name"),
        (f"other/{STAMP}", 0o100644, "more than one"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_entries_that_no_release_has(root, newer, tmp_path, name, mode, says):
    bad = packed(newer, tmp_path / "bad.zip")
    with zipfile.ZipFile(bad, "a") as file:
        file.writestr(entry(name, mode), "x")
    refused(root, bad, says)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("../outside.py", "leads out"),
        ("/etc/passwd", "absolute"),
        ("notebooks/runs/progress.json", "is a student's own file"),
        ("slurm/sites/local.local.toml", "is a student's own file"),
        (".git/hooks/post-checkout", "is a student's own file"),
        (".release/release.json", "is a student's own file"),
        ("README.md/below", "lies in a file"),
        ("labs//x.py", "is no plain path"),
        ("missing.py", "missing.py cannot be read: No such file"),
    ],
)
def test_a_stamp_that_names_what_no_release_writes(root, newer, name, says):
    changed_stamp(newer, lambda table: table["files"].update({name: "0" * 64}))
    refused(root, newer, says)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda table: table.update(format=2), "has a newer form"),
        (lambda table: table.update(format="1"), "format must be"),
        (lambda table: table.update(version="1.0\n"), "version"),
        (lambda table: table.update(version="9" * 5000), "version"),
        (lambda table: table.pop("date"), "date is missing"),
        (lambda table: table.update(files={}), "files"),
        (lambda table: table["files"].pop("labs/__init__.py"), "no labs/"),
        (lambda table: table["files"].update({"README.md": "0" * 64}), "README.md differs from the release's stamp"),
    ],
)
def test_a_stamp_that_cannot_be(root, newer, change, says):
    changed_stamp(newer, change)
    refused(root, newer, says)


@pytest.mark.parametrize("text", ["", "[]", "null", "[" * 100_000, '{"format": ' + "1" * 5000 + "}"], ids=range(5))
def test_a_stamp_that_is_none(root, newer, text):
    (newer / STAMP).write_text(text)
    refused(root, newer, "release.json")


def test_damaged_files_and_files_that_are_no_release(root, newer, tmp_path):
    whole = packed(newer, tmp_path / "whole.zip").read_bytes()
    bad = tmp_path / "bad.zip"
    place = whole.index(b"Newer") if b"Newer" in whole else whole.index(b"README.md") + 12
    for content in (b"", b"x", whole[: len(whole) // 2], whole[:-30], whole[:place] + b"\0\0\0" + whole[place + 3 :]):
        bad.write_bytes(content)
        refused(root, bad, "damaged|stamp")
    with zipfile.ZipFile(bad, "w") as file:
        file.writestr("README.md", "not of this course")
    refused(root, bad, "no .release/release.json: it is not a release of this course")
    refused(root, tmp_path / "missing.zip", "is neither a zip nor a folder")
    os.mkfifo(tmp_path / "pipe")
    refused(root, tmp_path / "pipe", "is neither a zip nor a folder")
    (tmp_path / "empty").mkdir()
    refused(root, tmp_path / "empty", "holds no .release/release.json")


def test_a_folder_with_a_link_or_a_pipe(root, newer, tmp_path):
    (tmp_path / "secret").write_text("Newer\n")
    (newer / "README.md").unlink()
    (newer / "README.md").symlink_to(tmp_path / "secret")
    refused(root, newer, "README.md is a symbolic link")
    (newer / "README.md").unlink()
    os.mkfifo(newer / "README.md")
    refused(root, newer, "README.md is not a plain file")


def test_bombs(root, newer, tmp_path, monkeypatch):
    monkeypatch.setattr(release, "MOST_BYTES", 2**20)
    bomb = packed(newer, tmp_path / "bomb.zip")
    with zipfile.ZipFile(bomb, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("course/large", b"\0" * (3 * 2**20))
    refused(root, bomb, "unpacks to more than")
    # an entry that unpacks to more than it says
    inside = CONTENTS | {"README.md": b"\0" * (2 * 2**20)}
    bomb = packed(write(tmp_path / "large", inside, "2.0"), tmp_path / "bomb.zip")
    content = bytearray(bomb.read_bytes())
    sizes = [at for at in range(len(content) - 4) if content[at : at + 4] == struct.pack("<I", 2 * 2**20)]
    for at in sizes:
        content[at : at + 4] = struct.pack("<I", 6)
    bomb.write_bytes(content)
    refused(root, bomb, "damaged|stamp")
    refused(root, tmp_path / "large", "too large")
    monkeypatch.setattr(release, "MOST_FILES", 3)
    refused(root, packed(newer, tmp_path / "many.zip"), "files: it is not a release")


def test_encrypted_or_packed_in_another_way(root, newer, tmp_path):
    with io.BytesIO() as buffer:
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_LZMA) as file:
            for name, content in tree(newer).items():
                file.writestr(name, content)
        (tmp_path / "lzma.zip").write_bytes(buffer.getvalue())
    refused(root, tmp_path / "lzma.zip", "compressed in a way that releases are not")
    content = bytearray(packed(newer, tmp_path / "locked.zip").read_bytes())
    at = content.index(b"PK\1\2")
    content[at + 8] |= 1
    (tmp_path / "locked.zip").write_bytes(content)
    refused(root, tmp_path / "locked.zip", "is encrypted")
