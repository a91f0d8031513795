"""Trainings in turns: who computes when, what waiting costs, and that nobody waits for ever."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from waiting import until

from labs import devices, jobs
from labs.jobs import anywhere
from labs.results import run as records

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests/programs/takes_turns.py"


def told(folder, name):
    """[(round, order, begin, end), ...] of a program's turns."""
    lines = (folder / f"{name}.turns").read_text().splitlines()
    return [tuple(map(float, line.split())) for line in lines]


def turns_of_b(folder):
    """How many turns the second training has taken."""
    return len(told(folder, "b")) if (folder / "b.turns").exists() else 0


def of(folder):
    """All processes that were started to leave files in this folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("LABS_RUNS") == str(folder):
                found.append(process)
        except psutil.Error:
            pass
    return found


def start(folder, *programs, **options):
    turns = jobs.Turns(show=False, explain=False)
    for name, arguments in zip("ab", programs, strict=False):
        turns.start(PROGRAM, *arguments, name=name, runs=folder, **options)
    return turns


def places(seed, rounds, count=2):
    """[place in each round, from 1 on] of each training, as the seed draws them."""
    drawn = [order for _, order in zip(range(rounds + 1), jobs.orders(seed, count), strict=False)][1:]
    return [[order.index(number) for order in drawn] for number in range(count)]


def test_orders_are_drawn_for_each_round_and_known_by_their_seed():
    assert places(3, 50) == places(3, 50) != places(4, 50)
    first = places(3, 400)[0]
    followed = [(a, b) for a, b in zip(first, first[1:], strict=False)]
    for pair in ((0, 0), (0, 1), (1, 0), (1, 1)):  # whatever came before: of 399, 100 are expected
        assert 70 < followed.count(pair) < 130, pair
    three = [tuple(order) for _, order in zip(range(600), jobs.orders(1, 3), strict=False)]
    assert len(set(three)) == 6 and all(70 < three.count(order) < 130 for order in set(three))


@pytest.mark.parametrize(
    "busy, waits",
    [
        (lambda now: 2 * now, 60.0),  # others always
        (lambda now: 2 * min(now, 7.0), 7.0),  # for 7 s
        (lambda now: 0.3 * now, 0.0),  # less than counts
    ],
)
def test_waiting_is_what_a_watch_shows(busy, waits, monkeypatch):
    """By a watch of ours. A look takes a quarter of a second, and nobody asks for it at once."""
    watch = SimpleNamespace(now=0.0, monotonic=lambda: watch.now)
    monkeypatch.setattr("labs.jobs.turns.time", watch)
    monkeypatch.setattr("labs.devices.busy", lambda: busy(watch.now))
    monkeypatch.setattr("labs.devices.cores", lambda: 2)
    turns = jobs.Turns(show=False, patience=60.0)
    spent = []
    for _ in range(3):  # rounds
        begin = watch.now
        while not turns._calm():
            watch.now += 0.3
        spent.append(watch.now - begin)
        watch.now += 10.0  # the round, of stopped trainings: of ours
    assert waits <= sum(spent) < waits + 3 * 0.7 and abs(turns.waited - max(0.0, waits)) < 0.7
    if waits:
        assert turns.waited == pytest.approx(spent[0])


def test_one_computes_at_a_time_in_the_order_that_is_drawn(tmp_path):
    turns = start(tmp_path, [5], [5])
    turns.wait(timeout=300)
    assert turns.state == "finished"
    a, b = told(tmp_path, "a"), told(tmp_path, "b")
    assert [turn[0] for turn in a] == [turn[0] for turn in b] == [0, 1, 2, 3, 4]
    assert [[turn[1] for turn in each[1:]] for each in (a, b)] == places(turns.seed, 4)
    spans = sorted((begin, end) for _, _, begin, end in a + b)
    assert all(end <= begin for (_, end), (begin, _) in zip(spans, spans[1:], strict=False))
    assert until(lambda: not of(tmp_path)), "a process stayed behind"


@pytest.mark.parametrize("share, waits", [(0.5, True), (0.05, False)])
def test_a_round_waits_while_other_programs_compute(share, waits, tmp_path, monkeypatch):
    """The counter of the cores is one of ours: of two cores' time, programs take `share`, at first."""
    begin, until_then = time.monotonic(), 3.0
    spent = lambda: devices.cores() * share * min(max(0, time.monotonic() - begin), until_then)  # noqa: E731
    monkeypatch.setattr("labs.devices.busy", spent)
    turns = start(tmp_path, [3], [3])
    begin, turns.patience = time.monotonic() + 1000, 60.0  # the counter stands still until both are ready
    ready = lambda: len(turns._trainings) == 2 and all(t.ready for t in turns._trainings.values())  # noqa: E731
    listen = turns._listen

    def watched(seconds):
        nonlocal begin
        if begin > time.monotonic() and ready():
            begin = time.monotonic()
        listen(seconds)

    monkeypatch.setattr(turns, "_listen", watched)
    turns.wait(timeout=300)
    assert turns.state == "finished" and len(told(tmp_path, "a")) == 3
    assert (1 < turns.waited < 50) == waits and bool(turns.explain_waiting()) == waits, turns.waited


