"""The packages and their rooms: who imports whom, and the doors, which say what is behind them."""

import ast
import re
import shutil
import subprocess
import sys
from collections import defaultdict

import pytest
from tree import ROOT, clean_environment

PACKAGES = ("labs", "lessons", "teaching")


def rooms(root):
    """The rooms below `root`: folders of labs/ and teaching/ with modules, and lessons/, whose folders are all of one
    form. jobs/startup is none: a folder for PYTHONPATH, from which Python takes sitecustomize."""
    folders = {path.parent for package in ("labs", "teaching") for path in root.glob(f"{package}/*/**/*.py")}
    return sorted(folders - {root / "labs/jobs/startup"} | {root / "lessons"})


def not_named(room):
    """Names of the modules and rooms in a room that its door's docstring does not hold."""
    said = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
    modules = {path.stem for path in room.glob("*.py")}
    modules |= {path.parent.name for path in room.glob("*/__init__.py") if room.name != "lessons"}
    behind = {name for name in modules if not name.startswith("__")}
    return sorted(behind - set(re.findall(r"\w+", said)))


def modules(root):
    """The modules of all packages below `root`."""
    return sorted(path for package in PACKAGES for path in root.glob(f"{package}/**/*.py"))


def broken(root):
    """What import-linter says about the packages below `root` where it breaks a contract of pyproject.toml, else ''."""
    code = f"import sys; sys.path.insert(0, {str(root)!r}); from importlinter import cli; cli.lint_imports_command()"
    command = [sys.executable, "-P", "-c", code, "--no-cache", "--config", str(root / "pyproject.toml")]
    environment = clean_environment(PYTHONPATH=str(root), PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, env=environment)
    assert "Contracts: " in done.stdout, done.stdout + done.stderr
    return done.stdout if done.returncode else ""


def standing_twice(root):
    """{name: modules} of the classes below `root` that have the name of another one."""
    places = defaultdict(list)
    for path in modules(root):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(root)))
    return {name: found for name, found in places.items() if len(found) > 1}


def at_two_doors(root):
    """{module.name: doors} of what more than one door below `root` offers."""
    doors = defaultdict(list)
    for room in rooms(root):
        for node in ast.parse((room / "__init__.py").read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module.startswith(("labs.", "teaching.")):
                for name in node.names:
                    doors[f"{node.module}.{name.name}"].append(str(room.relative_to(root)))
    return {name: found for name, found in doors.items() if len(found) > 1}


def lessons_named(root):
    """{module: ids} of the items of lessons that a module of labs/ or teaching/ holds."""
    ids = set(re.findall(r'(?m)^id = "(\w+\.\d+)"', "".join(map(_text, ROOT.glob("lessons/*/tasks.toml")))))
    assert len(ids) > 100
    found = {path.relative_to(root): ids & set(re.findall(r"[\w.]+", _text(path))) for path in modules(root)}
    return {str(path): named for path, named in found.items() if named and path.parts[0] != "lessons"}


def _text(path):
    return path.read_text(encoding="utf-8")


@pytest.fixture
def copy(tmp_path):
    """A course with the real packages, which a test may change."""
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__", "recorded", "*.toml")
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignored)
    shutil.copytree(ROOT / "labs/recorded", tmp_path / "labs/recorded", ignore=lambda *_: {"__pycache__"})
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_no_room_imports_one_above_it_and_no_circles():
    assert broken(ROOT) == ""


@pytest.mark.parametrize(
    ("module", "line", "says"),
    [
        ("labs/measure/study", "from lessons import own_runs", "labs.measure.study -> lessons.own_runs"),
        ("lessons/drawing", "import teaching.author.web", "lessons.drawing -> teaching.author.web"),
        ("teaching/author/build", "from teaching.grading import desk", "teaching.author.build -> teaching.grading"),
        ("labs/files", "import labs.results", "labs.files -> labs.results"),
        ("labs/results/run", "def f():\n    from labs.show import plots", "labs.results.run -> labs.show"),
        ("labs/slurm/directives", "from labs.slurm import sites\nimport labs.slurm.check", "No circles inside a room"),
    ],
)
def test_an_upward_import_and_a_circle_are_found(copy, module, line, says):
    path = copy / f"{module}.py"
    path.write_text(path.read_text() + "\n" + line + "\n")
    assert says in broken(copy)


@pytest.mark.parametrize("room", [str(room.relative_to(ROOT)) for room in rooms(ROOT)])
def test_a_door_names_what_is_behind_it(room):
    assert not_named(ROOT / room) == []


def test_a_module_without_a_line_at_the_door_is_found(copy):
    (copy / "labs/simulate/forgotten.py").write_text("")
    assert "forgotten" in not_named(copy / "labs/simulate") and "ring" not in not_named(copy / "labs/simulate")


def test_a_class_name_stands_once():
    assert standing_twice(ROOT) == {}


def test_a_class_name_that_stands_twice_is_found(copy):
    (copy / "labs/simulate/again.py").write_text("def f():\n    class Recorder:\n        pass\n")
    assert standing_twice(copy) == {"Recorder": ["labs/simulate/again.py", "labs/training/recorder.py"]}


def test_no_room_but_the_lessons_knows_an_item_of_a_lesson():
    assert lessons_named(ROOT) == {}


def test_an_item_that_another_room_knows_is_found(copy):
    (copy / "teaching/grading/again.py").write_text('OWN = {"averages.12": None}\n')
    assert lessons_named(copy) == {"teaching/grading/again.py": {"averages.12"}}


def test_what_a_door_offers_stands_at_no_other_door():
    assert at_two_doors(ROOT) == {}


def test_a_name_at_two_doors_is_found(copy):
    door = copy / "labs/slurm/trial/__init__.py"
    door.write_text(door.read_text() + "from labs.jobs.anywhere import run\n")
    assert at_two_doors(copy) == {"labs.jobs.anywhere.run": ["labs/jobs", "labs/slurm/trial"]}
