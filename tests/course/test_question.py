"""The text for a question holds what helps, and nothing that tells who and where somebody is."""

import json
import os
import socket
import subprocess

import pytest
from course import write

from labs import cli, files
from labs.course import CourseError, write_question
from labs.course.question import END, RUNS, Cleaner, text

HOST, USER = "bigmachine-7", "jdoe"


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A course in the home of somebody, on a machine with a name; `labs doctor` ends at once."""
    home = tmp_path / "people" / USER
    root = write(home / "thesis" / "course")
    for name, value in {"HOME": home, "USER": USER, "LOGNAME": USER, "SBATCH_ACCOUNT": "proj42x"}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.delenv("LABS_RUNS", raising=False)
    monkeypatch.setattr(socket, "gethostname", lambda: f"{HOST}.example.org")
    done = subprocess.CompletedProcess([], 1, f"GPUs none, in {home}/x\n".encode(), b"")
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: done)
    monkeypatch.chdir(root / "notebooks")
    return root


def test_no_name_and_no_path_of_a_log_gets_into_it(root, tmp_path):
    home = root.parents[1]
    files.write(
        root / f"notebooks/runs/{USER}_w1.err",
        f'  File "{root}/notebooks/scripts/ResNet50.py", line 3\n'
        f'  File "/opt/{USER}/lib/python3.11/site-packages/keras/src/trainer.py", line 8\n'
        f"cannot open {home}/thesis/data/img.png or /elsewhere/asmith/x.npy or ~asmith/y/z\n"
        f"{USER}@{HOST}: mail j.doe@uni.example, at 10.0.3.17, JDOE on {HOST.upper()} ({HOST}.example.org)\n"
        "srun --account=proj42x --qos debug -A proj42x\nJob 17 on jwb0017,jwb0018, GPUs 0\n"
        "srun: error: jwb0018: task 3: Killed\nslurmstepd: error: *** STEP 1.0 ON jwb0017 CANCELLED AT\n"
        "horovodrun -np 2 -H jwb0017:1,jwb0018:1 python x.py\n[proxy:0:1@jwb0018] exit\n"
        "running on this host (jwb0017): /proc/driver\n"
        "SLURM_JOB_NODELIST=jwb[1-2]\n",
    )
    record = {"machine": {"hostname": "jwb0017", "cores": 2}, "command": [f"{home}/a.py"], "epochs": list(range(100))}
    files.write(root / f"notebooks/runs/{USER}_w1.json", json.dumps(record))
    told = text()
    for secret in (
        USER,
        HOST,
        "JDOE",
        "example",
        "thesis",
        "asmith",
        "proj42x",
        "10.0.3.17",
        "jwb",
        str(tmp_path),
        "elsewhere",
    ):
        assert secret.lower() not in told.lower(), secret
    for kept in (
        '"<course>/notebooks/scripts/ResNet50.py", line 3',
        '"<path>/keras/src/trainer.py", line 8',
        "<home>/img.png or <path>/x.npy",
        "== <user>_w1.err",
        '"cores": 2',
        "(96 more)",
        "release 1.0 of 2026-01-01",
        "GPUs none",
        "(exit code 1)",
    ):
        assert kept in told, kept


def test_its_size_is_bounded_and_it_holds_the_last_runs(root):
    runs = root / "notebooks/runs"
    for number in range(RUNS + 3):
        for suffix in ("out", "err", "json"):
            files.write(
                runs / f"run{number}.{suffix}", f"begin{number}\n" + "x" * 99 + "\n" * 3 * END + f"end{number}\n"
            )
            os.utime(runs / f"run{number}.{suffix}", (number, number))
    os.mkfifo(runs / "pipe.out")
    told = text()
    assert len(told) < 3 * RUNS * END * 1.1 and told.count("== run") == 3 * RUNS
    assert "end7" in told and "== run2." not in told and "begin" not in told


def test_escapes_and_progress_bars_are_plain_text(root):
    clean = Cleaner(root)
    assert clean("\x1b[31mred\x1b[0m\x1b]0;title\x07 1/9\r2/9\r\n\x00end") == "2/9\n\N{REPLACEMENT CHARACTER}end"
    words = "labs predict --model ResNet101, Keras 3.15.1, 1/8 steps, 12 images/s, a/b/c, https://docs.rs/x"
    assert clean(words).startswith("labs predict --model ResNet101, Keras 3.15.1, 1/8 steps, 12 images/s, a/b/c")


def test_a_short_user_name_is_replaced_where_it_is_a_word(root, monkeypatch):
    monkeypatch.setenv("USER", "li")
    assert Cleaner(root)("li_w1 of li: list, limit") == "<user>_w1 of <user>: list, limit"


def test_no_file_is_overwritten(root, monkeypatch, capsys):
    assert cli.main(["doctor", "--bundle"]) == 0 == cli.main(["doctor", "--bundle"])
    assert "Wrote labs-question-2.txt" in capsys.readouterr().out
    assert cli.main(["doctor", "--bundle", "mine.txt"]) == 0 and "== Versions" in open("mine.txt").read()
    with pytest.raises(CourseError, match="mine.txt is there already"):
        write_question("mine.txt")


def test_outside_of_a_course_and_with_a_doctor_that_hangs(root, tmp_path, monkeypatch):
    def hangs(*args, **kwargs):
        raise subprocess.TimeoutExpired("labs doctor", 120)

    monkeypatch.setattr(subprocess, "run", hangs)
    monkeypatch.chdir(tmp_path)
    assert "no release" in text() and "timed out after 120 seconds" in text()
