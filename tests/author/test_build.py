"""teaching.author.build and its parts: blanks, pairs of notebooks, hashes, execution, drift."""

import json
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from labs import files as labs_files
from labs.blanks import BuildError, blanks
from teaching.author import build as kit
from teaching.author import computing
from teaching.author.execute import clean, execute, fold
from teaching.author.regions import blank, regions, strip_markers
from teaching.author.sources import as_text, pair, source_files, source_hash

B, E = "### BEGIN SOLUTION", "### END SOLUTION"
FILL = "...  # your code here"


def region(text: str, before="", after="", indent="") -> str:
    body = textwrap.indent(textwrap.dedent(text).strip("\n"), indent)
    return f"{before}{indent}{B}\n{body}\n{indent}{E}\n{after}"


# ---- the student's form -------------------------------------------------------------------------------


FORMS = [
    ("x = 1", f"x = {FILL}"),
    ("x = 1\ny = x + 1\nx = 3", f"x = {FILL}\ny = {FILL}"),
    ("a, (b, *c) = 1, (2, 3, 4)", f"a = {FILL}\nb = {FILL}\nc = {FILL}"),
    ("a = b = 1", f"a = {FILL}\nb = {FILL}"),
    ("total += 2", f"total = {FILL}"),
    ("rate: float = 0.1", f"rate: float = {FILL}"),
    ("rate: float", FILL),
    ("model.fit(x)", FILL),
    ("model.rate = 3\nd['k'] = 4", FILL),
    ("# only a comment", FILL),
    ("", FILL),
    ("import numpy as np\nfrom os import path", FILL),
    ("import numpy as np\nx = np.ones(3)", f"x = {FILL}"),
    ("for i in range(3):\n    last = i", FILL),
    ("s = 0\nfor i in range(3):\n    s += i\nmean = s / 3", f"s = {FILL}\nmean = {FILL}"),
    ("with scope() as handle:\n    model = make()\n    model.compile()", f"model = {FILL}"),
    ("if gpu:\n    device = 'GPU'\nelse:\n    device = 'CPU'\n    cores = 1", f"device = {FILL}\ncores = {FILL}"),
    ("try:\n    x = 1\nexcept ValueError:\n    y = 2\nfinally:\n    z = 3", f"x = {FILL}\ny = {FILL}\nz = {FILL}"),
    (
        "def f(a, b=(1,\n           2)):\n    '''Sum.\n\n    More.\n    '''\n    # the idea\n    return a + b",
        f"def f(a, b=(1,\n           2)):\n    '''Sum.\n\n    More.\n    '''\n    {FILL}",
    ),
    ("def f(a):\n    # the idea\n    return a", f"def f(a):\n    {FILL}"),
    ("def f(a): return a", f"def f(a):\n    {FILL}"),
    (
        "@cache\n@other(1)\nasync def f(a):\n    return a\nx = f(2)",
        f"@cache\n@other(1)\nasync def f(a):\n    {FILL}\nx = {FILL}",
    ),
    (
        "class C(Base):\n    '''Doc.'''\n    size = 3\n\n    def go(self):\n        '''Go.'''\n        return 1",
        f"class C(Base):\n    '''Doc.'''\n    size = {FILL}\n    def go(self):\n        '''Go.'''\n        {FILL}",
    ),
    ("%timeit f()\nx = 1", f"x = {FILL}"),
    ("text = ('a'\n  % 3)", f"text = {FILL}"),
    ("text = '''one\ntwo\n'''", f"text = {FILL}"),
]


def test_region_becomes():
    for solution, student in FORMS:
        before, after = "one = 1  # stays\n", "two = 2\n"
        assert blank(region(solution, before, after)) == before + student + "\n" + after


def test_region_in_a_block_keeps_its_indentation():
    for opening in ("def f(x):", "with open('f') as x:", "if x:", "for x in y:"):
        source = region("value = 1\nvalue.go()", f"{opening}\n", "    print(value)\n", "    ")
        assert blank(source) == f"{opening}\n    value = {FILL}\n    print(value)\n"


