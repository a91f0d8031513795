"""teaching.author.build and its parts: blanks, pairs of notebooks, hashes, execution, drift."""

import json
import re
import shutil
import sys
import textwrap

import pytest
from nbformat import read, v4
from tree import ROOT

from labs import files as labs_files
from labs.blanks import BuildError, blanks
from teaching.author import build as kit
from teaching.author.execute import clean, execute
from teaching.author.regions import blank, regions, strip_markers
from teaching.author.sources import as_text, pair, source_files, source_hash

B, E = "### BEGIN SOLUTION", "### END SOLUTION"
FILL = "...  # your code here"
GIVEN = "### GIVEN: "  # what stands in the student's form instead of a blank


def region(text: str, before="", after="", indent="") -> str:
    body = textwrap.indent(textwrap.dedent(text).strip("\n"), indent)
    return f"{before}{indent}{B}\n{body}\n{indent}{E}\n{after}"


# ---- the student's form -------------------------------------------------------------------------------


FORMS = [
    ("x = z = 1\ny = x + 1\nx = 3\na, (b, *c) = 1, (2, 3, 4)", "\n".join(f"{name} = {FILL}" for name in "xzyabc")),
    ("total += 2\nrate: float = 0.1\nother: float", f"total = {FILL}\nrate = {FILL}"),
    ("import numpy  # no name of its own\nmodel.fit(x)\nmodel.rate = 3\nd['k'] = 4", FILL),
    ("s = 0\nfor i in range(3):\n    last = i\nmean = s / 3", f"s = {FILL}\nmean = {FILL}"),
    ("with scope() as handle:\n    model = make()\n    model.compile()", f"model = {FILL}"),
    ("try:\n    x = 1\nexcept ValueError:\n    y = 2\nfinally:\n    z = 3", f"x = {FILL}\ny = {FILL}\nz = {FILL}"),
    ("@other(1)\nasync def f(a):\n    return a\nclass C:\n    size = 3", f"f = {FILL}\nC = {FILL}"),
    (f"def f(a):\n    return a\n{GIVEN}def f(a):\n{GIVEN}    {FILL}", f"def f(a):\n    {FILL}"),
    ("%timeit f()\nx = 1", f"x = {FILL}"),
    (f"mine = shard(2)\n{GIVEN}mine = numbers\n{GIVEN}print(mine)\ntrain()", "mine = numbers\nprint(mine)"),
    ("y = x\nreturn y", f"y = {FILL}\nreturn {FILL}"),
]


@pytest.mark.parametrize("indent", ["", "    "])
def test_a_region_becomes_its_blanks_with_its_indentation(indent):
    before, after = "def f(x):\n" if indent else "one = 1  # stays\n", f"{indent}two = 2\n"
    for solution, student in FORMS:
        if indent or "return y" not in solution:
            shown = textwrap.indent(student, indent)
            assert blank(region(solution, before, after, indent)) == f"{before}{shown}\n{after}"


def test_two_regions_and_what_stands_outside_of_them():
    source = region(f"a = 1\n{GIVEN}a = 2", after=region("b = 2", "c = 3\n", "\n"))
    assert blank(source) == f"a = 2\nc = 3\nb = {FILL}\n\n" and blanks(blank(source)) == [(3, f"b = {FILL}")]
    assert strip_markers(source) == "a = 1\nc = 3\nb = 2\n\n"
    assert [found.given for found in regions(source)] == [(2,), ()]
    whole = "# %% [markdown]\n# ## Begin here\n# ### The end\n# %%\n# %%bash\n# ls\nx = 1  \n\n"
    assert blank(whole) == whole and regions(whole) == []
    text = f'# %% [markdown]\n"""\nWhy?\n{B}\nSince\n{E}\n"""\n'
    assert blank(text) == '# %% [markdown]\n"""\nWhy?\n*Write your answer here.*\n"""\n'


