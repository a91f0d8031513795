"""`teach check`: what was found stays, whatever else is asked for; failures are open for a person; it can be
interrupted. Each submission holds a notebook of a few cells."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from labs import files, sandbox
from labs.report.archive import zipped
from teaching.cli import main
from teaching.grading import check, judge, points, rubric

ROOT = Path(__file__).resolve().parents[2]
ONE, TWO = "01_basic_concepts", "02_averages"
CALL = 'check("concepts.14", enough)'  # as the notebook has it
START = "from labs.checks import answered, check, outcome, predict"
FRACTION = "from fractions import Fraction\nenough = Fraction(27)"  # right, and cannot leave its process
BEHIND_A_WRONG_ONE = 'if answered("concepts.5"):\n    check("concepts.8", 3.56, 3.9565217391304346)'
HONEST = [
    START, "%matplotlib inline\n!ls", "%%time\ncheck('slurm.1', 10)", FRACTION, CALL, 'check("concepts.5", "a")',
    BEHIND_A_WRONG_ONE,
]  # fmt: skip
ODD = [START, "import os\n" + FRACTION, CALL]  # right, and not plain
BLANK = ['check("concepts.1", ...)', 'if answered("concepts.1"):\n    None + 1', "1 / 0"]


def handed_in(out, number, cells, **more):
    """Collect a submission whose notebook 01 has these cells, and put it into a grading."""
    cells = [{"cell_type": "code", "id": f"c{n}", "metadata": {}, "source": each} for n, each in enumerate(cells)]
    text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    files.write(Path(out, f"submissions/{number}.zip"), zipped({f"notebooks/{ONE}.ipynb": text.encode()} | more))


def graded(out, *words):
    """Look at all submissions, by the command line."""
    with pytest.MonkeyPatch.context() as monkey:
        monkey.chdir(ROOT)
        assert main(["check", "--out", str(out), *words]) == 0


@pytest.fixture(scope="module")
def grades(needs_sandbox, tmp_path_factory):
    """(The folder of a grading of two submissions, one of them of 5,000 files; what was printed)."""
    out = tmp_path_factory.mktemp("grades")
    many = {f"notebooks/runs/n{n}.err": b"" for n in range(4999)}
    handed_in(out, "001", HONEST, **many)
    handed_in(out, "002", ODD + BLANK)
    printed = []
    with pytest.MonkeyPatch.context() as monkey:
        monkey.setattr("builtins.print", lambda *words, **_: printed.append(" ".join(map(str, words))))
        graded(out, "--notebooks", ONE)
    return out, printed


def of(out, number, notebook=ONE):
    return check.results(out)[number]["checks"][notebook]


def test_five_thousand_files_magics_and_typed_calls_leave_a_notebook_as_it_is(grades):
    found = of(grades[0], "001")
    assert (found["concepts.14"]["state"], found["concepts.14"]["how"]) == ("right", "inside"), found["concepts.14"]


def test_what_stands_behind_a_wrong_answer_is_judged(grades):
    found = of(grades[0], "001")
    assert (found["concepts.5"]["state"], found["concepts.8"]["state"]) == ("wrong", "right")


def test_a_cell_that_fails_is_told_but_where_it_needs_what_was_not_done(grades):
    assert check.results(grades[0])["002"]["told"] == [f"{ONE}, cell 5: ZeroDivisionError: division by zero"]


def test_a_check_that_is_left_to_a_person_has_its_code_and_is_told_with_whose_it_is(grades):
    found = of(grades[0], "002")["concepts.14"]
    assert found["how"] == "person" and found["code"] == f"{ODD[1]}\n\n{ODD[2]}"
    assert of(grades[0], "002")["concepts.8"]["how"] == "outside"  # not done
    (line,) = [
        line for line in grades[1] if line.startswith("concepts.14 is open for you in 1 (002): not judged: it imports")
    ]


def test_progress_is_told_from_the_first_submission_on(grades):
    first, second = [line for line in grades[1] if "findings; checks:" in line]
    assert "(1 of 2, time left about " in first and second.endswith("(2 of 2)")


def test_what_was_found_stays_whatever_else_is_asked_for(grades, tmp_path, capsys):
    out, before = grades[0], check.results(grades[0])
    graded(out, "--no-run")
    graded(out)  # the notebooks of the last time
    assert capsys.readouterr().out.count("0 looked at; the others are as they were.") == 2
    assert check.results(out) == before
    with pytest.MonkeyPatch.context() as monkey:
        monkey.setattr(judge, "judged", lambda submission, *_: ({}, ["was run"]))
        graded(out, "--notebooks", TWO)
        assert check.counting(out) == (TWO,)
        graded(out, "--notebooks", ONE)
        after = check.results(out)
        assert all(after[n]["checks"][ONE] == before[n]["checks"][ONE] for n in before)
        handed_in(out, "002", ODD + ["1"])  # a second hand-in
        graded(out, "--no-run")
        assert of(out, "002")["concepts.14"] == {
            "state": "open", "how": "person", "code": "", "text": points.NOT_JUDGED,
        }  # fmt: skip
        assert of(out, "001") == before["001"]["checks"][ONE]


@pytest.mark.parametrize("said", [{}, {"optional": True}, {"wrong": 5}, {"notebooks": [[1], {}]}])
def test_the_notebooks_of_the_release_count_where_none_is_named(said, tmp_path, capsys):
    given = {"notebooks": [ONE, "11_report", "26_where_a_step_goes"][: 3 if said.get("optional") else 2]}
    for number, release in (("001", given), ("002", given), ("003", said), ("004", None)):
        handed_in(tmp_path, number, HONEST, **{"manifest.json": json.dumps({"release": release}).encode()})
    graded(tmp_path, "--no-run")
    out = capsys.readouterr().out
    assert out.startswith(f"Notebooks that count: {ONE}, 11_report.\n")
    assert {id.partition(".")[0] for id in rubric.load(tmp_path).checks} == {"concepts", "report"}
    assert check.counting(tmp_path) == (ONE, "11_report")
    unrun = sum(id.startswith("concepts.") for id in rubric.load(tmp_path).checks)
    line = f"Not run yet, so open: {4 * unrun} checks of 001, 002, 003, 004."
    assert line in out and "is open for you" not in out
    assert main(["out", "--out", str(tmp_path)]) == 0
    assert line in (said := capsys.readouterr().out) and "(concepts.14)" not in said


def test_what_was_not_run_is_open_and_no_points_are_lost(tmp_path):
    handed_in(tmp_path, "001", HONEST)
    graded(tmp_path, "--no-run", "--notebooks", ONE, TWO)
    (found,) = check.results(tmp_path).values()
    lines = {line.id: line for line in points.lines(found, rubric.load(tmp_path))}
    for id in ("concepts.14", "averages.12"):
        assert lines[id].open == (id == "concepts.14"), lines[id]  # the notebook 02 was not handed in
    (tmp_path / "notebooks.json").write_text('["x"]')
    assert main(["check", "--out", str(tmp_path)]) == 2


def no_sandbox(*_, **__):
    raise sandbox.SandboxError("no memory")


def gone(*_, **__):
    return sandbox.SandboxOutcome(137, None, b"", b"", 0.0, {}, {})


@pytest.mark.parametrize("fails", [no_sandbox, gone])
def test_a_sandbox_that_fails_is_open_for_a_person_and_tried_again(fails, needs_sandbox, tmp_path, capsys):
    handed_in(tmp_path, "001", HONEST)
    with pytest.MonkeyPatch.context() as monkey:
        monkey.setattr(sandbox, "run_walled", fails)
        graded(tmp_path, "--notebooks", ONE)
    found = of(tmp_path, "001")
    assert len(found) == 14
    assert {(each["state"], each["how"]) for each in found.values()} == {("open", "person")} and found["concepts.14"][
        "code"
    ]
    assert "is open for you in 1 (001): not judged: " in capsys.readouterr().out
    with pytest.MonkeyPatch.context() as monkey:
        monkey.setattr(judge, "judged", lambda *_: ({"concepts.14": judge.CheckResult("right", "outside")}, []))
        graded(tmp_path)
    with pytest.MonkeyPatch.context() as monkey:
        monkey.setattr(check, "_kit", lambda _: "newer")
        monkey.setattr(judge, "judged", no_sandbox)
        graded(tmp_path)
    assert of(tmp_path, "001")["concepts.14"]["state"] == "right"  # what was found before stays


def test_judging_what_was_sent_has_an_end(run, monkeypatch):
    def endless(*_):
        while True:
            try:
                sum(range(10_000))
            except BaseException:  # the kit's judge takes any exception for the student's
                return "wrong", ""

    monkeypatch.setattr(judge, "CPU_SECONDS", 0.3)
    monkeypatch.setattr(judge.judging, "judge", endless)
    found, told = run(ONE, START, 'check("concepts.14", 27)')
    assert (found["concepts.14"].state, found["concepts.14"].how) == ("open", "person") and "takes too long" in told[-1]


@pytest.mark.parametrize("text", [b"", b"<<<<<<< HEAD\n{", b'{"worksheets": []}'])
def test_a_notebook_that_cannot_be_read_is_open_for_a_person(run, text):
    found, told = run(ONE, **{f"notebooks/{ONE}.ipynb": text})
    assert {(each.state, each.how) for each in found.values()} == {("open", "person")} and "cannot be read" in told[0]


def inside(process):
    """The processes in sandboxes that a process has started, each with its cells begun."""
    with_times = psutil.Process(process.pid).children(recursive=True)
    with suppress(psutil.NoSuchProcess):  # some end meanwhile
        return [each for each in with_times if "teaching.grading.inside" in each.cmdline() and each.name() != "bwrap"]
    return []


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_ends_it_at_once_and_keeps_what_is_finished(number, status, needs_sandbox, tmp_path):
    handed_in(tmp_path / "grades", "001", ["import time\nfor _ in range(900): time.sleep(1)"])
    (tmp_path / "tmp").mkdir()
    words = [sys.executable, "-m", "teaching", "check", "--out", str(tmp_path / "grades"), "--notebooks", ONE]
    process = subprocess.Popen(
        words, cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"TMPDIR": str(tmp_path / "tmp")},
    )  # fmt: skip
    try:
        until = time.monotonic() + 120
        while not (Path(tmp_path, "grades/checked/001.json").exists() and inside(process)):
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.1)
        started = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, number)
        assert process.wait(5) == status
        assert process.stderr.read() == "teach check: interrupted; what was finished so far is kept.\n"
        assert psutil.wait_procs(started, timeout=5)[1] == []
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    assert check._kept(tmp_path / "grades", "001") and not Path(tmp_path, "grades/replayed").exists()
    assert list((tmp_path / "tmp").iterdir()) == []
