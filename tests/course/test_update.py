"""Going on: a newer release over a course that has begun keeps all that is the student's."""

import contextlib
import json
import os
import shutil
from functools import partial

import pytest
from course import CONTENTS, FIRST, cells, filled, notebook, packed, tree, write

from labs import cli, files
from labs.course import CourseError, backup, reset_files, update_course

NOTEBOOK, SCRIPT = "notebooks/01_first.ipynb", "notebooks/scripts/train.py"
SECOND = [("a2", "# Speedup, explained better"), FIRST[1], ("labs-01-2", 'why = ...\ncheck("01.2", why)'), *FIRST[2:]]
NEWER = {name: content for name, content in CONTENTS.items() if name != "labs/gone.py"} | {
    "README.md": b"Read me again\n",
    "labs/new.py": b"new = 1\n",
    NOTEBOOK: notebook(*SECOND),
    "notebooks/02_second.ipynb": notebook(("z1", "# Second")),
    SCRIPT: b"import labs\nrate = ...  # your code here\n",
    "pyproject.toml": b"",
}
MINE = {
    "README.md": b"Read me, with my notes\n",
    "notebooks/mine.ipynb": notebook(("m1", "# Mine")),
    "notebooks/runs/progress.json": b'{"version": 1, "items": {}}',
    SCRIPT: b"rate = 0.1\n",
    "slurm/sites/local.local.toml": b'account = "abc"\n',
}
ANSWER = 'speedup = 2\n\ncheck("01.1", speedup)'


@pytest.fixture
def root(tmp_path):
    """A course that has begun: own files, answers, an added cell."""
    root = write(tmp_path / "my course")
    for name, content in MINE.items():
        files.write(root / name, content)
    filled(root / NOTEBOOK, labs_01_1=ANSWER, labs_T1="### T1: your answer\nMine.")
    content = json.loads((root / NOTEBOOK).read_text())
    content["cells"].insert(3, json.loads(notebook(("own", "x = 1")))["cells"][0])
    files.write(root / NOTEBOOK, json.dumps(content))
    return root


@pytest.fixture
def newer(tmp_path):
    return packed(write(tmp_path / "newer", NEWER, "1.1", "2026-02-01T00:00:00Z"), tmp_path / "newer.zip")


def test_a_file_that_the_student_changed_and_a_release_removes_is_kept(root, newer):
    files.write(root / "labs/gone.py", b"mine = 1\n")
    update_course(root, newer)
    after = tree(root)
    assert "labs/gone.py" not in after and b"mine = 1\n" in [after[name] for name in after if name.startswith("old/")]


def test_what_is_the_students_stays_and_what_is_the_courses_is_new(root, newer, capsys, monkeypatch, tmp_path):
    other = shutil.copytree(root, tmp_path / "other")
    monkeypatch.chdir(root / "notebooks")
    assert cli.main(["update", str(newer)]) == 0
    did = capsys.readouterr().out
    after = tree(root)
    assert all(after[name] == content for name, content in MINE.items() if name != "README.md")
    assert after["old/README_old-1.md"] == MINE["README.md"] and "labs/gone.py" not in after
    assert all(after[name] == NEWER[name] for name in NEWER if name not in (NOTEBOOK, SCRIPT))
    assert after["notebooks/scripts/train_new.py"] == NEWER[SCRIPT]
    answers = {"labs-01-1": ANSWER, "own": "x = 1", "labs-T1": "### T1: your answer\nMine."}
    assert cells(root / NOTEBOOK) == dict(SECOND) | answers and "out of labs-01-1" in (root / NOTEBOOK).read_text()
    for said in ("1.0 of 2026-01-01 to 1.1 of 2026-02-01", "make lab", "yours is old/README_old-1.md", "train_new.py"):
        assert said in did
    assert cli.main(["update", str(newer)]) == 0
    assert capsys.readouterr().out == "This course is 1.1 of 2026-02-01 already.\n" and tree(root) == after
    # a folder is as good as a zip, also one that was worked in
    filled(tmp_path / "newer" / NOTEBOOK, labs_01_1="speedup = 99")
    files.write(tmp_path / "newer/notebooks/runs/w1.json", "{}")
    update_course(other, tmp_path / "newer")
    assert tree(other) == after


def test_a_lock_or_a_full_disk_stops_an_update_or_a_reset_before_anything_is_written(root, newer, monkeypatch):
    before, write_file = tree(root), files.write

    def full(path, text):
        if path.name == "7":
            raise files.WriteError(28, "No space left on device", str(path))
        write_file(path, text)

    with monkeypatch.context() as patched, backup.locked(root):
        patched.setattr(files, "locked", partial(files.locked, patience=0.1))
        for changes in (lambda: update_course(root, newer), lambda: reset_files(root, ["01"])):
            with pytest.raises(files.WriteError, match="another `labs update` or `labs reset` keeps it locked"):
                changes()
    monkeypatch.setattr(files, "write", full)
    with pytest.raises(files.WriteError, match="No space left"):
        update_course(root, newer)
    assert tree(root) == before