def test_patience_ends(tmp_path, monkeypatch):
    monkeypatch.setattr("labs.devices.busy", lambda: devices.cores() * time.monotonic())
    turns = start(tmp_path, [3], [3])
    turns.patience = 2.0
    turns.wait(timeout=300)
    assert turns.state == "finished" and 2 <= turns.waited < 60 and "went on beside them" in turns.explain_waiting()


def test_patience_is_a_number_of_seconds(monkeypatch):
    for said in ("long", "-1", "nan"):
        monkeypatch.setenv("LABS_PATIENCE", said)
        with pytest.raises(jobs.JobError, match="LABS_PATIENCE"):
            jobs.Turns()
    monkeypatch.setenv("LABS_PATIENCE", "2.5")
    assert jobs.Turns().patience == 2.5


def test_more_turns_than_the_other_are_taken_alone(tmp_path):
    turns = start(tmp_path, [2], [4])
    turns.wait(timeout=300)
    assert turns.state == "finished" and [len(told(tmp_path, name)) for name in "ab"] == [2, 4]


def test_a_crash_ends_the_other_and_what_was_measured_stays(tmp_path):
    turns = start(tmp_path, [9], [9, "crash", 3])
    turns.wait(timeout=300)
    assert [job.state for job in turns.jobs] == ["stopped", "failed"] and turns.state == "failed"
    assert len(told(tmp_path, "b")) == 3 and 3 <= len(told(tmp_path, "a")) <= 4
    assert "this training crashes" in (tmp_path / "b.err").read_text()
    assert until(lambda: not of(tmp_path)), "a process stayed behind"


def test_an_interrupt_stops_all(tmp_path, monkeypatch):
    turns = start(tmp_path, [900], [900])
    heard = turns._listen

    def interrupted(seconds):
        heard(seconds)
        if turns_of_b(tmp_path) > 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(turns, "_listen", interrupted)
    turns.wait(timeout=300)
    assert [job.state for job in turns.jobs] == ["stopped", "stopped"]
    assert until(lambda: not of(tmp_path)), "a process stayed behind"


COORDINATOR = """
import sys
from labs import devices, jobs
turns = jobs.Turns(show=False)
for name in "ab":
    turns.start(sys.argv[1], 900, name=name, runs=sys.argv[2])
if sys.argv[3] == "begin":
    turns.begin()
    sys.stdin.read()
else:
    with turns:
        pass
"""


@pytest.mark.parametrize(
    "how, sign",
    [
        ("wait", signal.SIGKILL),
        ("wait", signal.SIGTERM),
        ("wait", signal.SIGINT),
        ("begin", signal.SIGKILL),
        ("begin", None),  # it ends by itself, and has not waited
    ],
)
def test_nothing_stays_behind_when_the_coordinator_ends(tmp_path, how, sign):
    command = [sys.executable, "-c", COORDINATOR, PROGRAM, tmp_path, how]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdin=subprocess.PIPE)
    assert until(lambda: turns_of_b(tmp_path) > 1), "no turn was taken"
    if sign:
        process.send_signal(sign)
    process.communicate(timeout=300)  # closes its stdin
    assert until(lambda: not of(tmp_path)), "a process stayed behind"
    assert len(told(tmp_path, "a")) > 0