WRONG = [
    (f"x = 1\n{B}\ny = 2\n", 2, "has no"),
    (f"{B}\nx = 1\n# %%\n{E}\n", 1, "same cell"),
    ("# ### BEGIN SOLUTION\n", 1, "unknown marker"),
    (f"# %% [markdown]\n# {B}\n# ### GIVEN: text\n# {E}\n", 3, "unknown marker"),
    (f"a = 1\n{B}\nx = 1\n### GIVEN: x = = 2\n{E}\n", 2, "after blanking, the file is not valid Python"),
    (f"x = (1,\n{B}\n2,\n{E}\n)\n", 3, "whole statements"),
    (f"if x:\n    {B}\n    y = 1\nz = 2\n    {E}\n", 4, "of one block"),
    (f"{B}\nx = 1\ny = 2\n{E}\ndef f(:\n", 5, "not valid Python"),
]


def test_wrong_source_names_file_and_line():
    for source, line, word in WRONG:
        with pytest.raises(BuildError, match=word) as caught:
            blank(source, "solutions/05.py")
        assert str(caught.value).startswith(f"solutions/05.py:{line}:") and "\n" not in str(caught.value)


# ---- unfilled blanks ----------------------------------------------------------------------------------


LEFT = [
    ("...\nx = y = ...\na, b = ..., 1\nself.x = ...\ny: int = ...", [1, 2, 3, 4, 5]),
    ("def f(): ...\nclass C:\n    def f(self):\n        with a:\n            ...", [1, 5]),
    ("%matplotlib inline\nx = 'a ... b'  # ...\ny = a[..., 0]\nz: tuple[int, ...]\ndef f(x=...): return x", []),
    ("class E(Exception): ...", []),
]


def test_blanks_of_a_text_of_a_file_and_of_a_broken_file(tmp_path):
    for code, lines in LEFT:
        assert (code, [number for number, _ in blanks(code)]) == (code, lines)
    path = tmp_path / "ResNet50.py"
    path.write_text("%magic\nx = ...\n")
    assert blanks(path) == blanks(str(path)) == [(2, "x = ...")]
    for content in (b"x = 1\ny = (\n", "x = 1\ny = 'é'\n".encode("latin-1")):
        path.write_bytes(content)
        with pytest.raises(BuildError, match=r"^ResNet50.py:2: Python cannot read this line"):
            blanks(path)
    for content in (
        "\ufeffx = ...  # é".encode(),
        "# coding: latin-1\nx = ...  # é".encode("latin-1"),
    ):  # as Python itself
        path.write_bytes(content)
        assert [line[:7] for _, line in blanks(path)] == ["x = ..."]


# ---- a small course -----------------------------------------------------------------------------------

SOURCE = f"""\
# %% [markdown]
# # First

# %% labs={{"id": "concepts.1", "points": 2}}
import labs.small

{B}
speedup = 45.0 / 24.5
{E}
print("speedup", speedup)

# %% [markdown] labs={{"id": "T4", "points": 3}}
# Explain.
# {B}
# Gradients are averaged at every step.
# {E}

# %%

# %%
# see scripts/train.py
import os
print(os.getcwd())
os.environ["LABS_STRICT"]
"""
SOLVED, BLANK, SCRIPT = "solutions/01_first.ipynb", "notebooks/01_first.ipynb", "notebooks/scripts/train.py"
BATCH = "slurm/local/job.sh"


def build_lines(root, **options):
    """What the build says it has written or executed."""
    lines = []
    kit.build(root, report=lines.append, **options)
    return [re.sub(r" in \d+ s$", "", line) for line in lines if line.startswith(("wrote", "executed"))]