def test_region_with_return_and_two_regions_in_a_function():
    source = "def f(x):\n" + region("y = x", indent="    ") + "    print(y)\n" + region("return y", indent="    ")
    assert blank(source) == f"def f(x):\n    y = {FILL}\n    print(y)\n    {FILL}\n"
    assert (
        blank(region("y = x\nreturn y", "def f(x):\n", indent="    "))
        == f"def f(x):\n    y = {FILL}\n    return {FILL}\n"
    )


GIVEN = "### GIVEN: "  # what stands in the student's form instead of a blank


@pytest.mark.parametrize("indent", ["", "    "])
def test_given_code_stands_in_the_place_of_the_region(indent):
    before = "if x:\n" if indent else "x = 1\n"
    source = region(
        f"mine = numbers.shard(2, rank)\n{GIVEN}mine = numbers\n{GIVEN}print(mine)\ntrain(mine)",
        before,
        f"{indent}print(x)\n",
        indent,
    )
    student = f"{before}{indent}mine = numbers\n{indent}print(mine)\n{indent}print(x)\n"
    assert blank(source) == student and blanks(student) == []
    solution = f"{before}{indent}mine = numbers.shard(2, rank)\n{indent}train(mine)\n{indent}print(x)\n"
    assert strip_markers(source) == solution
    assert [len(found.given) for found in regions(source)] == [2]


def test_given_code_of_one_region_leaves_the_blanks_of_the_others():
    source = region("a = 1", after=region(f"b = 2\n{GIVEN}b = 3"))
    assert blank(source) == f"a = {FILL}\nb = 3\n" and [found.given for found in regions(source)] == [(), (5,)]


def test_text_with_a_lower_indentation_inside_a_region():
    source = f'def f():\n    {B}\n    text = """\nlow\n    """\n    {E}\n    return text\n'
    assert blank(source) == f"def f():\n    text = {FILL}\n    return text\n"


def test_written_answer_in_markdown_both_ways():
    source = f"# %% [markdown]\n# Why?\n# {B}\n# Since $x$\n#\n# - so\n# {E}\n# %%\nx = 1\n"
    assert blank(source) == "# %% [markdown]\n# Why?\n# *Write your answer here.*\n# %%\nx = 1\n"
    source = f'# %% [markdown]\n"""\nWhy?\n{B}\nSince\n{E}\n"""\n'
    assert blank(source) == '# %% [markdown]\n"""\nWhy?\n*Write your answer here.*\n"""\n'


def test_source_without_regions_and_code_outside_stay_as_they_are():
    source = "# %% [markdown]\n# ## Begin here\n# ### The end\n# %%\n# %%bash\n# ls\nx = 1  \n\n"
    assert blank(source) == source and regions(source) == []


def test_strip_markers_keeps_the_code():
    assert strip_markers(region("x = 1", "a\n", "b\n")) == "a\nx = 1\nb\n"


WRONG = [
    (f"x = 1\n{B}\ny = 2\n", 2, "has no"),
    (f"x = 1\n{E}\n", 2, "without"),
    (f"{B}\n{B}\n{E}\n{E}\n", 2, "inside"),
    (f"{B}\nx = 1\n# %%\n{E}\n", 1, "same cell"),
    ("x = 1\n### BEGIN HIDDEN TESTS\n", 2, "unknown marker"),
    ("### Begin Solution\n", 1, "unknown marker"),
    ("## BEGIN SOLUTION\n", 1, "unknown marker"),
    ("# ### BEGIN SOLUTION\n", 1, "unknown marker"),
    ("x = 1  ### BEGIN SOLUTION\n", 1, "unknown marker"),
    (f"{B} now\n", 1, "unknown marker"),
    ("### GIVEN: x = 1\n", 1, "unknown marker"),
    (f"# %% [markdown]\n# {B}\n# ### GIVEN: text\n# {E}\n", 3, "unknown marker"),
    (f"{B}\nx = 1\n### GIVEN x = 2\n{E}\n", 3, "unknown marker"),
    (f"{B}\nx = 1\n### GIVEN: x = = 2\n{E}\n", 1, "after blanking, the file is not valid Python"),
    (f"x = (1,\n{B}\n2,\n{E}\n)\n", 3, "whole statements"),
    (f"if x:\n    {B}\n    y = 1\nz = 2\n    {E}\n", 4, "of one block"),
    (f"x = f(\n    {B}\n    a=1,\n    b=2\n    {E}\n)\n", 3, "whole statements"),
    ("x = 1\ny = = 2\n", 2, "not valid Python"),
    (f"{B}\nx = 1\ny = 2\n{E}\ndef f(:\n", 5, "not valid Python"),
    (f"if x:\n    y = 1\n{B}\nelse:\n    y = 2\n{E}\n", 4, "whole statements"),
]


