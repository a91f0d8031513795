"""labs.jobs.srun: which ranks are started, and what is said where that cannot be; test_batch has real ranks."""

import pytest

from labs.jobs import srun

PROGRAM = ["some/python", "-u", "x y.py", "-n", "9", "--label"]


def test_number_of_ranks_and_the_program(monkeypatch):
    monkeypatch.setenv("SLURM_NTASKS", "4")
    for options, ranks in (
        ("", "4"),
        ("--ntasks=2", "2"),
        ("--mpi=pmi2 --kill-on-bad-exit=1 --label --ntasks=3", "3"),
        ("-l -K -N 2 -n 8 -c 1", "8"),
        ("-n2 -N1 --mpi pmi2 --exclusive", "2"),
        ("--label --kill-on-bad-exit --ntasks 5 --cpus-per-task 2", "5"),
    ):
        assert srun.split([*options.split(), *PROGRAM]) == (ranks, PROGRAM), options
    monkeypatch.delenv("SLURM_NTASKS")
    assert srun.split(PROGRAM) == ("1", PROGRAM)


def test_it_becomes_the_launcher(monkeypatch, needs_horovod):
    became = []
    monkeypatch.setattr(srun.os, "execv", lambda program, arguments: became.append((program, arguments)))
    srun.main(["-n", "2", *PROGRAM])
    ((program, arguments),) = became
    assert program == arguments[0] and program.endswith("horovodrun") and arguments[-6:] == PROGRAM


@pytest.mark.parametrize("arguments", [[], ["-n", "2"], ["-n"], ["--ntasks=x", "true"], ["-n", "-1", "true"]])
def test_wrong_use(arguments):
    assert srun.main(arguments).startswith("usage: srun")


def test_ranks_that_cannot_be_started(needs_horovod):
    said = srun.main(["--ntasks=0", "true"])
    assert said.startswith("labs.jobs.srun: 0 ranks") and "\n" not in said