def test_killed_at_any_step_and_run_again_ends_as_if_undisturbed(root, newer, tmp_path, monkeypatch):
    whole, held, left, step = shutil.copytree(root, tmp_path / "whole"), tree(root), 0, 0
    update_course(whole, newer)
    expected = tree(whole)

    def counted(function):
        def call(*args, **kwargs):
            nonlocal left
            left -= 1
            if not left:
                raise GeneratorExit
            return function(*args, **kwargs)

        return call

    while left <= 0:
        step += 1
        course, left = shutil.copytree(root, tmp_path / f"killed{step}"), step
        with monkeypatch.context() as patched, contextlib.suppress(GeneratorExit):
            for owner, name in ((os, "replace"), (type(root), "unlink"), (shutil, "move")):
                patched.setattr(owner, name, counted(getattr(owner, name)))
            patched.setattr(shutil, "rmtree", lambda *args, **kwargs: None)  # what kill -9 leaves
            update_course(course, newer)
        now = tree(course)
        texts = "".join(content.decode(errors="replace") for content in now.values())
        assert "speedup = 2" in texts and "Mine." in texts and "x = 1" in texts
        assert all(held[name] in now.values() for name in MINE)
        update_course(course, newer)
        ended = tree(course)
        assert {name: ended.get(name) for name in expected} == expected
        assert all("/." in name or name in expected for name in ended)  # what a killed process leaves is hidden
        shutil.rmtree(course)
    assert step > 20
    untouched = write(tmp_path / "untouched")  # becomes the newer one
    update_course(untouched, newer)
    assert tree(untouched) == tree(tmp_path / "newer")


def test_an_older_release_only_on_demand(root, newer, tmp_path):
    update_course(root, newer)
    older = write(tmp_path / "older")
    with pytest.raises(CourseError, match="older than this course"):
        update_course(root, older)
    update_course(root, write(tmp_path / "next", CONTENTS, "1.9", "2026-06-01T00:00:00Z"))
    newest = write(tmp_path / "newest", CONTENTS, "1.10", "2025-01-01T00:00:00Z")
    assert "to 1.10" in update_course(root, newest)[0]


def test_scripts_in_each_state(tmp_path):
    """The course's form is the same, changed or gone; the student's not begun, own or deleted."""
    scripts = [f"notebooks/scripts/{form}_{mine}.py" for form in ("same", "changed", "gone") for mine in "nyd"]
    old = CONTENTS | dict.fromkeys(scripts, b"a = ...\n")
    new = old | {name: b"b = ...\n" for name in scripts if "changed" in name}
    new = {name: content for name, content in new.items() if "gone" not in name}
    root = write(tmp_path / "course", old)
    for name in scripts:
        if name.endswith("_y.py"):
            files.write(root / name, "a = 1\n")
        elif name.endswith("_d.py"):
            (root / name).unlink()
    files.write(root / "notebooks/scripts/changed_y_new.py", "notes\n")
    said = "\n".join(update_course(root, write(tmp_path / "new", new, "2.0")))
    found = {path.stem: path.read_text() for path in (root / "notebooks/scripts").iterdir() if path.name != "train.py"}
    course = dict.fromkeys(["same_n", "same_d"], "a = ...\n")
    course |= dict.fromkeys(["changed_n", "changed_d", "changed_y_new"], "b = ...\n")
    assert found == course | dict.fromkeys(["same_y", "changed_y", "gone_y"], "a = 1\n")
    assert (root / "old/notebooks/scripts/changed_y_new_old-1.py").read_text() == "notes\n"
    assert "gone_y.py: no longer part of the course; yours stays" in said


def test_a_notebook_that_is_gone_stays_where_it_was_begun_and_one_that_cannot_be_read_is_kept(root, newer, tmp_path):
    files.write((broken := shutil.copytree(root, tmp_path / "broken")) / NOTEBOOK, b"[1]")
    assert "Yours is old/notebooks/01_first_old-1.ipynb" in "\n".join(update_course(broken, newer))
    after = tree(broken)
    assert (after[NOTEBOOK], after["old/notebooks/01_first_old-1.ipynb"]) == (NEWER[NOTEBOOK], b"[1]")
    new = {name: content for name, content in NEWER.items() if name != NOTEBOOK}
    gone = write(tmp_path / "gone", new, "2.0")
    for course, stays in ((root, True), (write(tmp_path / "untouched"), False)):
        lines = update_course(course, gone)
        assert (f"{NOTEBOOK}: no longer part of the course; yours stays." in lines) == stays
        assert (course / NOTEBOOK).exists() == stays