def test_wrong_source_names_file_and_line():
    for source, line, word in WRONG:
        with pytest.raises(BuildError, match=word) as caught:
            blank(source, "solutions/05.py")
        assert str(caught.value).startswith(f"solutions/05.py:{line}:") and "\n" not in str(caught.value)


def test_a_student_form_that_python_cannot_read_names_the_source_line(monkeypatch):
    monkeypatch.setattr("teaching.author.regions._render", lambda *_: ["x ="])
    with pytest.raises(BuildError, match="^05.py:3: after blanking, the file is not valid Python"):
        blank(f"a = 1\nb = 2\n{B}\nx = 1\n{E}\n", "05.py")


# ---- unfilled blanks ----------------------------------------------------------------------------------


def test_every_blank_that_blank_writes_is_found_and_no_filled_one():
    source = region("x = 1\ny: int = 2\n\ndef f(a):\n    '''D.'''\n    return a\n\n\nmodel.fit()", "import os\n")
    student = blank(source)
    assert [number for number, _ in blanks(student)] == [2, 3, 6]
    assert blanks(student)[0] == (2, f"x = {FILL}")
    assert blanks(source) == [] and blanks(student.replace("...", "4")) == []
    assert blanks("x = 4  # your code here\n") == []


LEFT = [
    ("...", [1]),
    ("x = y = ...", [1]),
    ("a, b = ..., 1", [1]),
    ("(a) = (...)", [1]),
    ("def f(): ...", [1]),
    ("with a:\n    ...", [2]),
    ("class C:\n    def f(self):\n        ...", [3]),
    ("self.x = ...", [1]),
    ("%matplotlib inline\nx = ...", [2]),
    ("x = 'a ... b'  # ...", []),
    ("x = a[..., 0]", []),
    ("x: tuple[int, ...]", []),
    ("x = (1, ...)", []),
    ("def f(x=...): return x", []),
    ("class E(Exception): ...", []),
    ("class P(Protocol):\n    def f(self): ...", []),
    ("@overload\ndef f(x): ...", []),
    ("class A:\n    @abc.abstractmethod\n    def f(self): ...", []),
]


def test_blanks():
    for code, lines in LEFT:
        assert (code, [number for number, _ in blanks(code)]) == (code, lines)


def test_blanks_of_a_file_and_of_a_broken_file(tmp_path):
    path = tmp_path / "ResNet50.py"
    path.write_text("x = ...\n")
    assert blanks(path) == blanks(str(path)) == [(1, "x = ...")]
    path.write_text("x = 1\ny = (\n")
    with pytest.raises(BuildError, match=r"^ResNet50.py:2: Python cannot read this line"):
        blanks(path)


# ---- a small course -----------------------------------------------------------------------------------

SOURCE = f"""\
# %% [markdown]
# # First
# About 1 minute on 2 cores.

# %% labs={{"id": "concepts.1", "points": 2}}
import labs.small

{B}
speedup = 45.0 / 24.5
{E}
print("speedup", speedup)

# %% [markdown] labs={{"id": "T4", "kind": "answer", "points": 3}}
# Explain.
# {B}
# Gradients are averaged at every step.
# {E}

# %%

# %%
# see scripts/train.py
import os
print(os.getcwd())
1 + 1
"""


