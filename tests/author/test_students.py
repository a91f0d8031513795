"""The students' tree: what is on the list and nothing else, and no line of a solution in it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from nbformat.v4 import reads_json
from solution_lines import normal, solution_lines

from labs import files
from labs.author import render, sources, students
from labs.author.regions import BEGIN, END, blank
from labs.blanks import BuildError, blanks
from labs.checks import tasks
from labs.course import release

ROOT = Path(__file__).resolve().parents[2]
WORD = BEGIN.lstrip("# ")

# Lines of solutions that are also the whole of a function of labs, which students may read.
IN_LABS = {
    "return (1 - 1 / workers) ** workers",
    "return 2 * (workers - 1) / workers * size",
    "callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()]",
    "value = loss(labels, model(images, training=True))",  # these as in any training loop
    "optimizer.apply(tape.gradient(value, weights), weights)",
    "for job in started:",
}


def names(tree):
    return sorted(path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file())


def told(path):
    """The text of a file as a reader sees it; of a notebook its cells, without outputs."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return "\n".join(cell.source for cell in reads_json(text).cells) if path.suffix == ".ipynb" else text


# ---- the course's own ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """What students of this course get."""
    folder = tmp_path_factory.mktemp("student") / "tree"
    assert students.student_tree(ROOT, folder) == names(folder)
    return folder


@pytest.fixture(scope="module")
def secret():
    """{line: where it stands} of every solution, but for lines that a student's form of another source shows."""
    hidden, shown = {}, set()
    for path in [*sources.sources(ROOT).values(), *sources.scripts(ROOT).values()]:
        text = path.read_text(encoding="utf-8")
        hidden |= {line: f"{path.name}:{number}" for number, line in solution_lines(text, path.name)}
        shown |= set(map(normal, blank(text, path.name).split("\n")))
    for name, text in render.scripts(ROOT).items():
        lines = {normal(line): name for line in text.split("\n") if len(line) > 12}
        if name.startswith("slurm/"):
            shown |= set(lines)
        else:
            hidden |= lines
    return {line: where for line, where in hidden.items() if line not in shown}


def test_no_line_of_a_solution_stands_in_the_tree(tree, secret):
    assert len(secret) > 200
    found = [
        f"{name} shows {secret[line]}: {line}"
        for name in names(tree)
        for line in map(normal, told(tree / name).split("\n"))
        if line in secret and not (name.startswith("labs/") and line in IN_LABS)
    ]
    assert found == []


def test_no_marker_stands_in_the_tree(tree):
    assert [name for name in names(tree) if WORD in told(tree / name) or END in told(tree / name)] == []


def test_the_tree_is_complete_and_holds_nothing_of_the_authors(tree):
    assert {path.name for path in tree.iterdir()} <= {entry.split("/")[0] for entry in students.GIVEN} | {
        "notebooks",
        release.FOLDER,
    }
    assert names(tree / "labs") == [
        name.removeprefix("labs/")
        for name in subprocess.check_output(["git", "-C", ROOT, "ls-files", "labs"], text=True).split()
        if not name.startswith(students.KEPT_BACK)
    ]
    assert {path.name for path in (tree / "notebooks").glob("*.ipynb")} == {
        f"{name}.ipynb" for name in sources.sources(ROOT)
    }
    assert names(tree / "notebooks/scripts") == list(sources.scripts(ROOT))
    assert (tree / "notebooks/runs/.gitkeep").exists() and (tree / ".jupyter/jupyter_server_config.py").exists()
    assert {path.parent.name for path in (tree / "slurm").glob("*/*.sh")} == set(render.sites.names(ROOT))


def test_what_a_good_answer_holds_is_given_or_kept_back(tree, tmp_path):
    def held(root):
        return {
            i.id: i.holds
            for p in root.glob("labs/lessons/nb*/tasks.toml")
            for i in tasks.load(p).task
            if i.kind == "answer"
        }

    assert held(tree) == held(ROOT) and len(held(tree)) > 5
    students.student_tree(ROOT, tmp_path / "without", holds=False)
    assert {id: ["..."] * len(holds) for id, holds in held(ROOT).items()} == held(tmp_path / "without")


@pytest.mark.parametrize("words", [["build"], ["build", "--check"], ["slurm", "render"]])
def test_commands_of_the_authors_say_so_in_one_line(tree, words):
    code = "import sys; from labs.cli import main; sys.exit(main(sys.argv[1:]))"
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [shutil.which("python"), "-c", code, *words], cwd=tree, env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"labs {words[0]}: The sources of ") and "not in this tree" in done.stderr


