"""Going on: a newer release over a course that has begun keeps all that is the student's."""

import json
import os
import shutil
import subprocess
import sys
from functools import partial

import pytest
from course import CONTENTS, cells, filled, notebook, packed, tree, write

from labs import cli, files
from labs.course import CourseError, aside, fresh_files, reset_files, update_course

NOTEBOOK, SCRIPT = "notebooks/01_first.ipynb", "notebooks/scripts/train.py"

SECOND = [
    ("a2", "# Speedup, explained better"),
    ("labs-01-1", 'speedup = ...  # your code here\n\ncheck("01.1", speedup)'),
    ("labs-01-2", 'why = ...  # your code here\ncheck("01.2", why)'),
    ("b1", "print(1)"),
    ("labs-T1", "### T1: your answer\n*Write your answer here.*"),
    ("c1", "# The end"),
]
NEWER = {name: content for name, content in CONTENTS.items() if name != "labs/gone.py"} | {
    "README.md": b"Read me again\n",
    "labs/new.py": b"new = 1\n",
    "notebooks/01_first.ipynb": notebook(*SECOND),
    "notebooks/02_second.ipynb": notebook(("z1", "# Second")),
    "notebooks/scripts/train.py": b"import labs\nrate = ...  # your code here\n",
    "pyproject.toml": b"",
    "slurm/sites/local.toml": b'name = "there"\n',
}
MINE = {
    "README.md": b"Read me, with my notes\n",
    "notebooks/mine.ipynb": notebook(("m1", "# Mine")),
    "notebooks/runs/train_w1.json": b"{}",
    "notebooks/runs/progress.json": b'{"version": 1, "items": {}}',
    "notebooks/scripts/train.py": b"rate = 0.1\n",
    "notebooks/scripts/own.py": b"own = 1\n",
    "slurm/sites/local.local.toml": b'account = "abc"\n',
    "slurm/sites/own.toml": b'name = "own"\n',
    ".venv/bin/python": b"",
}


@pytest.fixture
def root(tmp_path):
    """A course that has begun: own files, answers, an added cell, an edited text."""
    root = write(tmp_path / "my course")
    for name, content in MINE.items():
        files.write(root / name, content)
    filled(root / NOTEBOOK, labs_01_1='speedup = 2\n\ncheck("01.1", speedup)', labs_T1="### T1: your answer\nMine.")
    content = json.loads((root / NOTEBOOK).read_text())
    content["cells"].insert(3, {"id": "own", "cell_type": "code", "metadata": {}, "outputs": [], "source": ["x = 1"]})
    files.write(root / NOTEBOOK, json.dumps(content))
    return root


@pytest.fixture
def newer(tmp_path):
    return packed(write(tmp_path / "newer", NEWER, "1.1", "2026-02-01T00:00:00Z"), tmp_path / "newer.zip")


def test_what_is_the_students_stays_and_what_is_the_courses_is_new(root, newer, capsys, monkeypatch):
    before = tree(root)
    monkeypatch.chdir(root / "notebooks")
    assert cli.main(["update", str(newer), "--dry-run"]) == 0 and tree(root) == before
    assert cli.main(["update", str(newer)]) == 0
    would, did = capsys.readouterr().out.split("Updated")
    assert would.replace("Would update", "") == did
    after = tree(root)
    assert all(after[name] == content for name, content in MINE.items() if name != "README.md")
    assert after["old/README_old-1.md"] == MINE["README.md"] and "yours is old/README_old-1.md" in did
    kit = [name for name in NEWER if not name.startswith("notebooks/")]
    assert all(after[name] == NEWER[name] for name in kit) and "labs/gone.py" not in after
    assert after["notebooks/02_second.ipynb"] == NEWER["notebooks/02_second.ipynb"]
    assert (
        after["notebooks/scripts/train_new.py"] == NEWER[SCRIPT]
        and "the new form is notebooks/scripts/train_new.py" in did
    )
    assert cells(root / NOTEBOOK) == {
        "a2": "# Speedup, explained better",
        "labs-01-1": 'speedup = 2\n\ncheck("01.1", speedup)',
        "labs-01-2": 'why = ...  # your code here\ncheck("01.2", why)',
        "b1": "print(1)",
        "own": "x = 1",
        "labs-T1": "### T1: your answer\nMine.",
        "c1": "# The end",
    }
    assert "out of labs-01-1" in (root / NOTEBOOK).read_text()
    assert "1.0 of 2026-01-01 to 1.1 of 2026-02-01" in did and "make lab" in did and len(did.splitlines()) <= 9
    fresh = tree(root / ".release/fresh")
    assert {name: fresh[name] for name in fresh} == {name: NEWER[name] for name in fresh} and len(fresh) == 5
    assert cli.main(["update", str(newer)]) == 0
    assert capsys.readouterr().out == "This course is 1.1 of 2026-02-01 already.\n" and tree(root) == after


