"""The students' tree: what is on the list and nothing else, and no line of a solution in it."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from labs import files
from labs.blanks import BuildError, blanks
from labs.checks import tasks
from labs.course import release
from teaching.author import hidden, render, sources, students
from teaching.author.hidden import solution_lines
from teaching.author.regions import BEGIN, END

ROOT = Path(__file__).resolve().parents[2]


def names(tree):
    return sorted(path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file())


def contents(tree):
    return {name: (tree / name).read_bytes() for name in names(tree)}


def told(path):
    return hidden.told(path.name, path.read_bytes())


# ---- the course's own ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """What students of this course get."""
    folder = tmp_path_factory.mktemp("student") / "tree"
    assert students.student_tree(ROOT, folder) == names(folder)
    return folder


def test_nothing_in_the_tree_gives_a_solution_away(tree):
    secret = hidden.secrets(ROOT)
    assert len(secret) > 200
    assert list(hidden.leaks(contents(tree), secret)) == []


def dead_links(folder):
    """Links in the pages of a folder to files or headings that are not there, also in HTML and to pictures."""
    for page in [*folder.glob("*.md"), *folder.glob("docs/**/*.md"), *folder.glob("slurm/**/*.md")]:
        text = re.sub(r"(?ms)^```.*?^```$|`[^`\n]*`", "", page.read_text(encoding="utf-8"))
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            place, _, heading = link.partition("#")
            target = (page.parent / place).resolve() if place else page
            if not re.match(r"https?:", link) and (
                not target.exists() or (heading and heading not in headings(target))
            ):
                yield f"{page.relative_to(folder)}: {link}"


def headings(page):
    """The anchors of a page's headings, as GitHub makes them."""
    found = re.findall(r"(?m)^#+ (.+)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_no_link_is_dead_here_nor_in_the_students_tree(tree):
    assert list(dead_links(ROOT)) == [] and list(dead_links(tree)) == []
    assert (tree / "docs/students/troubles.md").is_file() and not (tree / "docs/instructors").exists()
    assert "nstructors" not in (tree / "README.md").read_text() and "make test`" not in (tree / "README.md").read_text()


def test_a_dead_link_is_found(tmp_path):
    files.write(
        tmp_path / "README.md", "# A b\n[1](#a-b) [2](#c) [3](x.md) ![p](docs/p.png) [4](https://a.b/c) `[5](y)`\n"
    )
    assert list(dead_links(tmp_path)) == ["README.md: #c", "README.md: x.md", "README.md: docs/p.png"]


def test_a_line_that_labs_shares_with_a_solution_is_excused_there_alone():
    line = min(hidden.IN_LABS)
    given = {"labs/a.py": line.encode(), "notebooks/scripts/a.py": line.encode()}
    assert list(hidden.leaks(given, {line: "01.py:9"})) == [f"notebooks/scripts/a.py shows 01.py:9: {line}"]


def test_lines_and_markers_of_a_solution_are_found():
    secret = {"return batch @ labels": "01.py:9"}
    given = {"labs/a.py": b"    return batch @ labels\n", "b.txt": f"x\n{BEGIN}\n".encode(), "c.txt": b"batch\n"}
    given["d.ipynb"] = b'{"cells": [{"source": ["x = 1\\n", "# return batch @ labels"]}]}'
    assert list(hidden.leaks(given, secret)) == [
        "labs/a.py shows 01.py:9: return batch @ labels",
        f"b.txt holds the marker {BEGIN.lstrip('# ')!r}",
        "d.ipynb shows 01.py:9: return batch @ labels",
    ]


def test_the_tree_is_complete_and_holds_nothing_of_the_authors(tree):
    assert {path.name for path in tree.iterdir()} <= {entry.split("/")[0] for entry in students.GIVEN} | {
        "notebooks",
        "AGENTS.md",
        release.FOLDER,
    }
    assert "You are a tutor, not a solver" in (tree / "AGENTS.md").read_text()
    for package in ("labs", "lessons"):
        listed = subprocess.check_output(["git", "-C", ROOT, "ls-files", package], text=True).split()
        assert [f"{package}/{name}" for name in names(tree / package)] == listed
    assert "teach" not in (tree / "pyproject.toml").read_text().partition("[tool.ruff]")[0], "no such command"
    assert {path.name for path in (tree / "notebooks").glob("*.ipynb")} == {
        f"{name}.ipynb" for name in sources.sources(ROOT)
    }
    assert names(tree / "notebooks/scripts") == list(sources.scripts(ROOT))
    assert (tree / "notebooks/runs/.gitkeep").exists() and (tree / ".jupyter/jupyter_server_config.py").exists()
    assert {path.parent.name for path in (tree / "slurm").glob("*/*.sh")} == set(render.sites.names(ROOT))


def test_what_a_good_answer_holds_is_given_or_kept_back(tree, tmp_path):
    def held(root):
        return {
            i.id: i.holds for p in root.glob("lessons/*/tasks.toml") for i in tasks.load(p).task if i.kind == "answer"
        }

    assert held(tree) == held(ROOT) and len(held(tree)) > 5
    students.student_tree(ROOT, tmp_path / "without", holds=False)
    assert {id: ["..."] * len(holds) for id, holds in held(ROOT).items()} == held(tmp_path / "without")


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
        "lessons/first/tasks.toml": 'notebook = "01_first"\ntitle = "First"\nminutes = 1\ntask = []\n',
        "teaching/author/build.py": "",
        "teaching/grading/marks.py": "",
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
    "lessons/first/tasks.toml",
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