@pytest.fixture(scope="module")
def built_once(tmp_path_factory):
    """A course of one notebook and one script, built; tests work on copies."""
    root = tmp_path_factory.mktemp("built") / "course"
    texts = dict.fromkeys(("labs/__init__.py", "labs/deep.py", "labs/other.py", "labs/unused.py"), "")
    texts |= {"solutions/01_first.py": SOURCE, "labs/small.py": "def f():\n    from . import deep\n"}
    texts |= {"labs/sub/__init__.py": "from .near import X\n", "labs/sub/near.py": "from .. import other\n"}
    script = region("rate = 0.01 * workers", "from labs import other\nworkers = 2\n")
    texts |= {"solutions/scripts/train.py": script, "labs/recorded/log.out": "Epoch 1\n"}
    texts |= {"solutions/slurm/job.sh": region("#SBATCH --gres=gpu:1", "#!/bin/bash\n", "# @SITE@\n")}
    texts["slurm/sites/local.toml"] = (ROOT / "slurm/sites/local.toml").read_text()
    for name, text in texts.items():
        labs_files.write(root / name, text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(root))
        return root, build_lines(root)


@pytest.fixture
def built(built_once, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "course"))
    return shutil.copytree(built_once[0], tmp_path / "course")


def test_build_writes_three_kinds_of_files_and_what_did_not_change_is_not_executed_again(built, built_once):
    assert built_once[1][1:3] == [f"wrote solutions/{BATCH}", f"wrote {BATCH}"] and kit.check(built) == []
    assert built_once[1][::3] == [f"wrote {SCRIPT}", f"executed {SOLVED}"] and built_once[1][4:] == [f"wrote {BLANK}"]
    before, solution, student = (built / SOLVED).read_bytes(), read(built / SOLVED, 4), read(built / BLANK, 4)
    assert solution.metadata == student.metadata and solution.metadata.kernelspec.name == "python3"
    ids = [cell.id for cell in solution.cells]
    assert ids == [cell.id for cell in student.cells] and ids[1:3] == ["labs-concepts-1", "labs-T4"]
    answers = [notebook.cells[2].source.split("\n")[1] for notebook in (solution, student)]
    assert answers == ["Gradients are averaged at every step.", "*Write your answer here.*"]
    assert student.cells[2].metadata == {"labs": {"id": "T4", "points": 3}}
    assert "speedup = 45.0 / 24.5" in solution.cells[1].source and f"speedup = {FILL}" in student.cells[1].source
    # the working directory was solutions/, no absolute path is kept, and an open answer would have been an error
    ran, code = solution.cells[4], [cell for cell in student.cells if cell.cell_type == "code"]
    assert (ran.execution_count, ran.outputs[0].text) == (2, "solutions\n")
    assert ran.outputs[1].data["text/plain"] == "'1'"
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    assert (built / SCRIPT).read_text() == f"from labs import other\nworkers = 2\nrate = {FILL}\n"
    assert not list(built.rglob("*.part")) and build_lines(built) == []
    labs_files.write(built / "labs/unused.py", "A = 1\n")  # nobody imports it
    (built / BLANK).unlink()
    assert build_lines(built) == [f"wrote {BLANK}"] and (built / SOLVED).read_bytes() == before


def test_what_changed_is_executed_again_only_when_wanted_and_an_error_leaves_the_old_notebook(built):
    path, source, messages = built / "solutions/scripts/train.py", built / "solutions/01_first.py", []
    path.write_text(path.read_text() + "print(1)\n")
    before = (built / SOLVED).read_bytes()
    kit.build(built, execute=False, report=messages.append)
    assert messages[::2] == [f"wrote {SCRIPT}", f"wrote {BLANK}"] and "was not executed" in messages[1]
    assert (built / SOLVED).read_bytes() == before
    text = source.read_text()
    source.write_text(text + "\n# %%\nprint('before')\n1 / 0\n")
    with pytest.raises(BuildError) as caught:
        kit.build(built, report=str)
    first, *rest = str(caught.value).splitlines()
    assert first.startswith(f"{SOLVED}: cell 6 ") and "ZeroDivisionError: division" in first
    assert "    print('before')" in rest and "\x1b" not in str(rest)
    assert (built / SOLVED).read_bytes() == before
    source.write_text(text)
    assert f"executed {SOLVED}" in build_lines(built, names=["01"]) and kit.check(built) == []
    with pytest.raises(BuildError, match="no solutions/07.py; known are: 01_first"):
        kit.build(built, names=["07"], report=str)
    shutil.rmtree(built / "solutions")
    assert (alone := kit.check(built)) and all("has no source in solutions/" in line for line in alone)


