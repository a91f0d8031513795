"""Failures of jobs on clusters, each named by the line that caused it and not by what follows from it.

Where a text says "seen", SLURM 22.05, MPICH, Environment Modules or Horovod printed it in these words on simulated
nodes; lines "reported" stand in public issues of the projects; those "after their formats" follow programs' messages.
"""

import re
from pathlib import Path

import pytest

from labs.results import failures

DATA = Path(__file__).parents[1] / "data" / "logs"
STEP = "0: slurmstepd-node1: error: *** STEP 7.0 ON node1 CANCELLED AT 2026-11-21T09:43:58{} ***\n"
JOB = STEP[3:].replace("STEP 7.0", "JOB 7")
ENDED, GOT = "srun: launch/slurm: _step_signal: Terminating StepId=7.0\n", "srun: got SIGCONT\n"
ABORTED = "srun: Job step aborted: Waiting up to 7 seconds for job step to finish.\n"
TERMINATED, DUE = "srun: error: node1: tasks 0-2: Terminated\n", " DUE TO TIME LIMIT"
LARGE = "StepId=5.0 exceeded memory limit (514072576 > 314572800), being killed\n"
RAISED, PACKAGE = "Traceback (most recent call last):\n  File x\n", "ModuleNotFoundError: No module named 'nosuch'\n"
BY_RANK = "0: Traceback (most recent call last):\n1: Traceback (most recent call last):\n1:   File x\n"
ALONE = "0: RuntimeError: Gloo connectFullMesh failed with [gloo/transport/tcp/pair.cc:144] no error\n"
MODULE = "ERROR: Unable to locate a modulefile for 'python/3.11'\n"
DOWN = "Horovod has been shut down. This was caused by an exception on one of the ranks\n"
NCCL, INTERNAL = "NCCL: unhandled system error\n", "HorovodInternalError: peer died\n"
TWICE = f"1: {RAISED}1: KeyError: 'x'\n1: Traceback (most recent call last):\n1: ValueError: no x\n"
OTHER = f"0: Traceback (most recent call last):\n0: OSError: closed\n{RAISED}RuntimeError: Horovod detected that one\n"
REFUSED = "E failed to allocate 15.75G from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n"
SHARD = "2: Traceback (most recent call last):\n2:   File x\n2: ValueError: bad shard\n"

# Whole .err files: (text, kind, number of the line that proves it)
LIMIT = ABORTED + STEP.format(DUE) + JOB.format(DUE) + GOT + TERMINATED + ENDED
WAKE = ENDED + STEP.format("") + TERMINATED
KILLED = "srun: error: node2: task 3: Killed\n" + WAKE
CANCELLED = GOT + ABORTED + JOB.format("") + STEP.format("") + TERMINATED + ENDED
MEMORY = f"0: slurmstepd-node1: error: {LARGE}{ABORTED}{STEP.format('')}srun: error: node1: tasks 0-1: Killed\n"
MISSING = f"{BY_RANK}1: {PACKAGE}0: {PACKAGE}srun: error: node2: tasks 0-1: Exited with exit code 1\n"
MPI = "1: Abort(3) on node 1 (rank 1 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 3) - process 1\n"
FILES = {
    "seen: time limit": (LIMIT, "time limit", 2),
    "seen: rank killed": (KILLED, "killed", 1),
    "seen: scancel": (CANCELLED, "cancelled", 3),
    "seen: memory": (MEMORY, "out of memory", 1),
    "seen: package": (MISSING, "import error", 4),
    "seen: MPI_Abort": (MPI + ABORTED + STEP.format("") + KILLED, "network error", 1),
    "seen: segmentation fault": ("srun: error: node1: task 1: Segmentation fault\n" + WAKE, "killed", 1),
    # one rank raised, the others waited for it until the end
    "exception before the time limit": (SHARD + LIMIT, "python error", 3),
    "exception after the time limit": (LIMIT + SHARD, "time limit", 2),
    # the network error of a rank that was left alone
    "left alone by a kill": ("0: Traceback (most recent call last):\n" + ALONE + KILLED, "killed", 3),
    "left alone by an exception": ("0: Traceback (most recent call last):\n" + ALONE + SHARD, "python error", 5),
    # TensorFlow's own line says nothing, the message below it does
    "network error in TensorFlow's words": (f"{RAISED}InternalError: Graph execution:\n\n{NCCL}", "network error", 5),
    "the echo of another rank": (f"{RAISED}UnknownError: Graph execution error:\n\n{DOWN}", "job error", 5),
    "a refused request, then an exception": (f"{REFUSED}{RAISED}ValueError: no\n", "python error", 4),
    "module, then its package": (MODULE + RAISED + PACKAGE, "missing module", 1),
    # what other ranks, and the launcher without a rank, say in the wake of the first
    "last exception of the rank that failed first": (TWICE + OTHER, "python error", 5),
    "Horovod's error of the other rank": (f"{BY_RANK}1: ValueError: bad\n0: {INTERNAL}{TERMINATED}", "python error", 4),
    "exception under mpiexec": ((DATA / "mpiexec_exception.err").read_text(), "python error", 9),
    "kill under mpiexec": ((DATA / "mpiexec_kill.out").read_text(), "killed", 13),
}