def test_a_training_whose_keeper_is_killed_does_not_wait_for_ever(tmp_path):
    turns = start(tmp_path, [900], [900])
    begin = time.monotonic()

    def kill_one():
        while not (found := [p for p in of(tmp_path) if "keeper.py" in " ".join(p.cmdline())][:1]):
            assert time.monotonic() - begin < 300
            time.sleep(0.1)
        return found[0]

    victim = kill_one()
    assert until(lambda: victim.parent().status() == psutil.STATUS_STOPPED), "it never waited"
    victim.kill()
    begin = time.monotonic()
    turns.wait(timeout=300)
    assert time.monotonic() - begin < 250 and all(job.state == "stopped" for job in turns.jobs)
    assert until(lambda: not of(tmp_path)), "a process stayed behind"


DEAF = """
import json, signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
patient = "import sys; sys.path.insert(0, sys.argv[1]); import keeper; keeper.PATIENCE = 0.3; keeper.main()"
keeper = subprocess.Popen([sys.executable, "-I", "-S", "-c", patient, sys.argv[1]], stdin=subprocess.PIPE)
keeper.stdin.write(json.dumps({"address": ["127.0.0.1", int(sys.argv[2])]}).encode() + b"\\n")
keeper.stdin.flush()
keeper.wait()
"""


def test_a_training_that_does_not_listen_is_killed_when_its_coordinator_has_died():
    with socket.create_server(("127.0.0.1", 0)) as coordinator:
        command = [sys.executable, "-S", "-c", DEAF, ROOT / "labs/waiting", str(coordinator.getsockname()[1])]
        training = subprocess.Popen(command)
        coordinator.accept()[0].close()
    assert training.wait(timeout=300) == -signal.SIGKILL


def test_a_stranger_gets_no_turn_and_disturbs_nobody(tmp_path):
    turns = start(tmp_path, [3], [3])
    address = turns._listener.getsockname()
    strangers = [socket.create_connection(address) for _ in range(3)]
    strangers[0].sendall(b'{"token": "guessed", "job": "a", "rank": 0, "ranks": 1}\nwaiting\n')
    strangers[1].sendall(b"\xff\xfe[]\n{}\n")
    turns.wait(timeout=300)
    assert turns.state == "finished" and len(told(tmp_path, "a")) == 3
    assert strangers[0].recv(100) == b""


