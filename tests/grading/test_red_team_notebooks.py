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

from labs.sandbox.walls import WORK
from teaching.author import sources
from teaching.grading import magics, plain, reference

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.usefixtures("needs_sandbox")
NOTEBOOK = "01_basic_concepts"
START = "from labs.checks import check\n"
HONEST = (
    START + 'check("concepts.5", "b")\ncheck("concepts.14", 27)'
)  # a wrong letter or a right one, and a right number
BLANK = START + 'check("concepts.1", ...)\ncheck("concepts.16", ...)'

BESIDE = "subprocess.Popen(['sh', '-c', 'sleep 600; true', 'MARK'], start_new_session=True)"

# {what: (code of the first cell, what is told of it or None)}
HOSTILE = {
    "reads the solutions": (f"open({str(ROOT / 'solutions/01_basic_concepts.py')!r}).read()", "FileNotFoundError"),
    "lists the course": (f"import os; os.listdir({str(ROOT / 'tests')!r})", "FileNotFoundError"),
    "reads other submissions": ("open('/OUTSIDE/submissions/002.zip')", "FileNotFoundError"),
    "reads the passwords": ("open('/etc/shadow')", "FileNotFoundError"),
    "the network": ("import socket; socket.create_connection(('1.1.1.1', 53), 3)", "OSError"),
    "a server outside": ("import socket; socket.create_connection(('127.0.0.1', PORT), 3)", "ConnectionRefusedError"),
    "fork bomb": ("import os\nwhile True: os.fork()", "limit of (processes|memory)"),
    "memory": ("held = []\nwhile True: held.append(bytearray(1 << 26))", "limit of memory|MemoryError"),
    "disk": (f"f = open('{WORK}/x', 'wb')\nwhile True: f.write(bytes(1 << 24)); f.flush()", "limit of disk|OSError"),
    "files": (f"n = 0\nwhile True: open(f'{WORK}/x{{n}}', 'w').close(); n += 1", "limit of files"),
    "output": ("import os\nwhile True:\n  for h in range(3, 20):\n    try: os.write(h, b'x' * 65536 + b'\\n')\n"
               "    except OSError: pass", "limit of (output|time)|stopped after"),
    "endless loop": ("while True: pass", "stopped after 30 s of computing|limit of time"),
    "loop that swallows": ("while True:\n  try:\n    while True: pass\n  except BaseException: pass", "limit of time"),
    "kills its parent": ("import os, signal; os.kill(os.getppid(), 9)", None),
    "kills all": ("import os; os.kill(-1, 9)", "process ended|limit|PermissionError|ProcessLookupError"),
    "os._exit": ("import os; os._exit(0)", "process ended"),
    "sys.exit": ("import sys; sys.exit(3)", "SystemExit"),
    "segmentation fault": ("import ctypes; ctypes.string_at(0)", "process ended"),
    "leaves a process": (f"import subprocess; {BESIDE}", None),
    "symbolic link": (f"import os; os.symlink('/etc', '{WORK}/e'); open('{WORK}/e/shadow')", "FileNotFoundError"),
    "writes to the kit": ("import labs; open(labs.__file__, 'w')", "OSError|PermissionError"),
    "removes its runs": (f"import shutil; shutil.rmtree('{WORK}')", None),
    "replaces print": ("import builtins; builtins.print = None", None),
    "replaces len": ("import builtins; builtins.len = lambda x: 0", None),
    "replaces showtraceback": ("get_ipython().showtraceback = get_ipython().run_cell = None", None),
    "patches the judge": ("from labs.checks import judging\njudging.judge = lambda *a: ('right', '')\n"
                          "judging.unfilled = lambda a: False", None),
    "patches check": ("import labs.checks\nlabs.checks.check = lambda *a: True", None),
    "patches the kit's numbers": ("from labs.checks import reading\nreading.near = lambda *a: True", None),
    "says that it is done": ("import os\nfor h in range(3, 20):\n  try: os.write(h, b'{\"done\": 1}\\n')\n"
                             "  except OSError: pass", None),
    "sends what is no JSON": ("import os\nfor h in range(3, 20):\n  try: os.write(h, b'[' * 100000 + b'\\n')\n"
                              "  except OSError: pass", None),
    "sends results": ("import os\nfor h in range(3, 20):\n"
                      "  try: os.write(h, b'{\"judged\": [\"right\", \"\"]}\\n{\"concepts.1\": \"right\"}\\n' * 9)\n"
                      "  except OSError: pass", None),
    "hangs at import": (f"open('hangs.py', 'w').write('''import subprocess, time; {BESIDE}; time.sleep(600)''')\n"
                        "import sys\nsys.path.insert(0, '.')\nimport hangs",
                        "stopped after 30 s of computing|limit of time"),
    "colours and HTML": ("raise ValueError('\\x1b[2J\\x1b]0;x\\x07<script>alert(1)</script>')", "ValueError"),
}  # fmt: skip