@pytest.mark.parametrize("name", FILES)
def test_the_first_cause_is_named_and_not_its_echoes(name):
    text, kind, number = FILES[name]
    found = failures.failure(text)
    assert (found["kind"], found["line_number"]) == (kind, number) and found["advice"]
    assert found["line"] == text.splitlines()[number - 1].strip()


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("seen: ")])
def test_cut_anywhere_never_names_another_failure(name):
    """A file that ends within a line: the same failure, none yet, or that there is an error without a reason."""
    text, kind, _ = FILES[name]
    known = {kind, None, "job error"} | ({"cancelled"} if "TIME LIMIT" in text else set())
    for end in range(len(text)):
        found = failures.failure(text[:end] if "\n" in text[:end] else text[:end] + "\n")
        assert (found and found["kind"]) in known, text[:end]


CANCEL = "slurmstepd: error: *** JOB 1 ON c0617 CANCELLED AT 2024-09-30T16:00:24"
LINES = [  # of each sign: (kind, line, a part of the advice)
    # seen, or reported
    ("out of memory", "OOM when allocating tensor with shape[256,64]", "Halve the batch size (--batch_size)"),
    ("out of memory", "ResourceExhaustedError: Graph execution error:", "Halve the batch size (--batch_size)"),
    ("out of memory", "InternalError: cudaGetDevice() failed. Status: out of memory", "Halve the batch size"),
    ("out of memory", "E failed to allocate 15.75G: CUDA_ERROR_OUT_OF_MEMORY: out of memory", "If nobody else uses"),
    ("out of memory", "slurmstepd: error: Detected 1 oom-kill event(s) in step 50574351.batch cgroup.", "--mem"),
    ("out of memory", "srun: error: n1: task 0: Out Of Memory", "--mem"),
    ("out of memory", "MemoryError", "--mem"),
    ("shared memory", "n1 shm.h:48 NCCL WARN Call to posix_fallocate failed : No space left on device", "not the disk"),
    ("shared memory", "srun: error: n1: task 1: Bus error (core dumped)", "/dev/shm"),
    ("shared memory", "=   EXIT CODE: 135", "/dev/shm"),
    ("disk full", "OSError: [Errno 28] No space left on device", "df"),
    ("import error", "ModuleNotFoundError: No module named 'tensorflow'", "environment"),
    ("import error", "ImportError: libcudart.so.10.1: cannot open shared object file: No such file or dir", "envir"),
    ("missing file", "python: can't open file 'ResNet50.py': [Errno 2] No such file or directory", "Check the path"),
    ("missing file", "slurm_script: line 9: python: command not found", "Check the path"),
    ("missing module", "/var/spool/slurmd/job00011/slurm_script: line 5: module: command not found", "#!/bin/bash -l"),
    ("missing module", "ERROR: Unable to locate a modulefile for 'nosuch/1.2'", "module avail"),
    ("killed", "slurm_script: line 33: 430069 Killed                  python ResNet50.py", "halve the batch size"),
    ("time limit", f"{CANCEL} DUE TO TIME LIMIT ***", "--time"),
    ("cancelled", f"{CANCEL} DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***", "a broken node"),
    ("cancelled", f"{CANCEL} DUE TO PREEMPTION ***", "higher priority"),
    ("cancelled", f"{CANCEL} ***", "A person"),
    ("cancelled", "KeyboardInterrupt", "Someone stopped the job"),
    ("job error", "srun: error: Unable to allocate resources: Invalid account", "No reason is given"),
    ("job error", "srun: fatal: cpus-per-task set by two different environment variables", "No reason is given"),
    ("job error", DOWN.strip(), "the end of the .out"),
    ("network error", "errors_impl.UnknownError:  ncclCommInitRank failed: unhandled system error", "NCCL"),
    ("network error", "MPICH ERROR [Rank 11] [nid006700] - Fatal error in PMPI_Allreduce: Other MPI", "srun --mpi"),
    ("network error", "[0]: Horovod loop uncaught exception: [gloo/transport/tcp/pair.cc:589] Read error", "GLOO"),
    # no failure
    (None, "", ""),
    (None, "W Allocator (GPU_0_bfc) ran out of memory trying to allocate 2GiB. This is not a failure, but", ""),
    (None, "I Local rendezvous is aborting with status: OUT_OF_RANGE: End of sequence", ""),
    (None, "volta:1533219:1535130 [1] NCCL INFO ncclCommInitRank comm 0x7d10f405e900 - Init COMPLETE", ""),
    (None, "the job before this was CANCELLED", ""),
]


