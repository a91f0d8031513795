"""Failures of jobs on clusters, each named by the line that caused it and not by what follows from it.

Where a text says "seen", SLURM 22.05, MPICH, Environment Modules or Horovod printed it in these words on simulated
nodes; lines "reported" stand in public issues of the projects; those "after their formats" follow programs' messages.
"""

import pytest

from labs.results import failures

# Whole .err files of steps under srun (seen): name -> (text, kind, line number)
SEEN = {
    "rank killed": (
        """\
srun: error: node2: task 3: Killed
srun: launch/slurm: _step_signal: Terminating StepId=10.0
0: slurmstepd-node1: error: *** STEP 10.0 ON node1 CANCELLED AT 2026-11-21T09:38:54 ***
srun: error: node1: tasks 0-2: Terminated
srun: Force Terminated StepId=10.0
""",
        "killed",
        1,
    ),
    "rank ended without a word": (
        """\
srun: error: node1: task 1: Exited with exit code 7
srun: launch/slurm: _step_signal: Terminating StepId=2.0
0: slurmstepd-node1: error: *** STEP 2.0 ON node1 CANCELLED AT 2026-11-21T09:42:29 ***
srun: error: node1: task 0: Terminated
srun: Force Terminated StepId=2.0
""",
        "job error",
        1,
    ),
    "rank with a segmentation fault": (
        """\
srun: error: node1: task 1: Segmentation fault
srun: launch/slurm: _step_signal: Terminating StepId=6.0
0: slurmstepd-node1: error: *** STEP 6.0 ON node1 CANCELLED AT 2026-11-21T09:42:29 ***
srun: error: node1: task 0: Terminated
""",
        "killed",
        1,
    ),
    "time limit": (
        """\
srun: Job step aborted: Waiting up to 7 seconds for job step to finish.
0: slurmstepd-node1: error: *** STEP 7.0 ON node1 CANCELLED AT 2026-11-21T09:43:58 DUE TO TIME LIMIT ***
slurmstepd-node1: error: *** JOB 7 ON node1 CANCELLED AT 2026-11-21T09:43:58 DUE TO TIME LIMIT ***
srun: got SIGCONT
srun: forcing job termination
srun: error: node1: tasks 0-1: Terminated
srun: launch/slurm: _step_signal: Terminating StepId=7.0
""",
        "time limit",
        2,
    ),
    "scancel": (
        """\
srun: got SIGCONT
srun: Job step aborted: Waiting up to 7 seconds for job step to finish.
slurmstepd-node1: error: *** JOB 9 ON node1 CANCELLED AT 2026-11-21T09:38:52 ***
srun: forcing job termination
0: slurmstepd-node1: error: *** STEP 9.0 ON node1 CANCELLED AT 2026-11-21T09:38:52 ***
srun: error: node2: task 3: Terminated
srun: launch/slurm: _step_signal: Terminating StepId=9.0
srun: error: node1: tasks 0-2: Terminated
""",
        "cancelled",
        3,
    ),
    "scancel of a batch script": (
        "slurmstepd-node1: error: *** JOB 8 ON node1 CANCELLED AT 2026-11-21T09:42:32 ***\n",
        "cancelled",
        1,
    ),
    "memory": (
        """\
0: slurmstepd-node1: error: StepId=5.0 exceeded memory limit (514072576 > 314572800), being killed
slurmstepd-node1: error: Exceeded job memory limit
srun: Job step aborted: Waiting up to 7 seconds for job step to finish.
slurmstepd-node1: error: Exceeded job memory limit
0: slurmstepd-node1: error: *** STEP 5.0 ON node1 CANCELLED AT 2026-11-21T09:35:53 ***
0: slurmstepd-node1: error: StepId=5.0 exceeded memory limit (514072576 > 314572800), being killed
srun: error: node1: tasks 0-1: Killed
srun: launch/slurm: _step_signal: Terminating StepId=5.0
""",
        "out of memory",
        1,
    ),
    "memory of a batch script": (
        """\
slurmstepd-node1: error: StepId=6.batch exceeded memory limit (507326464 > 314572800), being killed
slurmstepd-node1: error: Exceeded job memory limit
slurmstepd-node1: error: *** JOB 6 ON node1 CANCELLED AT 2026-11-21T09:36:02 ***
""",
        "out of memory",
        1,
    ),
    "no module command": (
        "/var/spool/slurmd/job00011/slurm_script: line 5: module: command not found\n",
        "missing module",
        1,
    ),
    "package": (
        """\
0: Traceback (most recent call last):
0:   File "<string>", line 1, in <module>
1: Traceback (most recent call last):
1:   File "<string>", line 1, in <module>
1: ModuleNotFoundError: No module named 'nosuch'
0: ModuleNotFoundError: No module named 'nosuch'
srun: error: node2: tasks 0-1: Exited with exit code 1
""",
        "import error",
        5,
    ),
    "MPI_Abort": (
        """\
1: Abort(3) on node 1 (rank 1 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 3) - process 1
srun: Job step aborted: Waiting up to 7 seconds for job step to finish.
0: slurmstepd-node1: error: *** STEP 11.0 ON node1 CANCELLED AT 2026-11-21T09:46:29 ***
srun: error: node1: tasks 0-1: Killed
srun: launch/slurm: _step_signal: Terminating StepId=11.0
""",
        "MPI error",
        1,
    ),
    "MPI message of the wrong size": (
        """\
1: Abort(403871246) on node 1 (rank 1 in comm 0): Fatal error in internal_Recv: Message truncated, error stack:
1: internal_Recv(134).......: MPI_Recv(buf=0x7f585409d260, count=1, MPI_INT, 0, 0, MPI_COMM_WORLD, status=0x1) failed
1: MPIDIG_recv_type_init(74): Message from rank 0 and tag 0 truncated; 4 bytes received but buffer size is 40
srun: Job step aborted: Waiting up to 7 seconds for job step to finish.
0: slurmstepd-node2: error: *** STEP 12.0 ON node2 CANCELLED AT 2026-11-21T09:46:30 ***
srun: error: node2: task 0: Killed
srun: launch/slurm: _step_signal: Terminating StepId=12.0
srun: error: node2: task 1: Segmentation fault
""",
        "MPI error",
        1,
    ),
}