def address_of_this_machine():
    """One that other machines would use, or None; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        return probe.getsockname()[0]


def test_only_inside_a_job_of_slurms_other_machines_are_heard(tmp_path, monkeypatch):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert jobs.Turns()._listener.getsockname()[0] == "127.0.0.1"
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    outside = address_of_this_machine()
    if not outside:
        pytest.skip("this machine has no address of its own")
    turns = jobs.Turns(show=False, explain=False)
    host, port = turns._listener.getsockname()
    assert host == "0.0.0.0"
    # As SLURM tells each process of a step; the node's name alone says nothing here.
    monkeypatch.setattr(socket, "gethostname", lambda: "no.such.node.invalid")
    monkeypatch.setenv("SLURM_LAUNCH_NODE_IPADDR", outside)
    monkeypatch.setattr(anywhere.launch, "command", lambda ranks, launcher: [])
    for name in "ab":
        turns.start(PROGRAM, 2, name=name, runs=tmp_path, ranks=1, launcher="srun")
    stranger = socket.create_connection((outside, port))
    stranger.sendall(b"x" * 100_000)  # without an end of the line
    turns.wait(timeout=300)
    assert turns.state == "finished" and len(told(tmp_path, "a")) == 2
    assert (tmp_path / "a.err").read_text() == ""


def test_wrong_use_is_refused(tmp_path):
    with pytest.raises(jobs.JobError, match="Two trainings are called 'a'"), jobs.Turns(show=False) as turns:
        for _ in range(2):
            turns.start(PROGRAM, 3, name="a", runs=tmp_path)
    assert until(lambda: not of(tmp_path)), "a process stayed behind"
    with pytest.raises(jobs.JobError, match="cannot take turns"):
        jobs.Turns().start("a.sh", name="a")
    assert jobs.Turns().wait() == []


def test_in_the_background_the_test_goes_on_and_wait_collects(tmp_path, capsys):
    turns = start(tmp_path, [5], [5])
    turns.explain = True
    progress = {"epochs_done": 1, "epochs": 5, "step": 3, "steps": 8, "fraction": 0.25, "images_per_second": None}
    for name in "ab":
        (tmp_path / f"{name}.progress").write_text(json.dumps(progress))
    assert turns.begin() is turns and turns.state == "running"
    where = re.compile(r"<a, b: running, \d+% done; now [ab]: epoch 2 of 5, step 3 of 8>")
    assert until(lambda: where.fullmatch(repr(turns))), "no turn was seen while the test went on"
    with pytest.raises(jobs.JobError, match="wait\\(\\) collects them"):
        turns.start(PROGRAM, 5, name="c", runs=tmp_path)
    with pytest.raises(jobs.JobError, match="These trainings have begun"):
        turns.begin()
    assert [job.name for job in turns.wait(timeout=300)] == ["a", "b"] and turns.state == "finished"
    assert [job.state for job in turns.wait()] == ["finished", "finished"], "it can be asked again"
    a, b = told(tmp_path, "a"), told(tmp_path, "b")
    assert [turn[0] for turn in a] == [turn[0] for turn in b] == [0, 1, 2, 3, 4]
    assert [[turn[1] for turn in each[1:]] for each in (a, b)] == places(turns.seed, 4)
    assert capsys.readouterr().out.count("a finished. Its files") == 2 and repr(turns) == "<a, b: finished>"
    assert until(lambda: not of(tmp_path)), "a process stayed behind"


def test_before_a_step_is_reported_it_says_whose_turn_it_is():
    def training(state):
        return SimpleNamespace(job=SimpleNamespace(name="a", state=state, progress=dict))

    turns = jobs.Turns(show=False)
    turns.jobs, turns._trainings = [training("running").job], {"a": training("running")}
    assert repr(turns) == "<a: running>"
    turns._begun = 1.0
    assert repr(turns) == "<a: running; starting, and no training has had a turn yet>"
    turns._round, turns._turn = 0, training("running")
    assert repr(turns) == "<a: running; round 0: a has its turn, and has reported no step yet>"
    for turns._turn in (None, training("finished")):
        assert repr(turns) == "<a: running; between two turns>"


def test_between_two_turns_the_progress_stays_where_it_was():
    def training(name, fraction):
        said = {"epochs_done": 1, "fraction": fraction} if fraction else {}
        return SimpleNamespace(job=SimpleNamespace(name=name, state="running", progress=lambda: dict(said)))

    turns, a, b = jobs.Turns(show=False), training("a", 0.5), training("b", None)
    turns.jobs, turns._trainings = [a.job, b.job], {"a": a, "b": b}
    assert turns.progress() == {}
    turns._turn = a
    there = {"epochs_done": 1, "fraction": 0.25, "name": "a"}
    assert turns.progress() == there
    for turns._turn in (None, b):  # b has reported no step yet
        assert turns.progress() == there


@pytest.mark.parametrize("end", ["stop", "timeout", "interrupt"])
def test_in_the_background_all_are_stopped(tmp_path, end):
    turns = start(tmp_path, [900], [900]).begin()
    assert until(lambda: turns_of_b(tmp_path) > 2) and turns.state == "running"
    if end == "stop":
        turns.stop()
        assert [job.state for job in turns.jobs] == ["stopped", "stopped"]
    elif end == "interrupt":
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    turns.wait(timeout=1 if end == "timeout" else 300)
    assert [job.state for job in turns.jobs] == ["stopped", "stopped"] and len(told(tmp_path, "a")) > 1
    assert until(lambda: not of(tmp_path)), "a process stayed behind"


def test_a_crash_in_the_background_ends_the_other_before_anybody_waits(tmp_path):
    turns = start(tmp_path, [900], [900, "crash", 3]).begin()
    assert until(lambda: turns.state != "running")
    assert [job.state for job in turns.jobs] == ["stopped", "failed"] and turns.state == "failed"
    assert until(lambda: not of(tmp_path)), "a process stayed behind"
    assert turns.wait() == turns.jobs and len(told(tmp_path, "b")) == 3


def test_what_goes_wrong_in_giving_turns_is_raised_by_wait(tmp_path, monkeypatch):
    turns = start(tmp_path, [900], [900])
    monkeypatch.setattr(turns, "_give", lambda: None)  # nobody gets a turn
    turns.begin()
    monkeypatch.setattr(turns, "_give", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        turns.wait(timeout=300)
    assert turns.state == "stopped" and until(lambda: not of(tmp_path)), "a process stayed behind"


def test_nothing_begins_without_a_training_or_after_the_end(tmp_path):
    turns = jobs.Turns(show=False, explain=False)
    with pytest.raises(jobs.JobError, match="No training was started"):
        turns.begin()
    assert repr(turns) == "<no training: finished>"
    turns.start(PROGRAM, 3, name="a", runs=tmp_path)
    turns.stop()
    with pytest.raises(jobs.JobError, match="make a new jobs.Turns"):
        turns.begin()
    assert [job.state for job in turns.wait()] == ["stopped"]


MODULE = "labs.training.program"
SIZES = ["--model", "SmallCNN", "--images", 256, "--epochs", 4]
UNDER_LAUNCHERS = "trainings in turns under mpiexec and horovodrun: `make test` has them under srun"


@pytest.mark.parametrize(
    "launcher",
    [None, *(pytest.param(name, marks=pytest.mark.more(UNDER_LAUNCHERS)) for name in ("mpiexec", "horovodrun"))],
)
def test_real_trainings(tmp_path, launcher, needs_horovod, monkeypatch):
    """On 1 and on 2 workers or ranks: rounds on record, empty .err, and under 1 % of a core for the one that waits."""
    if not launcher:
        monkeypatch.setenv("SLURM_JOB_ID", "77")  # a notebook within a job of SLURM's
    turns = jobs.Turns(show=False, explain=False)
    for count in (1, 2):
        options = {"ranks": count, "launcher": launcher} if launcher else {}
        asked = ["--strategy", "horovod" if launcher else "mirrored", "--workers", count, "--batch_size", 32 * count]
        turns.start("-m", MODULE, *SIZES, *asked, name=f"w{count}", runs=tmp_path, **options)
    one, two = turns._trainings.values()
    begin = time.monotonic()
    while not (one.ready and two.ready):  # both wait; nobody gets a turn yet
        for key, _ in turns._select.select(0.1):
            if key.fileobj is turns._listener:
                turns._accept()
            else:
                turns._hear(key.fileobj, key.data)
        assert time.monotonic() - begin < 300 and turns.state == "running"
    time.sleep(1)
    before = cpu_seconds(turns.jobs)
    time.sleep(5)
    for job, spent in cpu_seconds(turns.jobs).items():
        assert spent - before[job] < 0.01 * 5, f"{job} took {(spent - before[job]) / 5:.1%} of a core while it waited"
    turns.wait(timeout=300)
    assert turns.state == "finished", [job.explain() for job in turns.jobs]
    found = [records.load(job.record) for job in turns.jobs]
    assert {each.study for each in found} == {turns.study} and {each.sharing for each in found} == {
        "stopped between turns"
    }
    assert {each.job_id for each in found} == {None if launcher else "77"}
    for each in found:
        assert [epoch.round for epoch in each.epochs] == [None, 1, 2, 3]
    assert [[epoch.order for epoch in each.epochs[1:]] for each in found] == places(turns.seed, 3)
    assert {each.order_seed for each in found} == {turns.seed}
    assert [job.err.read_text() for job in turns.jobs] == ["", ""]


def cpu_seconds(started):
    """{name of a job: CPU seconds of all its processes}."""
    found = {}
    for job in started:
        root = psutil.Process(job.process.pid)
        times = [process.cpu_times() for process in (root, *root.children(recursive=True))]
        found[job.name] = sum(time.user + time.system for time in times)
    return found


def test_an_address_of_nobody_ends_the_training_with_a_reason(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
    settings = {"address": address, "token": "x", "job": "a", "study": "s", "order_seed": 1, "sharing": "stopped"}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LABS_TURNS": json.dumps(settings)}
    environment |= {"LABS_RUNS": str(tmp_path), "LABS_RUN": "a"}
    command = [sys.executable, PROGRAM, "3"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode != 0 and told(tmp_path, "a") == []
    assert "The program that gives the turns cannot be reached at 127.0.0.1" in done.stderr
