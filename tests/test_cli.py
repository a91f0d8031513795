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

from labs import cli, doctor
from labs.errors import LabsError
from teaching.cli import TEACH

ROOT = Path(__file__).parents[1]
COMMANDS = {
    "labs": "doctor study compare results why maxbatch allreduce predict slurm reset update report dispute",
    "teach": "build render site release collect check rerun desk mark pin out oral",
}
PROGRAMS = {"labs": cli.LABS, "teach": TEACH}
LOG = ROOT / "labs/recorded/cte-power-resnet50v2.out"


def labs(*arguments, cwd=ROOT):
    """The installed command, from the shell."""
    program = Path(sys.executable).with_name("labs")
    return subprocess.run([program, *map(str, arguments)], cwd=cwd, capture_output=True, text=True)


def call(capsys, *arguments, main=cli.main):
    """(exit code, stdout, stderr) of the command in this process."""
    try:
        code = main([str(a) for a in arguments])
    except SystemExit as end:
        code = end.code
    return code, *capsys.readouterr()


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_command_is_installed_and_lists_its_commands(program):
    done = subprocess.run([Path(sys.executable).with_name(program), "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    assert re.findall(r"\n    (\w+)\s", done.stdout) == COMMANDS[program].split()


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_command_and_option_has_help(program, capsys):
    commands = PROGRAMS[program].commands
    for words, (_, text, _) in commands.items():
        code, out, err = call(capsys, *words, "--help", main=PROGRAMS[program].main)
        assert code == 0 and err == "" and f"usage: {program} {' '.join(words)}" in out
        assert text in " ".join(out.split())
    options = [(words, *option) for words, (_, _, options) in commands.items() for option in options.items()]
    assert [(words, name) for words, name, settings in options if not settings.get("help")] == []


def test_what_argparse_refuses_is_exit_code_2(capsys):
    for words in ([], ["nothing"], ["slurm"], ["study", "--workers", "two"], ["results"], ["study", "--strategy", "x"]):
        code, out, err = call(capsys, *words)
        assert code == 2 and out == "" and "error:" in err and "Traceback" not in err


# Errors


def test_what_the_user_can_mend_is_one_line_and_any_other_error_is_a_bug(monkeypatch, capsys):
    class WrongUse(LabsError):
        code = 2

    def call_with(error):
        monkeypatch.setattr(doctor, "look", Mock(side_effect=error))
        return call(capsys, "doctor")

    for error, code, says in (
        (WrongUse("a wrong number"), 2, "a wrong number"),
        (LabsError("it broke"), 1, "it broke"),
        (KeyboardInterrupt(), 130, "interrupted; what was finished so far is kept."),
        (KeyboardInterrupt(signal.SIGTERM), 143, "interrupted; what was finished so far is kept."),
    ):
        assert call_with(error) == (code, "", f"labs doctor: {says}\n")
    for error in (ValueError("a bug"), OSError(2, "a file of the kit's own"), RuntimeError("another")):
        with pytest.raises(type(error)):
            call_with(error)


def test_wrong_use_of_each_command_is_said_in_one_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(ROOT)
    for code, words in (
        (2, ["study", "--preset", "huge", "--out", tmp_path / "runs"]),
        (2, ["study", "--preset", "test", "--models", "ResNet51", "--out", tmp_path / "runs"]),
        (2, ["results", "missing.out"]),
        (2, ["results", "README.md"]),
        (2, ["results", "9" * 400]),
        (2, ["results", tmp_path, "--images", "0"]),
        (2, ["results", tmp_path, "--workers", "-1"]),
        (2, ["predict", "--model", "ResNet50V2", "--machine", "cte-power", "--workers", "1000000000000"]),
        (2, ["predict", "--model", "ResNet50V2", "--machine", "cte-power", "--workers", "2", "--image_size", "0"]),
        (2, ["predict", "--model", "ResNet50V2", "--machine", "cte-power", "--workers", "2", "--one_worker", "0"]),
        (2, ["maxbatch", "--memory", "99999999999999999999GiB", "--out", tmp_path / "runs"]),
        (2, ["maxbatch", "--memory", "0", "--out", tmp_path / "runs"]),
        (2, ["maxbatch", "--memory", "-1GiB", "--out", tmp_path / "runs"]),
        (2, ["maxbatch", "--model", "ResNet51", "--out", tmp_path / "runs"]),
        (2, ["maxbatch", "--start", "0", "--out", tmp_path / "runs"]),
        (2, ["predict", "--model", "ResNet51", "--workers", "2", "--machine", "cte-power"]),
        (2, ["predict", "--model", "ResNet50V2", "--workers", "2", "--machine", "nowhere"]),
        (2, ["predict", "--model", "ResNet50V2", "--workers", "2", "--records", tmp_path / "missing"]),
        (2, ["slurm", "check", "missing.sh"]),
        (2, ["slurm", "check", "slurm/local/ResNet50.sh", "--site", "nowhere"]),
        (2, ["allreduce", "--ranks", "1"]),
        (1, ["teach", "build", "99"]),
        (1, ["teach", "build", "--student", ROOT]),
        (1, ["teach", "build", "--student", tmp_path / "file/below"]),
    ):
        program, words = ("teach", words[1:]) if words[0] == "teach" else ("labs", words)
        got, out, err = call(capsys, *words, main=PROGRAMS[program].main)
        assert (got, out) == (code, "") and err.startswith(f"{program} {words[0]}: ") and err.count("\n") == 1, words
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


# labs results


def test_results_of_the_cluster_log_as_table():
    done = labs("results", LOG, "--images", 50_000)
    assert done.returncode == 0 and done.stderr == ""
    head, _, *lines = done.stdout.splitlines()
    assert "epoch (s)" in head and "speedup" in head and "efficiency" in head
    for line, cells in zip(lines, (("45", "1111", "256"), ("24", "2083", "512"), ("12", "4167", "1024")), strict=False):
        assert "cte-power-resnet50v2.out" in line and all(cell in line for cell in cells) and "recorded" in line
    assert "3.75 (1 run, 3.56 to 3.96)" in lines[2]  # 44.5 / 12.5 and 45.5 / 11.5


def test_results_of_the_cluster_log_as_json(capsys):
    code, out, err = call(capsys, "results", LOG, "--images", 50_000, "--json")
    assert code == 0 and err == ""
    rows = json.loads(out)["runs"]
    assert [(r["model"], r["workers"], r["global_batch"], r["steps"]) for r in rows] == [
        ("ResNet50V2", 1, 256, 196),
        ("ResNet50V2", 2, 512, 98),
        ("ResNet50V2", 4, 1024, 49),
    ]
    assert [r["epoch_seconds"] for r in rows] == [45, 24, 12]
    assert rows[0]["epoch_seconds_rounded"] == [44.5, 45.5]
    assert [r["speedup"] for r in rows] == pytest.approx([1, 1.875, 3.75])
    assert rows[2]["efficiency"] == pytest.approx(0.9375)
    assert rows[2]["efficiency_interval"] is None
    assert rows[2]["efficiency_rounded"] == pytest.approx([0.89, 0.989], abs=0.001)
    assert rows[0]["images_per_second"] == pytest.approx(50_000 / 45)
    assert (rows[0]["final_loss"], rows[2]["final_accuracy"]) == (1.3539, 0.5010)
    assert {r["kind"] for r in rows} == {"recorded"}


def test_results_of_jobs_without_a_finished_epoch_are_a_problem_that_was_found(tmp_path, capsys):
    (tmp_path / "job_31.err").write_text("slurmstepd: error: *** JOB 31 ON n1 CANCELLED AT 2026-01-02T10:10:00 ***\n")
    for files, code in (([tmp_path / "job_31.err"], 1), ([tmp_path / "job_31.err", LOG], 0)):
        got, out, err = call(capsys, "results", *files)
        assert (got, err) == (code, "") and "cancelled" in out
        got, out, err = call(capsys, "results", *files, "--json")
        assert (got, err) == (code, "") and json.loads(out)["runs"][0]["failure"]["kind"] == "cancelled"


def test_why_of_a_file_says_what_reads_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    for path in (Path("job_31.err"), Path("slurm-7.out"), Path("runs/run.json")):
        path.write_text("")
        code, out, err = call(capsys, "why", path.name)
        assert (code, out) == (2, "") and err.count("\n") == 1 and "looks at a running job" in err
        assert err.startswith(f"labs why: {path} is a file") and f"`labs results {path}` reads" in err


def test_results_without_images_are_not_guessed(capsys):
    code, out, _ = call(capsys, "results", LOG, "--json")
    assert code == 0 and [r["images_per_second"] for r in json.loads(out)["runs"]] == [None] * 3


# The other commands (study, maxbatch, allreduce: tests/measure; predict: tests/costs; slurm: tests/slurm)


def test_doctor(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "look", lambda: rows)
    for fix, code, line in ((None, 0, ""), ("buy a second core", 1, "       -> buy a second core\n")):
        rows = [{"what": "cores", "found": "1", "means": "no speedup", "fix": fix}]
        assert call(capsys, "doctor") == (code, f"cores  1: no speedup\n{line}", "")
        got, out, _ = call(capsys, "doctor", "--json")
        assert got == code and json.loads(out) == rows


def test_doctor_on_this_machine(tmp_path):
    done = labs("doctor", cwd=tmp_path)
    assert done.returncode == (1 if "->" in done.stdout else 0) and "Traceback" not in done.stderr
    assert all(word in done.stdout for word in ("TensorFlow", "GPUs", "cores", "memory", "Horovod", "SLURM"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", ["raise ImportError('multiarray failed')", "1 / 0"])
def test_doctor_names_a_package_from_elsewhere_that_cannot_be_imported(tmp_path, content):
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy/__init__.py").write_text(content)
    done = subprocess.run(
        [sys.executable, "-m", "labs", "doctor"], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert done.returncode == 1 and done.stderr == "" and len(lines) == 4
    assert lines[0].startswith(f"packages  numpy from {tmp_path.resolve()}: ") and "unset PYTHONPATH" in lines[1]
    assert lines[2].startswith("numpy     cannot be imported (") and "make lab" in lines[3]


def test_build_check_reports_problems_with_exit_code_1(monkeypatch, capsys):
    from teaching.author import build

    monkeypatch.setattr(build, "check", lambda root, names: ["05.ipynb: out of date"])
    assert call(capsys, "build", "--check", main=TEACH.main) == (1, "05.ipynb: out of date\n", "")
    monkeypatch.setattr(build, "check", lambda root, names: [])
    assert call(capsys, "build", "--check", main=TEACH.main) == (0, "Sources and generated files agree.\n", "")


def test_import_stays_light():
    code = (
        "import sys; from labs.cli import LABS; from teaching.cli import TEACH; LABS.parser(), TEACH.parser(); print("
    )
    code += "[m for m in ('tensorflow', 'numpy', 'matplotlib', 'scipy') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True, cwd=ROOT).strip() == "[]"


@pytest.mark.parametrize("ask", [["results", LOG], ["slurm", "sites"]])
def test_a_reader_that_has_enough_is_no_error(ask):
    program = Path(sys.executable).with_name("labs")
    with subprocess.Popen([program, *map(str, ask)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
        job.stdout.close()  # before anything was printed
        assert job.stderr.read() == b""
    assert job.returncode == 1


def test_a_pipe_is_refused_and_not_waited_for(tmp_path, capsys):
    for name in ("a.out", "a.json"):
        os.mkfifo(tmp_path / name)
        code, _, err = call(capsys, "results", tmp_path / name)
        assert code == 2 and "not a regular file" in err
    assert call(capsys, "predict", "--model", "M", "--workers", "2", "--records", tmp_path)[0] == 2


@pytest.mark.parametrize("to, code, says", [("/dev/full", 1, "No space left"), ("&-", 0, "")])
def test_output_that_cannot_be_written(to, code, says):
    command = f"{sys.executable} -m labs results {LOG} >{to}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == code and says in done.stderr and "Traceback" not in done.stderr


def test_output_in_ascii():
    done = subprocess.run(
        [sys.executable, "-m", "labs", "results", "größe.out"], capture_output=True, cwd=ROOT,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert done.returncode == 2 and b"gr\\xf6\\xdfe.out" in done.stderr


def test_doctor_says_which_settings_name_nothing():
    with pytest.MonkeyPatch.context() as patch:
        for name in ("LABS_SITE", "LABS_PRESET", "LABS_RUNS"):
            patch.setenv(name, "/nothing")
        rows = doctor.settings(["local"])
        assert [row["what"] for row in rows] == ["LABS_SITE", "LABS_PRESET", "LABS_RUNS"]
        assert all(row["fix"] for row in rows)
        patch.setenv("LABS_SITE", "local")
        patch.setenv("LABS_PRESET", "test")
        patch.setenv("LABS_RUNS", str(ROOT))
        assert doctor.settings(["local"]) == []


@pytest.mark.parametrize("words", ["build", "render", "site out", "release --out x.zip", "check", "oral"])
def test_outside_of_the_course_teach_says_where_to_go(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(capsys, *words.split(), main=TEACH.main)
    assert code == 2 and err.startswith(f"teach {words.split()[0]}: ") and "is in no course with its sources" in err
    assert list(tmp_path.iterdir()) == []
