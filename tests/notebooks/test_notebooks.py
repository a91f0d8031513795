"""Guards on the real notebooks: they are executed, in step with their source, and give nothing away.

`guard_*` take a root and return one line per problem, so that the tests at the end can show each guard at
work on a small broken course.
"""

import json
import re
import shutil
from pathlib import Path

import pytest
from nbformat.v4 import reads_json

from labs.blanks import blanks
from labs.files import write as write_text
from teaching.author import build as kit
from teaching.author.hidden import normal, solution_lines
from teaching.author.regions import regions, strip_markers

ROOT = Path(__file__).resolve().parents[2]
SKIPS = re.compile(
    "|".join(
        [
            "nbval[-_]?(skip|ignore[-_]?output|raises[-_]?exception)",
            "raises[-_]exception",
            "skip[-_]execution",
            "pytest_validate_ignore_output",
        ]
    ),
    re.IGNORECASE,
)
MINUTES = re.compile(r"\d\s+minutes? of computing on 2 cores")
NAMES = sorted(path.stem for path in (ROOT / "solutions").glob("*.py"))
# Without notebooks this parameter is None, and every test that gets it fails instead of vanishing.
every_notebook = pytest.mark.parametrize("name", NAMES or [None], ids=str)


def notebook(path: Path):
    assert path.stem != "None", "solutions/ holds no NN_name.py: nothing would be tested"
    assert path.exists(), f"{path.name} is not built in {path.parent.name}/: run `uv run teach build`"
    return reads_json(path.read_text(encoding="utf-8"))


def guard_executed(root: Path, name: str) -> list[str]:
    problems, count = [], 0
    cells = [cell for cell in notebook(root / "solutions" / f"{name}.ipynb").cells if cell.cell_type == "code"]
    for cell in cells:
        if not cell.source.strip():
            continue
        count += 1
        if cell.execution_count != count:
            problems.append(f"cell {cell.id} has execution count {cell.execution_count}, not {count}")
        problems += [f"cell {cell.id} holds an error" for output in cell.outputs if output.output_type == "error"]
    return problems if count else ["no code cell was executed"]


def guard_skips(root: Path) -> list[str]:
    files = [
        *root.glob("solutions/**/*.py"),
        *root.glob("*/*.ipynb"),
        *root.glob("notebooks/**/*.py"),
        *root.glob("tests/conftest.py"),
        *root.glob("tests/*.cfg"),
        *root.glob(".ci/*"),
        *(root / name for name in ("pyproject.toml", "Makefile", "pytest.ini", "conftest.py")),
    ]
    return [
        f"{path.relative_to(root)}:{number}: {line.strip()[:80]}"
        for path in files
        if path.is_file()
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
        if SKIPS.search(line) and "image/png" not in line
    ]


def guard_leak(source: Path, student: Path) -> list[str]:
    hidden = {line: number for number, line in solution_lines(source.read_text(encoding="utf-8"), source.name)}
    assert student.exists(), f"{student.name} is not built in {student.parent.name}/: run `uv run teach build`"
    text = student.read_text(encoding="utf-8")
    if student.suffix == ".ipynb":
        text = "\n".join(cell.source for cell in reads_json(text).cells)
    shown = [normal(line) for line in text.split("\n")]
    problems = [
        f"{student.name} shows line {hidden[line]} of {source.name}: {line}" for line in shown if line in hidden
    ]
    return problems + [f"{student.name} holds a marker" for line in shown if "BEGIN SOLUTION" in line]


def guard_blank(root: Path, name: str) -> list[str]:
    return [
        f"cell {cell.id} has outputs or a count"
        for cell in notebook(root / "notebooks" / f"{name}.ipynb").cells
        if cell.cell_type == "code" and (cell.outputs or cell.execution_count is not None)
    ]


def guard_points(root: Path, name: str) -> list[str]:
    """The solution of each written answer ends with what a good answer contains, one line for each point."""
    problems = []
    for cell in notebook(root / "solutions" / f"{name}.ipynb").cells:
        mark = cell.metadata.get("labs", {})
        if mark.get("kind") == "answer":
            told = cell.source.partition("**A good answer contains** (1 point each):")[2]
            count = len(re.findall(r"^- ", told, re.MULTILINE))
            if count != mark["points"]:
                problems.append(f"{mark['id']} is worth {mark['points']} points and lists {count}")
    return problems


def guard_minutes(root: Path, name: str) -> list[str]:
    texts = [
        cell.source for cell in notebook(root / "notebooks" / f"{name}.ipynb").cells if cell.cell_type == "markdown"
    ]
    said = texts and MINUTES.search(texts[0])
    return [] if said else [f"{name}: the top does not say 'N minutes of computing on 2 cores'"]