@pytest.fixture
def course(tmp_path):
    """A course of one notebook and one script, not built yet."""
    root = tmp_path / "course"
    for name, text in {
        "solutions/01_first.py": SOURCE,
        "solutions/scripts/train.py": region("rate = 0.01 * workers", "from labs import other\nworkers = 2\n"),
        "labs/__init__.py": "",
        "labs/small.py": "def f():\n    from . import deep\n",
        "labs/deep.py": "X = 1\n",
        "labs/other.py": "",
        "labs/unused.py": "",
        "labs/recorded/log.out": "Epoch 1\n",
        "README.md": "Read me\n",
    }.items():
        labs_files.write(root / name, text)
    return root


@pytest.fixture(scope="module")
def built_once(tmp_path_factory):
    """The same course, executed; tests work on copies."""
    root = tmp_path_factory.mktemp("built") / "course"
    labs_files.write(root / "solutions/01_first.py", SOURCE.replace("import labs.small\n", ""))
    labs_files.write(root / "solutions/scripts/train.py", region("rate = 0.01 * workers", "workers = 2\n"))
    labs_files.write(root / "labs/__init__.py", "")
    labs_files.write(root / "README.md", "Read me\n")
    messages = []
    done = kit.build(root, report=messages.append)
    return root, done, messages


@pytest.fixture
def built(built_once, tmp_path):
    shutil.copytree(built_once[0], tmp_path / "course")
    return tmp_path / "course"


def quiet(*_):
    pass


def load(path):
    return json.loads(Path(path).read_text())


def test_build_writes_three_kinds_of_files(built_once):
    root, done, messages = built_once
    assert done == [
        "wrote notebooks/scripts/train.py",
        "executed solutions/01_first.ipynb",
        "wrote notebooks/01_first.ipynb",
    ]
    assert any("executing solutions/01_first.ipynb" in line for line in messages)
    solution, student = load(root / "solutions/01_first.ipynb"), load(root / "notebooks/01_first.ipynb")
    assert solution["nbformat"] == 4 and solution["nbformat_minor"] == 5
    assert [cell["id"] for cell in solution["cells"]] == [cell["id"] for cell in student["cells"]]
    assert len({cell["id"] for cell in solution["cells"]}) == len(solution["cells"]) == 5
    assert solution["cells"][1]["id"] == "labs-concepts-1" and solution["cells"][2]["id"] == "labs-T4"
    for notebook in (solution, student):
        assert notebook["cells"][2]["metadata"] == {"labs": {"id": "T4", "kind": "answer", "points": 3}}
        assert notebook["metadata"]["labs"]["version"] == 1
        assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert solution["metadata"] == student["metadata"]
    code = [cell for cell in solution["cells"] if cell["cell_type"] == "code" and cell["source"]]
    assert [cell["execution_count"] for cell in code] == [1, 2]
    assert "SOLUTION" not in json.dumps(solution) and "45.0 / 24.5" in json.dumps(solution)
    assert "averaged" in json.dumps(solution) and "averaged" not in json.dumps(student)
    assert f"speedup = {FILL}" in "".join(student["cells"][1]["source"])
    assert student["cells"][2]["source"][-1] == "*Write your answer here.*"
    assert all(
        cell["outputs"] == [] and cell["execution_count"] is None
        for cell in student["cells"]
        if cell["cell_type"] == "code"
    )
    # the working directory was solutions/, and no absolute path is kept
    assert code[1]["outputs"][0]["text"] == ["solutions\n"]
    assert (root / "notebooks/scripts/train.py").read_text() == f"workers = 2\nrate = {FILL}\n"
    assert not list(root.rglob("*.part")) and kit.check(root) == []


STATED = "# **Time: 10 minutes, including {} of computing on 2 cores.**"