# ---- drift --------------------------------------------------------------------------------------------


ERROR = {"output_type": "error", "ename": "E", "evalue": "", "traceback": []}
OUTPUT = {"output_type": "stream", "name": "stdout", "text": "x"}
DRIFT = [
    (SOLVED, lambda nb: nb["cells"][1].update(execution_count=None), "not executed from its first cell to its last"),
    (SOLVED, lambda nb: nb["cells"][1].update(outputs=[ERROR]), "without an error"),
    (SOLVED, lambda nb: nb["cells"][1].update(source="speedup = 2"), "not what its source gives"),
    (SOLVED, lambda nb: nb["cells"].pop(), "not what its source gives"),
    (SOLVED, lambda nb: nb["metadata"].pop("labs"), "is out of date"),
    (SOLVED, lambda nb: nb["metadata"].update(widgets={}), "not what its source gives"),
    (SOLVED, lambda nb: nb["metadata"]["labs"].update(source_hash="0"), "is out of date"),
    (SOLVED, None, "is missing"),
    (SOLVED, "[]", "is not a notebook"),
    (BLANK, lambda nb: nb["cells"][1].update(outputs=[OUTPUT]), "is not what its source gives"),
    (BLANK, None, "is missing"),
    (SCRIPT, "workers = 2\nrate = 0.01 * workers\n", "is not what its source gives"),
    (BATCH, None, "is missing"),
    ("slurm/local/old.sh", "", "has no source"),
    ("notebooks/09_old.ipynb", "{}", "has no source"),
    ("notebooks/scripts/old.py", "", "has no source"),
    ("solutions/01_first.py", SOURCE + f"\n{E}\n", f"without a '{B}'"),
]


@pytest.mark.parametrize(("name", "change", "says"), DRIFT)
def test_check_refuses_what_is_not_as_it_was_built(built, name, change, says):
    path = built / name
    if change is None:
        path.unlink()
    elif isinstance(change, str):
        path.write_text(change)
    else:
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))
    problems = kit.check(built)
    assert any(says in problem for problem in problems), problems
    assert all(each.startswith(name) and "run `uv run teach build`" in each and "\n" not in each for each in problems)


# ---- ids and hashes -----------------------------------------------------------------------------------


def test_ids_survive_insertion_and_a_better_solution_and_tell_equal_cells_apart(built):
    source = built / "solutions/01_first.py"

    def ids(text, form=0):
        source.write_text(text)
        return [cell.id for cell in pair(built, source)[form].cells]

    first, second = ids(SOURCE), ids(SOURCE.replace("# %% labs", "# %% [markdown]\n# New.\n\n# %% labs", 1), 1)
    assert second[0] == first[0] and second[2:] == first[1:] and second[1] not in first
    assert len(set(ids(SOURCE + "\n# %%\nx = 1\n\n# %%\nx = 1\n"))) == 7
    assert ids(SOURCE.replace("45.0 / 24.5", "2")) == first


def test_wrong_metadata_and_names_are_errors(built):
    for name, text, message in (
        ("01_first", SOURCE + '\n# %% labs={"id": "concepts.1"}\nx = 1\n', "the id concepts.1 is already used in sol"),
        ("01_first", SOURCE + '\n# %% labs={"id": "T9"\nx = 1\n', "metadata cannot be read"),
        ("01_first", SOURCE + "\n# %%\n'scripts/missing.py'\n", "no solutions/scripts/missing.py"),
        ("02_second", '# %% labs={"id": "T4"}\nx = 1\n', "the id T4 is already used in solutions/01_first.py"),
    ):
        (built / "solutions/01_first.py").write_text(SOURCE)
        (built / f"solutions/{name}.py").write_text(text)
        with pytest.raises(BuildError, match=message):
            kit.build(built, report=str)
        assert message in kit.check(built)[0]