@pytest.fixture
def server():
    """The port of a server of ours, outside."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_notebook_gains_nothing(what, run, server, tmp_path):
    code, line = HOSTILE[what]
    (tmp_path / "submissions").mkdir()
    (tmp_path / "submissions/002.zip").write_text("secret")
    code = code.replace("OUTSIDE", str(tmp_path)[1:]).replace("PORT", str(server))
    code = code.replace("MARK", mark := f"red-team-{uuid.uuid4()}")
    before = {path: path.stat().st_mtime_ns for path in (ROOT / "labs").rglob("*.py")}
    found, told = run(NOTEBOOK, code, BLANK, seconds=8 if line and "limit of time" in line else 300)
    assert {id for id, each in found.items() if each.state == "right"} == set(), told
    if line:
        assert any(re.search(line, each) for each in told), told
    assert {path: path.stat().st_mtime_ns for path in (ROOT / "labs").rglob("*.py")} == before
    assert (tmp_path / "submissions/002.zip").read_text() == "secret"
    assert [pid for pid in os.listdir("/proc") if pid.isdigit() and mark.encode() in _command(pid)] == []


def _command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("what", ["replaces print", "replaces showtraceback", "sys.exit", "colours and HTML"])
def test_what_is_right_beside_it_stays_right(what, run):
    found, _ = run(NOTEBOOK, HOSTILE[what][0], HONEST)
    assert found["concepts.14"].state == "right" and found["concepts.1"].state == "open"


def test_many_cells_that_fail_hide_nothing_of_what_happened(run):
    _, told = run(NOTEBOOK, *["1 / 0"] * 60, "import os; os._exit(0)")
    assert len(told) == plain.FEW + 2 and "process ended" in told[-1] and told[-2] == "52 more cells ended in an error"


ANSWERS = {
    "equal to all": "class A:\n  __eq__ = lambda s, o: True\n  __float__ = lambda s: 27.0\n",
    "a text that is equal": "class A(str):\n  __eq__ = lambda s, o: True\n  __hash__ = str.__hash__\n",
    "a number that is equal": "class A(float):\n  __eq__ = lambda s, o: True\n  __sub__ = lambda s, o: 0.0\n",
    "runs when it is unpickled": "class A:\n  __reduce__ = lambda s: (exec, ('raise SystemExit',))\n",
    "ends when it is shown": "class A:\n  def __repr__(s): import os; os._exit(0)\n",
    "a list without end": "A = list\nx = A(); x.append(x)\nA = lambda: x\n",
    "a huge number": "A = lambda: 10 ** 100_000\n",
    "a huge text": "A = lambda: 'x' * 10_000_000\n",
    "not a number": "A = lambda: float('nan')\n",
    "infinite": "A = lambda: float('inf')\n",
    "half a character": "A = lambda: '\\ud800<b>\\x1b[31m'\n",
}


@pytest.mark.parametrize("what", ANSWERS)
def test_an_odd_answer_is_no_right_one(what, run):
    checks = START + 'for id in ("concepts.5", "concepts.14"): check(id, A())\n'
    found, told = run(NOTEBOOK, ANSWERS[what], checks, START + 'check("concepts.8", 44.5 / 12.5, 45.5 / 11.5)')
    states = {id: each.state for id, each in found.items() if id in ("concepts.5", "concepts.14")}
    assert "right" not in states.values() and (found["concepts.8"].state == "right" or told), (states, told)


FUNCTIONS = {
    "knows the judge's numbers": ("def f(m):\n  return {12: 2.0, 6: 4.0, 24: 2 ** 0.5}.get(m, 2 ** (12 / 3.4))",
                                  "Right for the numbers of the notebook"),
    "looks who calls": ("import sys\ndef f(months):\n  frame = sys._getframe()\n  while frame: frame = frame.f_back\n"
                        "  return 2.0",
                        "doubles|years|year"),
    "gives what is equal to all": ("class A:\n  __eq__ = lambda s, o: True\n  __float__ = lambda s: 2.0\n"
                                   "f = lambda months: A()", ""),
    "raises": ("def f(months): raise SystemExit('\\x1b[31m')", "raises SystemExit"),
    "has no end": ("def f(months):\n  while True: pass", "raises (Endless|RecursionError)"),
    "ends its process": ("import os\ndef f(months): os._exit(0)", ""),
}  # fmt: skip


@pytest.mark.parametrize("what", FUNCTIONS)
def test_a_function_that_only_looks_right_is_wrong(what, run):
    code, hint = FUNCTIONS[what]
    found, told = run(NOTEBOOK, code, START + 'check("concepts.1", f)', START + 'check("concepts.14", 27)')
    assert found["concepts.1"].state != "right" and re.search(hint, found["concepts.1"].text), found["concepts.1"]
    assert found["concepts.14"].state == "right" or told


def test_a_late_answer_is_not_taken_for_the_answer_to_another_question(run):
    code = "import gc\n(outside,) = [o for o in gc.get_objects() if type(o).__name__ == 'Outside']\n"
    code += "for n in range(9): outside.say({'to': 0, 'value': 2.0, 'after': []})"
    found, told = run(NOTEBOOK, code, START + 'check("concepts.1", lambda months: 2 ** (12 / months))')
    assert found["concepts.1"].state == "right", (found["concepts.1"], told)


def test_lists_in_lists_that_end_in_a_figure_stop_nobody(run):
    figure = '{"figure": [{"labels": ["", ""], "lines": [], "clouds": [], "bars": [], "ticks": [], "legend": null}]}'
    code = "import gc\n(outside,) = [o for o in gc.get_objects() if type(o).__name__ == 'Outside']\n"
    code += f"figure = {figure!r}\nfor n in range(420, 500, 4):\n"
    code += "  text = '{\"list\": [' * n + figure + ']}' * n\n"
    code += '  outside.said.write((\'{"check": "concepts.8", "answers": [\' + text + \']}\\n\').encode())\n'
    found, told = run(NOTEBOOK, code, START + 'check("concepts.14", 27)')
    assert found["concepts.14"].state == "right" and found["concepts.8"].state != "right", (found, told)


def test_a_right_function_is_right_however_it_is_written(run):
    for code in (
        "def f(months):\n  return 2 ** (12 / months)",
        "import math\nf = lambda m: math.exp(math.log(2) * 12 / m)",
    ):
        found, told = run(NOTEBOOK, code, START + 'check("concepts.1", f)')
        assert found["concepts.1"].state == "right" and found["concepts.1"].how == "outside", told


def test_a_function_that_gets_one_array_four_times_is_not_said_to_change_it(run):
    code = "import numpy as np\ndef f(copies):\n  return max(np.max(np.abs(copy - copies[0])) for copy in copies)"
    found, told = run("03_mirrored_strategy", code, 'from labs.checks import check\ncheck("mirrored.6", f)')
    assert (found["mirrored.6"].state, found["mirrored.6"].how) == ("right", "outside"), told


FORGED = (
    START
    + """
