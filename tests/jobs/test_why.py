"""labs.stacks: where the main thread of a process is; labs.jobs.why: what is seen of a running job, in words."""

import json
import os
import signal
import sysconfig
import textwrap
import time

import pytest
from waiting import until

from labs import cli, jobs, stacks
from labs.jobs import why

SITE = sysconfig.get_path("purelib")
SLEEPS = """
import time
def inner():
    print("there", flush=True)
    time.sleep(100)
inner()
"""


@pytest.fixture
def started(tmp_path, ended):
    """started(text of a script) -> a job that has printed "there", and has been looked at LOOKS times since then."""

    def started(text):
        (tmp_path / "some.py").write_text(
            "from labs import stacks; stacks.register()\n" + textwrap.dedent(text).strip()
        )
        ended.append(jobs.start(tmp_path / "some.py", name="some", runs=tmp_path / "runs"))
        assert until(lambda: "there" in ended[-1].out.read_text()), ended[-1].err.read_text()
        time.sleep((stacks.LOOKS + 1) * stacks.EVERY)
        return ended[-1]

    return started


def test_a_job_says_where_it_is_and_goes_on(started, capsys):
    job = started(SLEEPS)
    runs = str(job.stem.parent)
    assert until(lambda: "Rank 0 sleeps (some.py, line 5), in no collective" in job.explain())
    assert cli.main(["why", "some", "--runs", runs]) == 0
    told = capsys.readouterr().out
    assert "some.py:5" in told and "inner" in told and "time.sleep(100)" in told
    (rank,) = why.ranks(job.stem)
    assert [line for _, line, _ in why.own(rank["looks"][0])] == [5, 6] and len(rank["looks"]) == stacks.LOOKS
    assert rank["state"] == "sleeping" and 2**20 < rank["memory"] < 2**32 and rank["cores"] < 0.5
    job.stop()
    assert not list(job.stem.parent.glob("*.stacks")), "nothing of it stays"
    assert cli.main(["why", "never_run", "--runs", runs]) == 2
    assert capsys.readouterr().err.startswith("labs why: No process of never_run has said where it is")


def test_what_computes_is_stopped_or_gone(started):
    job = started("""
    print("there", flush=True)
    while True:
        sorted(range(20), key=lambda k: -k)
    """)
    (rank,) = why.ranks(job.stem)
    assert rank["state"] == "running" and rank["thread"] > 0 and "Rank 0 computes" in why.sentences([rank])[0]
    os.kill(rank["pid"], signal.SIGSTOP)
    assert until(lambda: "Rank 0 is stopped" in why.sentences(why.ranks(job.stem))[0], 30)
    text = why.stack_files(job.stem)[0].read_text()
    job.stop()
    (job.stem.parent / "some.rank0.stacks").write_text(text)
    assert "it was killed" in why.report("some", why.ranks(job.stem))


def test_of_another_node_the_file_alone_tells(tmp_path):
    here, about = tmp_path / "some.rank0.stacks", {"rank": 0, "size": 1, "pid": 2**22 + 1, "host": "elsewhere"}
    about |= {"cores": 0.0, "thread": 0.0, "memory": 2**28, "looks": [[["/x/job.py", 7, "fit"]]] * 3}
    for state, age, says in (
        ("sleeping", 0, "Rank 0 sleeps (job.py, line 7)"),
        ("sleeping", 60, "Rank 0 has said nothing for 60 s"),
        ("ended", 60, "Rank 0 has ended"),
    ):
        here.write_text(json.dumps(about | {"state": state, "time": time.time() - age}))
        seen = why.ranks(tmp_path / "some")
        assert says in why.sentences(seen)[0] and not why.stuck(seen)


def test_a_job_is_known_by_its_name_or_by_slurms_number(tmp_path):
    for number, name in enumerate(("some.rank0", "some_w2.rank1", "job_77_w2.rank0", "job_local_w1.rank0")):
        path = tmp_path / f"{name}.stacks"
        path.touch()
        os.utime(path, (number, number))
    for asked, stem in (("some", "some"), ("77", "job_77"), ("job", "job_local"), ("other", "other")):
        assert why.stem(asked, tmp_path) == tmp_path / stem
    assert why.stack_files(tmp_path / "some") == [tmp_path / "some_w2.rank1.stacks"], "of a training that began before"


def test_the_stack_is_that_of_one_process_for_each_rank(tmp_path, monkeypatch):
    monkeypatch.setenv("LABS_RUN", "a")
    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    monkeypatch.setenv("PMI_RANK", "1")
    monkeypatch.setenv(stacks.STACKS_VARIABLE, str(tmp_path / "a.rank1.stacks"))  # its starter writes it
    stacks.register()
    assert list(tmp_path.iterdir()) == []


def rank(number, *frames, inside=None, state="sleeping", looks=None, **more):
    """What is seen of a rank, whose student's frames are (line, function) of job.py, then Horovod's `inside`."""
    look = [["/x/job.py", line, function] for line, function in frames]
    look = ([[f"{SITE}/horovod/tensorflow/mpi_ops.py", 1, f"_{inside}"]] if inside else []) + look
    seen = {"rank": number, "size": 2, "pid": 10 + number, "host": "node1", "state": state, "memory": 2**28}
    return seen | {"age": 12.0, "cores": 0.0, "thread": 0.0, "looks": [look] * 3 if looks is None else looks} | more


FIT, TEST = [(5, "fit"), (9, "main")], [(7, "fit"), (9, "main")]
WAITS = rank(0, *FIT, inside="allreduce")
IN_TENSORFLOW = [[[f"{SITE}/tensorflow/execute.py", 1, "x"], ["/x/job.py", 5, "fit"]]] * 3


def test_words():
    for other, says, is_stuck in (
        (rank(1, *TEST, inside="allgather"), "Rank 1 waits in allgather, job.py, line 9 > 7. Not there: rank 0.", True),
        (rank(1, *FIT, inside="allreduce"), "All have come to one call", False),
        (WAITS | {"size": 3, "rank": 1}, "Ranks 0, 1 wait in allreduce, job.py, line 9 > 5. Not there: rank 2.", False),
        (WAITS | {"size": 4, "rank": 1}, "Not heard of: ranks 2, 3.", False),
        (rank(1, *TEST), "Rank 1 sleeps (job.py, line 7), in no collective", True),
        (rank(1, *TEST, state="running"), "Rank 1 computes (job.py, line 7). It is late", False),
        (rank(1, *TEST, thread=0.9), "Rank 1 computes", False),
        (rank(1, looks=IN_TENSORFLOW, cores=1.0), "Rank 1 computes (job.py, line 5)", False),
        (rank(1, looks=[], state="stopped"), "Rank 1 is stopped", True),
        (rank(1, looks=[], state="killed"), "it was killed", True),
        (rank(1, looks=[], state="silent"), "Rank 1 has said nothing for 12 s", False),
        (rank(1, looks=[[IN_TENSORFLOW[0][0], *WAITS["looks"][0]]] * 3, cores=1.0), "All have", False),
    ):
        told = why.report("some", [WAITS, other])
        assert says in told and why.stuck([WAITS, other]) == is_stuck
        waits = "Rank 0 waits in allreduce, job.py, line 9 > 5. Not there: rank 1."
        assert says.startswith(("All", "Ranks", "Not heard")) or waits in told
