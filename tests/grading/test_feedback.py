"""What a person decides, and what reaches students: through the command line, for five made students."""

import csv
import json
import re
from contextlib import suppress

import made_grading
import pytest

from labs import files
from labs.errors import UseError
from labs.report import document
from teaching.cli import main
from teaching.grading import deck, marks, rubric

SENTENCE = "Your run on 1 worker is a scaled copy of another run: please measure your own."
UTF8 = ("utf-8", "replace")
PINNED = "Divide the time on 1 worker by the time on p workers."


@pytest.fixture
def out(tmp_path, monkeypatch):
    """The folder of a grading. What is set as PDF, which takes most of the time, is written as data."""
    monkeypatch.setenv("LABS_GRADER", "Grace")
    monkeypatch.setattr(
        document, "pdf_of_data", lambda _, data, *more: json.dumps(data, ensure_ascii=False).encode(*UTF8)
    )
    return made_grading.write(tmp_path)


@pytest.fixture
def grade(out, capsys):
    """grade(*words) -> (exit code, output, errors) of `teach`."""

    def grade(*words):
        return main([*words, "--out", str(out)]), *capsys.readouterr()

    return grade


def feedback(out, number):
    """What a student's feedback says, and all of it as a text."""
    text = (out / f"feedback/{number}.pdf").read_text()
    return json.loads(text), text


def total(out, number):
    return json.loads((out / "points.json").read_text())[number]


def on_desk(out, question, number):
    """The deck of the desk with a submission on top."""
    at = deck.Deck(out, question)
    at.place = at.cards.index(number)
    return at


def test_no_finding_reaches_a_student_unless_it_was_confirmed_with_a_sentence(out, grade):
    grade("out")
    before = total(out, "002")
    on_desk(out, deck.FINDINGS, "001").decide("copy", "dismissed", "")
    on_desk(out, deck.FINDINGS, "002").decide("copy", "confirmed", SENTENCE)
    told = grade("out")[1]
    assert "001: nobody has confirmed or dismissed spread: " in told
    assert "002: nobody has confirmed or dismissed progress: " in told
    for number in ("001", "002", "003", "004", "005"):
        said = feedback(out, number)[1]
        for secret in ("0.8 times", "lies on a line", "honest cause", "submission 00"):
            assert secret not in said, (number, secret)
        assert {f"00{n}" for n in range(1, 6)} & set(re.findall(r"\d+", said)) <= {number}
    off = "Taken off for this, in the total above: 5 points."
    assert feedback(out, "002")[0]["said"] == [SENTENCE, off]
    assert total(out, "002") == before - 5 and feedback(out, "001")[0]["said"] == []
    by_hand = (out / "marks.json").read_text().replace(SENTENCE, "These are the runs of 003.")
    files.write(out / "marks.json", by_hand)
    assert "names submission 003" in grade("out")[2]
    files.write(out / "marks.json", '{"version": 1, "marks": {"001": {}, "001": {}}}')
    assert "'001' stands twice in one place" in grade("out")[2]


def test_what_is_confirmed_or_dismissed_is_kept_with_who_and_when(out, grade):
    at = on_desk(out, deck.FINDINGS, "001")
    at.decide("copy", "confirmed", "")
    kept = marks.load(out)["001"].findings["copy"]
    assert (kept.about, kept.by) == (["ResNet50_w1"], "Grace") and re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d", kept.when)
    assert "copy is confirmed without a sentence" in grade("out")[1]
    before = total(out, "001")
    for kind in ("copy", "spread"):
        at.decide(kind, "dismissed", "")
    told = grade("out")[1]
    assert "002: nobody has confirmed" in told and "001: nobody" not in told and total(out, "001") == before + 5
    path = out / "checked/001.json"
    files.write(path, path.read_text().replace('ResNet50_w1", "seen', 'other", "seen'))
    assert "001: nobody has confirmed or dismissed copy: " in grade("out")[1]  # a new one
    for kind in ("copy", "spread"):
        at.decide(kind, None, "")
    assert marks.load(out)["001"] == marks.Marks()


def test_in_a_large_class_a_number_is_known_by_the_word_before_it(monkeypatch):
    monkeypatch.setattr(marks.collect, "submissions", lambda out: dict.fromkeys(("001", "123")))
    for named in ("Submission 123", "student 123", "See No. 123", "(#123)"):
        with pytest.raises(UseError, match="names submission 123"):
            marks.fit_to_read(None, "001", named)
    assert marks.fit_to_read(None, "001", "123 images, 0.123 s")


