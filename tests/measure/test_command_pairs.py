"""labs compare: two commands, or two commits, in turns; what it says, and that nothing of it stays."""

import os
import re
import signal
import subprocess
import sys

import numpy as np
import psutil
import pytest
from waiting import until

from labs import cli, jobs
from labs.measure import compare


def measured(monkeypatch, seconds, noise=0.01, drawn=3, **options):
    """What compare.run says of commands that take these seconds, {command: one of the wall clock}, and their order.

    drawn: of the order of rounds, one for all times: an interval misses 1 time in 20
    """
    calls, random = [], np.random.default_rng(0)

    def took(command, stem, folder):
        calls.append((command, folder))
        wall = seconds[command if folder is None else folder.name] * np.exp(random.normal(0, noise))
        return wall, wall / 2

    monkeypatch.setattr(compare, "_seconds", took)
    monkeypatch.setattr(compare.secrets, "randbelow", lambda _: drawn)
    return compare.run(*options.pop("of", seconds), report=str, **options), calls


def test_the_slower_one_is_told_by_the_ratio_within_rounds(monkeypatch):
    lines, calls = measured(monkeypatch, {"a": 3.0, "b": 2.0}, drawn=5)
    assert len(lines) == 4 and lines[0].startswith("wall seconds: A 2.98, B 2 ") and "in these minutes" in lines[0]
    value, low, high = map(float, re.findall(r"\d\.\d{3}", lines[1]))
    assert low < 1.5 < high and high / low < 1.06 and low < value < high  # as 3 s and 2 s are
    assert "within 6 rounds" in lines[1] and lines[1].endswith("yes, A takes more.")
    assert lines[2].startswith("processor seconds: A 1.49, B 1")
    drawn = [order for _, order in zip(range(7), jobs.orders(5, 2), strict=False)]
    assert [command for command, _ in calls] == ["ab"[number] for order in drawn for number in order]


def test_equal_ones_are_told_apart_from_those_that_nobody_can_tell(monkeypatch):
    lines, _ = measured(monkeypatch, {"a": 2.0, "b": 2.0}, rounds=20)
    assert lines[1].endswith("no, less than 5 %.")
    lines, _ = measured(monkeypatch, {"a": 2.0, "b": 2.0}, noise=0.1)
    assert lines[1].endswith("can't tell.")


def test_a_single_round_has_no_interval_and_tells_nothing(monkeypatch):
    lines, _ = measured(monkeypatch, {"a": 3.0, "b": 2.0}, rounds=1)
    assert re.search(r"within 1 round: 1\.\d{3}\. Do they differ\? can't tell\.$", lines[1]), lines[1]
    assert "1 round: no interval" in lines[2]


def test_real_commands(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    slow = f"{sys.executable} -S -c 'while True: pass' & sleep 0.2; exit 0"  # what it leaves is ended
    assert cli.main(["compare", slow, "true; printf unfinished >&2", "--rounds", "2"]) == 0
    text = capfd.readouterr().out
    assert re.search(r"wall seconds: A 0\.[2-9]\d*, B 0\.\d+ ", text) and os.listdir(tmp_path) == []
    assert not [p for p in psutil.process_iter(["cmdline"]) if "while True: pass" in " ".join(p.info["cmdline"] or ())]
    assert cli.main(["compare", "true", "echo 'no such thing' >&2; exit 3", "--rounds", "2"]) == 1
    error = capfd.readouterr().err
    assert "exit code 3: no such thing" in error and error.count("\n") == 1


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """One with two commits, whose file says which it is."""
    place = tmp_path / "repository"
    place.mkdir()
    monkeypatch.chdir(place)
    name = ["-c", "user.name=a", "-c", "user.email=a@b.invalid"]
    subprocess.run(["git", "init", "-q"], check=True)
    for text in ("first", "second"):
        (place / "file").write_text(text)
        subprocess.run(["git", "add", "."], check=True)
        subprocess.run(["git", *name, "commit", "-qm", text], check=True)
    return place


def trees():
    return subprocess.run(["git", "worktree", "list"], capture_output=True, text=True).stdout.splitlines()


def test_two_commits_in_work_trees_that_are_removed(repository, monkeypatch, capsys):
    seen = []

    def took(command, stem, folder):
        seen.append((stem.name[0], (folder / "file").read_text(), command))
        return 1.0, 1.0

    monkeypatch.setattr(compare, "_seconds", took)
    compare.run("HEAD~1", "HEAD", "cmd", 2, report=str)
    assert set(seen) == {("A", "first", "cmd"), ("B", "second", "cmd")} and len(seen) == 6 and len(trees()) == 1
    assert cli.main(["compare", "HEAD", "no-such-commit", "--command", "true"]) == 1
    assert "No work tree of 'no-such-commit'" in capsys.readouterr().err and len(trees()) == 1
    monkeypatch.chdir(repository.parent)
    assert cli.main(["compare", "HEAD", "HEAD", "--command", "true"]) == 1
    with pytest.raises(SystemExit, match="2"):
        cli.main(["compare", "a", "b", "--rounds", "1"])


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing(repository, sign):
    command = [sys.executable, "-m", "labs", "compare", "HEAD", "HEAD", "--command", "sleep 7654.3 & sleep 7654.3"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def sleeping():
        return [p for p in psutil.process_iter(["cmdline"]) if "7654.3" in (p.info["cmdline"] or ())]

    assert until(lambda: len(sleeping()) == 2) and len(trees()) == 3
    process.send_signal(sign)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130 and error.count("\n") == 1 and "interrupted" in error
    assert until(lambda: not sleeping()) and len(trees()) == 1
