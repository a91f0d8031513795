"""course.zip: complete, the same bytes each time, without what was not chosen, and without any solution."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import made_class
import pytest

from labs import files
from labs.checks import tasks
from labs.course import release as course_release
from labs.errors import UseError
from teaching.cli import main
from teaching.grading import handed, release, rubric

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.more("a part of the course, packed twice")
def test_a_part_of_the_course_is_the_same_bytes_each_time(tmp_path):
    asked = release.chosen(notebooks="00-02,05-06")
    given, _ = (release.release(ROOT, tmp_path / name, asked) for name in ("one", "two"))
    stems = ("00_start_here", "01_basic_concepts", "02_averages_and_rings", "05_resnet50_scaling", "06_a_job_for_slurm")
    assert tuple(given) == stems == asked
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert all(name.startswith("course/") for name in zipfile.ZipFile(tmp_path / "one").namelist())
    _, files = course_release.load(tmp_path / "one")
    wanted = {f"lessons/{name.partition('_')[2]}/{kind}" for name in stems for kind in ("tasks.toml", "questions.py")}
    asked = re.compile(r"lessons/.*/(tasks.toml|questions.py)$")
    assert set(filter(asked.match, files)) == wanted
    assert "lessons/write_the_schedule/programs.py" in files, "modules of any lesson may serve another one"
    rows = re.findall(r"^\| `(\d\d_\w+)`", files["README.md"].decode(), re.MULTILINE)
    assert tuple(rows) == stems, "its table names what is there"


def test_a_notebook_that_is_not_there_is_named_and_a_release_with_a_solution_is_not_written(tmp_path, monkeypatch):
    for asked in ("99", "5", "00-", "08-00", "Afternoon"):
        with pytest.raises(UseError, match=f"'{asked}' names no notebook; there are 00, 01"):
            release.chosen(notebooks=asked)
    for asked in (("holiday", None), ("practical", "00")):
        with pytest.raises(UseError, match="no path 'holiday'|both say which"):
            release.chosen(*asked)
    monkeypatch.setattr(release.students, "GIVEN", [*release.students.GIVEN, "CONTRIBUTING.md"])
    with pytest.raises(release.LeakError, match=r"CONTRIBUTING.md holds the marker .* in all\)"):
        release.release(ROOT, tmp_path / "out.zip")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.more("a part of the course, judged")
def test_the_same_work_on_a_part_of_the_course_gives_the_findings_of_the_whole(tmp_path, monkeypatch, capsys):
    """What was given works where it is unpacked; what a part does not ask for is not missed."""
    monkeypatch.chdir(ROOT)
    path, root, out = tmp_path / "course.zip", tmp_path / "course", tmp_path / "grades"
    assert main(["release", "--out", str(path), "--notebooks", "00-06,11"]) == 0
    said = capsys.readouterr().out
    assert "06_a_job_for_slurm 11_report\n" in said
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path)
    environment = os.environ | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    settings = {"cwd": root, "env": environment, "capture_output": True, "text": True}
    code = "from labs.checks import progress; print(*sorted({row['notebook'][:3] for row in progress('notebooks')}))"
    done = subprocess.run([sys.executable, "-c", code], **settings)
    assert done.stdout == "00_ 01_ 02_ 03_ 04_ 05_ 06_ 11_\n", done.stderr
    for file, content in made_class.work(made_class.study(1), writer="one").items():
        files.write(root / file, content)
    done = subprocess.run([sys.executable, "-m", "labs", "report"], **settings)
    assert done.returncode == 0, done.stderr
    files.write(tmp_path / "in/student.zip", (root / "report/submission.zip").read_bytes())
    assert main(["in", str(tmp_path / "in"), "--no-run", "--out", str(out)]) == 0
    assert f"\n{rubric.load(out).most:g} points, " in said, "what the release says is what the grading counts"
    checked = json.loads((out / "checked/001.json").read_text())
    assert set(checked["tables"]) == {"T5", "T6"}  # T10 is a task of notebook 10
    assert [each for each in checked["findings"] if each["severity"] != "note"] == []


def test_what_was_given_is_read_from_the_stamp(tmp_path):
    every = {lesson.notebook for lesson in tasks.lessons().values() if not lesson.optional}
    for stamp, own, given in (
        ({"notebooks": ["05_resnet50_scaling"]}, (), {"05_resnet50_scaling"}),
        ({"notebooks": []}, ("notebooks/03_mirrored_strategy.ipynb",), {"03_mirrored_strategy"}),
        (3, (), every),
    ):
        contents = {"manifest.json": json.dumps({"release": stamp}).encode()} | dict.fromkeys(own, b"{}")
        lessons = handed.Submission("001", contents, tmp_path).course.lessons
        assert {lesson.notebook for lesson in lessons} == given
