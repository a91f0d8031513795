"""TensorFlow's greeting is left out of standard error, and nothing else."""

import os
import signal
import subprocess
import sys

import pytest
from tree import ROOT
from waiting import until

GREETING = [
    "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
    "I0000 00:00:1795311945.088881   18272 port.cc:153] oneDNN custom operations are on. You may see slightly "
    "different numerical results due to floating-point round-off errors from different computation orders. To turn "
    "them off, set the environment variable `TF_ENABLE_ONEDNN_OPTS=0`.",
]
OTHERS = [
    "E0000 00:00:1795311945.088881   18272 port.cc:153] oneDNN custom operations are on.",
    "I0000 00:00:1795311945.088881   18272 cpu_feature_guard.cc:227] This TensorFlow binary is optimized",
    "WARNING: All log messages before something else",
    "ImportError: libcudart.so.12: cannot open shared object file",
]


def imported(folder, program, end="", **environment):
    """Import a tensorflow that says what the real one says while its libraries load; the finished process."""
    lines = "".join(f"{line}\n" for pair in zip(GREETING, OTHERS, strict=False) for line in pair)
    lines += "".join(f"{line}\n" for line in OTHERS[len(GREETING) :])
    (folder / "tensorflow").mkdir()
    (folder / "tensorflow/__init__.py").write_text(
        f"import os\nos.write(2, {lines.encode()!r})\n{program}\nready = True\n"
    )
    code = f"import labs\nimport tensorflow\nassert tensorflow.ready\n{end}"
    environment = {**os.environ, "PYTHONPATH": f"{folder}:{ROOT}", "TF_CPP_MIN_LOG_LEVEL": "2", **environment}
    with (
        open(folder / "out", "w+") as out,
        open(folder / "err", "w+") as err,
    ):  # files: a pipe stays open with what it starts
        done = subprocess.run([sys.executable, "-c", code], env=environment, stdout=out, stderr=err, timeout=100)
    done.stdout, done.stderr = (folder / "out").read_text(), (folder / "err").read_text()
    return done


def test_the_greeting_is_left_out_and_all_else_passes(tmp_path):
    done = imported(tmp_path, "", "import os; os.write(2, b'afterwards\\n'); print('out')")
    assert (done.returncode, done.stdout) == (0, "out\n")
    assert done.stderr.splitlines() == [*OTHERS, "afterwards"]


@pytest.mark.parametrize(("program", "code"), [("raise ImportError('no such library')", 1), ("os.abort()", -6)])
def test_an_import_that_fails_or_dies_is_seen(tmp_path, program, code):
    done = imported(tmp_path, program)
    until(lambda: (tmp_path / "err").read_text().count("\n") >= len(OTHERS), 20)  # the filter outlives what dies
    written = (tmp_path / "err").read_text()
    assert done.returncode == code and written.splitlines()[:4] == OTHERS
    assert ("ImportError: no such library" in written) == (code == 1)


def test_with_level_0_everything_is_shown(tmp_path):
    done = imported(tmp_path, "", TF_CPP_MIN_LOG_LEVEL="0")
    assert set(done.stderr.splitlines()) == {*GREETING, *OTHERS}


def test_a_process_that_the_import_started_does_not_hold_it_up(tmp_path):
    program = "import subprocess; print(subprocess.Popen(['sleep', '200']).pid)"
    done = imported(tmp_path, program)  # raises after 100 s
    os.kill(int(done.stdout), signal.SIGKILL)  # it goes on
    assert done.returncode == 0


def test_without_sed_the_import_works(tmp_path):
    (tmp_path / "bin").mkdir()
    done = imported(tmp_path, "", PATH=str(tmp_path / "bin"))
    assert done.returncode == 0 and set(OTHERS) <= set(done.stderr.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("first", ["tensorflow", "keras"])
def test_the_real_import_says_nothing(first):
    code = f"import labs, {first}, tensorflow as tf; print(float(tf.reduce_sum(tf.ones(3))))"
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3.0\n", "")
