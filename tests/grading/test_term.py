"""In the middle of a term: graded three times, a kit that judges otherwise, a late second hand-in."""

import json

import pytest
from tree import ROOT

from labs import files
from labs.checks import tasks
from labs.report import document
from labs.report.archive import zipped
from teaching.cli import main
from teaching.grading import check, decides, deck, judge, marks, points, rubric
from teaching.grading.judge import CheckResult

FIVE, SIX, SEVEN = "05_resnet50_scaling", "06_a_job_for_slurm", "07_horovod_sharding"


def notebook(answers, *code):
    """A notebook as bytes, with written answers {id: text} and cells of code, which did run."""
    cells = [{"cell_type": "code", "metadata": {}, "source": source, "outputs": [{}]} for source in code]
    for id, text in answers.items():
        mark = {"labs": {"id": id, "kind": "answer"}}
        cells.append({"cell_type": "markdown", "metadata": mark, "source": f"### {id}: your answer\n{text}"})
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


@pytest.fixture
def grade(tmp_path, monkeypatch, capsys):
    """grade(*words) -> what the command prints; in the course, into a folder of its own, without sandbox and PDFs."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(check.sandbox, "sandbox_missing", lambda: None)
    monkeypatch.setattr(document, "pdf_of_data", lambda _, data, *more: repr(data).encode())
    (tmp_path / "in").mkdir()

    def grade(*words):
        assert main([*map(str, words), "--out", str(tmp_path / "grades")]) == 0
        return capsys.readouterr().out

    return grade


def hand_in(tmp_path, who, *code, text="mine"):
    files.write(tmp_path / f"in/{who}.zip", zipped({f"notebooks/{FIVE}.ipynb": notebook({"T5": text}, *code)}))


def numbers(tmp_path):
    return {each["who"]: n for n, each in json.loads((tmp_path / "grades/names.json").read_text()).items()}


def lines_of(tmp_path, number):
    """{id: (points, open)} of a submission."""
    found = check.results(tmp_path / "grades")[number]
    rules, decided = rubric.load(tmp_path / "grades"), marks.load(tmp_path / "grades")
    return {each.id: (each.points, each.open) for each in points.points_lines(found, rules, decided.get(number))}


def all_right(submission, root, notebook, *_):
    """In place of judge.judged: every check of a notebook that was handed in is right."""
    state = "right" if f"notebooks/{notebook}.ipynb" in submission.contents else "open"
    return {id: CheckResult(state, "outside") for id, (of, _) in tasks.items().items() if of.notebook == notebook}, []


def test_a_class_is_graded_twice_in_one_folder(tmp_path, grade, monkeypatch):
    """No mark is lost, and the rubric stays as the instructor has changed it. Ada hands in twice, Ben once."""
    monkeypatch.setattr(judge, "judged", all_right)
    out, own, asked = tmp_path / "grades", "", {}
    for name, id, handing_in in ((SIX, "T5", ("Ada", "Ben")), (SEVEN, "S1", ("Ada",))):
        asked[name] = id
        for who in handing_in:
            contents = {f"notebooks/{each}.ipynb": notebook({of: f"{who} on {of}"}) for each, of in asked.items()}
            files.write(tmp_path / f"in/{who}.zip", zipped(contents))
        asked_for = ",".join(each[:2] for each in asked)
        assert f"Added to rubric.toml: {name}.\n" in grade("in", tmp_path / "in", "--notebooks", asked_for)
        assert "Added" not in grade("in"), "it is said once"
        assert id in deck.Deck(out).tasks
        number = numbers(tmp_path)
        for who in handing_in:
            marks.mark(out, number[who], rubric.load(out), f"{id}.1", 0.5)
        grade("out")
        text, rules = (out / "rubric.toml").read_text(), rubric.load(out)
        assert text.startswith(own.rstrip("\n"))
        own = text.replace('"slurm.1" = 2\n', '"slurm.1" = 4  # mine\n').replace('"slurm.2" = 3\n', "")
        files.write(out / "rubric.toml", own)
    ada, ben = (lines_of(tmp_path, number[who]) for who in ("Ada", "Ben"))
    assert ada["T5.1"] == ada["S1.1"] == ben["T5.1"] == (2.5, False), "a mark was lost"
    assert rules.checks["slurm.1"] == 4 and "slurm.2" not in rules.checks
    assert json.loads((out / "points.json").read_text())[number["Ada"]] == sum(rules.checks.values()) + 5
    table = (out / "grades.csv").read_text()
    assert all(id in table for id in [*rules.checks, *rules.items])


def test_a_check_that_was_mended_gives_points_and_takes_none_without_a_person(tmp_path, grade, monkeypatch):
    def judged(*states):
        """From now on the kit judges so, as another kit would."""
        of_id = zip((5, 13, 14), states, strict=True)
        found = {f"resnet50.{n}": CheckResult(state, "outside", f"it is {state}.") for n, state in of_id}
        monkeypatch.setattr(judge, "judged", lambda *_: (found, []))
        monkeypatch.setattr(decides, "judged_by", lambda *_: str(states))
        return grade("in", tmp_path / "in", "--notebooks", "05")

    hand_in(tmp_path, "one")
    judged("right", "wrong", "right")
    grade("out")
    before = json.loads((tmp_path / "grades/points.json").read_text())["001"]
    assert "(resnet50.14): 001" in judged("right", "right", "wrong")
    said = grade("out")
    assert f"001: {before:g} -> {before + 1:g} points" in said
    assert "(resnet50.14): 001" in said
    assert lines_of(tmp_path, "001")["resnet50.14"] == (1, True)
    assert "(resnet50.5): 001" in judged("open", "right", "wrong")  # a third kit
    (at := deck.Deck(tmp_path / "grades", "resnet50.14")).give(at.items[0], "0")
    said = grade("out")
    assert f"001: {before + 1:g} -> {before:g} points" in said and "resnet50.14" not in said
    hand_in(tmp_path, "one", text="other work")
    grade("in", tmp_path / "in", "--notebooks", "05")
    assert "fell" not in str(check.results(tmp_path / "grades")["001"]["checks"])  # of other work nothing is kept


def test_a_later_hand_in_keeps_the_marks_of_answers_that_are_the_same(tmp_path, grade):
    for text, code, open in (("My 1.6.", "", False), ("My  1.6.", "x = 1", False), ("My 1.9.", "", True)):
        hand_in(tmp_path, "one", code, text=text)
        grade("in", tmp_path / "in", "--no-run", "--notebooks", "05,06")
        at = deck.Deck(tmp_path / "grades", "T5")
        if text == "My 1.6.":
            at.give(at.items[1], "2.5")
        assert lines_of(tmp_path, "001")["T5.2"] == (2.5, open)  # kept until somebody has looked
    at.give(at.items[1], "5")
    assert lines_of(tmp_path, "001")["T5.2"] == (5, False)
