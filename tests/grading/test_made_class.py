"""A class of five, graded as an instructor would: every planted fact is found, no honest student is accused."""

import csv
import json
import sys
from pathlib import Path

import made_class
import pytest

from labs.report import document
from teaching.cli import main
from teaching.grading import check, judge, reference, rubric

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/report"))
REPLAYED = ("Honest One", "Wrong Ways")  # the others are about evidence


@pytest.fixture(scope="module")
def grades(needs_sandbox, tmp_path_factory):
    """The folder of a finished grading of the class. Its reports show the picture that was drawn first, again and
    again: to draw takes most of a report's time, and grading reads no pictures."""
    out, drawn, svg, judged = tmp_path_factory.mktemp("grades"), [], document.svg, judge.judged

    def picture(figure):
        drawn.extend([] if drawn else [svg(figure)])
        return drawn[0]

    def judged_or_right(submission, root, notebook, *more):
        if submission.number in {numbers(out)[who] for who in REPLAYED}:
            return judged(submission, root, notebook, *more)
        return {id: judge.CheckResult("right", "outside") for id in reference.asked(root, notebook)}, []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document, "svg", picture)
        exported = made_class.export(tmp_path_factory.mktemp("class"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        patch.setattr(judge, "judged", judged_or_right)
        for words in (["in", str(exported), "--notebooks", "01,05-06"], ["out", "--oral"]):
            assert main([*words, "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def found(grades):
    """{who: what was found}, with its `number`, and the lines of its collection as `collected`."""
    results, collected = check.results(grades), json.loads((grades / "collection.json").read_text())
    return {who: results[n] | {"number": n, "collected": collected[n]} for who, n in numbers(grades).items()}


def numbers(grades):
    return {each["who"]: n for n, each in json.loads((grades / "names.json").read_text()).items()}


def states(of_one):
    return {id: each["state"] for of_all in of_one["checks"].values() for id, each in of_all.items()}


def test_what_was_planted_is_found_and_nothing_else(found):
    for who in ("Honest One", "=cmd|'calc'!A0"):
        assert {each.severity for each in found[who]["findings"]} <= {"note"} and found[who]["collected"] == [
            "complete"
        ]
    assert len(states(found["Honest One"])) == 28 and set(states(found["Honest One"]).values()) == {"right"}
    scaled = {each.where: each for each in found["Scaled Runs"]["findings"] if each.severity == "serious"}
    assert [scaled[f"ResNet50_w{n}"].kind for n in (1, 2)] == ["copy"] * 2 == [each.kind for each in scaled.values()]
    seen = f"its step times are 0.8 times those of ResNet50_w1 of submission {found['Honest One']['number']}"
    assert scaled["ResNet50_w1"].seen == seen and scaled["ResNet50_w1"].honest


def test_wrong_answers_get_their_hint_and_what_is_said_to_be_right_and_is_not_is_told(found):
    wrong = {id: each for of in found["Wrong Ways"]["checks"].values() for id, each in of.items()}
    said = {id: each["text"] for id, each in wrong.items() if each["state"] == "wrong"}
    assert set(said) == {"resnet50.5", "resnet50.14", "resnet50.11"} and "upside down" in said["resnet50.5"]
    assert said["resnet50.14"].startswith("Right for the numbers of the notebook")
    assert wrong["slurm.1"]["state"] == wrong["slurm.3"]["state"] == "open" and wrong["slurm.2"]["state"] == "right"
    (claimed,) = [each for each in found["Wrong Ways"]["findings"] if each.severity != "note"]
    assert (claimed.kind, claimed.severity) == ("progress", "look")
    assert "slurm.1" in claimed.seen and "resnet50.11" in claimed.seen  # not the one that is right in the notebook
    assert "resnet50.14" not in claimed.seen and "slurm.2" not in claimed.seen


def test_what_goes_out_names_nobody_to_others_and_is_the_same_a_second_time(grades, found, monkeypatch, capsys):
    """Names stand in one file; but for a student's own feedback, and for what goes back to the platform."""
    from pdf import Pdf

    everything = {path: path.read_bytes() for path in grades.rglob("*") if path.is_file()}
    own = ("names", "grades", "feedback_moodle", "feedback_by_name", found["Honest One"]["number"])
    assert [path for path, of in everything.items() if b"Honest One" in of and path.stem not in own] == []
    table = {row["Full name"]: row for row in csv.DictReader((grades / "grades.csv").read_text().split("\n"))}
    assert list(table["Honest One"])[:4] == ["Number", "ID", "Full name", "Grade"] and len(table) == 4
    row, rules = table["'=cmd|'calc'!A0"], rubric.load(grades)
    assert (row["Maximum Grade"], row["Open"], row["ID"]) == (f"{rules.most:g}", str(len(rules.items)), "4001")
    good, bad = table["Honest One"], table["Wrong Ways"]
    lost = {id for id in list(good)[7:] if float(good[id]) > float(bad[id])}
    assert lost == {id for id, state in states(found["Wrong Ways"]).items() if state != "right"}
    assert float(good["Grade"]) - float(bad["Grade"]) == sum(float(good[id]) for id in lost)
    wrong, scaled = (Pdf(grades / f"feedback/{found[who]['number']}.pdf") for who in ("Wrong Ways", "Scaled Runs"))
    assert wrong.part and wrong.marked and wrong.language == "en" and wrong.title == "Feedback for Wrong Ways"
    assert "upside down" in wrong.text and "0.8 times" not in scaled.text  # nobody has confirmed it
    monkeypatch.chdir(ROOT)
    assert main(["in", "--out", str(grades)]) == 0
    assert "\n0 submissions checked; the others are as they were." in capsys.readouterr().out
    assert main(["out", "--oral", "--out", str(grades)]) == 0
    assert everything == {path: path.read_bytes() for path in grades.rglob("*") if path.is_file()}