def guard_alternatives(root: Path, name: str) -> list[str]:
    problems = []
    for cell in notebook(root / "solutions" / f"{name}.ipynb").cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            text = data.get("text/plain", "")
            if any(kind.startswith("image/") for kind in data) and (len(text) < 20 or text.startswith("<")):
                problems.append(f"cell {cell.id}: an image without a text alternative ({text or 'nothing'})")
    return problems


def test_there_are_notebooks():
    assert NAMES, "solutions/ holds no NN_name.py: nothing would be tested"


def test_sources_and_generated_files_agree():
    assert kit.check(ROOT) == []


def test_nothing_is_skipped():
    assert guard_skips(ROOT) == []


@every_notebook
def test_every_cell_was_executed_in_order(name):
    assert guard_executed(ROOT, name) == []


@every_notebook
def test_student_notebook_is_blank_and_shows_no_solution(name):
    assert guard_blank(ROOT, name) == []
    assert guard_leak(ROOT / "solutions" / f"{name}.py", ROOT / "notebooks" / f"{name}.ipynb") == []


@every_notebook
def test_top_says_how_long_it_takes(name):
    assert guard_minutes(ROOT, name) == []


@every_notebook
def test_written_answers_keep_the_points_of_a_good_answer(name):
    assert guard_points(ROOT, name) == []


