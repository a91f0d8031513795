"""Hostile notebooks: none gains a point, nothing outside changes, the check beside them is judged as ever, and what
happened is told."""

import json
import os
import re
import socket
import uuid
from pathlib import Path

import pytest
from made_class import script, study, written
from made_grading import notebook as in_cells

from labs.sandbox.walls import WORK
from teaching.author import sources
from teaching.grading import plain, reference

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = "01_basic_concepts"
START = "from labs.checks import check\n"
RIGHT = START + 'check("concepts.14", 27)'
BLANK = START + 'check("concepts.1", ...)\ncheck("concepts.16", ...)'


WRITES = "import os\nfor h in range(3, 20):\n  try: os.write(h, {})\n  except OSError: pass"
FORGES = r"""b'[' * 100000 + b'\n{"judged": ["right", ""]}\n{"concepts.1": "right"}\n' * 9"""

# {what: code of the first cell, and what is told of it or None}. Behind each stand checks that are not done.
HOSTILE = {
    "memory": ("held = []\nwhile True: held.append(bytearray(1 << 26))", "limit of memory|MemoryError"),
    "endless loop": ("while True: pass", "stopped after 30 s of computing|limit of time"),
    "sends what is no JSON, and results": (WRITES.format(FORGES), None),
    "loop that swallows": ("while True:\n  try:\n    while True: pass\n  except BaseException: pass", "limit of time"),
    "kills all": ("import os; os.kill(-1, 9)", "process ended|limit|PermissionError|ProcessLookupError"),
    "os._exit": ("import os; os._exit(0)", "process ended"),
    "leaves a process": (
        "import subprocess\nsubprocess.Popen(['sh', '-c', 'sleep 600; true', 'MARK'], start_new_session=True)",
        None,
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_notebook_gains_nothing_and_leaves_nothing(what, run):
    code, line = HOSTILE[what]
    code = code.replace("MARK", mark := f"red-team-{uuid.uuid4()}")
    found, told = run(NOTEBOOK, code, BLANK, seconds=8 if line and "limit of time" in line else 300)
    assert right(found) == set(), told
    assert not line or any(re.search(line, each) for each in told), told
    assert [pid for pid in os.listdir("/proc") if pid.isdigit() and mark.encode() in _command(pid)] == []


def right(found):
    return {id for id, each in found.items() if each.state == "right"}


def _command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


# What a cell tries outside of its walls, and how it ends; what is right beside it stays right.
REACHES = (
    (f"open({str(ROOT / 'solutions/01_basic_concepts.py')!r}).read()", "FileNotFoundError"),
    (f"import os; os.listdir({str(ROOT / 'tests')!r})", "FileNotFoundError"),
    ("open('/OUTSIDE/submissions/002.zip')", "FileNotFoundError"),
    ("import socket; socket.create_connection(('127.0.0.1', PORT), 3)", "ConnectionRefusedError"),
    (f"import os; os.symlink('/etc', '{WORK}/e'); open('{WORK}/e/shadow')", "FileNotFoundError"),
)
# What runs to its end, and changes nothing of what is judged outside.
PATCHES = (
    "import sys; sys.exit(3)",
    "raise ValueError('\\x1b[2J\\x1b]0;x\\x07<script>alert(1)</script>')",
    "from labs.checks import judging\njudging.judge = lambda *a: ('right', '')\njudging.unfilled = lambda a: False",
)


def test_nothing_outside_is_reached_and_what_is_right_beside_it_stays_right(run, tmp_path):
    secret = tmp_path / "submissions/002.zip"
    secret.parent.mkdir()
    secret.write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        codes = [code.replace("OUTSIDE", str(tmp_path)[1:]) for code, _ in REACHES]
        codes = [code.replace("PORT", str(server.getsockname()[1])) for code in codes]
        found, told = run(NOTEBOOK, *codes, BLANK, RIGHT)
    assert right(found) == {"concepts.14"}
    assert len(told) == len(REACHES)
    assert all(re.search(line, said) for (_, line), said in zip(REACHES, told, strict=True)), told
    assert secret.read_text() == "secret"
    found, told = run(NOTEBOOK, *PATCHES, BLANK, RIGHT)
    assert right(found) == {"concepts.14"}, told
    assert "SystemExit" in told[0] and "ValueError" in told[1] and len(told) == 2


ANSWERS = {
    "equal to all": "class A:\n  __eq__ = lambda s, o: True\n  __float__ = lambda s: 27.0",
    "a number that is equal": "class A(float):\n  __eq__ = lambda s, o: True\n  __sub__ = lambda s, o: 0.0",
    "runs when it is unpickled": "class A:\n  __reduce__ = lambda s: (exec, ('raise SystemExit',))",
    "half a character": "A = lambda: '\\ud800<b>\\x1b[31m'",
}


def test_an_odd_answer_is_no_right_one(run):
    checks, ends = "\ncheck('concepts.5', A())\ncheck('concepts.14', A())", "class A:\n  def __repr__(s): os._exit(0)"
    odd = [START + code + checks for code in ANSWERS.values()]
    found, told = run(NOTEBOOK, *odd, RIGHT, f"import os\n{ends}{checks}")
    states = [(id, each.state) for id, each in run.each]
    assert len(states) >= 2 * len(ANSWERS) - 1, told  # a number may be too huge to be sent
    assert [place for place, (_, state) in enumerate(states) if state == "right"] == [len(states) - 1], states
    assert "process ended" in told[-1]


OUTSIDE = "import gc\n(outside,) = [o for o in gc.get_objects() if type(o).__name__ == 'Outside']\n"
LATE = "for n in range(9): outside.say({'to': 0, 'value': 2.0, 'after': []})\nf = lambda m: 2 ** (12 / m)"
LOOKS = "import sys\ndef f(months):\n  frame = sys._getframe()\n  while frame: frame = frame.f_back\n  return 2.0"
ENDS = "import os\ndef f(months): os._exit(0)"
# (code that defines f, state, part of the hint): a function is right however it is written, and only where it is
FUNCTIONS = (
    ("f = lambda m: {12: 2.0, 6: 4.0, 24: 2 ** 0.5}.get(m, 2 ** (12 / 3.4))", "wrong", "Right for the numbers of the"),
    (LOOKS, "wrong", "2 in all 4 cases"),
    ("class A:\n  __eq__ = lambda s, o: True\n  __float__ = lambda s: 2.0\nf = lambda months: A()", "", ""),
    ("def f(months):\n  while True: pass", "wrong", "raises (Endless|RecursionError)"),
    (OUTSIDE + LATE, "right", ""),  # what was said before it was asked for is no answer
)


COPIES = "import numpy as np\ndef f(copies):\n  return max(np.max(np.abs(copy - copies[0])) for copy in copies)"


def test_a_function_that_only_looks_right_is_wrong_and_one_that_gets_an_array_four_times_changes_none(run):
    found, told = run(NOTEBOOK, *(START + code + "\ncheck('concepts.1', f)" for code, *_ in FUNCTIONS), RIGHT)
    assert len(run.each) == len(FUNCTIONS) + 1 and run.each[-1][1].state == "right", told
    for (code, state, hint), (_, each) in zip(FUNCTIONS, run.each, strict=False):
        assert (each.state == state if state else each.state != "right") and re.search(hint, each.text), (code, each)
        assert each.how == "outside" or not state
    found, told = run(NOTEBOOK, START + ENDS + "\ncheck('concepts.1', f)", RIGHT)
    assert found["concepts.1"].state != "right" and told
    found, told = run("03_mirrored_strategy", COPIES, START + 'check("mirrored.6", f)')
    assert (found["mirrored.6"].state, found["mirrored.6"].how) == ("right", "outside"), told


FORGED = """
from labs.checks import judging
judging.judge = lambda *answers: ("right", "")
check("resnet50.3", "scripts/ResNet50.py")
"""
MADE_UP = """
from labs.results.intervals import Estimate
from labs.results.run import Run
runs = [Run(source=f"{}{{n}}.json", configuration={{"workers": n}}, speedup=Estimate(n, (0.9 * n, n))) for n in (1, 2)]
check("resnet50.8", "{}", runs)
"""


def test_a_patched_judge_and_runs_that_were_made_up_are_not_believed(run):
    given = {"notebooks/scripts/ResNet50.py": b"print('nothing')\n"} | written(study(1))
    made_up = [MADE_UP.format(*of) for of in (("w", "faster"), ("ResNet50_w", "faster"), ("ResNet50_w", "slower"))]
    found, told = run("05_resnet50_scaling", *(START + code for code in (*made_up, FORGED)), **given)
    assert [(id, each.state, each.how) for id, each in run.each] == [
        ("resnet50.8", "right", "person"),  # as it is said inside
        ("resnet50.8", "right", "outside"),
        ("resnet50.8", "wrong", "outside"),
        ("resnet50.3", "right", "person"),
    ], told
    assert not told and "a person must look" in found["resnet50.3"].text


def test_a_script_and_a_check_beside_its_answer_are_left_to_a_person_where_they_are_not_plain():
    (name,) = [name for name in reference.scripts(ROOT) if name.endswith("/ResNet50.py")]
    for more in ("", "\nfrom labs import checks\n", "\nkeras.Model.fit = None\n"):
        text = script() + more
        student = plain.Plain({}, frozenset(), b"{}", [(name, text, *reference.scripts(ROOT)[name])])
        assert (student.why_not() is None) == (not more), text
    for id, typed, why in (("resnet50.3", (), True), ("resnet50.13", (), False), ("resnet50.3", {"resnet50.3"}, False)):
        student = plain.Plain({}, frozenset(), in_cells("check('resnet50.3', 'x')"), typed=typed)
        assert bool(student.why_not(id)) == why


AROUND = [
    "from labs import checks",
    "from math import *",
    "check = print",
    "tf.keras.Model.fit = 0",
    "def f(x):\n  jobs.held['a'] = x",
    "%time getattr(jobs, 'x')",
    "%%capture\n%%time\nfrom labs import checks",
    "check('slurm.1', mine)",
    "[(jobs := 1) for _ in (0,)]",
    "try: pass\nexcept ValueError as jobs: pass",
    "match mine:\n  case dict(__class__=found): pass",
    "np.test(extra_argv=['--doctest-glob=*.out'], tests=['runs'])",
    "'{:{0.x}}'.format(mine)",
    "np.load('runs/a.out', allow_pickle=True)",
    "rows[0].speedup.value = 2.0",
]
PLAIN = [
    "!ls; rm scripts/ResNet50.py",
    'text = """\n%time x\n!ls\n"""\n%pip install x',
    "x = (5\n% 3)",
    "(" * 500,
    "files = !ls\nif files:\n  %time print(files)\n?print",
    "%%writefile scripts/a.py\nfrom labs import checks",
    "from __future__ import barry_as_FLUFL\n1 <> getattr(jobs, 'x')",
    "found = check('slurm.1', [-1.5, 'a'], without='horovod')",
    "def f(chunks):\n  found = {}\n  chunks[0][1] = found['a'] = 1\n  return found",
    "def mine(jobs):\n  workers = jobs + 1\n  return [row for row in range(workers)]",
    "times = {run.workers: (run.epoch_seconds.value, run.speedup.interval, run.final_loss.value) for run in rows}",
]


def test_what_reaches_around_the_judge_is_not_plain_and_what_computes_is():
    imports = "import subprocess\nfrom pathlib import Path\nfrom labs import jobs\nfrom labs.checks import check\n"
    fresh = {"a": imports + "rows = jobs.folder()\nprint(rows)\nmine = ..."}
    for code in AROUND + PLAIN:
        student = plain.Plain(fresh, frozenset({"mine"}), in_cells(fresh["a"], code))
        assert (student.why_not("resnet50.3") is None) == (code in PLAIN), code


def test_every_solution_is_plain():
    for notebook in (Path(name).stem for name in sources.sources(ROOT)):
        complete, fresh = reference.forms(ROOT, notebook)
        every, blanks = tuple(complete.values()), reference.blanks(ROOT, notebook)
        assert plain.Plain(fresh, blanks, in_cells(*every), complete=every).why_not() is None, notebook


def test_ten_thousand_cells_and_doubles_are_told():
    cell = {"cell_type": "code", "source": "1", "id": "labs-concepts-1"}
    sources, told = plain.cells(json.dumps({"cells": [cell] * 9_999}).encode())
    assert len(sources) == 1 and len(told) == plain.FEW + 2 and "twice" in told[0] and "9999 code cells" in told[-1]
