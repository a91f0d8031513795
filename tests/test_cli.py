"""The `labs` command: help everywhere, exit codes 0, 1 and 2, errors in one line."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from labs import cli, doctor

ROOT = Path(__file__).parents[1]
COMMANDS = ["doctor", "study", "results", "maxbatch", "slurm", "allreduce", "predict", "build"]
LOG = ROOT / "labs/recorded/cte-power-resnet50v2.out"


def labs(*arguments, cwd=ROOT):
    """The installed command, from the shell."""
    program = Path(sys.executable).with_name("labs")
    return subprocess.run([program, *map(str, arguments)], cwd=cwd, capture_output=True, text=True)


def call(capsys, *arguments):
    """(exit code, stdout, stderr) of the command in this process."""
    try:
        code = cli.main([str(a) for a in arguments])
    except SystemExit as end:
        code = end.code
    return code, *capsys.readouterr()


def test_the_command_is_installed_and_lists_its_commands():
    done = labs("--help")
    assert done.returncode == 0 and done.stderr == ""
    assert all(re.search(rf"\n    {name}\s", done.stdout) for name in COMMANDS)


def test_every_command_has_help(capsys):
    subparsers = cli.parser()._subparsers._group_actions[0].choices
    assert set(subparsers) >= set(COMMANDS)
    for name, sub in subparsers.items():
        code, out, err = call(capsys, name, "--help")
        assert code == 0 and err == "" and f"usage: labs {name}" in out and sub.description in " ".join(out.split())
        assert all(action.help for action in sub._actions), [a.dest for a in sub._actions if not a.help]


@pytest.mark.parametrize(
    "arguments", [[], ["nothing"], ["study", "--workers", "two"], ["results"], ["study", "--strategy", "horse"]]
)
def test_wrong_use_is_exit_code_2(arguments, capsys):
    code, out, err = call(capsys, *arguments)
    assert code == 2 and out == "" and "error:" in err and "Traceback" not in err


# labs results


def test_results_of_the_cluster_log_as_table():
    done = labs("results", LOG, "--images", 50_000)
    assert done.returncode == 0 and done.stderr == ""
    head, _, *lines = done.stdout.splitlines()
    assert "epoch (s)" in head and "speedup" in head and "efficiency" in head
    for line, cells in zip(lines, (("45", "1111", "256"), ("24", "2083", "512"), ("12", "4167", "1024")), strict=False):
        assert "cte-power-resnet50v2.out" in line and all(cell in line for cell in cells) and "recorded" in line
    assert "3.75" in lines[2] and "[3.56, 3.96]" in lines[2]  # 44.5 / 12.5 and 45.5 / 11.5


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
    assert [r["epoch_seconds_resolution"] for r in rows] == [1, 1, 1]
    assert [r["speedup"] for r in rows] == pytest.approx([1, 1.875, 3.75])
    assert rows[2]["efficiency"] == pytest.approx(0.9375)
    assert rows[2]["efficiency_interval"] == pytest.approx([0.89, 0.989], abs=0.001)
    assert rows[0]["images_per_second"] == pytest.approx(50_000 / 45)
    assert (rows[0]["final_loss"], rows[2]["final_accuracy"]) == (1.3539, 0.5010)
    assert {r["kind"] for r in rows} == {"recorded"}


def test_results_without_images_are_not_guessed(capsys):
    code, out, _ = call(capsys, "results", LOG, "--json")
    assert code == 0 and [r["images_per_second"] for r in json.loads(out)["runs"]] == [None] * 3


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("missing.out", None, "missing.out"),
        ("empty.out", "", "empty"),
        ("noise.out", "hello\n", "no epoch"),
        ("foreign.pdf", "x", "foreign.pdf"),
        ("half.json", '{"version": 1', "half.json"),
        ("future.json", '{"version": 99, "epochs": []}', "version 99"),
        ("other.json", '{"a": 1}', "not a run record"),
    ],
)
def test_results_of_unusable_files(name, text, says, tmp_path, capsys):
    if text is not None:
        (tmp_path / name).write_text(text)
    code, out, err = call(capsys, "results", tmp_path / name)
    assert code == 2 and out == "" and err.startswith("labs results: ")
    assert says in err and err.count("\n") == 1 and "Traceback" not in err


# The other commands (study and maxbatch: test_study.py, test_maxbatch.py)


@pytest.mark.parametrize("fix", [None, "buy a second core"])
def test_doctor(monkeypatch, capsys, fix):
    rows = [{"what": "cores", "found": "1", "means": "no speedup", "fix": fix}]
    monkeypatch.setattr(doctor, "look", lambda: rows)
    code, out, err = call(capsys, "doctor")
    assert (code, err) == (1 if fix else 0, "")
    assert out == "cores  1: no speedup\n" + (f"       -> {fix}\n" if fix else "")
    code, out, _ = call(capsys, "doctor", "--json")
    assert code == (1 if fix else 0) and json.loads(out) == rows


def test_doctor_on_this_machine(tmp_path):
    done = labs("doctor", cwd=tmp_path)
    assert done.returncode == (1 if "->" in done.stdout else 0) and "Traceback" not in done.stderr
    assert all(word in done.stdout for word in ("TensorFlow", "GPUs", "cores", "memory", "Horovod", "SLURM"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments",
    [
        ["--memory", "0"],
        ["--memory", "-1GiB"],
        ["--memory", "much"],
        ["--model", "ResNet51"],
        ["--start", "0"],
        ["--limit", "0"],
    ],
)
def test_maxbatch_that_cannot_be_run(arguments, capsys, tmp_path):
    code, out, err = call(capsys, "maxbatch", "--out", tmp_path / "runs", *(f"{a}" for a in arguments))
    assert code == 2 and out == "" and "Traceback" not in err
    assert err.strip().splitlines()[-1].startswith(("labs maxbatch: ", "labs: error: "))
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("a wrong number"), 2),
        (FileNotFoundError(2, "No such file", "x.out"), 2),
        (PermissionError(13, "Permission denied", "x"), 1),
        (RuntimeError("it broke"), 1),
        (KeyboardInterrupt(), 1),
    ],
)
def test_exit_codes_and_one_line_on_stderr(error, code, monkeypatch, capsys):
    def fails():
        raise error

    monkeypatch.setattr(doctor, "look", fails)
    got, out, err = call(capsys, "doctor")
    assert got == code and out == "" and err.count("\n") == 1 and err.startswith("labs doctor: ")
    assert "interrupted" in err if isinstance(error, KeyboardInterrupt) else str(error) in err


def test_build_check_reports_problems_with_exit_code_1(monkeypatch, capsys):
    from labs.author import build

    monkeypatch.setattr(build, "check", lambda root: ["05.ipynb: out of date"])
    assert call(capsys, "build", "--check") == (1, "05.ipynb: out of date\n1 problem(s)\n", "")
    monkeypatch.setattr(build, "check", lambda root: [])
    assert call(capsys, "build", "--check") == (0, "Sources and generated files agree.\n", "")


def test_import_stays_light():
    code = "import sys, labs.cli; labs.cli.parser(); print([m for m in ('tensorflow', 'numpy', 'matplotlib', 'scipy') "
    code += "if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True, cwd=ROOT).strip() == "[]"


@pytest.mark.parametrize("ask", [["results", LOG], ["slurm", "sites"]])
def test_a_reader_that_has_enough_is_no_error(ask):
    program = Path(sys.executable).with_name("labs")
    with subprocess.Popen([program, *map(str, ask)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
        job.stdout.close()  # before anything was printed
        assert job.stderr.read() == b""
    assert job.returncode == 1
