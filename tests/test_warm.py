"""A program that is forked from the server of the tests does what it does when it starts by itself (tests/warm)."""

import os
import signal
import subprocess
import sys

import pytest
from waiting import alive, until

pytestmark = pytest.mark.slow
PROGRAM = """
import os, sys, random, resource, signal
import numpy as np
import tensorflow as tf

print(__name__, __file__, sys.argv, os.getcwd(), sys.path[0], os.environ["OWN"], sorted(os.sched_getaffinity(0)))
print(resource.getrlimit(resource.RLIMIT_NOFILE), signal.getsignal(signal.SIGINT) is signal.default_int_handler)
print(sys.stdin.read(), os.read(int(sys.argv[1]), 3), float(tf.reduce_sum(tf.ones(3))))
print("error", file=sys.stderr)
"""
WAITING = "import tensorflow, time, sys\nprint(1, flush=True)\ntime.sleep(600)\n"


def start(folder, text, *arguments, **options):
    (folder / "program.py").write_text(text)
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, "program.py", *map(str, arguments)]
    return subprocess.Popen(command, cwd=folder, text=True, **pipes, **options)


def ran(folder, text, **environment):
    """(exit code, what it printed, its errors) of a program that gets a file, a limit and one core."""
    inside, outside = os.pipe()
    os.write(outside, b"abc")

    def limited():
        import resource

        resource.setrlimit(resource.RLIMIT_NOFILE, (300, 4096))
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    options = {"pass_fds": [inside], "preexec_fn": limited, "env": os.environ | {"OWN": "x"} | environment}
    process = start(folder, text, inside, **options)
    out, err = process.communicate("given")
    os.close(inside)
    os.close(outside)
    return process.returncode, out, err


ENDS = {
    "": 0,
    "sys.exit(7)": 7,
    "os._exit(5)": 5,
    "raise ValueError('no')": 1,
    "os.kill(os.getpid(), signal.SIGUSR1)": -signal.SIGUSR1,
}


@pytest.mark.parametrize("end", ENDS)
def test_a_forked_program_is_what_a_cold_one_is(tmp_path, end):
    code, out, err = ran(tmp_path, PROGRAM + end)
    assert code == ENDS[end]
    assert "warm" not in err and ("ValueError: no" in err) == end.startswith("raise")
    if end.startswith("raise"):
        *cold, told = ran(tmp_path, PROGRAM + end, WARM_SERVER="")
        assert [code, out] == cold and told.endswith(err)  # before it stands TensorFlow's greeting
        assert "program.py ['program.py'" in out and "given b'abc' 3.0" in out


def test_programs_have_random_numbers_of_their_own(tmp_path):
    text = "import numpy as np, random\nimport tensorflow as tf\nprint(np.random.rand(), random.random())"
    assert ran(tmp_path, text)[1] != ran(tmp_path, text)[1]


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_ends_the_program_and_not_its_shadow_alone(tmp_path, sign):
    process = start(tmp_path, "import os\nprint(os.getpid(), flush=True)\n" + WAITING)
    program = int(process.stdout.readline())
    assert program != process.pid, "it was not forked"
    process.stdout.readline()
    process.send_signal(sign)
    assert process.wait(60) == -sign
    assert until(lambda: not alive(program))
    process.communicate()


def test_another_environment_starts_cold(tmp_path):
    text, environment = "import os\nprint(os.getpid())\nimport tensorflow", os.environ | {"TF_ENABLE_ONEDNN_OPTS": "0"}
    process = start(tmp_path, text, env=environment)
    assert int(process.communicate()[0]) == process.pid


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_what_is_printed_leaves_at_once_or_in_lines(tmp_path, unbuffered):
    text = "import os, time\nimport tensorflow\nprint(1)\nos.write(1, b'2')\n"
    told = ran(tmp_path, text, PYTHONUNBUFFERED=unbuffered)[1]
    assert (
        told
        == ("1\n2" if unbuffered else "21\n")
        == ran(tmp_path, text, PYTHONUNBUFFERED=unbuffered, WARM_SERVER="")[1]
    )