def test_a_text_that_names_somebody_else_reaches_nobody(out, grade):
    """Neither from the desk nor from a file that was written by hand."""
    at = on_desk(out, "resnet50.5", "002")
    for keep in (
        lambda: at.decide("copy", "confirmed", "As in 001"),
        lambda: at.pin("As in 001", ""),
        lambda: at.new_comment("1 As in 002"),  # which others get from the bank
    ):
        with pytest.raises(UseError, match="names submission 00"):
            keep()
    assert not (out / "marks.json").exists() and (out / "rubric.toml").read_text().count("As in") == 0
    for text, code in (("As in 001", 2), ("As in your 002, 100 epochs, 1001 images, rate 0.001", 0)):
        files.write(out / "marks.json", json.dumps({"marks": {"002": {"comments": [text]}}}))
        assert grade("out")[0] == code and (out / "feedback").exists() == (code == 0)


def test_feedback_says_what_to_do_next_and_each_mistake_without_paths_or_tracebacks(out, grade):
    marks.mark(out, "001", rubric.load(out), "T5.1", 1.0, ["Name the machine of each run."])
    grade("out")
    first, third, fifth = (feedback(out, number)[0] for number in ("001", "003", "005"))
    assert first["title"] == "Feedback for Ada Example" and first["most"] == "101"
    assert [each["do"].split()[0] for each in first["steps"]] == ["Go", "Correct", "Correct"]
    assert "Upside down" in str(first["steps"]) and "All 14 checks of notebook 01" in first["good"][0]
    assert first["comments"] == ["Name the machine of each run."]
    mistakes = {each["title"].rpartition("(")[2]: each for each in first["mistakes"]}
    code, hint = (mistakes["resnet50.5)"][key] for key in ("code", "hint"))
    assert "return [p / one for one, p" in code and "check(" not in code and "round 1 took 4.25 s" in hint
    assert mistakes["resnet50.14)"]["hint"] == "It raises KeyError: 'a'"
    (step,) = [each for each in third["steps"] if each["do"].startswith("Go on with notebook 06")]
    assert "(T5)" in step["why"] and step["points"] == "31 points"  # what it has to write belongs to the same step
    assert "otebook 06" in str(fifth["waiting"])  # its cells did not get to their checks, so a person looks
    assert feedback(out, "004")[0]["unread"] and feedback(out, "004")[0]["collected"] == "Empty: no file is in it"
    rows = csv.DictReader((out / "grades.csv").read_text().splitlines())
    assert [row["Number"] for row in rows if not row["Grade"]] == ["004"]  # nothing could be read: no zero
    for number in ("001", "002", "003", "005"):
        said = feedback(out, number)[1]
        assert "/tmp" not in said and "Traceback" not in said and "/work" not in said


def test_a_pin_reaches_all_who_made_the_mistake_and_their_points_follow(out, grade):
    grade("out")
    before = {number: total(out, number) for number in ("001", "002", "003")}
    assert on_desk(out, "resnet50.5", "002").pin(PINNED, "") == "2 got this hint: 001, 002."
    assert "->" not in grade("out")[1]
    for number in ("001", "002"):
        data = feedback(out, number)[0]
        assert PINNED in str(data["steps"]) and PINNED in str(data["mistakes"])
    assert PINNED not in feedback(out, "003")[1] and (out / "grades.csv").read_text().count(PINNED) == 2
    rules = (out / "rubric.toml").read_text()
    files.write(out / "rubric.toml", rules.replace("share = 0.0", "share = 0.5"))
    assert grade("out")[1].count("->") == 2
    assert {n: total(out, n) - before[n] for n in before} == {"001": 0.5, "002": 0.5, "003": 0}


DAMAGED = ("names.json", "collection.json", "points.json", "marks.json", "checked/001.json", "rubric.toml")


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_one_line_that_says_what_to_do(out, grade, name):
    """It stays as it is, whatever is graded meanwhile."""
    rules = rubric.load(out)
    marks.mark(out, "001", rules, "T5.1", 1.0, ["x"])
    grade("out")
    whole = (out / name).read_bytes()
    for content in (whole[: len(whole) // 2 + 1], b"[1]", b"\x80\x00\xff", b"[" * 99_999):
        files.write(out / name, content)
        code, _, problem = grade("out")
        assert code == 2 and problem.count("\n") == 1, (content, problem)
        assert f"{name} is damaged: " in problem and "Nothing was changed; " in problem
        with suppress(UseError):
            marks.mark(out, "001", rules, "T5.1", 1.0)
        assert (out / name).read_bytes() == content
