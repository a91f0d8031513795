"""Trainings in turns: who computes when, what waiting costs, and that nobody waits for ever."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import types
from collections import Counter
from pathlib import Path

import psutil
import pytest
from tree import NO_GREETING
from waiting import until

from labs import jobs
from labs.errors import LabsError
from labs.jobs import anywhere
from labs.results import run as records

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests/programs/takes_turns.py"


def test_a_training_gives_way_when_all_its_ranks_wait_or_it_has_ended():
    for state, waiting, gives_way in (("running", 1, False), ("running", 2, True), ("failed", 1, True)):
        training = jobs.turns._Training(types.SimpleNamespace(state=state), ranks=2, waiting=[None] * waiting)
        assert training.gives_way == gives_way


def told(folder, name):
    """[(round, order, begin, end), ...] of a program's turns so far."""
    path = folder / f"{name}.turns"
    return [tuple(map(float, line.split())) for line in path.read_text().splitlines()] if path.exists() else []


def of(folder):
    """All processes that were started to leave files in this folder."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            found += [process] if process.environ().get("LABS_RUNS") == str(folder) else []
    return found


@pytest.fixture
def start(tmp_path):
    """start(arguments, ...) -> Turns of the programs a, b, ... with these; nothing of them stays behind."""
    made = []

    def start(*programs, **options):
        made.append(jobs.Turns(show=False, explain=False))
        for name, arguments in zip("ab", programs, strict=False):
            made[-1].start(PROGRAM, *arguments, name=name, runs=tmp_path, **options)
        return made[-1]

    yield start
    ended = until(lambda: not of(tmp_path), 300)
    for turns in made:
        turns.stop()
    assert ended, "a process stayed behind"


def places(seed, rounds, count=2):
    """[place in each round, from 1 on] of each training, as the seed draws them."""
    drawn = [order for _, order in zip(range(rounds + 1), jobs.orders(seed, count), strict=False)][1:]
    return [[order.index(number) for order in drawn] for number in range(count)]


def test_orders_are_drawn_for_each_round_and_known_by_their_seed():
    assert places(3, 50) == places(3, 50) != places(4, 50)
    three = [tuple(order) for _, order in zip(range(3601), jobs.orders(1, 3), strict=False)]
    followed = Counter(zip(three, three[1:], strict=False))  # whatever came before: of 3600, 100 of each are expected
    assert len(followed) == 36 and all(60 < count < 140 for count in followed.values())


def test_in_the_background_one_computes_at_a_time_in_the_order_drawn(tmp_path, start, capsys):
    turns = start([5], [5])
    turns.explain = True
    for name in "ab":
        progress = {
            "epochs_done": 1,
            "epochs": 5,
            "step": 3,
            "steps": 8,
            "fraction": 0.25,
            "images_per_second": 90.0,
            "workers": 1,
        }
        (tmp_path / f"{name}.progress").write_text(json.dumps(progress))
    assert turns.begin() is turns and turns.state == "running"
    where = r"<a, b: running, \d+% done; now [ab]: epoch 2 of 5, step 3 of 8>"
    assert until(lambda: re.fullmatch(where, repr(turns))), "no turn was seen while the test went on"
    with pytest.raises(LabsError, match="wait\\(\\) collects them"):
        turns.start(PROGRAM, 5, name="c", runs=tmp_path)
    assert [job.name for job in turns.wait(timeout=300)] == ["a", "b"] and turns.state == "finished"
    every = [told(tmp_path, name) for name in "ab"]
    assert [[turn[0] for turn in each] for each in every] == [[0, 1, 2, 3, 4]] * 2
    assert [[turn[1] for turn in each[1:]] for each in every] == places(turns.seed, 4)
    spans = sorted((begin, end) for each in every for _, _, begin, end in each)
    assert all(end <= begin for (_, end), (begin, _) in zip(spans, spans[1:], strict=False))
    assert capsys.readouterr().out.count("a finished. Its files") == 1 and repr(turns) == "<a, b: finished>"


def test_strangers_get_no_turn(tmp_path, start):
    """One of the trainings has more turns, which it takes alone."""
    turns = start([2], [4])
    strangers = [socket.create_connection(turns._listener.getsockname()) for _ in range(3)]
    strangers[0].sendall(b'{"token": "guessed", "job": "a", "rank": 0, "ranks": 1}\nwaiting\n')
    strangers[1].sendall(b"\xff\xfe[]\n{}\n")
    strangers[2].sendall(b"x" * 100_000)  # without an end of the line
    turns.wait(timeout=300)
    assert turns.state == "finished" and [len(told(tmp_path, name)) for name in "ab"] == [2, 4]
    assert strangers[0].recv(100) == b""


COORDINATOR = """
import sys
from labs import jobs
turns = jobs.Turns(show=False)
for name in "ab":
    turns.start(sys.argv[1], 900, name=name, runs=sys.argv[2])
