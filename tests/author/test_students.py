"""The students' tree: what is on the list and nothing else, and no line of a solution in it."""

import json
import os
import re
import shutil
import subprocess

import pytest
from tree import ROOT, tracked

import labs
from labs import files
from labs.blanks import BuildError, blanks
from labs.course import release
from teaching.author import hidden, sources, students
from teaching.author.regions import BEGIN, END, blank


def names(tree):
    return sorted(path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file())


# ---- the course's own ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """What students of this course get."""
    folder = tmp_path_factory.mktemp("student")
    for name, content in students.contents(ROOT).items():
        files.write(folder / name, content)
    return folder


def test_the_tree_is_complete_and_holds_nothing_of_the_authors_nor_a_solution(tree):
    secret = hidden.secrets(ROOT)
    contents = {name: (tree / name).read_bytes() for name in names(tree)}
    assert len(secret) > 200 and list(hidden.leaks(contents, secret)) == []
    given = {entry.split("/")[0] for entry in students.GIVEN} | {"notebooks", "AGENTS.md", release.FOLDER}
    assert {path.name for path in tree.iterdir()} <= given
    for package in ("labs", "lessons"):
        assert [f"{package}/{name}" for name in names(tree / package)] == tracked(package)
    assert "teach" not in (tree / "pyproject.toml").read_text().partition("[tool.ruff]")[0], "no such command"
    assert {path.stem for path in (tree / "notebooks").glob("*.ipynb")} == set(sources.sources(ROOT))
    assert names(tree / "notebooks/scripts") == list(sources.scripts(ROOT))
    assert (tree / "notebooks/runs/.gitkeep").exists() and (tree / ".jupyter/jupyter_server_config.py").exists()
    assert 'holds = ["..."' not in (tree / "lessons/a_job_for_slurm/tasks.toml").read_text()
    assert (tree / "docs/students/troubles.md").is_file() and not (tree / "docs/instructors").exists()
    assert "nstructors" not in (tree / "README.md").read_text() and "make test`" not in (tree / "README.md").read_text()


def headings(page):
    """The anchors of a page's headings, as GitHub makes them."""
    found = re.findall(r"(?m)^#+ (.+)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_no_link_is_dead_here_nor_in_the_students_tree(tree):
    """Nor one to a heading or a picture."""
    found = []
    for folder in (ROOT, tree):
        for page in [*folder.glob("*.md"), *folder.glob("docs/**/*.md"), *folder.glob("slurm/**/*.md")]:
            text = re.sub(r"(?ms)^```.*?^```$|`[^`\n]*`", "", page.read_text(encoding="utf-8"))
            for place, heading in re.findall(r"\]\((?!https?:)([^)\s#]*)#?([^)\s]*)\)", text):
                target = (page.parent / place).resolve() if place else page
                found.append((page, place, target.exists() and (not heading or heading in headings(target))))
    assert len(found) > 50 and [link for link in found if not link[-1]] == []


# ---- lines that give a solution away ------------------------------------------------------------------


def test_lines_and_markers_of_a_solution_are_found_but_for_those_that_labs_shares():
    source = (
        f"# model.compile(loss=loss)\n{BEGIN}\nmodel.compile(loss=loss)\nx = 1\n# the idea is to average\n{END}\n"
        f"def step(batch, labels):\n    {BEGIN}\n    return batch @ labels\n    {END}\n"
    )
    shared, hit = min(hidden.IN_LABS), "return batch @ labels"
    lines = hidden.solution_lines([("01.py", source, blank(source))])
    assert lines == {"the idea is to average": "01.py:5", hit: "01.py:9"}
    given = {"labs/a.py": f"    {hit}\n{shared}\n", "b.txt": f"x\n{BEGIN}\n", "c.txt": "batch\n", "e/a.py": shared}
    given["d.ipynb"] = '{"cells": [{"source": ["x = 1\\n", "# return batch @ labels"]}]}'
    given = {name: text.encode() for name, text in given.items()}
    assert list(hidden.leaks(given, {hit: "01.py:9", shared: "01.py:8"})) == [
        f"labs/a.py shows 01.py:9: {hit}",
        f"b.txt holds the marker {BEGIN.lstrip('# ')!r}",
        f"e/a.py shows 01.py:8: {shared}",
        f"d.ipynb shows 01.py:9: {hit}",
    ]


# ---- a small one --------------------------------------------------------------------------------------


@pytest.fixture
def course(tmp_path):
    """A course in git with a file of each kind; its notebook has been filled in by an instructor who tried it."""
    root = tmp_path / "course"
    texts = {
        "solutions/01_first.py": f"# %%\n{BEGIN}\nspeedup = 45.0 / 24.5\n{END}\n",
        "solutions/scripts/train.py": f"workers = 2\n{BEGIN}\nrate = 0.01 * workers\n{END}\n",
        "notebooks/01_first.ipynb": "speedup = 45.0 / 24.5",
        "lessons/first/tasks.toml": 'notebook = "01_first"\ntitle = "First"\nminutes = 1\ntask = []\n',
    }
    others = "notebooks/scripts/old.py .ci/run docs/plan.md tests/test_first.py teaching/author/build.py".split()
    for name, text in {**dict.fromkeys([*others, *GIVEN], ""), **texts}.items():
        files.write(root / name, text)
    commit = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"]
    when = os.environ | {"GIT_COMMITTER_DATE": "2026-01-02T03:04:05+01:00"}
    for words in (["init", "-q"], ["add", "-A"], commit):
        subprocess.run(["git", *words], cwd=root, check=True, env=when)
    files.write(root / "docs/mine.md", "not tracked")
    return root


GIVEN = ["Makefile", "README.md", "labs/__init__.py", "labs/checks/judging.py", "slurm/sites/README.md"]
MADE = ["notebooks/01_first.ipynb", "notebooks/scripts/train.py"]


def test_what_is_on_the_list_is_given_made_afresh_and_stamped(course):
    one = students.contents(course)
    own = [*GIVEN, *MADE, "lessons/first/tasks.toml", "notebooks/runs/.gitkeep"]
    assert list(one) == sorted([*own, release.STAMP, *(release.FRESH + name for name in MADE)])
    stamp = json.loads(one[release.STAMP])
    assert (stamp["version"], stamp["date"]) == (labs.__version__, "2026-01-02T02:04:05Z")
    assert sorted(stamp["files"]) == sorted(own)
    assert all(one[release.FRESH + name] == one[name] for name in MADE)
    left = [blanks(hidden.told(name, one[name])) for name in MADE]
    fill = "...  # your code here"
    assert left == [[(1, f"speedup = {fill}")], [(2, f"rate = {fill}")]]


def test_what_git_does_not_know_is_refused(course):
    files.write(course / "labs/mine.py", "")
    with pytest.raises(BuildError, match="labs/mine.py is not in git, so students .*git add"):
        students.contents(course)
    shutil.rmtree(course / ".git")
    with pytest.raises(BuildError, match="git cannot say which files .*not a git repository"):
        students.contents(course)
