"""The command that starts ranks; what cannot be started is refused before anything runs."""

import subprocess
import sys

import pytest

from labs import devices, jobs
from labs.jobs import launch


def test_horovodrun_over_gloo_is_the_default(needs_horovod):
    program, *options = launch.command(2)
    assert program.endswith("horovodrun") and options == ["--gloo", "-np", "2", "-H", "localhost:2"]
    assert launch.command(2, "horovodrun") == [program, *options]


def test_mpiexec(needs_horovod):
    program, *options = launch.command(3, "mpiexec")
    assert program.endswith("mpiexec") and options == ["-prepend-rank", "-n", "3"]


@pytest.mark.parametrize("launcher, form", [("mpiexec", "[{}] {}"), ("horovodrun", "[{}]<stdout>:{}")])
def test_lines_of_ranks_are_whole_and_carry_their_rank(tmp_path, launcher, form, needs_horovod):
    (tmp_path / "say.py").write_text("for i in range(20):\n    print('line', i)\n")
    job = jobs.run(tmp_path / "say.py", name="say", runs=tmp_path, ranks=3, launcher=launcher, show=False)
    assert job.state == "finished"
    expected = [form.format(rank, f"line {i}") for rank in range(3) for i in range(20)]
    assert sorted(job.out.read_text().split("\n")) == sorted([*expected, ""])


def test_wrong_use():
    for ranks, launcher, says in (
        (0, None, "0 ranks: a training needs a whole number"),
        (-1, None, "-1 ranks"),
        (True, None, "True ranks"),
        (1.5, None, "1.5 ranks"),
        ("2", None, "'2' ranks"),
        (2, "mpirun", "No launcher is called 'mpirun'"),
        (2, "torchrun -n 2", "Use horovodrun, mpiexec or srun"),
    ):
        with pytest.raises(launch.LaunchError) as caught:
            launch.command(ranks, launcher)
        assert says in str(caught.value) and "\n" not in str(caught.value)


def programs(folder, monkeypatch, **said):
    """Only these programs are on the PATH; each prints what is given."""
    for name, text in said.items():
        (folder / name).write_text(f"#!/bin/sh\necho '{text}'\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")
    monkeypatch.setattr(launch.sys, "executable", str(folder / "python"))


@pytest.mark.parametrize(
    "tasks, ranks, nodes", [("4", 1, 1), ("2(x2)", 2, 1), ("2(x2)", 3, 2), ("1(x3)", 3, 3), ("3,1(x2),2", 5, 3)]
)
def test_srun_is_a_step_on_as_few_nodes_as_hold_the_ranks(monkeypatch, tmp_path, needs_horovod, tasks, ranks, nodes):
    programs(tmp_path, monkeypatch, srun="")
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    monkeypatch.setenv("SLURM_TASKS_PER_NODE", tasks)
    program, *options = launch.command(ranks, "srun --mpi=pmi2")
    assert program == str(tmp_path / "srun") and options[:2] == ["--mpi=pmi2", "--jobid=77"]
    assert options[-2:] == [f"--nodes={nodes}", f"--ntasks={ranks}"]
    assert {"--overlap", "--mem=0", "--kill-on-bad-exit=1"} < set(options)


def test_srun_outside_of_a_job_and_with_more_ranks_than_its_tasks(monkeypatch, tmp_path, needs_horovod):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setenv("SLURM_TASKS_PER_NODE", "2(x2)")  # left over in the environment
    with pytest.raises(launch.LaunchError, match="this process is not in one.*horovodrun or mpiexec"):
        launch.command(2, "srun")
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    with pytest.raises(launch.LaunchError, match="5 ranks need as many tasks, and this job has 4 tasks"):
        launch.command(5, "srun")
    monkeypatch.setattr(devices, "memory", lambda: 3 * launch.MEMORY)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(launch.LaunchError, match="srun is neither installed.*A container brings none"):
        launch.command(4, "srun")  # two of them here: there is memory for them


def test_the_other_launchers_in_a_job_of_several_nodes(monkeypatch, tmp_path, needs_horovod):
    """On one node as long as it holds the ranks."""
    programs(tmp_path, monkeypatch, horovodrun="", mpiexec="", scontrol="node1 node2")
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    monkeypatch.setenv("SLURM_TASKS_PER_NODE", "2(x2)")
    assert launch.command(2)[-1] == "localhost:2" and launch.command(4)[-1] == "node1:2,node2:2"
    assert launch.command(2, "mpiexec")[0] == str(tmp_path / "mpiexec")
    assert "fork" in launch.command(2, "mpiexec"), "no step of SLURM's for ranks of this machine"
    assert launch.command(4, "mpiexec")[:3] == ["env", "SLURM_JOB_ID=77", "SLURM_OVERLAP=1"]
    (tmp_path / "scontrol").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(launch.LaunchError, match="does not say which nodes"):
        launch.command(4)


def test_more_ranks_than_memory_holds(monkeypatch, needs_horovod):
    monkeypatch.setattr(devices, "memory", lambda: 2 * 2**30)
    assert launch.command(6)
    with pytest.raises(launch.LaunchError, match=r"7 ranks need 2.2 GiB .* 2.0 GiB are free.*at most 6\."):
        launch.command(7)


def test_horovod_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(launch.importlib.util, "find_spec", lambda name: None)
    (tmp_path / "a.py").write_text("print(1)")
    for start in (launch.command, lambda ranks: jobs.start(tmp_path / "a.py", name="a", runs=tmp_path, ranks=ranks)):
        with pytest.raises(launch.LaunchError, match="Horovod is not installed.*`make horovod`"):
            start(2)
    assert [path.name for path in tmp_path.iterdir()] == ["a.py"]


def test_import_of_labs_hvd_without_horovod_says_what_to_do(tmp_path):
    (tmp_path / "horovod").mkdir()
    (tmp_path / "horovod" / "__init__.py").write_text("raise ImportError('no such library')")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import labs.hvd"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1
    assert last.startswith("ImportError: Horovod cannot be imported (no such library)") and "`make horovod`" in last
    assert done.stderr.count("Traceback") == 1


def test_launcher_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(launch.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(launch.sys, "executable", str(tmp_path / "env" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(launch.LaunchError, match="mpiexec is neither installed"):
        launch.command(2, "mpiexec")
    (tmp_path / "mpiexec").write_text("#!/bin/sh\n")
    (tmp_path / "mpiexec").chmod(0o755)
    assert launch.command(2, "mpiexec") == [str(tmp_path / "mpiexec"), "-n", "2"]


def test_processes_of_a_foreign_launcher_are_noticed(needs_horovod):
    """Each would think that it is alone."""
    code = """
import os
from labs import hvd

for name, count in (("OMPI_COMM_WORLD_SIZE", "4"), ("SLURM_STEP_NUM_TASKS", "4"), ("OMPI_COMM_WORLD_SIZE", "1")):
    os.environ[name] = count
    try:
        hvd.init()
        print("started")
    except hvd.HorovodError as problem:
        print(problem)
    del os.environ[name]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    *refused, alone = done.stdout.splitlines()
    assert alone == "started" and len(refused) == 2, done.stderr
    assert all("4 processes were started, but each sees itself alone" in text for text in refused)
