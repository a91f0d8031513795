"""The commands `labs` and `teach`: help everywhere, exit codes 0, 1 and 2, errors in one line."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from tree import ROOT

from labs import cli, doctor, files
from labs.errors import LabsError, UseError
from teaching.author import build
from teaching.cli import TEACH

PROGRAMS = {"labs": cli.LABS, "teach": TEACH}
LOG = ROOT / "labs/recorded/cte-power-resnet50v2.out"


@pytest.fixture
def call(capsys):
    """Function: (exit code, stdout, stderr) of a command line in this process."""

    def called(program, *words):
        try:
            code = PROGRAMS[program].main([str(word) for word in words])
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    return called


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_is_installed_and_every_command_and_option_has_help(program, call):
    done = subprocess.run([Path(sys.executable).with_name(program), "--help"], capture_output=True, text=True)
    commands = PROGRAMS[program].commands
    assert done.returncode == 0 and done.stderr == "" and len(commands) > 5
    assert re.findall(r"\n    (\w+)\s", done.stdout) == list(dict.fromkeys(words.split()[0] for words in commands))
    for words, (_, text, options) in commands.items():
        code, out, err = call(program, *words.split(), "--help")
        assert (code, err) == (0, "") and f"usage: {program} {words}" in out and text in " ".join(out.split())
        assert [(words, name) for name, settings in options if not settings.get("help")] == []


def test_what_the_user_can_mend_is_one_line_and_any_other_error_is_a_bug(monkeypatch, call):
    for error, code, says in (
        (UseError("a wrong number"), 2, "a wrong number"),
        (LabsError("it broke"), 1, "it broke"),
        (KeyboardInterrupt(), 130, "interrupted; what was finished so far is kept."),
        (KeyboardInterrupt(signal.SIGTERM), 143, "interrupted; what was finished so far is kept."),
    ):
        monkeypatch.setattr(doctor, "look", Mock(side_effect=error))
        assert call("labs", "doctor") == (code, "", f"labs doctor: {says}\n")
    for error in (ValueError("a bug"), OSError(2, "a file of the kit's own")):
        monkeypatch.setattr(doctor, "look", Mock(side_effect=error))
        with pytest.raises(type(error)):
            call("labs", "doctor")


def test_wrong_use_of_each_command_is_said_in_one_line_and_leaves_nothing(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    files.write(Path("plain.md"), "")
    files.write(Path("runs/run.json"), "")
    before = sorted(tmp_path.rglob("*"))
    for words, says in (
        ("", "labs: error: the following arguments are required: COMMAND"),
        ("study --workers two", "labs study: error: argument --workers: two is not a whole number"),
        ("study --preset huge --out runs", "labs study: .*huge"),
        ("results missing.out", "labs results: .*missing.out"),
        ("results . --workers -1", "labs results: .*-1"),
        ("maxbatch --memory 0GiB --out runs", "labs maxbatch: .*0GiB"),
        ("slurm check plain.md --site nowhere", "labs slurm: .*nowhere"),
        ("why run.json", "labs why: No process of run.json has said where it is: nothing of it runs, .*"),
    ):
        code, out, err = call("labs", *words.split())
        assert (code, out) == (2, "") and re.fullmatch(f"{says}.*\n", err), err
        assert sorted(tmp_path.rglob("*")) == before


def test_results_of_the_cluster_log(call):
    code, out, err = call("labs", "results", LOG, "--images", 50_000)
    head, _, *lines = out.splitlines()
    assert (code, err) == (0, "") and re.search(r"epoch \(s\).*speedup.*efficiency", head)
    assert re.search(r"3.75 \(1 run, 3.56 to 3.96\)", lines[2])  # 44.5 / 12.5 and 45.5 / 11.5
    rows = json.loads(call("labs", "results", LOG, "--images", 50_000, "--json")[1])["runs"]
    keys = ("workers", "global_batch", "steps", "epoch_seconds", "speedup", "images_per_second")
    for row, workers, seconds in zip(rows, (1, 2, 4), (45, 24, 12), strict=True):
        numbers = [workers, 256 * workers, 196 // workers, seconds, 45 / seconds, 50_000 / seconds]
        assert [row[key] for key in keys] == [*map(pytest.approx, numbers)] and row["kind"] == "recorded"
    assert rows[0]["epoch_seconds_rounded"] == [44.5, 45.5] and rows[2]["efficiency"] == pytest.approx(0.9375)
    assert rows[2]["efficiency_rounded"] == pytest.approx([0.89, 0.989], abs=0.001)
    assert (rows[2]["efficiency_interval"], rows[0]["final_loss"], rows[2]["final_accuracy"]) == (None, 1.3539, 0.5010)
    unknown = json.loads(call("labs", "results", LOG, "--json")[1])["runs"]
    assert [row["images_per_second"] for row in unknown] == [None] * 3, "how many images is not guessed"


def test_results_of_jobs_without_a_finished_epoch_are_a_problem_that_was_found(tmp_path, call):
    (tmp_path / "job_31.err").write_text("slurmstepd: error: *** JOB 31 ON n1 CANCELLED AT 2026-01-02T10:10:00 ***\n")
    for logs, code in (([tmp_path / "job_31.err"], 1), ([tmp_path / "job_31.err", LOG], 0)):
        got, out, err = call("labs", "results", *logs, "--json")
        assert (got, err) == (code, "") and json.loads(out)["runs"][0]["failure"]["kind"] == "cancelled"


def test_doctor(monkeypatch, call):
    monkeypatch.setattr(doctor, "look", lambda: rows)
    for fix, code, line in ((None, 0, ""), ("buy a second core", 1, "       -> buy a second core\n")):
        rows = [{"what": "cores", "found": "1", "means": "no speedup", "fix": fix}]
        assert call("labs", "doctor") == (code, f"cores  1: no speedup\n{line}", "")


def test_doctor_names_a_package_from_elsewhere_that_cannot_be_imported(tmp_path):
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy/__init__.py").write_text("1 / 0")
    command = [sys.executable, "-m", "labs", "doctor"]
    here = os.environ | {"PYTHONPATH": f"{tmp_path}"}
    done = subprocess.run(command, cwd=ROOT, env=here, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert done.returncode == 1 and done.stderr == "" and len(lines) == 4
    assert lines[0].startswith(f"numpy  from {tmp_path.resolve()}: ") and "unset PYTHONPATH" in lines[1]
    assert lines[2].startswith("numpy  cannot be imported (") and "make lab" in lines[3]


def test_teach_build(tmp_path, monkeypatch, call):
    monkeypatch.setattr(build, "check", lambda root, names: ["05.ipynb: out of date"] * (names == ["05"]))
    assert call("teach", "build", "--check", "05") == (1, "05.ipynb: out of date\n", "")
    assert call("teach", "build", "--check")[0] == 0
    monkeypatch.setattr(build, "build", built := Mock())
    for words in ("05 --no-execute", "--force"):
        assert call("teach", "build", *words.split())[0] == 0
    asked = [each.kwargs for each in built.mock_calls]
    assert asked == [dict(names=["05"], execute=False, force=False), dict(names=None, execute=True, force=True)]
    monkeypatch.chdir(tmp_path)
    for words in ("build", "site out", "release --out x.zip", "in x", "out --oral"):  # outside of the course
        code, out, err = call("teach", *words.split())
        assert code == 2 and err.startswith(f"teach {words.split()[0]}: ") and "no course with its sources" in err
    assert list(tmp_path.iterdir()) == []


def test_import_stays_light():
    code = "import sys; from labs.cli import LABS; from teaching.cli import TEACH; LABS.parser(), TEACH.parser()\n"
    code += "print(*sys.modules)\nimport teaching.author.build\nprint(*sys.modules)"
    ran = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=ROOT)
    commands, build = (set(line.split()) for line in ran.splitlines())
    heavy = {"tensorflow", "keras", "scipy", "pandas", "matplotlib", "sklearn", "numpy", "pydantic"}
    assert "labs.cli" in commands and not heavy & commands
    assert "jupytext" not in build and not {"tensorflow", "nbclient", "nbformat"} & build


def test_output_that_cannot_be_written_or_only_in_ascii():
    for words, code, says in (
        (f"{LOG} >/dev/full", 1, "No space left"),
        (f"{LOG} >&-", 0, ""),
        (f"{LOG} | true; exit ${{PIPESTATUS[0]}}", 1, ""),  # a reader that has enough
        ("größe.out", 2, r"gr\xf6\xdfe.out"),
    ):
        command, here = f"{sys.executable} -m labs results {words}", os.environ | {"PYTHONIOENCODING": "ascii"}
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT, env=here)
        assert done.returncode == code and done.stderr.count("\n") == bool(says) and says in done.stderr
