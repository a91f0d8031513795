"""Hostile notebooks: none gains a point, nothing outside changes, the check beside them is judged as ever, and what
happened is told."""

import contextlib
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
from teaching.grading import cells, handed, judge, plain, reference
from teaching.grading.walled import Walled

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = "01_basic_concepts"
START = "from labs.checks import check\n"
RIGHT = START + 'check("concepts.14", 27)'
BLANK = START + 'check("concepts.1", ...)\ncheck("concepts.16", ...)'


WRITES = "import os\nfor h in range(3, 20):\n  try: os.write(h, {})\n  except OSError: pass"
FORGES = r"""b'[' * 100000 + b'\n{"judged": ["right", "", null]}\n{"concepts.1": "right"}\n' * 9"""

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
    "from labs.checks import judging\njudging.judge = lambda *a: ('right', '', None)\njudging.unfilled = lambda a: 0",
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
    (LOOKS, "wrong", "2 in each case tried"),
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
judging.judge = lambda *answers: ("right", "", None)
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
    assert "a person must look" in found["resnet50.3"].text


def test_a_script_is_left_to_a_person_where_it_is_not_plain():
    (name,) = [name for name in reference.scripts(ROOT) if name.endswith("/ResNet50.py")]
    for more in ("", "\nfrom labs import checks\n", "\nkeras.Model.fit = None\n"):
        text = script() + more
        student = plain.Plain({}, frozenset(), b"{}", [(name, text, *reference.scripts(ROOT)[name])])
        assert (student.why_not() is None) == (not more), text


AROUND = [
    "from labs import checks",
    "from math import *",
    "check = print",
    "tf.keras.Model.fit = 0",
    "def f(x):\n  jobs.held['a'] = x",
    "%time getattr(jobs, 'x')",
    "%%capture\n%%time\nfrom labs import checks",
    "check('slurm.1', mine)",
    "found = check('slurm.1', [-1.5, 'a'], without='horovod')",
    "[(jobs := 1) for _ in (0,)]",
    "try: pass\nexcept ValueError as jobs: pass",
    "match mine:\n  case dict(__class__=found): pass",
    "np.test(extra_argv=['--doctest-glob=*.out'], tests=['runs'])",
    "'{:{0.x}}'.format(mine)",
    "np.load('runs/a.out', allow_pickle=True)",
    "rows[0].speedup.value = 2.0",
    "rows[0] = mine",
    "(rows / 'a').replace('numpy.py')",
    "def f():\n  global check\n  check = print",
    "class A:\n  def put(self, f): self.judge = f",
    "class A:\n  __eq__ = lambda s, o: True\nmine = A()",
    "mine.__class__ = dict",
    "functools.update_wrapper(jobs, mine)",
    "from operator import setitem, attrgetter",
    "from types import ModuleType",
    "np.ctypeslib.load_library('x', '.')",
    "import sys\nsys.modules['labs.checks'] = mine",
    "import atexit, signal, threading",
    "open('/proc/self/mem', 'r+b')",
    "compile(mine, '', 'exec')",
    "@jobs.held.update\ndef f(): pass",
    "type('A', (), {'__eq__': mine})",
    "keras.callbacks.LambdaCallback(mine)",
    "with mine as rows: pass",
    "async def f(): pass",
    "savefig = plt.savefig",
    "mine = lambda: (yield).gi_frame.f_back",
]
PLAIN = [
    "times = {}\ntimes['a'] = 3\ntimes['a'] += 1\ndel times['a']",
    "table = [[0] * 3 for _ in range(3)]\ntable[1][2] = 4",
    "!ls; rm scripts/ResNet50.py",
    'text = """\n%time x\n!ls\n"""\n%pip install x',
    "x = (5\n% 3)",
    "(" * 500,
    "files = !ls\nif files:\n  %time print(files)\n?print",
    "%%writefile scripts/a.py\nfrom labs import checks",
    "from __future__ import barry_as_FLUFL\n1 <> getattr(jobs, 'x')",
    "def f(chunks):\n  found = {}\n  chunks[0][1] = found['a'] = 1\n  return found",
    "def mine(jobs):\n  workers = jobs + 1\n  return [row for row in range(workers)]",
    "def draw(axis):\n  axis.xaxis.set_major_locator(mine)\n  axis.set_title('{} of {:.2f} s'.format(*mine))",
    "times = {run.workers: (run.epoch_seconds.value, run.speedup.interval, run.final_loss.value) for run in rows}",
]


