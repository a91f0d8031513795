"""A class of 20, graded as an instructor would: every planted fact is found, no honest student is accused."""

import csv
import hashlib
import io
import json
import random
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import made_class
import psutil
import pypdfium2
import pytest

from labs import files
from labs.report import document
from labs.report.archive import zipped
from teaching.cli import main
from teaching.grading import check, collect, judge, reference

ROOT = Path(__file__).resolve().parents[2]
HONEST = ("Honest One", "Honest Two", "Honest Three", "Wrong Ways", "=cmd|'calc'!A0")
REPLAYED = ("Honest One", "Wrong Ways", "Half Done", "Forged Progress")  # the others are about evidence


@pytest.fixture(scope="session")
def export(tmp_path_factory):
    """Its reports show the picture that was drawn first, again and again: to draw takes most of a report's time, and
    grading reads no pictures."""
    drawn, svg = [], document.svg

    def picture(figure):
        drawn.extend([] if drawn else [svg(figure)])
        return drawn[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document, "svg", picture)
        return made_class.export(tmp_path_factory.mktemp("class"))


@pytest.fixture(scope="session")
def grades(export, needs_sandbox, tmp_path_factory):
    """The folder of a finished grading of the class."""
    out = tmp_path_factory.mktemp("grades")
    monkey = pytest.MonkeyPatch()
    monkey.chdir(ROOT)
    assert main(["collect", str(export), "--out", str(out)]) == 0
    replayed, judged = {numbers(out)[who] for who in REPLAYED}, judge.judged

    def judged_or_right(submission, root, notebook, seed):
        if submission.number in replayed or not submission.contents:
            return judged(submission, root, notebook, seed)
        return {id: judge.CheckResult("right", "outside") for id in reference.asked(root, notebook)}, []

    monkey.setattr(judge, "judged", judged_or_right)
    for words in (["check", "--notebooks", *made_class.NOTEBOOKS], ["out"]):
        assert main([*words, "--out", str(out)]) == 0
    monkey.undo()
    return out


@pytest.fixture(scope="session")
def found(grades):
    """{who: what was found}, with its `number`, and the lines of its collection as `collected`."""
    results, collected = check.results(grades), json.loads((grades / "collection.json").read_text())
    return {
        who: results[n] | {"number": n, "collected": collected[n]} for who, n in numbers(grades).items()
    }  # fmt: skip


def numbers(grades):
    return {each["who"]: n for n, each in json.loads((grades / "names.json").read_text()).items()}


def accused(of_one, *severities):
    return {(each.kind, each.where) for each in of_one["findings"] if each.severity in severities or not severities}


def states(of_one):
    return {id: each["state"] for of_all in of_one["checks"].values() for id, each in of_all.items()}


def test_the_class_is_20_and_names_stand_in_one_file_alone(grades):
    """But for a student's own feedback, which nobody else gets, and what goes back to the platform."""
    names = numbers(grades)
    assert len(names) == 20 and sorted(names.values()) == sorted(collect.submissions(grades))
    own = ("names.json", "grades.csv", "feedback_moodle.zip", f"{names['Honest One']}.pdf")
    for path in grades.rglob("*"):
        if path.is_file() and path.name not in own:
            assert b"Honest One" not in path.read_bytes(), path


@pytest.mark.parametrize("who", HONEST)
def test_the_honest_are_not_accused(found, who):
    assert accused(found[who], "serious", "look") == set() and found[who]["collected"] == ["complete"]


@pytest.mark.parametrize("who", ["Honest One", "Honest Two", "Honest Three"])
def test_what_is_right_is_judged_right(found, who):
    assert set(states(found[who]).values()) == {"right"} and len(states(found[who])) == 27