# ---- a small one --------------------------------------------------------------------------------------


@pytest.fixture
def course(tmp_path):
    """A course in git with a file of each kind; its notebook has been filled in by an instructor who tried it."""
    root = tmp_path / "course"
    for name, text in {
        "solutions/01_first.py": f"# %%\n{BEGIN}\nspeedup = 45.0 / 24.5\n{END}\n",
        "solutions/scripts/train.py": f"workers = 2\n{BEGIN}\nrate = 0.01 * workers\n{END}\n",
        "notebooks/01_first.ipynb": "speedup = 45.0 / 24.5",
        "notebooks/scripts/old.py": "",
        ".ci/run": "make test\n",
        "Makefile": "lab:\n",
        "README.md": "Read me\n",
        "docs/plan.md": "",
        "tests/test_first.py": "",
        "labs/__init__.py": "",
        "labs/checks/judging.py": "",
        "labs/author/build.py": "",
        "labs/grading/marks.py": "",
        "slurm/sites/README.md": "",
    }.items():
        files.write(root / name, text)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    commit = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first", "--date=2026-01-02T03:04:05Z"]
    when = os.environ | {"GIT_COMMITTER_DATE": "2026-01-02T03:04:05+01:00"}
    subprocess.run(["git", *commit], cwd=root, check=True, env=when)
    files.write(root / "docs/mine.md", "not tracked")
    return root


EXPECTED = [
    ".release/fresh/notebooks/01_first.ipynb",
    ".release/fresh/notebooks/scripts/train.py",
    ".release/release.json",
    "Makefile",
    "README.md",
    "labs/__init__.py",
    "labs/checks/judging.py",
    "notebooks/01_first.ipynb",
    "notebooks/runs/.gitkeep",
    "notebooks/scripts/train.py",
    "slurm/sites/README.md",
]


def test_the_stamp_says_version_and_date_and_the_same_input_gives_the_same_bytes(course, tmp_path):
    for name in ("one", "two"):
        students.student_tree(course, tmp_path / name, version="1.2")
    one, two = ({path: (tmp_path / tree / path).read_bytes() for path in EXPECTED} for tree in ("one", "two"))
    stamp = release.load(tmp_path / "one").stamp
    assert one == two and str(stamp) == "1.2 of 2026-01-02" and stamp.date == "2026-01-02T02:04:05Z"
    assert sorted(stamp.files) == [path for path in EXPECTED if not path.startswith(release.FOLDER)]
    fresh = [path for path in EXPECTED if path.startswith(release.FRESH)]
    assert all(one[path] == one[path.removeprefix(release.FRESH)] for path in fresh)


def test_a_file_that_git_does_not_know_is_refused(course, tmp_path):
    files.write(course / "labs/mine.py", "not tracked")
    with pytest.raises(BuildError, match="labs/mine.py is not in git, so students would not get it; run `git add"):
        students.student_tree(course, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_on_the_list_is_given_and_notebooks_are_made_afresh(course, tmp_path):
    (tmp_path / "out").mkdir()  # an empty folder may be there
    assert students.student_tree(course, tmp_path / "out") == EXPECTED == names(tmp_path / "out")
    assert blanks(told(tmp_path / "out/notebooks/01_first.ipynb")) == [(1, "speedup = ...  # your code here")]
    assert blanks(tmp_path / "out/notebooks/scripts/train.py") == [(2, "rate = ...  # your code here")]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["course", "out"]


def test_folder_that_is_used_or_cannot_be_written_is_refused(course, tmp_path):
    files.write(tmp_path / "used/file", "x")
    for folder, reason in (
        ("used", "used is not an empty folder"),
        ("used/file", "file is not an empty folder"),
        ("used/file/below", "below cannot be written: "),
    ):
        with pytest.raises(BuildError, match=reason) as caught:
            students.student_tree(course, tmp_path / folder)
        assert "\n" not in str(caught.value)
    assert names(tmp_path / "used") == ["file"]


def test_without_git_nothing_is_given(course, tmp_path):
    shutil.rmtree(course / ".git")
    with pytest.raises(BuildError, match="git cannot say which files belong to the course .*not a git repository"):
        students.student_tree(course, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_solution_lines_are_those_that_stand_only_in_regions():
    source = (
        f"# model.compile(loss=loss)\n{BEGIN}\nmodel.compile(loss=loss)\nx = 1\n# the idea is to average\n\n"
        f"def step(batch, labels):\n    '''One training step.'''\n    return batch @ labels\n{END}\n"
    )
    assert solution_lines(source) == [(5, "the idea is to average"), (9, "return batch @ labels")]