@pytest.mark.parametrize(
    ("seconds", "others", "cores", "says", "cell"),
    [
        (181.0, 0.0, 2, "4 minutes", "4 min"),
        (181.0, 0.04, 2, "4 minutes", "4 min"),
        (61.0, 0.0, 2, "3 minutes", "3 min"),  # a faster machine, as likely as a shorter notebook
        (181.0, 0.06, 2, "3 minutes", "3 min"),
        (181.0, None, 2, "3 minutes", "3 min"),
        (181.0, 0.0, 8, "3 minutes", "3 min"),
    ],
)
def test_the_time_of_a_quiet_execution_is_stated(built, monkeypatch, seconds, others, cores, says, cell):
    source, readme = built / "solutions/01_first.py", built / "README.md"
    source.write_text(
        SOURCE.replace("import labs.small\n", "").replace("# About 1 minute on 2 cores.", STATED.format("3 minutes"))
    )
    row = "| `{}` | learn | T4 | 10 min | {} |\n"
    readme.write_text(row.format("01_first", "3 min") + row.format("02_second", "3 min"))
    exit = computing.Stopwatch.__exit__

    def took(watch, *problem):
        exit(watch, *problem)
        assert watch.seconds > 0.1 and 0 <= watch.others <= 1
        watch.seconds, watch.others = seconds, others

    monkeypatch.setattr(computing.Stopwatch, "__exit__", took)
    monkeypatch.setattr(computing.devices, "cores", lambda: cores)
    monkeypatch.setenv("LABS_PRESET", "laptop")
    lines = []
    kit.build(built, report=lines.append)
    assert STATED.format(says) in source.read_text()
    assert readme.read_text() == row.format("01_first", cell) + row.format("02_second", "3 min")
    for folder in ("solutions", "notebooks"):
        assert (
            STATED.format(says).removeprefix("# ") in load(built / folder / "01_first.ipynb")["cells"][0]["source"][-1]
        )
    outputs = [each["outputs"] for each in load(built / "solutions/01_first.ipynb")["cells"] if "outputs" in each]
    assert outputs[0][0]["text"] == ["speedup 1.836734693877551\n"]
    assert kit.check(built) == [] and kit.build(built, report=quiet) == []
    assert any("not stated" in line for line in lines) == (not (others is not None and others < 0.05 and cores == 2))


def test_what_others_compute_is_seen():
    with computing.Stopwatch() as alone:
        subprocess.run([sys.executable, "-c", "for i in range(10**7): pass"], check=True)
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    with computing.Stopwatch() as beside:
        time.sleep(2)
    other.kill()
    other.wait()
    assert alone.seconds > 0.1 and beside.others > 0.2 / computing.devices.cores()


def test_what_did_not_change_is_not_executed_again(built):
    before = (built / "solutions/01_first.ipynb").read_bytes()
    assert kit.build(built, report=quiet) == []
    labs_files.write(built / "labs/other.py", "A = 1\n")  # nobody imports it
    assert kit.build(built, report=quiet) == []
    assert (built / "solutions/01_first.ipynb").read_bytes() == before
    (built / "notebooks/01_first.ipynb").unlink()
    assert kit.build(built, report=quiet) == ["wrote notebooks/01_first.ipynb"]


def test_a_changed_script_or_source_is_executed_again_and_only_when_wanted(built):
    path = built / "solutions/scripts/train.py"
    path.write_text(path.read_text() + "print(1)\n")
    before = (built / "solutions/01_first.ipynb").read_bytes()
    messages = []
    done = kit.build(built, execute=False, report=messages.append)
    assert done == ["wrote notebooks/scripts/train.py", "wrote notebooks/01_first.ipynb"]
    assert "was not executed" in messages[1]
    assert (built / "solutions/01_first.ipynb").read_bytes() == before
    assert [p for p in kit.check(built) if "out of date" in p and "uv run teach build" in p]
    assert "executed solutions/01_first.ipynb" in kit.build(built, names=["01"], report=quiet)
    assert kit.check(built) == []
    with pytest.raises(BuildError, match="no solutions/07.py; known are: 01_first"):
        kit.build(built, names=["07"], report=quiet)


