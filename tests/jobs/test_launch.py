"""The command that starts ranks; what cannot be started is refused before anything runs; labs.jobs.local_srun."""

import subprocess
import sys

import pytest

from labs import devices, jobs
from labs.errors import UseError
from labs.jobs import launch, local_srun

PROGRAM = ["some/python", "-u", "x y.py", "-n", "9", "--label"]


def test_lines_of_ranks_are_whole_and_carry_their_rank(tmp_path, needs_horovod):
    (tmp_path / "say.py").write_text("for i in range(20):\n    print('line', i)\n")
    for launcher, form in (("mpiexec", "[{}] {}"), ("horovodrun", "[{}]<stdout>:{}")):
        job = jobs.run(tmp_path / "say.py", name="say", runs=tmp_path, ranks=3, launcher=launcher, show=False)
        expected = [form.format(rank, f"line {i}") for rank in range(3) for i in range(20)]
        assert job.state == "finished" and sorted(job.out.read_text().splitlines()) == sorted(expected)
        assert {line[:9] for line in job.printed.splitlines()} == {f"[{rank}] line " for rank in range(3)}


def programs(folder, monkeypatch, *names):
    """Only these programs are on the PATH."""
    for name in names:
        (folder / name).write_text("#!/bin/sh\necho\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin" if names else str(folder))
    monkeypatch.setattr(launch.sys, "executable", str(folder / "python"))


def in_a_job(monkeypatch, tasks):
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    monkeypatch.setenv("SLURM_TASKS_PER_NODE", tasks)


def test_srun_is_a_step_on_as_few_nodes_as_hold_the_ranks(monkeypatch, tmp_path, needs_horovod):
    programs(tmp_path, monkeypatch, "srun")
    for tasks, ranks, nodes in (("4", 1, 1), ("2(x2)", 2, 1), ("2(x2)", 3, 2), ("3,1(x2),2", 5, 3)):
        in_a_job(monkeypatch, tasks)
        program, *options = launch.command(ranks, "srun --mpi=pmi2")
        assert program == str(tmp_path / "srun") and options[:2] == ["--mpi=pmi2", "--jobid=77"]
        assert options[-3:] == ["--relative=0", f"--nodes={nodes}", f"--ntasks={ranks}"]
        assert {"--overlap", "--mem=0", "--export=ALL", "--kill-on-bad-exit=1"} < set(options)


def test_the_other_launchers_start_ranks_on_this_node_alone(monkeypatch, tmp_path, needs_horovod):
    *_, program, gloo, option, ranks, hosts_option, hosts = launch.command(2)
    assert program.endswith("horovodrun") and [gloo, option, ranks] == ["--gloo", "-np", "2"]
    assert [hosts_option, hosts] == ["-H", "localhost:2"]
    program, *options = launch.command(3, "mpiexec")
    assert program.endswith("mpiexec") and options == ["-prepend-rank", "-n", "3"]
    programs(tmp_path, monkeypatch, "horovodrun", "mpiexec")
    in_a_job(monkeypatch, "2(x2)")
    assert launch.command(2)[-1] == "localhost:2"
    options = ["-prepend-rank", "-launcher", "fork", "-hosts", "localhost", "-n", "2"]
    assert launch.command(2, "mpiexec") == [str(tmp_path / "mpiexec"), *options], "no step of SLURM's"
    for launcher in ("horovodrun", "mpiexec"):
        with pytest.raises(UseError, match=f"{launcher} starts ranks on one node, .* 2 tasks: use srun"):
            launch.command(3, launcher)
    monkeypatch.setattr(launch.sys, "executable", str(tmp_path / "env/python"))
    assert launch.command(2, "mpiexec") == [str(tmp_path / "mpiexec"), "-n", "2"], "not MPICH's, whose options we know"


def test_what_cannot_be_started_is_refused(monkeypatch, tmp_path, needs_horovod):
    def refused(ranks, launcher, says):
        with pytest.raises(UseError, match=says) as caught:
            launch.command(ranks, launcher)
        assert "\n" not in str(caught.value)

    for ranks in (0, -1, True, 1.5, "2"):
        refused(ranks, None, f"^ranks is {ranks!r}: it must be a whole number")
    refused(2, "torchrun -n 2", "No launcher is called 'torchrun'.*Use horovodrun, mpiexec or srun")
    monkeypatch.setattr(devices, "memory", lambda: 6 * launch.RANK_MEMORY)
    assert launch.command(6)
    refused(7, None, r"7 ranks need 2.2 GiB .* 1.9 GiB are free.*at most 6\.")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setenv("SLURM_TASKS_PER_NODE", "2(x2)")  # left over in the environment
    refused(2, "srun", "this process is not in one.*horovodrun or mpiexec")
    in_a_job(monkeypatch, "2(x2)")
    refused(5, "srun", "5 ranks need as many tasks, and this job has 4 tasks")
    programs(tmp_path, monkeypatch)
    monkeypatch.setattr(devices, "memory", lambda: 3 * launch.RANK_MEMORY)
    refused(4, "srun", "srun is neither installed.*A container brings none")
    refused(2, "mpiexec", "mpiexec is neither installed.*make horovod")
    monkeypatch.setattr(launch.importlib.util, "find_spec", lambda name: None)
    refused(2, None, "Horovod is not installed.*`make horovod`")


def test_import_of_labs_hvd_without_horovod_says_what_to_do(tmp_path):
    (tmp_path / "horovod.py").write_text("raise ImportError('no such library')")
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import labs.hvd"]
    said = subprocess.run(command, capture_output=True, text=True).stderr
    assert "\nImportError: Horovod cannot be imported (no such library)" in said and "`make horovod`" in said


# labs.jobs.local_srun; test_batch has real ranks


def test_srun_here_becomes_the_launcher_of_as_many_ranks(monkeypatch, needs_horovod):
    became = []
    monkeypatch.setattr(local_srun.os, "execv", lambda program, words: became.append(words))
    monkeypatch.setenv("SLURM_NTASKS", "4")
    for options, ranks in (
        ("", "4"),
        ("--mpi=pmi2 --kill-on-bad-exit=1 --label --ntasks=3", "3"),
        ("-l -K -N 2 -n 8 -c 1", "8"),
        ("-n2 -N1 --mpi pmi2 --exclusive", "2"),
    ):
        local_srun.main([*options.split(), *PROGRAM])
        words = became.pop()
        assert "horovodrun" in words[0] and words[-6:] == PROGRAM and words[words.index("-np") + 1] == ranks
    assert local_srun.main(["--ntasks=x", "true"]).startswith("usage: srun")
    assert local_srun.main(["--ntasks=0", "true"]).startswith("labs.jobs.local_srun: ranks is 0")
