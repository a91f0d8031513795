"""Starting over: a fresh file, the old one kept, and nothing ever overwritten."""

import json
import subprocess

import pytest
from course import CONTENTS, filled, notebook, tree, write

from labs import cli, files
from labs.checks import tasks
from labs.course import CourseError, fresh_files, reset_files

NOTEBOOK, SCRIPT = "notebooks/01_first.ipynb", "notebooks/scripts/train.py"


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.delenv("LABS_RUNS", raising=False)
    monkeypatch.chdir(write(tmp_path / "my course"))
    return tmp_path / "my course"


def test_a_used_notebook_and_script_are_fresh_again_and_the_old_ones_are_kept_each_time(root, capsys):
    for number in (1, 2, 3):
        filled(root / NOTEBOOK, labs_01_1=f"speedup = {number}")
        used = (root / NOTEBOOK).read_bytes()
        assert cli.main(["reset", "01"]) == 0
        kept = f"old/notebooks/01_first_old-{number}.ipynb"
        assert (root / kept).read_bytes() == used and kept in capsys.readouterr().out
        assert (root / NOTEBOOK).read_bytes() == CONTENTS[NOTEBOOK]
    (root / SCRIPT).unlink()
    assert reset_files(root, ["scripts/train.py"], fresh_files(root)) == [f"{SCRIPT} is fresh again."]
    assert reset_files(root, ["scripts/train.py"], fresh_files(root)) == [f"{SCRIPT} is fresh already."]
    assert sorted(path.name for path in (root / "old/notebooks").iterdir())[-1] == "01_first_old-3.ipynb"


@pytest.mark.parametrize(
    ("name", "means"),
    [
        ("01", NOTEBOOK),
        ("1", NOTEBOOK),
        ("01_first", NOTEBOOK),
        ("notebooks/01_first.ipynb", NOTEBOOK),
        ("train.py", SCRIPT),
        ("./scripts/train.py", SCRIPT),
        ("slurm/other/train.sh", "slurm/other/train.sh"),
        ("other/train.sh", "slurm/other/train.sh"),
    ],
)
def test_names_that_students_type(root, name, means):
    assert reset_files(root, [name], fresh_files(root)) == [f"{means} is fresh already."]


@pytest.mark.parametrize(("name", "stem"), [("01", "01_first"), ("01b", "01b_between"), ("1b", "01b_between")])
def test_a_notebook_between_two_is_named_by_its_letter(tmp_path, name, stem):
    more = {"notebooks/01b_between.ipynb": notebook(("a1", "# Between"))}
    root = write(tmp_path / "course", CONTENTS | more)
    assert reset_files(root, [name], fresh_files(root)) == [f"notebooks/{stem}.ipynb is fresh already."]


def test_a_path_from_where_you_are(root, monkeypatch):
    monkeypatch.chdir(root / "slurm/other")
    assert reset_files(root, ["train.sh"], fresh_files(root)) == ["slurm/other/train.sh is fresh already."]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("train.sh", "means several files: slurm/local/train.sh, slurm/other/train.sh"),
        ("scripts/trian.py", "did you mean notebooks/scripts/train.py?"),
        ("09", "is not a file that the course gave you to fill in"),
        ("", "is not a file that"),
        ("README.md", "is not a file that"),
        ("../../etc/passwd", "is not a file that"),
        ("notebooks/runs/progress.json", "is not a file that"),
    ],
)
def test_a_name_that_means_nothing_or_several_stops_before_anything_is_written(root, name, says):
    filled(root / NOTEBOOK, labs_01_1="speedup = 1")
    before = tree(root)
    with pytest.raises(CourseError, match=says.replace("?", r"\?")) as caught:
        reset_files(root, ["01", name], fresh_files(root))
    assert tree(root) == before and caught.value.code == 2


def test_an_interrupted_reset_leaves_the_old_file_or_the_fresh_one(root, monkeypatch):
    filled(root / NOTEBOOK, labs_01_1="speedup = 1")
    used, write_file = (root / NOTEBOOK).read_bytes(), files.write
    for stop in ("part", "ipynb"):

        def failing(path, text, stop=stop):
            if str(path).endswith(stop):
                raise KeyboardInterrupt
            write_file(path, text)

        monkeypatch.setattr(files, "write", failing)
        with pytest.raises(KeyboardInterrupt):
            reset_files(root, ["01"], fresh_files(root))
        assert (root / NOTEBOOK).read_bytes() == used
    monkeypatch.undo()
    reset_files(root, ["01"], fresh_files(root))
    assert [path.name for path in (root / "old/notebooks").iterdir()] == ["01_first_old-1.ipynb"]
    assert (root / "old/notebooks/01_first_old-1.ipynb").read_bytes() == used