PLANTED = {
    "Copied Runs": {("copy", "ResNet50_w1"), ("copy", "ResNet50_w2")},
    "Scaled Runs": {("copy", "ResNet50_w1"), ("copy", "ResNet50_w2")},
    "Recorded Own": {("recorded", "ResNet50_w1"), ("recorded", "ResNet50_w2")},
    "Edited Pdf": {("report", f"report.pdf, {task}") for task in ("T5", "T6", "T10")},
    "Edited Json": {("report", f"report.json, {task}") for task in ("T5", "T6", "T10")},
    "Edited Record": {("clock", "ResNet50_w2"), ("log", "ResNet50_w2")},
    "Too Smooth": {("spread", "ResNet50_w1"), ("spread", "ResNet50_w2")},
    "Too Fast": {("possible", "ResNet50_w1"), ("possible", "ResNet50_w2")},
}


@pytest.mark.parametrize("who", PLANTED)
def test_what_was_planted_is_found_and_nothing_else(found, who):
    assert accused(found[who], "serious") == PLANTED[who], found[who]["findings"]
    assert all(each.honest and each.seen for each in found[who]["findings"])


def test_a_scaled_run_is_told_with_its_factor_and_whose_it_is(found):
    (seen,) = [f.seen for f in found["Scaled Runs"]["findings"] if f.kind == "copy" and f.where == "ResNet50_w1"]
    assert seen == f"its step times are 0.8 times those of ResNet50_w1 of submission {found['Honest Two']['number']}"


def test_an_answer_that_was_taken_from_another_is_found_in_both_and_in_nobody_else(found):
    alike = {who for who, each in found.items() if ("alike", "the answer to T5") in accused(each, "look")}
    assert alike == {"Edited Record", "Edited Json", "Half Done", "Two Times"}  # the last two are one and the same


def test_other_machine_log_only_and_forged_progress_are_for_a_person(found):
    assert {("versions", "ResNet50_w1, ResNet50_w2"), ("different machines", "T6")} <= accused(
        found["Other Machine"], "look"
    )
    assert {("no record", "ResNet50_w1"), ("no record", "ResNet50_w2")} <= accused(found["Log Only"], "note")
    assert accused(found["Log Only"], "serious") == set()
    assert ("progress", "progress.json") in accused(found["Forged Progress"], "look")
    right = {id for id, state in states(found["Forged Progress"]).items() if state == "right"}
    assert right == {"resnet50.3", "slurm.2"}  # the scripts and runs are there


def test_empty_damaged_and_double_submissions_are_lines_of_the_collection(found):
    assert found["Empty Zip"]["collected"] == ["empty: no file of a submission is in it"]
    assert found["Damaged Zip"]["collected"][0].startswith("damaged: it cannot be read as a zip")
    other = found["Half Done"]["number"]
    assert found["Two Times"]["collected"] == ["complete", f"equal to the last byte: {other}"]
    assert ("copy", "ResNet50_w1") in accused(found["Two Times"], "serious")


def test_wrong_answers_get_their_hint_and_a_number_that_was_typed_in_is_found(found):
    first, later = (found["Wrong Ways"]["checks"][name] for name in made_class.NOTEBOOKS[1:])
    checks = first | later
    wrong = {id: each["text"] for id, each in checks.items() if each["state"] == "wrong"}
    assert set(wrong) == {"resnet50.5", "resnet50.12", "resnet50.9", "slurm.3"}
    assert wrong["resnet50.5"].startswith("Upside down") and wrong["resnet50.12"].startswith(
        "Right for the numbers of the notebook"
    )
    half = states(found["Half Done"])
    assert half["resnet50.5"] == "right" and half["slurm.1"] == half["slurm.3"] == "open"


def rows(grades):
    """grades.csv, read by another library."""
    import tensorflow as tf

    head, *body = csv.reader(io.StringIO((grades / "grades.csv").read_bytes().decode()))
    lines = (grades / "grades.csv").read_bytes().decode().split("\r\n")[1:-1]
    columns = tf.io.decode_csv(lines, [""] * len(head), na_value="-")
    table = [[cell.decode() for cell in row] for row in zip(*(column.numpy() for column in columns), strict=True)]
    assert table == body
    return {row[0]: dict(zip(head, row, strict=True)) for row in table}


