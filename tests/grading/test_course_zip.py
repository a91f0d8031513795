"""course.zip: complete, the same bytes each time, without what was not chosen, and without any solution."""

import json
import os
import shutil
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
from teaching.author import hidden
from teaching.cli import main
from teaching.grading import handed, release

ROOT = Path(__file__).resolve().parents[2]
WHEN = "2026-01-02T03:04:05Z"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("release") / "course.zip"
    assert len(release.release(ROOT, path, date=WHEN)) == len(list(ROOT.glob("solutions/*.py")))
    return path


def test_labs_update_reads_it_and_it_holds_nothing_of_the_authors(whole):
    given = course_release.load(whole)
    assert given.stamp.date == WHEN
    names = zipfile.ZipFile(whole).namelist()
    assert [name for name in names if not name.startswith("course/")] == []
    words = ("/solutions/", "/tests/", "/.git/", "teaching/")
    assert [name for name in names if any(word in name for word in words)] == []
    secret = hidden.secrets(ROOT)
    assert len(secret) > 200 and list(hidden.leaks(given.files, secret)) == []


def test_a_part_of_the_course_is_the_same_bytes_each_time(tmp_path):
    for name in ("one", "two"):
        given = release.release(
            ROOT, tmp_path / name, site="juwels-booster", notebooks="00-01,02b,05-06", criteria=False
        )
    stems = ("00_start_here", "01_basic_concepts", "02b_rings", "05_resnet50_scaling", "06_a_job_for_slurm")
    assert given == [f"notebooks/{name}.ipynb" for name in stems]
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    files = course_release.load(tmp_path / "one").files
    sites = {name for name in files if name.startswith("slurm/sites/") and name.endswith(".toml")}
    assert sites == {f"slurm/sites/{name}.toml" for name in ("local", "template", "juwels-booster")}
    for kind in ("tasks.toml", "questions.py"):
        there = {name for name in files if name.startswith("lessons/") and name.endswith(f"/{kind}")}
        assert there == {f"lessons/{name.partition('_')[2]}/{kind}" for name in stems}
    assert "lessons/write_the_schedule/programs.py" in files, "modules of any lesson may serve another one"
    assert b'holds = ["..."' in files["lessons/a_job_for_slurm/tasks.toml"]


@pytest.mark.parametrize("asked", ["99", "5", "00-", "08-00", ""])
def test_a_notebook_that_is_not_there_is_named(asked, tmp_path):
    with pytest.raises(UseError, match=f"'{asked}' names no notebook; there are 00, 01"):
        release.release(ROOT, tmp_path / "out.zip", notebooks=asked)
    assert list(tmp_path.iterdir()) == []


def test_a_release_that_gives_a_solution_away_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(release.students, "GIVEN", [*release.students.GIVEN, "CONTRIBUTING.md"])
    with pytest.raises(release.LeakError, match=r"CONTRIBUTING.md holds the marker .* in all\)"):
        release.release(ROOT, tmp_path / "out.zip")
    assert list(tmp_path.iterdir()) == []


