"""`teach in`: what was found stays, whatever else is asked for; failures are open for a person; it can be
interrupted. Each submission holds a notebook of a few cells."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import made_grading
import psutil
import pytest
from waiting import until

from labs import files, sandbox
from labs.errors import UseError
from labs.report.archive import zipped
from teaching.cli import main
from teaching.grading import check, decides, judge, points, rubric

ROOT = Path(__file__).resolve().parents[2]
ONE, TWO = "01_basic_concepts", "02_averages_and_rings"
CALL = 'check("concepts.14", enough)'  # as the notebook has it
START = "from labs.checks import check"
FRACTION = "from fractions import Fraction\nenough = Fraction(27)"  # right, and cannot leave its process
BEHIND_A_WRONG_ONE = 'if check("concepts.5", "a") or True:\n    check("concepts.8", 3.56, 3.9565217391304346)'
HONEST = [START, "%matplotlib inline\n!ls", "%%time\ncheck('slurm.1', 10)", FRACTION, CALL]
HONEST += ['check("concepts.5", "a")', BEHIND_A_WRONG_ONE]
ODD = [START, FRACTION.replace("Fraction(27)", "getattr(Fraction(27), 'real')"), CALL]  # right, and not plain
BLANK = ['check("concepts.1", ...)', 'if not check("concepts.1", ...):\n    None + 1', "1 / 0"]


def handed_in(out, number, cells, **more):
    """Collect a submission whose notebook 01 has these cells, and put it into a grading."""
    held = {f"notebooks/{ONE}.ipynb": made_grading.notebook(*cells)} | more
    files.write(Path(out, f"submissions/{number}.zip"), zipped(held))


@pytest.fixture
def graded(monkeypatch, capsys):
    """graded(out, *words) -> what the command prints that looks at all submissions."""
    monkeypatch.chdir(ROOT)

    def graded(out, *words):
        assert main(["in", "--out", str(out), *words]) == 0
        return capsys.readouterr().out

    return graded


def of(out, number, notebook=ONE):
    return check.results(out)[number]["checks"][notebook]


def test_what_was_found_stays_whatever_else_is_asked_for(needs_sandbox, graded, tmp_path, monkeypatch):
    """Two submissions, one of them of 5,000 files."""
    handed_in(tmp_path, "001", HONEST, **{f"notebooks/runs/n{n}.err": b"" for n in range(4999)})
    handed_in(tmp_path, "002", ODD + BLANK)
    graded(tmp_path, "--notebooks", "01")
    before, first, second = check.results(tmp_path), of(tmp_path, "001"), of(tmp_path, "002")
    assert (first["concepts.14"]["state"], first["concepts.14"]["how"]) == ("right", "inside"), first["concepts.14"]
    assert (first["concepts.5"]["state"], first["concepts.8"]["state"]) == ("wrong", "right")
    assert second["concepts.14"]["how"] == "person" and second["concepts.8"]["how"] == "outside"  # not done
    assert before["002"]["code"]["concepts.14"] == f"{ODD[1]}\n\n{ODD[2]}"
    assert second["concepts.14"]["text"].startswith("not judged: it uses 'getattr'")
    assert before["002"]["told"][-1] == f"{ONE}, cell 5: ZeroDivisionError: division by zero"

    assert "0 submissions checked; the others are as they were." in graded(tmp_path)  # the notebooks of the last time
    assert check.results(tmp_path) == before
    monkeypatch.setattr(judge, "judged", lambda submission, *_: ({}, ["was run"]))
    graded(tmp_path, "--notebooks", "02")
    assert check.counting(tmp_path) == (TWO,)
    graded(tmp_path, "--notebooks", "01")
    after = check.results(tmp_path)
    assert all(after[n]["checks"][ONE] == before[n]["checks"][ONE] for n in before)
    handed_in(tmp_path, "002", ODD + ["1"])  # a second hand-in
    graded(tmp_path, "--no-run")
    waiting = {"state": "open", "how": "person", "text": points.NOT_JUDGED}
    assert of(tmp_path, "002")["concepts.14"] == waiting and of(tmp_path, "001") == first


def test_the_notebooks_of_the_release_count_where_none_is_named(tmp_path, graded, capsys):
    handed_in(tmp_path, "001", HONEST)
    with pytest.raises(UseError, match="No submission says which notebooks it was given"):
        check.counting(tmp_path)
    given = {"notebooks": [ONE, "11_report", "26_where_a_step_goes"]}  # the last one is optional
    for number, release in (("001", given), ("002", given), ("003", {"notebooks": [[1], {}]}), ("004", None)):
        handed_in(tmp_path, number, HONEST, **{"manifest.json": json.dumps({"release": release}).encode()})
    out = graded(tmp_path, "--no-run")
    assert f"\nNotebooks that count: {ONE}, 11_report.\n" in out
    assert {id.partition(".")[0] for id in rubric.load(tmp_path).checks} == {"concepts", "report"}
    assert check.counting(tmp_path) == (ONE, "11_report")
    unrun = sum(id.startswith("concepts.") for id in rubric.load(tmp_path).checks)
    assert main(["out", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    unrun = f"Not run yet, so open: {4 * unrun} checks of 001, 002, 003, 004, in notebooks 01. "
    assert unrun in said and "Open: " not in said


def no_sandbox(*_, **__):
    raise sandbox.SandboxError("no memory")


def test_a_sandbox_that_fails_is_open_for_a_person_and_tried_again(needs_sandbox, tmp_path, graded, monkeypatch):
    handed_in(tmp_path, "001", HONEST)
    with monkeypatch.context() as monkey:
        monkey.setattr(sandbox, "run_walled", no_sandbox)
        graded(tmp_path, "--notebooks", "01")
    found = of(tmp_path, "001")
    assert len(found) == 14 and found["concepts.14"]["text"].endswith("no memory")
    assert {(of["state"], of["how"]) for of in found.values()} == {("open", "person")}
    monkeypatch.setattr(judge, "judged", lambda *_: ({"concepts.14": judge.CheckResult("right", "outside")}, []))
    graded(tmp_path)
    monkeypatch.setattr(decides, "judged_by", lambda *_: "newer")
    monkeypatch.setattr(judge, "judged", no_sandbox)
    graded(tmp_path)
    assert of(tmp_path, "001")["concepts.14"]["state"] == "right"  # what was found before stays


def test_an_edit_judges_those_notebooks_again_whose_judging_it_may_change(monkeypatch):
    real, notebooks = Path.read_text, (ONE, TWO, "05_resnet50_scaling")

    def judged_by(edited="", more=""):
        """{notebook: what decides} while `more` stands at the end of the file `edited`."""
        monkeypatch.setattr(Path, "read_text", lambda path, **of: real(path, **of) + more * path.match(edited or "-"))
        decides.judged_by.cache_clear()
        return {name: decides.judged_by(ROOT, name) for name in notebooks}

    def again(edited, more="\nMORE = 1\n"):
        return {name for name, key in judged_by(edited, more).items() if key != before[name]}

    before = judged_by()
    for text in ("lessons/*/pictures.py", "labs/show/*.py", "labs/report/document.py", "lessons/report/questions.py"):
        assert again(text) == set(), text
    assert again("labs/checks/judging.py", "\n# A comment.\n") == set()
    assert again("lessons/basic_concepts/questions.py") == {ONE}
    assert again("labs/checks/judging.py") == again("teaching/grading/inside.py") == set(notebooks)


def test_judging_what_was_sent_has_an_end(run, monkeypatch):
    def endless(_):
        while True:
            yield False, ""

    monkeypatch.setattr(judge, "CPU_SECONDS", 0.3)
    monkeypatch.setattr(judge.judging, "judge_of", lambda id: endless)
    found, told = run(ONE, START, 'check("concepts.14", 27)')
    assert (found["concepts.14"].state, found["concepts.14"].how) == ("open", "person") and "takes too long" in told[-1]


def test_a_notebook_that_cannot_be_read_is_open_for_a_person(run):
    for text in (b"<<<<<<< HEAD\n{", b'{"worksheets": []}'):
        found, told = run(ONE, **{f"notebooks/{ONE}.ipynb": text})
        assert {(of.state, of.how) for of in found.values()} == {("open", "person")} and "cannot be read" in told[0]


def inside(process):
    """The processes in sandboxes that a process has started, each with its cells begun."""
    with suppress(psutil.NoSuchProcess):  # some end meanwhile
        started = psutil.Process(process.pid).children(recursive=True)
        return [each for each in started if "teaching.grading.inside" in each.cmdline() and each.name() != "bwrap"]
    return []


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_an_interrupt_or_a_kill_leaves_no_process_and_keeps_what_is_finished(
    number, status, needs_sandbox, tmp_path, graded, monkeypatch
):
    out, temporary = tmp_path / "grades", tmp_path / "tmp"
    handed_in(out, "001", ["import time\nfor _ in range(900): time.sleep(1)"])
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "teaching", "in", "--out", str(out), "--notebooks", "01"],
        cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
    )  # fmt: skip
    try:
        assert until(lambda: (out / "checked/001.json").exists() and inside(process))
        kept, started = (out / "checked/001.json").read_bytes(), psutil.Process(process.pid).children(recursive=True)
        (process.kill if number == signal.SIGKILL else lambda: os.killpg(process.pid, number))()
        assert process.wait(300) == status
        said = "" if status < 0 else "teach in: interrupted; what was finished so far is kept.\n"
        assert process.stderr.read() == said and psutil.wait_procs(started, timeout=300)[1] == []
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    assert json.loads(kept)["replayed"] == {}
    if status < 0:  # the next one removes what students have written from the folder of temporary files
        (in_use := temporary / f"labs-grading-{os.getpid()}-in-use").mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(temporary))
        assert "0 submissions checked" in graded(out, "--no-run")
        in_use.rmdir()
    assert list(temporary.iterdir()) == [] and (out / "checked/001.json").read_bytes() == kept