def test_a_course_that_nobody_has_touched_becomes_the_newer_one(tmp_path, newer):
    root = write(tmp_path / "course")
    update_course(root, newer)
    assert tree(root) == tree(tmp_path / "newer")


def test_a_folder_is_as_good_as_a_zip_also_one_that_was_worked_in(root, newer, tmp_path):
    other = shutil.copytree(root, tmp_path / "other")
    filled(tmp_path / "newer" / NOTEBOOK, labs_01_1="speedup = 99")
    files.write(tmp_path / "newer/notebooks/runs/w1.json", "{}")
    assert update_course(root, newer) == update_course(other, tmp_path / "newer") and tree(root) == tree(other)


@pytest.mark.parametrize(
    ("words", "notebook_then", "says"),
    [
        (["update", "../newer.zip"], "carried", "This course is 1.1 of 2026-02-01 already"),
        (["reset", "01"], "fresh", "fresh again"),
    ],
)
def test_a_second_command_waits_until_the_first_one_has_ended(root, newer, tmp_path, words, notebook_then, says):
    whole = shutil.copytree(root, tmp_path / "whole")
    update_course(whole, newer)
    notebooks = {"carried": (whole / NOTEBOOK).read_bytes(), "fresh": NEWER[NOTEBOOK]}

    def labs(change, *words):
        code = f"import sys, time, labs.course\nfrom labs import cli\n{change}\nsys.exit(cli.main(sys.argv[1:]))"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        return subprocess.Popen([sys.executable, "-P", "-c", code, *words], cwd=root, **pipes)

    stops = "sys.modules['labs.course.update']._remove = lambda *_: (print('half', flush=True), input())"
    tells = "time.sleep = lambda _, sleep=time.sleep: (print('waits', flush=True), sleep(0.2))"
    with labs(stops, "update", "../newer.zip") as first:
        assert first.stdout.readline() == "half\n"
        with labs(tells, *words) as second:
            assert second.stdout.readline() == "waits\n"
            first.communicate("\n")
            assert says in second.communicate()[0] and (first.returncode, second.returncode) == (0, 0)
    assert (root / NOTEBOOK).read_bytes() == notebooks[notebook_then]
    assert (root / "labs/new.py").read_bytes() == NEWER["labs/new.py"]


def test_a_second_command_does_not_wait_for_ever(root, newer, monkeypatch):
    monkeypatch.setattr(files, "locked", partial(files.locked, patience=0.1))
    before = tree(root)
    with aside.alone(root):
        for changes in (lambda: update_course(root, newer), lambda: reset_files(root, ["01"], fresh_files(root))):
            with pytest.raises(files.WriteError, match="another `labs update` or `labs reset` keeps it locked"):
                changes()
    assert tree(root) == before


class Killed(BaseException):
    pass