import sys
from labs.checks import judging
judging.judge = lambda *answers: ("right", "")
check("resnet50.3", "scripts/ResNet50.py")
"""
)


MATCHED = """
from labs.checks import check, outcome, predict
from matplotlib.figure import Figure
match Figure():
    case Figure(__reduce_ex__=reduced):
        rebuild, (_, Any, *_), *_ = reduced(1)
match rebuild:
    case Any(__globals__=found):
        pass
match found["__builtins__"]["__import__"]("labs.checks.judging"):
    case Any(checks=Any(judging=Any(__dict__=found))):
        found.update(judge=lambda *answers: ("right", ""))
script = "scripts/ResNet50.py"
ready = check("resnet50.3", script)
"""


@pytest.mark.parametrize("how", [FORGED, MATCHED], ids=["imported", "matched"])
def test_a_judge_that_was_patched_beside_the_answer_gives_no_point(how, run):
    given = {"notebooks/scripts/ResNet50.py": b"print('nothing')\n"}
    found, told = run("05_resnet50_scaling", how, **given)
    assert not told and found["resnet50.3"].state == "right"  # as it is said inside
    assert found["resnet50.3"].how == "person" and "a person must look" in found["resnet50.3"].text


MADE_UP = """
from labs.results.intervals import Estimate
from labs.results.run import Run
runs = [Run(f"w{n}.json", configuration={"workers": n}, speedup=Estimate(n, (0.9 * n, n))) for n in (1, 2)]
check("resnet50.6", "faster", runs)
"""


def test_runs_that_a_notebook_makes_up_are_not_believed(run):
    found, _ = run("05_resnet50_scaling", START + MADE_UP)
    assert found["resnet50.6"].state == "right" and found["resnet50.6"].how == "person"
    own = written(study(1))
    for said, state in (("faster", "right"), ("slower", "wrong")):
        code = MADE_UP.replace("w{n}", "ResNet50_w{n}").replace("faster", said)
        found, _ = run("05_resnet50_scaling", START + code, **own)
        assert (found["resnet50.6"].state, found["resnet50.6"].how) == (state, "outside")


SCRIPTS = {
    "patches the kit": script().replace("import keras\n", "import keras\nfrom labs import checks\n", 1),
    "reaches around": script() + "\nprint(model.__class__.__mro__)\n",
    "sets an attribute": script() + "\nkeras.Model.fit = None\n",
    "writes a result": script() + "\nopen('/proc/1/fd/1', 'w').write('right')\n",
}


@pytest.mark.parametrize("what", SCRIPTS)
def test_a_script_that_is_not_plain_is_left_to_a_person(what):
    (name,) = [name for name in reference.scripts(ROOT) if name.endswith("/ResNet50.py")]
    forms = reference.scripts(ROOT)[name]
    assert SCRIPTS[what] != script()
    assert plain.Plain({}, frozenset(), b"{}", [(name, SCRIPTS[what], *forms)]).why_not()
    assert plain.Plain({}, frozenset(), b"{}", [(name, script(), *forms)]).why_not() is None


AROUND = [
    "from labs import checks",
    "from labs.checks import judging",
    "import labs.checks.judging as math",
    "from math import *",
    "from numpy import sys",
    "jobs.anywhere.sys.modules",
    "check = print",
    "def jobs(): pass",
    "(lambda: 0).__globals__",
    "tf.keras.Model.fit = 0",
    "x = [0]; x[0] = 1",
    "def f(x):\n  jobs.held['a'] = x",
    "def f(x):\n  rows[0][1] = x",
    "def f(rows): pass\nrows[0] = 1",
    "getattr(jobs, 'x')",
    "class A: pass",
    "%time getattr(jobs, 'x')",
    "%%capture\n%%time\nfrom labs import checks",
    "check('slurm.1', mine)",
    "check('slurm.1', [jobs.folder()])",
    "check(*['slurm.1', 10])",
    "get_ipython().run_cell('1')",
    "[jobs := 1]",
    "[(jobs := 1) for _ in (0,)]",
    "def f(x=(jobs := 1)): pass",
    "try: pass\nexcept ValueError as jobs: pass",
    "match 1:\n  case jobs: pass",
    "match mine:\n  case dict(__class__=found): pass",
    "async def jobs(): pass",
    "print = mine",
    "np.test(extra_argv=['--doctest-glob=*.out'], tests=['runs'])",
    "np.savez('scripts/a', mine)",
    "np.info(mine, toplevel='scripts')",
    "'{0.__globals__}'.format(mine)",
    "'{:{0.x}}'.format(mine)",
    "text = '{0.gi_frame}'\ntext.format(mine)",
    "for jobs in (): pass",
    "del jobs.run",
    "with open('x') as f: pass",
    "np.load('runs/a.out', allow_pickle=True)",
    "np.testing.runstring('1', {})",
    "import numpy.testing as math",
    "from numpy.testing import runstring",
    "from numpy import load",
    "from functools import update_wrapper",
    "functools.update_wrapper(jobs, np, ('folder',), ())",
    "from matplotlib import use",
    "matplotlib.use('module://runs')",
    "keras.models.load_model('runs/a.out', safe_mode=False)",
    "tf.io.write_file('scripts/a.py', 'x')",
    "subprocess.run(['sh'])",
    "Path('scripts/a.py').write_text('x')",
    "figure.savefig('scripts/a.py')",
    "rows[0].folder.joinpath('a.py').write_text('x')",
    "rows[0].speedup.value = 2.0",
]
PLAIN = [
    "%matplotlib inline",
    "!ls; rm scripts/ResNet50.py",
    "files = !ls\nif files:\n  %time print(files)\n?print",
    "%%writefile scripts/a.py\nfrom labs import checks",
    "%%bash\nrm -r runs",
    "from __future__ import barry_as_FLUFL\n1 <> getattr(jobs, 'x')",
    "check('slurm.1', 10)",
    "found = check('slurm.1', [-1.5, 'a'], without='horovod')",
    "predict('resnet50.1', 3)",
    "import math, numpy as np",
    "from statistics import mean",
    "def f(chunks):\n  found = {}\n  chunks[0][1] = found['a'] = 1\n  return found",
    "from functools import reduce\nfrom math import prod",
    "ax.plot([1, 2], label='x')\nax.set_xlabel('workers')\nplt.subplots()",
    "np.linalg.norm(np.array([1.0, 2.0]).mean())",
    "import matplotlib.pyplot as plt",
    "def mine(jobs):\n  workers = jobs + 1\n  return [row for row in range(workers)]",
    "'{0:.2f} {}'.format(1.5, 2)",
    "try: 1\nexcept ValueError as problem: pass",
    "total = (half := 1) + half",
    "values = [x * 2 for x, _ in zip(range(3), range(3))]",
    "times = {run.workers: (run.epoch_seconds.value, run.speedup.interval, run.final_loss.value) for run in rows}",
    "rates = [run.configuration.learning_rate for run in rows if run.kind == 'measured']",
    "figure = np.random.default_rng(1).normal(size=3).copy()",
]


@pytest.mark.parametrize("code", AROUND + PLAIN)
def test_what_reaches_around_the_judge_is_not_plain_and_what_computes_is(code):
    imports = "import subprocess\nfrom pathlib import Path\nfrom labs import jobs\nfrom labs.checks import check\n"
    fresh = {"a": imports + "rows = jobs.folder()\nprint(rows)\nmine = ..."}
    cells = [{"cell_type": "code", "id": "a", "source": fresh["a"]}, {"cell_type": "code", "id": "b", "source": code}]
    student = plain.Plain(fresh, frozenset({"mine"}), json.dumps({"cells": cells}).encode())
    assert (student.why_not("resnet50.3") is None) == (code in PLAIN), student.why_not("resnet50.3")


def test_a_check_that_is_judged_beside_its_answer_is_called_with_what_the_notebook_computes():
    text = json.dumps({"cells": [{"cell_type": "code", "id": "b", "source": "check('resnet50.3', 'x')"}]}).encode()
    assert plain.Plain({}, frozenset(), text).why_not("resnet50.3") and not plain.Plain({}, frozenset(), text).why_not(
        "resnet50.11"
    )
    assert plain.Plain({}, frozenset(), text, typed={"resnet50.3"}).why_not("resnet50.3") is None


LEFT = {
    "%matplotlib inline\nx = 1": "x = 1",
    "%%time\nx = 1\n!ls": "x = 1\npass",
    "files = !ls": "files = []",
    "%timeit f()": "pass",
    'text = """\n%time x\n!ls\n"""\n%pip install x': "pass",
    "%%html\n<b>x": "pass",
    "x = (5\n% 3)": "x = (5\n% 3)",
    "x = = 3": "raise SyntaxError",
    "%x\n" * 9000: "raise SyntaxError",
    "a\0b": "raise SyntaxError",
    "(" * 500: "raise SyntaxError",
}


@pytest.mark.parametrize("source", LEFT, ids=[str(n) for n in range(len(LEFT))])
def test_what_belongs_to_a_session_is_not_run_and_the_rest_is_python(source):
    ran = magics.without(source)
    assert LEFT[source] in ran and "get_ipython" not in ran
    magics.tree(ran)


@pytest.mark.parametrize("notebook", [Path(name).stem for name in sorted(sources.sources(ROOT))])
def test_every_solution_is_plain(notebook):
    complete, fresh = reference.forms(ROOT, notebook)
    cells = [{"cell_type": "code", "id": id, "source": source} for id, source in complete.items()]
    text = json.dumps({"cells": cells}).encode()
    student = plain.Plain(fresh, reference.blanks(ROOT, notebook), text, complete=tuple(complete.values()))
    assert student.why_not() is None


def test_a_million_cells_and_doubles_are_told():
    cell = {"cell_type": "code", "source": "1", "id": "labs-concepts-1"}
    sources, told = plain.cells(json.dumps({"cells": [cell] * 1_000_000}).encode())
    assert len(sources) == 1 and len(told) == plain.FEW + 2 and "twice" in told[0] and "1000000 code cells" in told[-1]
    for broken in (b"", b"[", b'{"cells": 3}', b'{"cells": [1, {"cell_type": "code", "source": 3}]}', b"[" * 99999):
        assert isinstance(plain.cells(broken)[0], list)
