"""labs.jobs.standing: where the ranks of a running job are, by a signal alone; labs.jobs.standstill: in words."""

import itertools
import json
import os
import signal
import subprocess
import sys
import sysconfig
import textwrap

import psutil
import pytest
from tree import ROOT
from waiting import until

from labs import cli, jobs, stacks
from labs.jobs import standing, standstill

# A user who may read where root's Python lies, but nothing else that root may.
READS = "+dac_read_search"
NOBODY = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    f"--inh-caps={READS}",
    f"--ambient-caps={READS}",
]
NOBODY = NOBODY if os.geteuid() == 0 else []
SITE = sysconfig.get_path("purelib")
SLEEPS = """
import time
def inner():
    print("there", flush=True)
    time.sleep(100)
inner()
"""


@pytest.fixture
def started(tmp_path, monkeypatch):
    """started(text of a script, **options) -> a job that has printed "there"; ended after the test."""
    monkeypatch.setattr(standing, "PAUSE", 0.05)
    made = []

    def started(text, name="some", **options):
        script = tmp_path / f"{name}.py"
        script.write_text(textwrap.dedent(text))
        made.append(jobs.start(script, name=name, runs=tmp_path / "runs", **options))
        assert until(lambda: "there" in made[-1].out.read_text()), made[-1].err.read_text()
        return made[-1]

    yield started
    for job in made:
        job.stop(0.5)


def test_a_job_says_where_it_is_and_goes_on(started, capsys):
    job = started(SLEEPS)
    (rank,) = standing.ranks(job.stem)
    assert [line for _, line, _ in standstill.own(rank["looks"][0])] == [5, 6]
    assert rank["state"] == "sleeping" and rank["memory"] > 2**20 and len(rank["looks"]) == standing.LOOKS
    assert "Rank 0 sleeps (some.py, line 5), in no collective" in job.explain() and job.state == "running"
    assert cli.main(["why", "some", "--runs", str(job.stem.parent)]) == 0
    told = capsys.readouterr().out
    assert "some.py:5" in told and "inner" in told and "time.sleep(100)" in told
    assert cli.main(["why", "some", "--json", "--runs", str(job.stem.parent)]) == 0
    assert json.loads(capsys.readouterr().out)[0]["pid"] == rank["pid"]
    job.stop()
    assert not list(job.stem.parent.glob("*.stacks")), "nothing of it stays"


def test_looking_hurts_no_process_that_computes(started, monkeypatch):
    """faulthandler's signal in the middle of Python ends it within some hundred looks."""
    monkeypatch.setattr(standing, "LOOKS", 1)
    job = started("""
    import threading, time
    threading.Thread(target=lambda: [time.sleep(0.001) for _ in range(10**6)], daemon=True).start()
    def call(depth):
        return depth and call(depth - 1)
    print("there", flush=True)
    while True:
        call(20), sorted(range(20), key=lambda k: -k)
    """)
    seen = []
    for _ in range(60):
        (rank,) = standing.ranks(job.stem)
        seen += rank["looks"]  # none where a busy machine does not let it run for half a second
        assert job.state == "running"
    assert len(seen) > 10


def test_one_that_stands_still_in_a_library_is_seen_by_its_second_signal(started):
    """sem_wait begins again after a handler of Python's: what is in C is not left."""
    job = started("""
    import ctypes
    libc, semaphore = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    libc.sem_init(semaphore, 0, 0)
    def waits():
        print("there", flush=True)
        libc.sem_wait(semaphore)
    waits()
    """)
    (rank,) = standing.ranks(job.stem)
    assert [line for _, line, _ in standstill.own(rank["looks"][-1])] == [7, 8] and len(rank["looks"]) == 3
    assert rank["state"] == "sleeping" and job.state == "running"


def test_the_end_of_an_earlier_run_leaves_the_files_of_a_newer_one(started):
    earlier = started(SLEEPS)
    earlier.stop()
    job = started(SLEEPS)
    earlier.stop()
    assert standing.files(job.stem) and standing.ranks(job.stem)[0]["looks"]