def test_killed_at_any_step_and_run_again_ends_as_if_undisturbed(root, tmp_path, monkeypatch):
    newer = packed(write(tmp_path / "newer", NEWER, "1.1", "2026-02-01T00:00:00Z"), tmp_path / "newer.zip")
    whole = shutil.copytree(root, tmp_path / "whole")
    update_course(whole, newer)
    expected, step = tree(whole), 0
    while True:
        step += 1
        course, left = shutil.copytree(root, tmp_path / f"killed{step}"), step
        held = {**tree(root)}

        def counted(function):
            def call(*args, **kwargs):
                nonlocal left
                left -= 1
                if not left:
                    raise Killed
                return function(*args, **kwargs)

            return call

        with monkeypatch.context() as patched:
            for owner, name in ((os, "replace"), (os, "unlink"), (type(root), "unlink"), (type(root), "hardlink_to")):
                patched.setattr(owner, name, counted(getattr(owner, name)))
            patched.setattr(shutil, "rmtree", lambda *args, **kwargs: None)  # what kill -9 leaves
            try:
                update_course(course, newer)
            except Killed:
                pass
            if left > 0:
                break
        now = tree(course).values()
        texts = "".join(content.decode(errors="replace") for content in now)
        assert "speedup = 2" in texts and "Mine." in texts and "x = 1" in texts
        assert all(held[name] in now for name in MINE)
        update_course(course, newer)
        ended = {name: content for name, content in tree(course).items() if not name.endswith(".part")}
        ended = {name: content for name, content in ended.items() if not name.rpartition("/")[2].startswith(".README")}
        assert {name for name in ended if "/." not in name or name in expected} == set(expected)
        assert {name: ended[name] for name in expected} == expected
        shutil.rmtree(course)
    assert step > 20


def test_a_full_disk_is_said_and_changes_nothing_of_the_students(root, newer, monkeypatch):
    before, write_file = tree(root), files.write

    def full(path, text):
        if path.name == "7":
            raise files.WriteError(28, "No space left on device", str(path))
        write_file(path, text)

    monkeypatch.setattr(files, "write", full)
    with pytest.raises(files.WriteError, match="No space left"):
        update_course(root, newer)
    assert tree(root) == before


def test_an_older_release_only_on_demand(root, newer, tmp_path):
    update_course(root, newer)
    older = write(tmp_path / "older")
    before = tree(root)
    with pytest.raises(CourseError, match="is 1.0 of 2026-01-01, older than this course .*--older"):
        update_course(root, older)
    assert tree(root) == before
    update_course(root, older, older=True)
    assert cells(root / NOTEBOOK)["labs-01-1"].startswith("speedup = 2") and (root / "labs/gone.py").exists()
    update_course(root, write(tmp_path / "next", CONTENTS, "1.9", "2026-06-01T00:00:00Z"))
    newest = write(tmp_path / "newest", CONTENTS, "1.10", "2025-01-01T00:00:00Z")
    assert "to 1.10" in update_course(root, newest)[0]


def test_scripts_in_each_state(tmp_path):
    forms = {"same": 1, "changed": 2}
    old = CONTENTS | {f"notebooks/scripts/{form}_{mine}.py": b"a = ...\n" for form in forms for mine in "nyd"}
    new = old | {f"notebooks/scripts/changed_{mine}.py": b"b = ...\n" for mine in "nyd"}
    del new["notebooks/scripts/same_n.py"], new["notebooks/scripts/same_y.py"]
    root = write(tmp_path / "course", old)
    for form in forms:
        files.write(root / f"notebooks/scripts/{form}_y.py", "a = 1\n")
        (root / f"notebooks/scripts/{form}_d.py").unlink()
    files.write(root / "notebooks/scripts/changed_y_new.py", "notes\n")
    said = "\n".join(update_course(root, write(tmp_path / "new", new, "2.0")))
    found = {path.name: path.read_text() for path in (root / "notebooks/scripts").iterdir() if path.name != "train.py"}
    assert found == {
        "same_y.py": "a = 1\n",  # no part of the course any more
        "same_d.py": "a = ...\n",
        "changed_n.py": "b = ...\n",
        "changed_y.py": "a = 1\n",
        "changed_y_new.py": "b = ...\n",
        "changed_d.py": "b = ...\n",
    }
    assert (root / "old/notebooks/scripts/changed_y_new_old-1.py").read_text() == "notes\n"
    assert "same_y.py: no longer part of the course; yours stays" in said