def test_the_command_writes_it_and_names_the_notebooks(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert main(["release", "--out", str(tmp_path / "c.zip"), "--notebooks", "03", "--no-web"]) == 0
    assert capsys.readouterr().out.endswith("Notebooks: 03_mirrored_strategy\n")
    assert main(["release", "--out", str(tmp_path / "d.zip"), "--site", "nowhere"]) == 2
    assert "No site is called 'nowhere'" in capsys.readouterr().err and not (tmp_path / "d.zip").exists()


@pytest.fixture(scope="module")
def part(tmp_path_factory):
    """The zip of a part of the course, as the command writes it."""
    path = tmp_path_factory.mktemp("part") / "course.zip"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        assert main(["release", "--out", str(path), "--notebooks", "00-06,11", "--site", "local", "--no-web"]) == 0
    return path


def unpacked(path, folder):
    """(the course of a zip in a folder, how to run a program there as its student does)."""
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    root = folder / "course"
    environment = os.environ | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    return root, {"cwd": root, "env": environment, "capture_output": True, "text": True}


def test_what_was_given_works_where_it_is_unpacked(part, tmp_path):
    _, settings = unpacked(part, tmp_path)
    code = "from labs.checks import progress; print(*sorted({row['notebook'][:3] for row in progress('notebooks')}))"
    code += "; from labs.slurm import sites; print(*sites.names())"
    done = subprocess.run([sys.executable, "-c", code], **settings)
    assert done.stdout == "00_ 01_ 02_ 02b 03_ 04_ 05_ 06_ 11_\nlocal\n", done.stderr
    made = subprocess.run(["make", "-n", "lab"], **settings)
    assert made.returncode == 0 and "notebooks/00_start_here.ipynb" in made.stdout, made.stderr


def test_the_same_work_on_a_part_and_on_the_whole_gives_the_same_findings(part, whole, tmp_path, monkeypatch):
    work, found = made_class.work(made_class.study(1), writer="one"), {}
    for name, path in (("part", part), ("whole", whole)):
        root, settings = unpacked(path, tmp_path / name)
        for file, content in work.items():
            files.write(root / file, content)
        done = subprocess.run([sys.executable, "-m", "labs", "report"], **settings)
        assert done.returncode == 0, done.stderr
        (tmp_path / name / "in").mkdir()
        shutil.copy(root / "report/submission.zip", tmp_path / name / "in/student.zip")
        with monkeypatch.context() as patch:
            patch.chdir(ROOT)
            for words in (["collect", str(tmp_path / name / "in")], ["check", "--no-run"]):
                assert main([*words, "--out", str(tmp_path / name / "grades")]) == 0
        checked = json.loads((tmp_path / name / "grades/checked/001.json").read_text())
        found[name] = checked["findings"], set(checked["tables"])
    counted = {name: (tmp_path / name / "grades/rubric.toml").read_text() for name in found}
    assert '"networks.3"' in counted["whole"] and '"networks.3"' not in counted["part"]
    assert '"resnet50.5"' in counted["part"]
    assert "T10" in found["whole"][1] and "T10" not in found["part"][1]  # T10 is a task of notebook 10
    assert found["part"][0] == found["whole"][0]
    assert [each for each in found["part"][0] if each["severity"] != "note"] == []


ITEMS = [{"notebook": "01_basic_concepts"}, {"notebook": "05_resnet50_scaling"}]
GIVEN = [
    ({"manifest.json": {"files": {}, "release": {"notebooks": ["05_resnet50_scaling"]}}}, {"05_resnet50_scaling"}),
    ({"report.json": {"tasks": ITEMS[:1], "items": ITEMS}}, {"01_basic_concepts", "05_resnet50_scaling"}),
    ({"manifest.json": {"release": {"notebooks": []}}, "notebooks/03_mirrored_strategy.ipynb": {}},
     {"03_mirrored_strategy"}),
]  # fmt: skip
UNKNOWN = [
    {},
    {"manifest.json": 3},
    {"manifest.json": {"release": 3}},
    {"manifest.json": {"release": {"notebooks": 3}}},
]
UNKNOWN += [{"report.json": {"tasks": 3, "items": []}}, {"report.json": {"tasks": ["x"], "items": []}}]


@pytest.mark.parametrize(("said", "given"), GIVEN + [(said, None) for said in UNKNOWN])
def test_what_was_given_is_read_from_the_stamp_or_else_from_the_report(said, given, tmp_path):
    contents = {name: json.dumps(content).encode() for name, content in said.items()}
    lessons = {lesson.notebook for lesson in handed.Submission("001", contents, tmp_path).course.lessons}
    every = {lesson.notebook for lesson in tasks.lessons().values() if not lesson.optional}
    assert lessons == (every if given is None else given)