def test_one_that_sleeps_and_now_and_then_waits_for_a_core_does_not_compute(started, monkeypatch):
    job, states = started(SLEEPS), itertools.cycle(["running", "sleeping", "sleeping"])
    monkeypatch.setattr(standing, "_state", lambda head: next(states))
    (rank,) = standing.ranks(job.stem)
    assert rank["state"] == "sleeping" and "Rank 0 sleeps" in standstill.verdict([rank])[0]


def test_what_runs_computes_and_what_is_stopped_is_stopped(started):
    job = started("print('there', flush=True)\nwhile True:\n    sum(range(1000))\n")
    (rank,) = standing.ranks(job.stem)
    assert rank["state"] == "running" and "Rank 0 computes" in standstill.verdict([rank])[0]
    assert "Rank 2 has said nothing" in standstill.verdict([rank | {"size": 3}, rank | {"rank": 1, "size": 3}])[-1]
    os.kill(rank["pid"], signal.SIGSTOP)
    assert "Rank 0 is stopped" in standstill.verdict(standing.ranks(job.stem))[0]
    os.kill(rank["pid"], signal.SIGCONT)


def test_handlers_of_the_program_stay(started):
    """Its own are never called, whichever signals they are for; one that takes ours later is not hurt."""
    job = started("""
    import os, signal, time
    signal.signal(signal.SIGUSR1, lambda *_: print("mine", flush=True))
    signal.signal(signal.SIGUSR2, lambda *_: print("mine", flush=True))
    print("there", flush=True)
    while True:
        time.sleep(0.01)
    """)
    (rank,) = standing.ranks(job.stem)
    assert rank["looks"] and "mine" not in job.out.read_text()
    os.kill(rank["pid"], signal.SIGUSR1)
    assert until(lambda: "mine" in job.out.read_text()) and job.state == "running"