@pytest.mark.parametrize("kind, line, says", LINES)
def test_line_of_any_rank(kind, line, says):
    for prefix in ("", "3: ", "[1,3]<stderr>:"):
        found = failures.failure(f"{prefix}starting\n{prefix}{line}\n0: going on\n")
        assert (found and found["kind"]) == kind
        if found:
            assert (found["line"], found["line_number"]) == ((prefix + line).strip(), 2) and says in found["advice"]


def test_exceptions_and_cut_lines():
    for text, kind in (
        (f"{RAISED}ValueError: bad shape", "python error"),
        (f"{RAISED}KeyboardInterrupt", "cancelled"),
        (f"{RAISED}keras.errors.ModuleNot", None),  # its name is cut off
        (f"{RAISED}keras.errors.ModuleNotFoundError: No module named 'x'", "import error"),
        (f"start\n{CANCEL} DUE TO TI", "cancelled"),
    ):
        found = failures.failure(text)
        assert (found and found["kind"]) == kind, text


STALL = (
    "[2026-03-01 10:01:11.5: W horovod/common/stall_inspector.cc:107] One or more tensors were submitted to be "
    "reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks.\n"
)
ALONE_IN_A_CALL = f"{STALL}Missing ranks:\n2: [grads_0]\n"
APART = f"{STALL}Missing ranks:\n0: [grads_0]\n1: [val_loss]\n2: [val_loss]\n"  # rank 0 evaluates alone
CALLS = "rank 0 not come to grads_0; rank 1, 2 not come to val_loss. So they stand in different calls"


def test_a_stall_comes_before_what_ends_it_and_names_who_waits_for_whom():
    for text, kind, says in (
        (2 * APART + JOB.format(DUE), "stalled", CALLS),
        (re.sub("^(?=.)", "0: ", APART, flags=re.M) + JOB.format(DUE), "stalled", "line 6 is the cause: time limit"),
        (ALONE_IN_A_CALL + JOB.format(""), "stalled", "rank 2 not come to grads_0. If the training"),
        # Horovod's shutdown after it is its echo; what another line proves counts, and a stall alone is a warning
        (APART + RAISED + DOWN, "stalled", "if rank() == 0"),
        (APART + f"{RAISED}ValueError: no\n", "python error", ""),
        (APART + MEMORY, "out of memory", ""),
        (APART, None, ""),
    ):
        found = failures.failure(text)
        assert (found and found["kind"]) == kind and (
            not says or (found["line_number"] == 1 and says in found["advice"])
        )


def test_the_reason_in_the_out_counts_more_than_that_something_failed(tmp_path):
    out, err = tmp_path / "a.out", tmp_path / "a.err"
    out.write_text("Traceback (most recent call last):\n  File x\nAssertionError: too slow\n")
    err.write_text("srun: error: n1: task 0: Exited with exit code 1\n")
    assert failures.in_files(err, out)["line"] == "AssertionError: too slow"
    out.write_text("all is well\n")
    assert failures.in_files(err, out)["kind"] == "job error"
    assert failures.in_files(None, tmp_path / "no.err") is None
