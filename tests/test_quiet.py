"""TensorFlow's greeting is left out of standard error, and nothing else."""

import os
import signal
import subprocess
import sys

import pytest
from tree import ROOT
from waiting import until

ABSL = "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR"
ONEDNN = "I0000 00:00:1795311945.088881   18272 port.cc:153] oneDNN custom operations are on. You may see slightly "
ONEDNN += "different numerical results due to floating-point round-off errors from different computation orders. "
ONEDNN += "To turn them off, set the environment variable `TF_ENABLE_ONEDNN_OPTS=0`."
GREETING = [ABSL, ONEDNN]
OTHERS = ["E" + ONEDNN[1:], ONEDNN[:38] + "cpu_feature_guard.cc:227] This TensorFlow binary is optimized"]
OTHERS += ["WARNING: All log messages before something else", "ImportError: libcudart.so.12: cannot open"]


@pytest.mark.parametrize(
    ("program", "settings", "code", "greeted"),
    [
        ("", {}, 0, False),
        ("raise ImportError('no such library')", {}, 1, False),
        ("os.abort()", {}, -signal.SIGABRT, False),
        ("", {"TF_CPP_MIN_LOG_LEVEL": "0"}, 0, True),
        ("", {"PATH": "/nothing"}, 0, True),  # without sed
    ],
)
def test_the_greeting_is_left_out_and_all_else_passes(tmp_path, program, settings, code, greeted):
    """With a tensorflow that says what the real one says while its libraries load."""
    lines = [GREETING[0], OTHERS[0], GREETING[1], *OTHERS[1:]]
    (tmp_path / "tensorflow").mkdir()
    said = "".join(f"{line}\n" for line in lines).encode()
    text = f"import os\nos.write(2, {said!r})\n{program}\nready = True\n"
    (tmp_path / "tensorflow/__init__.py").write_text(text)
    run = "import labs, os\nimport tensorflow\nassert tensorflow.ready\nos.write(2, b'afterwards\\n')"
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}", "TF_CPP_MIN_LOG_LEVEL": "2", **settings}
    with open(tmp_path / "err", "w") as err:
        done = subprocess.run([sys.executable, "-c", run], env=environment, stderr=err, timeout=100)

    def written():
        return (tmp_path / "err").read_text().splitlines()

    until(lambda: len(written()) >= len(OTHERS), 20)  # the filter outlives what dies
    ours = [line for line in written() if line in (*OTHERS, *GREETING)]
    assert done.returncode == code and ours == (lines if greeted else OTHERS)
    assert (written()[-1] == "afterwards") == (code == 0)
    assert ("ImportError: no such library" in written()) == (code == 1)


def test_the_real_import_says_nothing():
    code = "import labs, keras, tensorflow as tf; print(float(tf.reduce_sum(tf.ones(3))))"
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3.0\n", "")