def test_a_signal_that_the_program_handles_is_left_to_it(tmp_path, monkeypatch):
    monkeypatch.delenv(stacks.VARIABLE, raising=False)
    program = """
import signal, sys
from labs import stacks
taken = stacks.SIGNALS[: int(sys.argv[1])]
for each in taken:
    signal.signal(each, print)
stacks.register("some")
print(all(signal.getsignal(each) is print for each in taken))
"""
    for taken, files in ((1, ["some.rank0.stacks"]), (2, [])):
        done = subprocess.run(
            [sys.executable, "-c", program, str(taken)], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == "True"
        assert sorted(path.name for path in tmp_path.iterdir()) == files
        for path in tmp_path.iterdir():
            assert json.loads(path.read_text().splitlines()[0])["signals"] == list(stacks.SIGNALS[1:])
            path.unlink()


def test_a_process_without_a_handler_gets_no_signal(tmp_path):
    """It has the number of one that has ended, or has taken its handler away: Linux would end it."""
    with subprocess.Popen(["sleep", "100"]) as other:
        about = {"pid": other.pid, "began": stacks.began(other.pid), "rank": 0, "size": 1, "job": None}
        about |= {"host": standing.socket.gethostname(), "signals": [int(signal.SIGUSR1), int(signal.SIGUSR2)]}
        (tmp_path / "some.rank0.stacks").write_text(json.dumps(about) + "\n")
        (rank,) = standing.ranks(tmp_path / "some")
        assert rank["looks"] == [] and other.poll() is None
        (tmp_path / "some.rank0.stacks").write_text(json.dumps(about | {"began": 1}) + "\n")
        assert standing.ranks(tmp_path / "some")[0]["state"] == "killed" and other.poll() is None
        other.kill()


def test_an_ordinary_user_who_may_not_trace_sees_it_too(tmp_path):
    driver = """
import ctypes, os, sys, time
from labs import jobs
from labs.jobs import standing
script = sys.argv[1]
job = jobs.start(script, name="some", runs=os.path.dirname(script))
while "there" not in job.out.read_text():
    time.sleep(0.05)
(rank,) = standing.ranks(job.stem)
PTRACE_ATTACH = 16
refused = ctypes.CDLL(None, use_errno=True).ptrace(PTRACE_ATTACH, rank["pid"], 0, 0)
print(os.geteuid(), refused, os.strerror(ctypes.get_errno()), rank["looks"][0][0][1], job.state)
job.stop()
"""
    tmp_path.chmod(0o777)
    untraced = "import ctypes\nctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE: nobody may trace it\n"
    (tmp_path / "some.py").write_text(untraced + SLEEPS)
    environment = os.environ | {"HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(ROOT)}
    words = [*NOBODY, sys.executable, "-c", driver, str(tmp_path / "some.py")]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    user = 65534 if NOBODY else os.geteuid()
    assert done.stdout.strip() == f"{user} -1 Operation not permitted 7 running", done.stderr


def test_nothing_to_see_says_which_line_to_add(tmp_path, capsys):
    assert cli.main(["why", "never_run", "--runs", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert told.startswith("labs why: No process of never_run has said where its stacks are")
    assert "stacks.register(" in told


def rank(number, *frames, state="sleeping", looks=None, **more):
    """What standing sees of a rank, whose student's frames are (line, function) of job.py, then Horovod's `inside`."""
    inside = more.pop("inside", None)
    look = [["/x/job.py", line, function] for line, function in frames]
    look = ([[f"{SITE}/horovod/tensorflow/mpi_ops.py", 1, f"_{inside}"]] if inside else []) + look
    seen = {"rank": number, "size": 2, "pid": 10 + number, "host": "node1", "state": state, "memory": 2**28}
    return seen | {"cores": 0.0, "thread": 0.0, "looks": [look] * 3 if looks is None else looks} | more


FIT, TEST = [(5, "fit"), (9, "main")], [(7, "fit"), (9, "main")]
WAITS = rank(0, *FIT, inside="allreduce")


@pytest.mark.parametrize(
    "other, says, is_stuck",
    [
        (rank(1, *TEST, inside="allgather"), "Rank 1 waits in allgather, job.py, line 9 > 7. Not there: rank 0.", True),
        (rank(1, *FIT, inside="allreduce"), "All have come to one call", False),
        (rank(1, *TEST), "Rank 1 sleeps (job.py, line 7), in no collective", True),
        (rank(1, *TEST, state="running"), "Rank 1 computes (job.py, line 7). It is late", False),
        (rank(1, *TEST, thread=0.9), "Rank 1 computes", False),
        (rank(1, looks=[], state="ended"), "Rank 1 has ended", True),
        (rank(1, looks=[], state="killed"), "it was killed", True),
        (rank(1, looks=[], state="not asked"), "Rank 1 cannot be seen", True),
        (
            rank(1, looks=[[[f"{SITE}/tensorflow/execute.py", 1, "x"], *WAITS["looks"][0]]] * 3, cores=1.0),
            "All have",
            False,
        ),
    ],
)
def test_words(other, says, is_stuck):
    told = standstill.screen("some", [WAITS, other])
    assert says in told and standstill.stuck([WAITS, other]) == is_stuck
    if "All have" not in says:
        assert "Rank 0 waits in allreduce, job.py, line 9 > 5. Not there: rank 1." in told


def test_a_rank_inside_of_tensorflow_says_so():
    look = [[f"{SITE}/tensorflow/python/eager/execute.py", 53, "quick_execute"], ["/x/job.py", 5, "fit"]]
    told = standstill.screen("some", [rank(0, looks=[look] * 3, cores=1.0)])
    assert "Rank 0 computes" in told and "inside of one is rank 0" in told


def test_a_process_is_known_by_its_number_and_by_when_it_began():
    own = psutil.Process()
    seconds = stacks.began(own.pid) / os.sysconf("SC_CLK_TCK")
    assert seconds == pytest.approx(own.create_time() - psutil.boot_time(), abs=1.5)
    assert stacks.began(2**22 + 1) is None