def test_the_sheet_is_read_by_others_and_no_name_is_a_formula(grades, found):
    table = rows(grades)
    assert len(table) == 20
    row = table[found["=cmd|'calc'!A0"]["number"]]
    assert row["Full name"] == "'=cmd|'calc'!A0" and row["Identifier"].startswith("Participant 40")
    assert not any(cell.lstrip().startswith(("=", "+", "@")) for row in table.values() for cell in row.values())
    good, wrong = (float(table[found[who]["number"]]["Grade"]) for who in ("Honest One", "Wrong Ways"))
    assert good - wrong == 1 + 1 + 1 + 1  # resnet50.11, resnet50.12, resnet50.9, slurm.3
    assert float(table[found["Empty Zip"]["number"]]["Grade"]) == 0


def test_feedback_and_overview_are_tagged_and_say_what_was_found(grades, found):
    sys.path.insert(0, str(ROOT / "tests/report"))
    from pdf import Pdf

    wrong = Pdf(grades / f"feedback/{found['Wrong Ways']['number']}.pdf")
    assert wrong.part and wrong.marked and wrong.language == "en" and wrong.title == "Feedback for Wrong Ways"
    assert "Upside down" in wrong.text and "Honest One" not in wrong.text
    scaled = Pdf(grades / f"feedback/{found['Scaled Runs']['number']}.pdf")
    assert "0.8 times" not in scaled.text and "honest" not in scaled.text  # nobody has confirmed it
    overview = Pdf(grades / "overview.pdf")
    assert "0.8 times those of" in " ".join(overview.text.split())
    assert overview.part and overview.of("Figure")[0].alt.startswith("Speedups by submission")
    assert len(pypdfium2.PdfDocument(grades / "overview.pdf")) >= 2


def test_a_second_time_nothing_is_done_and_every_byte_is_the_same(grades, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    before = everything(grades)
    assert main(["check", "--notebooks", *made_class.NOTEBOOKS, "--out", str(grades)]) == 0
    assert capsys.readouterr().out.endswith("0 looked at; the others are as they were.\n")
    assert main(["out", "--out", str(grades)]) == 0
    assert everything(grades) == before


def everything(folder):
    return {
        path.relative_to(folder): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("moments", [1, pytest.param(10, marks=pytest.mark.more("a grading is killed at ten moments"))])
def test_killed_at_some_moments_nothing_is_lost_or_done_twice(moments, export, needs_sandbox, tmp_path, monkeypatch):
    """What was finished stays as it was written, and is not done again; no process is left, nor one in a sandbox; and
    in the end no folder with what students have written."""
    monkeypatch.chdir(ROOT)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    with zipfile.ZipFile(export) as archive:
        some = {name: archive.read(name) for name in archive.namelist()[: 2 if moments < 10 else 6]}
    files.write(tmp_path / "some.zip", zipped(some))
    draw, out, done = random.Random(5), tmp_path / "grades", {}
    collect.collect(tmp_path / "some.zip", out)
    words = ["check", "--out", str(out), "--notebooks", made_class.NOTEBOOKS[0]]
    for _ in range(moments):
        process = subprocess.Popen([sys.executable, "-m", "teaching", *words], stdout=subprocess.DEVNULL)
        time.sleep(draw.uniform(0.5, 12))
        started = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        process.kill()
        process.wait()
        assert psutil.wait_procs(started, timeout=300)[1] == []
        before, done = done, finished(out)
        assert before.items() <= done.items()
    assert subprocess.run([sys.executable, "-m", "teaching", *words], stdout=subprocess.DEVNULL).returncode == 0
    assert len(finished(out)) == 2 * len(some) and done.items() <= finished(out).items()
    assert list((tmp_path / "tmp").glob("*")) == []


def finished(out):
    """{path: time of its writing} of the results, each of which can be read."""
    paths = [*out.glob("checked/[0-9]*.json"), *out.glob("replayed/[0-9]*.json")]
    assert all(json.loads(path.read_text())["key"] for path in paths)
    return {path: path.stat().st_mtime_ns for path in paths}