def test_a_fresh_copy_that_is_lost_or_changed_is_not_used(root):
    copy = root / ".release/fresh" / SCRIPT
    for damage in (lambda: copy.write_text("rate = 0.1\n"), copy.unlink):
        damage()
        with pytest.raises(CourseError, match="fresh copy .* Run `labs update` again"):
            reset_files(root, [SCRIPT], fresh_files(root))


def test_progress_is_kept_or_forgotten_on_demand(root, monkeypatch):
    item = tasks.Check(id="01.1", kind="check", title="t", points=1, why="w")
    monkeypatch.setattr(
        tasks, "lessons", lambda: {"nb01": tasks.Lesson(notebook="01_first", title="First", minutes=1, task=[item])}
    )
    path = root / "notebooks/runs/progress.json"
    old = json.dumps({"version": 1, "items": {"01.1": {"state": "right"}, "02.1": {"state": "wrong"}}})
    files.write(path, old)
    filled(root / NOTEBOOK, labs_01_1="speedup = 1")
    assert "What was right in your progress stays right" in " ".join(reset_files(root, ["01"], fresh_files(root)))
    assert path.read_text() == old
    said = reset_files(root, ["01"], fresh_files(root), progress=True)
    assert said[1] == "Your progress has forgotten 1 items; old/notebooks/runs/progress_old-1.json holds it as it was."
    assert json.loads(path.read_text())["items"].keys() == {"02.1"}
    assert (root / "old/notebooks/runs/progress_old-1.json").read_text() == old
    assert "nothing to forget" in reset_files(root, ["01"], fresh_files(root), progress=True)[1]
    with pytest.raises(CourseError, match="no notebook is named"):
        reset_files(root, [SCRIPT], fresh_files(root), progress=True)


def test_a_damaged_progress_is_recovered_and_one_that_cannot_be_read_stops_before_anything_is_written(
    root, monkeypatch
):
    item = tasks.Check(id="01.1", kind="check", title="t", points=1, why="w")
    monkeypatch.setattr(
        tasks, "lessons", lambda: {"nb01": tasks.Lesson(notebook="01_first", title="First", minutes=1, task=[item])}
    )
    path = root / "notebooks/runs/progress.json"
    old = json.dumps({"version": 1, "items": {"01.1": {"state": "right"}, "02.1": {"state": "right"}}})
    files.write(path, old[:-3])
    assert "forgotten 1 items" in reset_files(root, ["01"], fresh_files(root), progress=True)[1]
    assert json.loads(path.read_text())["items"]["02.1"]["state"] == "right"
    assert (root / "old/notebooks/runs/progress_old-1.json").read_text() == old[:-3]
    path.unlink()
    path.mkdir()
    filled(root / NOTEBOOK, labs_01_1="speedup = 1")
    before = tree(root)
    with pytest.raises(CourseError, match="cannot be read .* nothing is forgotten"):
        reset_files(root, ["01"], fresh_files(root), progress=True)
    assert tree(root) == before


def test_outside_of_a_course_it_says_where_to_go(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for words in (["reset", "01"], ["update", "new.zip"]):
        assert cli.main(words) == 2 and "is in no course" in capsys.readouterr().err


def test_in_a_clone_files_are_those_that_were_fetched(tmp_path, monkeypatch, capsys):
    source, clone = tmp_path / "source", tmp_path / "clone"
    for name, content in (CONTENTS | {"solutions/01_first.py": b""}).items():
        files.write(source / name, content)

    def git(root, *words):
        user = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", root, *user, *words], check=True, capture_output=True)

    git(tmp_path, "init", "-q", source)
    git(source, "add", "-A")
    git(source, "commit", "-qm", "first")
    git(tmp_path, "clone", "-q", source, clone)
    monkeypatch.chdir(clone)
    monkeypatch.delenv("LABS_RUNS", raising=False)
    filled(clone / NOTEBOOK, labs_01_1="speedup = 1")
    git(clone, "commit", "-qam", "my own work")
    assert cli.main(["reset", "01", "slurm/local/train.sh"]) == 0
    assert "slurm/local/train.sh is fresh already" in capsys.readouterr().out
    assert (clone / NOTEBOOK).read_bytes() == CONTENTS[NOTEBOOK]
    filled(source / NOTEBOOK, labs_01_1="speedup = 1")
    monkeypatch.chdir(source)  # it has no upstream
    assert cli.main(["reset", "01"]) == 0 and (source / NOTEBOOK).read_bytes() == CONTENTS[NOTEBOOK]
    (source / ".git").rename(tmp_path / "gone")
    assert cli.main(["reset", "01"]) == 2 and "neither a release nor a clone" in capsys.readouterr().err