WAYS = ["import labs.m0", "from labs import m1 as u", "import labs\nlabs.m2.X", "command = ['-m', 'labs.m3']"]
WAYS += ["def f():\n    from labs.m4 import X", "from labs.sub import m5", "import labs.sub.m6 as i"]


def test_hash_follows_all_ways_to_import_scripts_and_recorded_data(built):
    source = built / "solutions/01_first.py"
    names = {"solutions/01_first.py", "solutions/scripts/train.py", "labs/__init__.py", "labs/small.py", "labs/deep.py"}
    names |= {"labs/other.py", "labs/recorded/log.out"}
    assert {path.relative_to(built).as_posix() for path in source_files(built, source)} == names
    source.write_text(SOURCE + "\n# %%\n" + "\n".join(WAYS) + "\n")
    names |= {f"labs/{'sub/' * (number > 4)}m{number}.py" for number in range(len(WAYS))} | {"labs/sub/near.py"}
    for name in names:
        path = built / name
        path.exists() or path.write_text("")
    for name in sorted(names) + ["labs/unused.py"]:
        before = source_hash(built, source)
        path = built / name
        path.write_text(path.read_text() + "# more\n")
        assert (source_hash(built, source) != before) == (name in names), name


# ---- execution and outputs ----------------------------------------------------------------------------


def notebook_of(*cells):
    return v4.new_notebook(cells=[v4.new_code_cell(cell) for cell in cells])


def test_the_kernel_is_this_python_even_if_the_user_has_another_one_and_its_end_is_named(tmp_path, monkeypatch):
    spec = tmp_path / "jupyter" / "kernels" / "python3" / "kernel.json"
    labs_files.write(spec, json.dumps({"argv": ["/bin/false"], "display_name": "Mine", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("LABS_TEST_VALUE", "handed on")
    code = "import os, sys\nprint(sys.executable, os.environ['LABS_TEST_VALUE'])"
    notebook = notebook_of(code, "os._exit(9)")
    with pytest.raises(BuildError, match=r"nb: cell 2 .*: Kernel died"):
        execute(notebook, tmp_path, "nb", timeout=600)
    assert notebook.cells[0].outputs[0].text == f"{sys.executable} handed on\n"
    with pytest.raises(BuildError, match=r"nb: cell 1 .*: A cell timed out .* after 1 seconds"):
        execute(notebook_of("import time\ntime.sleep(600)"), tmp_path, "nb", timeout=1)


def test_outputs_are_settled_merged_and_without_widgets_and_paths(tmp_path):
    notebook = notebook_of("x")
    widget = {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}, "text/plain": "IntSlider()"}
    data = [widget, {"text/plain": f"{tmp_path}", "image/png": "aGk="}, widget | {"text/html": "<b>two</b>"}]
    streams = [
        ("stdout", "1%\r"),
        ("stdout", "\x1b[K\x1b[31m2%\x1b[0m\r\n"),
        ("stderr", "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"),
        ("stderr", "I0000 00:00:1.2 7859 port.cc:153] oneDNN custom operations are on. You may see\n"),
        ("stderr", f"{tmp_path}/labs/x.py:3: warning\n"),
    ]
    notebook.cells[0].outputs = [v4.new_output("stream", name=name, text=text) for name, text in streams]
    notebook.cells[0].outputs += [v4.new_output("display_data", data=dict(each)) for each in data]
    for _ in range(2):  # once more changes nothing
        clean(notebook, tmp_path)
        assert [output.get("text") or output.data for output in notebook.cells[0].outputs] == [
            "\x1b[31m2%\x1b[0m\n",
            "labs/x.py:3: warning\n",
            {"text/plain": "[interactive: run this cell to use it]"},
            {"text/plain": ".", "image/png": "aGk="},
            {"text/plain": "IntSlider()", "text/html": "<b>two</b>"},
        ]
    assert as_text(notebook).endswith("}\n")