turns.begin()
sys.stdin.read() if sys.argv[3] == "begin" else turns.wait()
"""


# None: it ends by itself, and has not waited
@pytest.mark.parametrize("how, sign", [("wait", signal.SIGKILL), ("wait", signal.SIGINT), ("begin", None)])
def test_nothing_stays_behind_when_the_coordinator_ends(tmp_path, start, how, sign):
    command = [sys.executable, "-c", COORDINATOR, PROGRAM, tmp_path, how]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdin=subprocess.PIPE)
    assert until(lambda: len(told(tmp_path, "b")) > 1), "no turn was taken"
    if sign:
        process.send_signal(sign)
    process.communicate(timeout=300)  # closes its stdin
    assert len(told(tmp_path, "a")) > 0


def test_a_training_whose_keeper_is_killed_does_not_wait_for_ever(tmp_path, start):
    turns = start([900], [900])
    assert until(lambda: any("waiting.py" in " ".join(each.cmdline()) for each in of(tmp_path)))
    victim = next(each for each in of(tmp_path) if "waiting.py" in " ".join(each.cmdline()))
    assert until(lambda: victim.parent().status() == psutil.STATUS_STOPPED, 300), "it never waited"
    victim.kill()
    turns.begin()
    assert until(lambda: turns.state != "running", 300) and all(job.state == "stopped" for job in turns.wait())


def test_only_inside_a_job_of_slurms_other_machines_are_heard(tmp_path, start, monkeypatch):
    """Steps know who gives the turns as SLURM tells it; here the address is one of this machine."""
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert jobs.Turns()._listener.getsockname()[0] == "127.0.0.1"
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    assert jobs.Turns()._listener.getsockname()[0] == "0.0.0.0"
    monkeypatch.setenv("SLURM_LAUNCH_NODE_IPADDR", "127.0.0.2")
    monkeypatch.setattr(anywhere.launch, "command", lambda ranks, launcher: [])
    turns = start([2], [2], ranks=1, launcher="srun")
    turns.wait(timeout=300)
    assert turns.state == "finished" and len(told(tmp_path, "a")) == 2 and (tmp_path / "a.err").read_text() == ""


def test_wrong_use_is_refused(tmp_path, start):
    with pytest.raises(LabsError, match="Two trainings are called 'a'"), jobs.Turns(show=False) as turns:
        for _ in range(2):
            turns.start(PROGRAM, 3, name="a", runs=tmp_path)
    assert [job.state for job in turns.wait()] == ["stopped"]
    with pytest.raises(LabsError, match="cannot take turns"):
        jobs.Turns().start("a.sh", name="a")


def test_a_crash_or_the_limit_of_time_ends_all_and_what_was_measured_stays(tmp_path, start):
    turns = start([900], [900, "crash", 3]).begin()
    assert until(lambda: turns.state != "running")  # before anybody waits
    assert [job.state for job in turns.jobs] == ["stopped", "failed"] and turns.state == "failed"
    assert turns.wait() == turns.jobs and len(told(tmp_path, "b")) == 3 and 3 <= len(told(tmp_path, "a")) <= 4
    assert "this training crashes" in (tmp_path / "b.err").read_text()
    assert [job.state for job in start([900], [900]).wait(timeout=1)] == ["stopped", "stopped"]


MODULE = "labs.training.program"
SIZES = ["--model", "SmallCNN", "--images", 256, "--epochs", 4]


def test_real_trainings(tmp_path, start, monkeypatch):
    """On 1 and on 2 workers: rounds on record, and an empty .err. With ranks: notebook 08, and study.sh in SLURM."""
    monkeypatch.setenv("SLURM_JOB_ID", "77")  # a notebook within a job of SLURM's
    turns = start()
    for count in (1, 2):
        asked = ["--strategy", "mirrored", "--workers", count, "--batch_size", 32 * count]
        turns.start("-m", MODULE, *SIZES, *asked, name=f"w{count}", runs=tmp_path, env=NO_GREETING)
    turns.wait(timeout=600)
    assert turns.state == "finished", [job.explain() for job in turns.jobs]
    found = [records.load_record(job.record) for job in turns.jobs]
    for each in found:
        assert (each.study, each.order_seed) == (turns.study, turns.seed)
        assert each.job_id == "77"
        assert [epoch.round for epoch in each.epochs] == [None, 1, 2, 3]
    assert [[epoch.order for epoch in each.epochs[1:]] for each in found] == places(turns.seed, 3)
    assert [job.err.read_text() for job in turns.jobs] == ["", ""]