def test_a_failing_cell_gives_one_message_and_the_old_notebook_stays(built):
    source = built / "solutions/01_first.py"
    source.write_text(source.read_text() + "\n# %%\nprint('before')\n1 / 0\n")
    old = (built / "solutions/01_first.ipynb").read_bytes()
    with pytest.raises(BuildError) as caught:
        kit.build(built, report=quiet)
    text = str(caught.value)
    first = text.splitlines()[0]
    assert first.startswith("solutions/01_first.ipynb: cell 6 ") and "ZeroDivisionError: division" in first
    assert "| print('before')" in text and "1 / 0" in text and "\x1b" not in text
    assert (built / "solutions/01_first.ipynb").read_bytes() == old


# ---- ids and hashes -----------------------------------------------------------------------------------


def test_ids_survive_insertion_and_a_better_solution_and_tell_equal_cells_apart(course):
    source = course / "solutions/01_first.py"
    first = [cell.id for cell in pair(course, source)[0].cells]
    source.write_text(SOURCE.replace("# %% labs", "# %% [markdown]\n# New.\n\n# %% labs", 1))
    second = [cell.id for cell in pair(course, source)[1].cells]
    assert second[0] == first[0] and second[2:] == first[1:] and second[1] not in first
    source.write_text(SOURCE + "\n# %%\nx = 1\n\n# %%\nx = 1\n")
    ids = [cell.id for cell in pair(course, source)[0].cells]
    assert len(set(ids)) == len(ids) == 7
    body = "# %%\nif True:\n" + region("x = {}", indent="    ")
    made = set()
    for number in (1, 2):
        source.write_text(body.replace("{}", str(number)))
        made.add(pair(course, source)[0].cells[0].id)
    assert len(made) == 1


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ('# %% labs={"id": "T4"}\nx = 1\n', "the id T4 is used twice"),
        ('# %% labs={"id": "concepts-1"}\nx = 1\n', "the id concepts-1 is used twice"),
        ('# %% id="T9"\nx = 1\n', "metadata cannot be read"),
        ('# %% labs={"id": "T9"\nx = 1\n', "metadata cannot be read"),
        ('# %% labs="T9"\nx = 1\n', "metadata cannot be read"),
        ("# %%\n'scripts/missing.py'\n", "no solutions/scripts/missing.py"),
    ],
)
def test_wrong_metadata_and_names_are_errors(course, extra, message):
    source = course / "solutions/01_first.py"
    source.write_text(SOURCE + "\n" + extra)
    with pytest.raises(BuildError, match=message):
        kit.build(course, report=quiet)
    assert len(kit.check(course)) == 1 and message in kit.check(course)[0]


def test_the_same_task_in_two_notebooks_is_an_error(course):
    labs_files.write(course / "solutions/02_second.py", '# %% labs={"id": "T4"}\nx = 1\n')
    with pytest.raises(BuildError, match="id T4 is already used in solutions/01_first.py"):
        kit.build(course, report=quiet)


def test_hash_follows_imports_scripts_and_recorded_data(course):
    source = course / "solutions/01_first.py"
    names = {path.relative_to(course).as_posix() for path in source_files(course, source)}
    assert names == {
        "solutions/01_first.py",
        "solutions/scripts/train.py",
        "labs/__init__.py",
        "labs/small.py",
        "labs/deep.py",
        "labs/other.py",
        "labs/recorded/log.out",
    }
    for name in sorted(names) + ["labs/unused.py", "README.md"]:
        before = source_hash(course, source)
        path = course / name
        path.write_text(path.read_text() + "# more\n")
        assert (source_hash(course, source) != before) == (name in names), name


@pytest.mark.parametrize(
    ("line", "module"),
    [
        ("import labs.unused", "unused"),
        ("from labs import unused as u", "unused"),
        ("from labs.unused import X", "unused"),
        ("import labs\nlabs.unused.X", "unused"),
        ("command = ['-m', 'labs.unused']", "unused"),
        ("def f():\n    import labs.unused", "unused"),
        ("from labs.sub import inner", "sub/inner"),
        ("import labs.sub.inner as i", "sub/inner"),
    ],
)
def test_ways_to_import(course, line, module):
    labs_files.write(course / "labs/sub/__init__.py", "from .near import X\n")
    labs_files.write(course / "labs/sub/near.py", "from .. import other\n")
    labs_files.write(course / "labs/sub/inner.py", "")
    source = course / "solutions/01_first.py"
    source.write_text(f"# %%\n{line}\n")
    files = source_files(course, source)
    assert course / f"labs/{module}.py" in files and course / "labs/small.py" not in files
    if "sub" in module:
        assert course / "labs/sub/near.py" in files and course / "labs/other.py" in files