@pytest.mark.parametrize("name", SEEN)
def test_the_first_cause_is_named_and_not_its_echoes(name):
    text, kind, number = SEEN[name]
    found = failures.failure(text)
    assert (found["kind"], found["line_number"], found["line"]) == (kind, number, text.splitlines()[number - 1])
    assert found["advice"]


LINES = {
    # seen
    "ERROR: Unable to locate a modulefile for 'nosuch/1.2'": "missing module",
    "  ERROR: Module cannot be loaded due to a conflict.": "missing module",
    "[2026-11-20 19:07:04.837241: E horovod/common/operations.cc:697] [0]: Horovod background loop uncaught exception: "
    "[gloo/transport/tcp/pair.cc:589] Read error [127.0.0.1]:37776: Connection reset by peer": "Gloo error",
    # reported
    "Lmod has detected the following error: The following module(s) are unknown:": "missing module",
    "slurmstepd: *** JOB 1479012 CANCELLED AT 2015-02-04T06:33:25 *** on sh-2-3": "cancelled",
    "tensorflow.python.framework.errors_impl.UnknownError:  "
    "ncclCommInitRank failed: unhandled system error": "NCCL error",
    "[g32n01:32314] *** An error occurred in MPI_Allreduce": "MPI error",
    "[cp-1:16051] *** MPI_ERR_OP: invalid reduce operation": "MPI error",
    "MPICH ERROR [Rank 11122] [job id 41595204.0] [Thu Aug 14 08:27:11 2025] [nid006700] - Abort(2695311) (rank 11122 "
    "in comm 0): Fatal error in PMPI_Allreduce: Other MPI error, error stack:": "MPI error",
    "Abort(203042319) on node 4092 (rank 4092 in comm 0): Fatal error in PMPI_Wait: Other MPI error": "MPI error",
    "RuntimeError: Gloo connectFullMesh failed with "
    "[../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error": "Gloo error",
    # after their formats
    "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2024-09-30T16:00:24 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR "
    "DETAILS ***": "node failure",
    "srun: error: Node failure on n2": "node failure",
    "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2024-09-30T16:00:24 DUE TO PREEMPTION ***": "cancelled",
    "ModuleCmd_Load.c(213):ERROR:105: Unable to locate a modulefile for 'cuda/10.9'": "missing module",
    "sh: 1: module: not found": "missing module",
    "InternalError: NCCL: unhandled cuda error. Set NCCL_DEBUG=WARN for detail.": "NCCL error",
    "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD": "MPI error",
    "terminate called after throwing an instance of 'gloo::EnforceNotMet'": "Gloo error",
}


@pytest.mark.parametrize("line, kind", LINES.items())
def test_line_of_any_rank(line, kind):
    for prefix in ("", "3: ", "[3]<stderr>:", "[1,3]<stderr>:", "[3] "):
        found = failures.failure(f"{prefix}starting\n{prefix}{line}\n0: going on\n")
        assert (found["kind"], found["line"], found["line_number"]) == (kind, (prefix + line).strip(), 2)


