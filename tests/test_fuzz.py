"""Files and command lines that nobody would write: no traceback, no hang, valid JSON, exit codes as documented."""

import contextlib
import io
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labs import cli, recorded
from labs.results import failures, log

QUICK = settings(
    max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)


def cut(text):
    """Bytes of a text with pieces cut out or replaced."""

    def apply(changes):
        made = text.encode()
        for begin, length, instead in changes:
            made = made[:begin] + instead + made[begin + length :]
        return made

    place = st.integers(0, len(text.encode()))
    return st.lists(st.tuples(place, place, st.binary(max_size=6)), max_size=2).map(apply)


def run(*words):
    """(exit code, standard output) of a command line of `labs`; argparse's end is one, too."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = cli.main(list(map(str, words)))
        except SystemExit as end:
            code = end.code
    assert code in (0, 1, 2), code
    assert code == 0 or err.getvalue().strip() or out.getvalue().strip(), "a refusal says why"
    assert "\x1b" not in out.getvalue() + err.getvalue()
    return code, out.getvalue()


def rows(*words):
    """The runs that `labs results --json` finds, none where it refuses."""
    code, out = run("results", "--json", *words)
    return [] if code == 2 else json.loads(out, parse_constant=pytest.fail)["runs"]


RECORD = recorded.laptop_two_networks()[0].read_text()


@QUICK
@given(cut(RECORD))
def test_records(broken):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "good.json").write_text(RECORD)
        Path(folder, "cut.json").write_bytes(broken)
        assert any(row["source"] == "good.json" and row["images_per_second"] for row in rows(folder))
        rows(Path(folder, "cut.json"))


LOG = """\
Model ResNet50V2 2 GPUs
Batch_size: 512
[1,0]<stdout>:Epoch 1/2
196/196 - 45s - 229ms/step - accuracy: 0.3536 - loss: 1.7626
Epoch 2/2
196/196 - 44s - 224ms/step - accuracy: 0.4536 - loss: 1.5626
Traceback (most recent call last):
  File "a.py", line 3, in <module>
ValueError: no
srun: error: node1: task 1: Exited with exit code 7
"""


@QUICK
@given(cut(LOG) | st.text(alphabet="0123456789/ -s.:Epoch\n\r\b\x1b[]<>e", max_size=300).map(str.encode))
def test_logs(data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.out")
        path.write_bytes(data)
        path.with_suffix(".err").write_bytes(data[::-1])
        rows(path)
        found = failures.failure(path)
        assert found is None or found["line_number"] >= 1
        with contextlib.suppress(log.LogError):
            log.read(path)
