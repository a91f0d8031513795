"""Trying scripts out: what is told of one that fails, does not end or dies, and that nothing of it stays."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from waiting import alive, until

from labs.checks.tryout import Performance, client

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tried(tmp_path):
    """tried(text of a script, its arguments, limits...) -> its facts."""

    def tried(text, *arguments, **limits):
        script = tmp_path / "script.py"
        script.write_text(text)
        (facts,) = client.try_out_script(script, [Performance(arguments, 10)], **limits)
        return facts

    return tried


FAILING = {
    "x = 1\ny = [][3]\n": (2, "y = [][3]", "IndexError: list index out of range"),
    "def f():\n    return {}['a']\n\n\nf()\n": (2, "return {}['a']", "KeyError: 'a'"),
    "import json\njson.loads('{')\n": (2, "json.loads('{')", "JSONDecodeError: Expecting property name"),
    "def f(:\n": (1, "def f(:", "SyntaxError: invalid syntax"),
    "x = input()\n": (1, "x = input()", "EOFError"),
    "import sys\nsys.exit('no')\n": (2, "sys.exit('no')", "SystemExit: no"),
    "import argparse\np = argparse.ArgumentParser()\np.add_argument('--x', required=True)\np.parse_args()\n": (
        4,
        "p.parse_args()",
        "the following arguments are required: --x",
    ),
    "import os\nos._exit(3)\n": (None, "", "the whole program ended with exit code 3"),
    "import os\nos.kill(os.getpid(), 11)\n": (None, "", "the whole program was ended by signal SIGSEGV"),
}


@pytest.mark.parametrize("text", FAILING)
def test_a_mistake_is_shown_with_its_line(text, tried):
    line, code, says = FAILING[text]
    error = tried(text)["error"]
    assert (error["line"], error["code"]) == (line, code) and says in error["says"]


def test_a_script_without_a_mistake_has_none_and_tells_what_it_was_given(tried):
    facts = tried("import sys\nprint(sys.argv[1:], __name__)\n", "--a", "1")
    assert facts["error"] is None and facts["log"] == "['--a', '1'] __main__\n" and facts["fits"] == []


@pytest.mark.parametrize(
    ("loop", "limits"),
    [
        ("    x += 1", {"cpu_seconds": 2}),
        ("    try:\n        x += 1\n    except BaseException:\n        pass", {"cpu_seconds": 2}),
        ("    try:\n        time.sleep(100)\n    except BaseException:\n        pass", {"patience": 10}),
    ],
    ids=["computes", "swallows every exception", "waits"],
)
def test_what_does_not_end_is_stopped_and_its_line_named(loop, limits, tried):
    facts = tried(f"import time\nx = 0\nwhile True:\n{loop}\n", **limits)
    assert facts["stopped"] and facts["error"]["says"] == "does not come to an end, and was stopped"
    assert facts["error"]["line"] in range(3, 8)
    assert tried("x = 1\n")["error"] is None


def test_no_process_of_a_script_stays(tried, tmp_path):
    mark = tmp_path / "pid"
    tried(
        "import subprocess\np = subprocess.Popen(['sleep', '500'], start_new_session=True)\n"
        f"open({str(mark)!r}, 'w').write(str(p.pid))\n"
    )
    assert not psutil.pid_exists(int(mark.read_text()))


def test_the_server_ends_with_its_kernel_also_when_that_is_killed(tmp_path, cold):
    (tmp_path / "script.py").write_text(f"import os\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getppid()))\n")
    program = (
        "from labs.checks.tryout import Performance, try_out_script\nimport os\n"
        f"try_out_script({str(tmp_path / 'script.py')!r}, [Performance((), 1)])\n"
        f"os.kill(os.getpid(), {signal.SIGKILL})\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert done.returncode == -signal.SIGKILL
    server = int((tmp_path / "pid").read_text())
    assert until(lambda: not alive(server))


def test_a_change_beside_the_script_is_seen(tried, tmp_path):
    (tmp_path / "mine.py").write_text("x = 1\n")
    assert tried("import mine\nprint(mine.x)\n")["log"] == "1\n"
    (tmp_path / "mine.py").write_text("x = 23\n")
    assert tried("import mine\nprint(mine.x)\n")["log"] == "23\n"


def test_a_script_as_a_rank_needs_no_horovod_and_knows_its_node(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from labs import hvd\nfrom labs.hvd.callbacks import MetricAverageCallback\nimport horovod.tensorflow as h\n"
        "hvd.init()\nprint(h.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), hvd.cross_size())\n"
    )
    facts = client.try_out_script(script, [Performance((), 4, rank, 4, 2) for rank in range(4)])
    assert [each["log"].split() for each in facts] == [[str(r), "4", str(r % 2), "2", "2"] for r in range(4)]
    assert all(each["hvd"]["started"] and not each["hvd"]["early"] and not each["error"] for each in facts)