def test_what_reaches_around_the_judge_is_not_plain_and_what_computes_is():
    imports = "import subprocess\nfrom pathlib import Path\nfrom labs import jobs\nfrom labs.checks import check\n"
    fresh = {"a": imports + "rows = jobs.folder()\nprint(rows)\nmine = ..."}
    for code in AROUND + PLAIN:
        student = plain.Plain(fresh, frozenset({"mine"}), in_cells(fresh["a"], code))
        assert (student.why_not() is None) == (code in PLAIN), code


# In cells of their own before the answer to concepts.14, which is judged beside them.
BESIDE = (
    "import os, json, time\nstarted = time.time()\ncores = os.cpu_count()",
    "class Clock:\n  def __init__(self): self.times = {}\nclock = Clock()\nclock.times['a'] = 3",
    "match len([1]):\n  case 1: print('one')",
    "import labs.checks.judging as j\nj.judge = lambda *_: ('right', '', None)",
    "import gc, types\n[o.update(judge=print) for o in gc.get_objects() if type(o) is dict and 'JUDGES' in o]",
    "import builtins\nbuiltins.abs = lambda *_: 0",
    "import threading\nthreading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()",
)
ANSWER = "from fractions import Fraction\nenough = Fraction({})", START + "check('concepts.14', enough)"


def test_what_a_check_does_not_use_leaves_it_judged_and_what_patches_its_judge_gains_nothing(run):
    for number, how in ((27, "inside"), (28, "person")):
        found, told = run(NOTEBOOK, *BESIDE, ANSWER[0].format(number), ANSWER[1])
        assert found["concepts.14"].how == how, (number, found["concepts.14"], told)
        assert "a person must look" in found["concepts.14"].text or how == "inside"


LEAVES = (
    "import os\nos.kill(1, 9), os.kill(1, 19)",
    "import os\nfor name in ('mem', 'fd/0', 'environ'):\n  try: open(f'/proc/1/{name}', 'rb')\n"
    "  except PermissionError: continue\n  raise ValueError(name)",
    "import os, subprocess\nos.makedirs('/dev/shm/a/b')\nos.chmod('/dev/shm/a', 0)\n"
    "open('scripts/keras.py', 'w').write('1')\nopen('scripts/ResNet50.py', 'w').write('1')\n"
    "subprocess.Popen(['sh', '-c', 'trap \"\" TERM; sleep 600; true'], start_new_session=True)",
)
FINDS = (
    "import os\nassert not os.path.exists('/dev/shm/a') and not os.path.exists('scripts/keras.py')",
    "assert len(open('scripts/ResNet50.py').read()) > 99",
    "assert len([name for name in os.listdir('/proc') if name.isdecimal()]) < 4",
)


def test_of_a_notebook_nothing_is_left_when_the_next_one_of_its_student_begins(needs_sandbox, tmp_path):
    names = (NOTEBOOK, "02_averages_and_rings", "06_a_job_for_slurm")
    works = ((*LEAVES, RIGHT), (*FINDS, "os._exit(3)"), (*FINDS, START + "check('slurm.1', 6)"))
    given = {f"notebooks/{name}.ipynb": in_cells(*cells) for name, cells in zip(names, works, strict=True)}
    submission = handed.Submission("001", given, tmp_path)
    with contextlib.closing(Walled(submission, ROOT, names)) as walled:
        first, second, third = (judge.judged(submission, ROOT, name, "seed", walled) for name in names)
    assert first[0]["concepts.14"].state == "right" and first[1] == []
    assert second[1] == ["the notebook's process ended"] and third[1] == [] and third[0]["slurm.1"].state == "right"


def test_every_solution_is_plain():
    for notebook in (Path(name).stem for name in sources.sources(ROOT)):
        complete, fresh = reference.forms(ROOT, notebook)
        every, blanks = tuple(complete.values()), reference.blanks(ROOT, notebook)
        assert plain.Plain(fresh, blanks, in_cells(*every), complete=every).why_not() is None, notebook
    for name, (fresh, complete) in reference.scripts(ROOT).items():
        in_classes = name.endswith("_optimizer.py")  # which a person looks at
        assert in_classes or plain.of_script(complete, fresh, complete) is None, name


def test_ten_thousand_cells_and_doubles_are_told():
    """All cells are run, also those with one id: students split and copy cells."""
    cell = {"cell_type": "code", "source": 'check("concepts.1", 1)', "id": "labs-concepts-1"}
    sources, told = cells.runnable(json.dumps({"cells": [cell] * 9_999}).encode())
    assert len(sources) == 9_999 and "called in 9999 cells" in told[0]