@pytest.mark.parametrize(
    "line",
    [
        "volta:1533219:1535130 [1] NCCL INFO ncclCommInitRank comm 0x7d10f405e900 rank 1 nranks 4 - Init COMPLETE",
        "node:376586:377443 [4] NCCL INFO NET/IB : No device found.",
        "INFO: module: loaded cuda/12.2",
        "Loading requirement: gcc/8.3.0",
        "Horovod was built with Gloo and MPI",
        "[W horovod/common/stall_inspector.cc:107] One or more tensors were submitted to be reduced by subset of ranks",
        "the job before this was CANCELLED",
    ],
)
def test_lines_that_name_no_failure(line):
    assert failures.failure(f"{line}\n0: {line}\n") is None


def test_exception_before_the_time_limit_is_the_cause():
    """One rank raised, the others waited for it until the end."""
    exception = "2: Traceback (most recent call last):\n2:   File x\n2: ValueError: bad shard\n"
    limit = SEEN["time limit"][0]
    assert failures.failure(exception + limit)["line"] == "2: ValueError: bad shard"
    assert failures.failure(limit + exception)["kind"] == "time limit"
    assert failures.failure(exception + SEEN["scancel"][0])["kind"] == "python error"


def test_network_error_of_a_rank_that_was_left_alone_is_an_echo():
    alone = "0: RuntimeError: Gloo connectFullMesh failed with [gloo/transport/tcp/pair.cc:144] no error\n"
    assert failures.failure("0: Traceback (most recent call last):\n" + alone)["kind"] == "Gloo error"
    for cause, kind in (
        (SEEN["rank killed"][0], "killed"),
        (SEEN["package"][0], "import error"),
        (SEEN["memory"][0], "out of memory"),
    ):
        assert failures.failure("0: Traceback (most recent call last):\n" + alone + cause)["kind"] == kind


def test_network_error_in_tensorflows_words():
    """The exception's own line says nothing; the message below it does."""
    text = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
tensorflow.python.framework.errors_impl.InternalError: Graph execution error:

NCCL: unhandled system error (run with NCCL_DEBUG=INFO for details). Set NCCL_DEBUG=WARN for detail.
"""
    found = failures.failure(text)
    assert (found["kind"], found["line_number"]) == ("NCCL error", 5)
    own = "Traceback (most recent call last):\nValueError: my own\n" + text.splitlines()[4]
    assert failures.failure(own)["kind"] == "python error"


def test_module_that_was_not_loaded_explains_the_package_that_is_missing_then():
    module = "ERROR: Unable to locate a modulefile for 'python/3.11'\n"
    package = "Traceback (most recent call last):\n  File x\nModuleNotFoundError: No module named 'tensorflow'\n"
    assert failures.failure(module + package)["kind"] == "missing module"
    assert failures.failure(module + "slurm_script: line 9: python: command not found\n")["kind"] == "missing module"
    assert failures.failure(package + module)["kind"] == "import error"
    other = package.replace("ModuleNotFoundError: No module named 'tensorflow'", "ValueError: no")
    assert failures.failure(module + other)["kind"] == "python error"


@pytest.mark.parametrize("name", SEEN)
def test_cut_anywhere_never_names_another_failure(name):
    """A file that ends within a line: the same failure, none yet, or that there is an error without a reason."""
    text, kind, _ = SEEN[name]
    known = {kind, None, "job error"} | ({"cancelled"} if "TIME LIMIT" in text else set())
    for end in range(len(text)):
        found = failures.failure(text[:end] if "\n" in text[:end] else text[:end] + "\n")
        assert (found and found["kind"]) in known, text[:end]


FILLERS = {"numbers": b"0.125\n", "losses": b"loss: 0.125, mean_squared_error: 0.25\n", "bars": b"=" * 5000 + b"\b\r"}


@pytest.mark.parametrize("name", SEEN)
@pytest.mark.parametrize("filler", FILLERS.values(), ids=FILLERS)
def test_a_large_file_names_the_same_failure_wherever_it_stands(tmp_path, monkeypatch, name, filler):
    monkeypatch.setattr("labs.results.text.PIECE", 2**12)
    text, kind, number = SEEN[name]
    much = filler * (2**15 // len(filler)) + b"\n"
    for before, after in ((b"", much), (much[: 2**12] + b"\n", much), (much, b"")):
        (tmp_path / "a.out").write_bytes(before + text.encode() + after)
        found = failures.failure(tmp_path / "a.out")
        assert (found["kind"], found["line_number"]) == (kind, number + before.count(b"\n")), before[:20]


def test_exception_whose_name_is_cut_off_is_not_named():
    text = "Traceback (most recent call last):\n  File x\nkeras.errors.ModuleNot"
    assert failures.failure(text) is None
    assert failures.failure(text + "FoundError: No module named 'x'")["kind"] == "import error"


def test_cancelled_line_that_is_cut_off_says_that_it_may_be_the_time_limit():
    found = failures.failure("start\nslurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-21T09:43:58 DUE TO TI")
    assert found["kind"] == "cancelled" and "cut off" in found["advice"]


STALL = (
    "[2026-03-01 10:01:11.5: W horovod/common/stall_inspector.cc:107] One or more tensors were submitted to be "
    "reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks.\n"
)
LIMIT = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-01T10:30:02 DUE TO TIME LIMIT ***\n"


def stall(missing):
    """Horovod's message; missing: {rank: tensors to which it has not come}."""
    return STALL + "Missing ranks:\n" + "".join(f"{rank}: [{tensors}]\n" for rank, tensors in missing.items())