def test_a_notebook_that_got_another_name_takes_the_answers_along(root, tmp_path):
    new = {name: content for name, content in NEWER.items() if name != NOTEBOOK}
    new["notebooks/01_renamed.ipynb"] = notebook(*SECOND)
    used = (root / NOTEBOOK).read_bytes()
    said = "\n".join(update_course(root, write(tmp_path / "new", new, "2.0")))
    assert cells(root / "notebooks/01_renamed.ipynb")["labs-T1"].endswith("Mine.")
    assert f"{NOTEBOOK} is called notebooks/01_renamed.ipynb now" in said and not (root / NOTEBOOK).exists()
    assert (root / "old/notebooks/01_first_old-1.ipynb").read_bytes() == used


def test_a_notebook_that_is_gone_stays_if_it_was_used(root, tmp_path):
    new = {name: content for name, content in NEWER.items() if name != NOTEBOOK}
    for number, used in ((1, True), (2, False)):
        course = root if used else write(tmp_path / "untouched")
        before = (course / NOTEBOOK).read_bytes()
        said = "\n".join(update_course(course, write(tmp_path / f"new{number}", new, "2.0")))
        assert (NOTEBOOK in said) == used == (course / NOTEBOOK).exists()
        assert not used or (course / NOTEBOOK).read_bytes() == before


@pytest.mark.parametrize(
    "damage", [b"", b"{", b'{"cells": [1]}', b"<<<<<<< mine", b"[" * 100_000, b"\xff\xfe"], ids=range(6)
)
def test_a_notebook_that_cannot_be_read_is_kept_aside(root, newer, damage):
    files.write(root / NOTEBOOK, damage)
    said = "\n".join(update_course(root, newer))
    assert (root / NOTEBOOK).read_bytes() == NEWER[NOTEBOOK] and "old/notebooks/01_first_old-1.ipynb" in said
    assert (root / "old/notebooks/01_first_old-1.ipynb").read_bytes() == damage


def test_what_stands_in_the_way_is_named_before_anything_is_written(root, newer):
    (root / "labs/new.py").mkdir()
    before = tree(root)
    with pytest.raises(CourseError, match="labs/new.py is in the way"):
        update_course(root, newer)
    assert tree(root) == before


def test_a_folder_on_another_disk_and_the_course_itself(root, newer, tmp_path, monkeypatch):
    replace, error = os.replace, OSError(18, "Invalid cross-device link")

    def across(source, target):
        if "/next/" in str(source) and "/notebooks/" in str(target):
            raise error
        replace(source, target)

    monkeypatch.setattr(os, "replace", across)
    update_course(root, newer)
    assert (root / "notebooks/02_second.ipynb").read_bytes() == NEWER["notebooks/02_second.ipynb"]
    with pytest.raises(CourseError, match="is this course itself"):
        update_course(root, root)


def test_in_the_authors_checkout_git_brings_what_is_new(tmp_path, newer, monkeypatch, capsys):
    files.write(tmp_path / "authors/labs/__init__.py", "")
    (tmp_path / "authors/solutions").mkdir()
    monkeypatch.chdir(tmp_path / "authors")
    assert cli.main(["update", str(newer)]) == 2 and "git pull" in capsys.readouterr().err


def test_many_changes_are_told_in_a_few_lines(tmp_path):
    old, new = (
        CONTENTS | {f"{place}{number}.{end}": f"{form}\n".encode() for number in range(30) for place, end in places}
        for form, places in (
            ("old", [("slurm/site", "toml"), ("notebooks/scripts/s", "py"), ("labs/m", "py")]),
            ("new", [("notebooks/scripts/s", "py"), ("labs/m", "py"), ("notebooks/scripts/t", "py")]),
        )
    )
    said = update_course(write(tmp_path / "course", old), write(tmp_path / "new", new, "2.0"))
    assert len(said) == 4 and "and 24 more" in said[1] and "30 replaced, 30 removed" in said[3]