@every_notebook
def test_no_output_shows_what_only_the_machine_reads(name):
    """Not `<History object at 0x...>`, nor the mark with which horovodrun begins the lines of ranks."""
    cells = json.loads((ROOT / f"solutions/{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    shown = json.dumps([cell.get("outputs") for cell in cells])
    assert not re.findall(r"<[\w.]+ object at 0x", shown)
    assert not re.findall(r"\[\d+\]<stdout>", shown)


@every_notebook
def test_images_have_a_text_alternative(name):
    assert guard_alternatives(ROOT, name) == []


@pytest.mark.parametrize("name", sorted(p.name for p in (ROOT / "solutions/scripts").glob("*.py")) or [None], ids=str)
def test_student_script_shows_no_solution_and_has_its_blanks(name):
    source, student = ROOT / "solutions/scripts" / name, ROOT / "notebooks/scripts" / name
    text = source.read_text(encoding="utf-8")
    assert guard_leak(source, student) == []
    assert blanks(source) == []
    # a region leaves a blank, or the code given in its place, which may be one; one without regions is given whole
    lines = text.split("\n")
    open_ones = [region for region in regions(text) if all("..." in lines[number] for number in region.given)]
    assert bool(blanks(student)) == bool(open_ones)
    assert (student.read_text(encoding="utf-8") != strip_markers(text)) == bool(regions(text))


# ---- the guards at work -------------------------------------------------------------------------------

SOURCE = """\
# %% [markdown]
# # Small
# 1 minute of computing on 2 cores

# %% labs={"id": "concepts.1"}
### BEGIN SOLUTION
speedup = 45 / 24
### END SOLUTION
print("done")

# %%
2
"""
SOLVED, BLANK, SCRIPT = "solutions/01_small.ipynb", "notebooks/01_small.ipynb", "notebooks/scripts/train.py"


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    root = tmp_path_factory.mktemp("small") / "course"
    write_text(root / "solutions/01_small.py", SOURCE)
    write_text(
        root / "solutions/scripts/train.py",
        "workers = 2\n### BEGIN SOLUTION\nrate = 0.01 * workers\n### END SOLUTION\n",
    )
    kit.build(root, report=lambda line: None)
    return root


@pytest.fixture
def broken(small, tmp_path):
    """(root of a copy, function that changes one of its notebooks)."""
    root = tmp_path / "course"
    shutil.copytree(small, root)

    def change(name, how):
        content = json.loads((root / name).read_text())
        how(content)
        (root / name).write_text(json.dumps(content))

    return root, change


def _unexecuted(nb):
    for cell in nb["cells"][1:]:
        cell.update(execution_count=None, outputs=[])


def _error(nb):
    nb["cells"][2]["outputs"] = [{"output_type": "error", "ename": "E", "evalue": "", "traceback": []}]


def _output(nb):
    nb["cells"][1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x"}]


@pytest.mark.parametrize(
    ("file", "how", "lines"),
    [
        (
            SOLVED,
            _unexecuted,
            [
                "cell 2 (id labs-concepts-1) has execution count None instead of 1",
                "has execution count None instead of 2",
            ],
        ),
        (SOLVED, lambda nb: nb["cells"][1].update(execution_count=7), ["has execution count 7 instead of 1"]),
        (SOLVED, _error, ["holds an error"]),
        (SOLVED, lambda nb: nb["cells"][1].update(source="speedup = 2"), ["differs from the source in source"]),
        (SOLVED, lambda nb: nb["cells"][2].update(id="other"), ["differs from the source in id"]),
        (SOLVED, lambda nb: nb["cells"][2]["metadata"].update(tags=["x"]), ["differs from the source in metadata"]),
        (SOLVED, lambda nb: nb["cells"][2].update(cell_type="raw"), ["differs from the source in cell_type"]),
        (SOLVED, lambda nb: nb["cells"].pop(), ["has 2 cells, its source 3"]),
        (SOLVED, lambda nb: nb["metadata"]["labs"].update(source_hash="0"), ["is out of date"]),
        (SOLVED, lambda nb: nb["metadata"].pop("labs"), ["is out of date"]),
        (SOLVED, lambda nb: nb["metadata"].update(widgets={}), ["its metadata are not the generated ones"]),
        (SOLVED, lambda nb: nb.pop("cells"), ["is not a notebook"]),
        (BLANK, _output, ["holds outputs or execution counts"]),
        (BLANK, lambda nb: nb["cells"][1].update(source="speedup = 45 / 24"), ["differs from the source in source"]),
        (BLANK, lambda nb: nb["metadata"]["labs"].update(source_hash="0"), ["is out of date"]),
    ],
)
def test_check_refuses_a_changed_notebook(broken, file, how, lines):
    root, change = broken
    assert kit.check(root) == []
    change(file, how)
    problems = kit.check(root)
    assert len(problems) >= len(lines)
    for line in lines:
        assert any(line in problem for problem in problems), problems
    for problem in problems:
        assert problem.startswith(f"{file}: ") and "uv run teach build" in problem and "\n" not in problem


def test_build_repairs_what_check_refuses(broken):
    root, change = broken
    change(SOLVED, _unexecuted)
    change(BLANK, _output)
    (root / SCRIPT).write_text("edited")
    assert len(kit.check(root)) == 4
    done = kit.build(root, report=lambda line: None)
    assert done == [f"wrote {SCRIPT}", f"executed {SOLVED}", f"wrote {BLANK}"] and kit.check(root) == []


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        (SOLVED, None, "is missing"),
        (BLANK, None, "is missing"),
        (SCRIPT, None, "is missing"),
        (SOLVED, "{", "is not a notebook"),
        (BLANK, "[]", "is not a notebook"),
        (SCRIPT, "workers = 2\nrate = 0.01 * workers\n", "is not the blank form of its source"),
        ("notebooks/09_old.ipynb", "{}", "has no source solutions/09_old.py"),
        ("solutions/09_old.ipynb", "{}", "has no source solutions/09_old.py"),
        ("notebooks/scripts/old.py", "", "has no source solutions/scripts/old.py"),
        ("solutions/01_small.py", SOURCE + "\n### END SOLUTION\n", "without a '### BEGIN SOLUTION'"),
    ],
)
def test_check_refuses_missing_broken_and_orphaned_files(broken, name, text, line):
    root, _ = broken
    if text is None:
        (root / name).unlink()
    else:
        (root / name).write_text(text)
    problems = kit.check(root)
    assert len(problems) == 1 and problems[0].startswith(name) and line in problems[0], problems
    assert "uv run teach build" in problems[0]


def test_check_of_a_tree_without_sources_is_not_empty(tmp_path):
    assert "nothing can be checked" in kit.check(tmp_path)[0]


def test_guards_see_what_they_guard_against(broken):
    root, change = broken
    source = root / "solutions/01_small.py"
    assert guard_executed(root, "01_small") == guard_blank(root, "01_small") == guard_skips(root) == []
    assert guard_leak(source, root / BLANK) == guard_minutes(root, "01_small") == []
    change(BLANK, lambda nb: nb["cells"][1].update(source="if True:\n    speedup = 45 / 24"))
    assert guard_leak(source, root / BLANK) == ["01_small.ipynb shows line 7 of 01_small.py: speedup = 45 / 24"]
    change(BLANK, _output)
    assert len(guard_blank(root, "01_small")) == 1
    change(BLANK, lambda nb: nb["cells"][0].update(source="Long"))
    assert len(guard_minutes(root, "01_small")) == 1
    answer = {"labs": {"id": "T1", "kind": "answer", "points": 2}}
    told = "Because.\n\n**A good answer contains** (1 point each):\n- one"
    change(SOLVED, lambda nb: nb["cells"][0].update(metadata=answer, source=told))
    assert guard_points(root, "01_small") == ["T1 is worth 2 points and lists 1"]
    change(SOLVED, lambda nb: nb["cells"][2]["outputs"][0]["data"].update({"image/png": "aGk="}))
    assert len(guard_alternatives(root, "01_small")) == 1
    change(SOLVED, _error)
    assert len(guard_executed(root, "01_small")) == 1
    change(SOLVED, _unexecuted)
    assert len(guard_executed(root, "01_small")) == 2
    (root / "solutions/scripts/train.py").write_text("# NBVAL" + "_SKIP\n")
    change(SOLVED, lambda nb: nb["cells"][1]["metadata"].update(tags=["raises" + "-exception"]))
    assert len(guard_skips(root)) == 2