@pytest.mark.parametrize("prefix", ["", "[1,0]<stderr>:", "0: "])
def test_a_stall_comes_before_the_time_limit_that_ends_it(prefix):
    """Rank 0 evaluates alone: it stands in another call than the others."""
    twice = 2 * stall({0: "grads_0", 1: "val_loss", 2: "val_loss"})
    text = "".join(f"{prefix}{line}\n" for line in twice.splitlines())
    found = failures.failure(text + LIMIT)
    assert (found["kind"], found["line_number"]) == ("stalled", 1)
    assert "rank 0 has not come to grads_0; ranks 1, 2 have not come to val_loss" in found["advice"]
    assert "if rank() == 0" in found["advice"] and "line 11 is the cause: time limit" in found["advice"]


def test_a_stall_of_one_rank_says_nothing_of_other_calls():
    found = failures.failure(stall({2: "grads_0"}) + SEEN["scancel of a batch script"][0])
    assert found["kind"] == "stalled" and "rank 2 has not come to grads_0" in found["advice"]
    assert "different calls" not in found["advice"]
    old = STALL + "Stalled ops:\nDistributedSGD_Allreduce [missing ranks: 1, 3]\n"
    assert "ranks 1, 3 have not come to DistributedSGD_Allreduce" in failures.failure(old + LIMIT)["advice"]


def test_a_stall_that_passed_is_not_the_failure():
    """What another line proves counts, and a stall alone is a warning."""
    assert failures.failure(stall({0: "grads_0"})) is None
    raised = "Traceback (most recent call last):\n  File x\nValueError: bad shard\n"
    assert failures.failure(stall({0: "grads_0"}) + raised)["kind"] == "python error"
    assert failures.failure(stall({0: "grads_0"}) + SEEN["memory"][0])["kind"] == "out of memory"


def test_horovods_shutdown_after_a_stall_is_its_echo():
    """One rank has ended, the other waits for it, until Horovod gives up."""
    down = "errors_impl.UnknownError:  Horovod has been shut down. This was caused by an exception on one of the ranks"
    text = stall({0: "grads_0"}) + f"Traceback (most recent call last):\n  File x\n{down}\n"
    assert failures.failure(text)["kind"] == "stalled"


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("n1:41:42 [1] include/shm.h:48 NCCL WARN Call to posix_fallocate failed : No space left on device\n"
         "UnknownError: ncclCommInitRank failed: unhandled system error\n", "shared memory", "Not the disk"),
        ("srun: error: n1: task 1: Bus error (core dumped)\n", "shared memory", "/dev/shm"),
        ("[n1:41] Signal: Bus error (7)\nsrun: error: n1: task 1: Bus error\n", "shared memory", "--shm-size"),
        ("Traceback (most recent call last):\n  File x\nOSError: No space left on device\n", "disk full", "df"),
        ("srun: fatal: cpus-per-task set by two different environment variables\n", "job error", "SLURM refuses"),
    ],
)  # fmt: skip
def test_shared_memory_disk_and_what_slurm_refuses(text, kind, says):
    found = failures.failure(text)
    assert (found["kind"], found["line_number"]) == (kind, 3 if kind == "disk full" else 1) and says in found["advice"]


def test_the_reason_in_the_out_counts_more_than_that_something_failed(tmp_path):
    out, err = tmp_path / "a.out", tmp_path / "a.err"
    out.write_text("Traceback (most recent call last):\n  File x\nAssertionError: too slow\n")
    err.write_text("srun: error: n1: task 0: Exited with exit code 1\n")
    assert failures.in_files(err, out)["line"] == "AssertionError: too slow"
    out.write_text("all is well\n")
    assert failures.in_files(err, out)["kind"] == "job error"
    assert failures.in_files(None, tmp_path / "no.err") is None
