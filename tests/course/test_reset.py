"""Starting over: a fresh file, the old one kept, and nothing ever overwritten."""

import subprocess

import pytest
from course import CONTENTS, filled, notebook, tree, write

from labs import cli, files
from labs.course import CourseError, reset_files

NOTEBOOK, SCRIPT = "notebooks/01_first.ipynb", "notebooks/scripts/train.py"
BETWEEN = "notebooks/01b_between.ipynb"


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.delenv("LABS_RUNS", raising=False)
    monkeypatch.chdir(write(tmp_path / "my course", CONTENTS | {BETWEEN: notebook(("a1", "# Between"))}))
    return tmp_path / "my course"


def test_a_used_notebook_and_script_are_fresh_again_and_the_old_ones_are_kept_each_time(root, capsys):
    for number in (1, 2):
        filled(root / NOTEBOOK, labs_01_1=f"speedup = {number}")
        used = (root / NOTEBOOK).read_bytes()
        assert cli.main(["reset", "01"]) == 0
        kept = f"old/notebooks/01_first_old-{number}.ipynb"
        out = capsys.readouterr().out
        assert (root / kept).read_bytes() == used and kept in out and "in your progress stays right" in out
        assert (root / NOTEBOOK).read_bytes() == CONTENTS[NOTEBOOK]
    (root / SCRIPT).unlink()
    assert reset_files(root, ["scripts/train.py"]) == [f"{SCRIPT} is fresh again."]
    assert len([*(root / "old").rglob("*.*")]) == 2


def test_names_that_students_type(root, monkeypatch):
    monkeypatch.chdir(root / "slurm/other")
    meant = dict.fromkeys(("1", "01_first.ipynb", NOTEBOOK), NOTEBOOK) | {"1b": BETWEEN, "scripts/train.py": SCRIPT}
    meant |= {"local/train.sh": "slurm/local/train.sh", "train.sh": "slurm/other/train.sh"}  # from where you are
    for name, means in meant.items():
        assert reset_files(root, [name]) == [f"{means} is fresh already."]


def test_a_name_that_means_nothing_or_several_stops_before_anything_is_written(root):
    filled(root / NOTEBOOK, labs_01_1="speedup = 1")
    before = tree(root)
    for name, says in (
        ("train.sh", "means several files: slurm/local/train.sh, slurm/other/train.sh"),
        ("09", "is not a file that the course gave you to fill in"),
        ("notebooks/runs/progress.json", "is not a file that"),
    ):
        with pytest.raises(CourseError, match=says) as caught:
            reset_files(root, ["01", name])
        assert tree(root) == before and caught.value.code == 2


def test_an_interrupted_reset_leaves_the_old_file(root, monkeypatch):
    filled(root / NOTEBOOK, labs_01_1="speedup = 1")
    used, write_file = (root / NOTEBOOK).read_bytes(), files.write

    def failing(path, text):
        assert path != root / NOTEBOOK, "interrupted"
        write_file(path, text)

    monkeypatch.setattr(files, "write", failing)
    with pytest.raises(AssertionError, match="interrupted"):
        reset_files(root, ["01"])
    assert (root / NOTEBOOK).read_bytes() == used
    monkeypatch.setattr(files, "write", write_file)
    reset_files(root, ["01"])
    assert {path.name: path.read_bytes() for path in root.glob("old/*/*")} == {"01_first_old-1.ipynb": used}


def test_a_fresh_copy_that_is_lost_or_changed_is_not_used(root):
    copy = root / ".release/fresh" / SCRIPT
    for damage in (lambda: copy.write_text("rate = 0.1\n"), copy.unlink):
        damage()
        with pytest.raises(CourseError, match="fresh copy .* Run `labs update` again"):
            reset_files(root, [SCRIPT])


def test_in_a_clone_files_are_those_that_were_fetched_and_elsewhere_it_says_where_to_go(tmp_path, monkeypatch, capsys):
    source, clone = tmp_path / "source", tmp_path / "clone"
    for name, content in (CONTENTS | {"solutions/01_first.py": b""}).items():
        files.write(source / name, content)

    def git(root, *words):
        user = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", root, *user, *words], check=True, capture_output=True)

    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"], ["clone", "-q", ".", clone]):
        git(source, *words)
    monkeypatch.delenv("LABS_RUNS", raising=False)
    for place in (clone, source):  # the latter has no upstream
        filled(place / NOTEBOOK, labs_01_1="speedup = 1")
        if place == clone:
            git(clone, "commit", "-qam", "my own work")
        monkeypatch.chdir(place)
        assert cli.main(["reset", "01"]) == 0 and (place / NOTEBOOK).read_bytes() == CONTENTS[NOTEBOOK]
    (source / ".git").rename(tmp_path / "gone")
    assert cli.main(["reset", "01"]) == 2 and "neither a release nor a clone" in capsys.readouterr().err
    monkeypatch.chdir(tmp_path)
    assert cli.main(["update", "new.zip"]) == 2 and "is in no course" in capsys.readouterr().err