# ---- execution and outputs ----------------------------------------------------------------------------


def notebook_of(*cells):
    from nbformat import v4

    return v4.new_notebook(cells=[v4.new_code_cell(cell) for cell in cells])


def test_the_kernel_is_this_python_even_if_the_user_has_another_one(tmp_path, monkeypatch):
    spec = tmp_path / "jupyter" / "kernels" / "python3" / "kernel.json"
    labs_files.write(spec, json.dumps({"argv": ["/bin/false"], "display_name": "Mine", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("LABS_TEST_VALUE", "handed on")
    notebook = notebook_of("import os, sys\nprint(sys.executable)\nprint(os.environ['LABS_TEST_VALUE'])")
    execute(notebook, tmp_path)
    assert notebook.cells[0].outputs[0].text == f"{sys.executable}\nhanded on\n"


def test_timeout_and_dead_kernel_are_named(tmp_path):
    with pytest.raises(BuildError, match=r"nb: cell 2 .*: no end after 15 s"):
        execute(notebook_of("x = 1", "import time\ntime.sleep(600)"), tmp_path, "nb", timeout=15)
    with pytest.raises(BuildError, match=r"nb: cell 1 .*: the kernel died"):
        execute(notebook_of("import os\nos._exit(9)"), tmp_path, "nb", timeout=600)


FOLDED = [
    ("a\rb\n", "b\n"),
    ("abc\rd\n", "dbc\n"),
    ("a\r\nb\r\n", "a\nb\n"),
    ("10%\r20%\r", "20%"),
    ("long text\r\x1b[Knew\n", "new\n"),
    ("1/2\b\b\b2/2\n", "2/2\n"),
    ("\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
]


def test_fold():
    for text, shown in FOLDED:
        assert fold(text) == shown


def test_clean_merges_streams_and_drops_widgets_timing_and_paths(tmp_path):
    from nbformat import v4

    notebook = notebook_of("x")
    widget = {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}, "text/plain": "IntSlider()"}
    notebook.cells[0].outputs = [
        v4.new_output("stream", name="stdout", text="1%\r"),
        v4.new_output("stream", name="stdout", text="2%\n"),
        v4.new_output("stream", name="stderr", text=f"{tmp_path}/labs/x.py:3: warning\n"),
        v4.new_output("display_data", data=widget),
        v4.new_output("display_data", data={"text/plain": f"{tmp_path}", "image/png": "aGk="}),
        v4.new_output("display_data", data=widget | {"text/plain": "two lines", "text/html": "<b>two</b>"}),
    ]
    notebook.metadata["widgets"] = notebook.cells[0].metadata["execution"] = {"a": "1"}
    clean(notebook, tmp_path)
    outputs = notebook.cells[0].outputs
    assert [output.get("text") for output in outputs[:2]] == ["2%\n", "labs/x.py:3: warning\n"]
    assert outputs[2].data == {"text/plain": "[interactive: run this cell to use it]"}
    assert outputs[3].data == {"text/plain": ".", "image/png": "aGk="}
    assert outputs[4].data == {"text/plain": "two lines", "text/html": "<b>two</b>"}
    assert "widgets" not in notebook.metadata and notebook.cells[0].metadata == {}
    once = as_text(notebook)
    clean(notebook, tmp_path)
    assert as_text(notebook) == once


def test_import_needs_neither_tensorflow_nor_jupyter():
    code = (
        "import sys, teaching.author.build; print([m for m in ('tensorflow', 'nbclient', 'jupytext', 'nbformat') "
        "if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
