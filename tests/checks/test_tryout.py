"""Trying scripts out: what is told of one that fails, does not end or dies, and that nothing of it stays."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from waiting import alive, until

from lessons.tryout import Performance, client

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tried(tmp_path):
    """tried(text of a script, its arguments...) -> its facts."""

    def tried(text, *arguments):
        script = tmp_path / "script.py"
        script.write_text(text)
        (facts,) = client.try_out_script(script, [Performance(arguments, 10)])
        return facts

    return tried


FAILING = {
    "def f():\n    return {}['a']\n\n\nf()\n": (2, "return {}['a']", "KeyError: 'a'"),
    "def f(:\n": (1, "def f(:", "SyntaxError: invalid syntax"),
    "import sys\nsys.exit('no')\n": (2, "sys.exit('no')", "SystemExit: no"),
    "import os\nos.kill(os.getpid(), 11)\n": (None, "", "the whole program was ended by signal SIGSEGV"),
}


def test_a_mistake_is_shown_with_its_line(tried):
    for text, (line, code, says) in FAILING.items():
        error = tried(text)["error"]
        assert (error["line"], error["code"]) == (line, code) and says in error["says"]


@pytest.mark.parametrize(("does", "limit"), [("x += 1", ("CPU_SECONDS", 2)), ("time.sleep(100)", ("PATIENCE", 6))])
def test_what_does_not_end_is_stopped_and_its_line_named(does, limit, tried, monkeypatch):
    monkeypatch.setattr(client, *limit)
    text = f"import time\nx = 0\nwhile True:\n    try:\n        {does}\n    except BaseException:\n        pass\n"
    facts = tried(text)
    assert facts["stopped"] and facts["error"]["says"] == "does not come to an end, and was stopped."
    assert facts["error"]["line"] in range(3, 8)


def test_a_script_knows_what_it_was_given_a_change_beside_it_is_seen_and_no_process_of_it_stays(tried, tmp_path):
    text = (
        "import mine, subprocess, sys\np = subprocess.Popen(['sleep', '500'], start_new_session=True)\n"
        "print(sys.argv[1:], __name__, mine.x, p.pid)\n"
    )
    for x in (1, 23):
        (tmp_path / "mine.py").write_text(f"x = {x}\n")
        facts = tried(text, "--a", "1")
        said, _, pid = facts["log"].strip().rpartition(" ")
        assert facts["error"] is None and said == f"['--a', '1'] __main__ {x}" and facts["fits"] == []
        assert not psutil.pid_exists(int(pid))


def test_the_server_ends_with_its_kernel_also_when_that_is_killed(tmp_path, cold):
    (tmp_path / "script.py").write_text(f"import os\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getppid()))\n")
    program = (
        "from lessons.tryout import Performance, try_out_script\nimport os\n"
        f"try_out_script({str(tmp_path / 'script.py')!r}, [Performance((), 1)])\n"
        f"os.kill(os.getpid(), {signal.SIGKILL})\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert done.returncode == -signal.SIGKILL
    server = int((tmp_path / "pid").read_text())
    assert until(lambda: not alive(server))


def test_a_script_as_a_rank_needs_no_horovod_and_knows_its_node(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from labs import hvd\nfrom labs.hvd.callbacks import MetricAverageCallback\nimport horovod.tensorflow as h\n"
        "hvd.init()\nprint(h.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), hvd.cross_size())\n"
    )
    facts = client.try_out_script(script, [Performance((), 4, rank, 4, 2) for rank in range(4)])
    assert [each["log"].split() for each in facts] == [[str(r), "4", str(r % 2), "2", "2"] for r in range(4)]
    assert all(each["hvd"]["started"] and not each["hvd"]["early"] and not each["error"] for each in facts)
