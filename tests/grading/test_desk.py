"""The desk: keys mark, comment and go on; each is kept at once; a change of the rubric moves the points; a comment for
all with a mistake, and all findings."""

import json

import made_grading
import pytest

from labs import files
from labs.errors import UseError
from labs.report.archive import zipped
from teaching.cli import main
from teaching.grading import desk, marks, rubric


@pytest.fixture
def out(tmp_path, monkeypatch):
    """A grading of five students, of whom 001, 002 and 005 have answered T5; nothing is decided yet."""
    monkeypatch.setenv("LABS_GRADER", "Grace")
    return made_grading.write(tmp_path)


@pytest.fixture
def at(out):
    """The desk, at question T5."""
    return desk.Desk(out, "T5")


def to(at, number):
    while at.deck.number != number:
        at.press(".")


def row(at, place):
    return at.items.children[place].children[-1].value


def test_a_key_marks_an_item_and_pressed_again_gives_less(at, out):
    to(at, "001")
    seen = []
    for _ in range(5):
        at.press("1")
        seen.append(marks.load(out)["001"].items.get("T5.1"))
    assert seen == [1.0, 0.5, 0.0, None, 1.0]
    assert "0 done): 53 of 101 points" in at.head.value and at.items.children[0].children[0].value == 1.0
    at.items.children[0].children[0].value = 0.5
    assert marks.load(out)["001"].items["T5.1"] == 0.5 and "2.5 of 5" in row(at, 0) and "(Grace, 20" in row(at, 0)
    given = at.items.children[0].children[1]
    for typed, kept in (("1,5", 0.3), ("6", 0.3), ("x", 0.3), ("0", 0.0)):
        given.value = typed
        assert marks.load(out)["001"].items["T5.1"] == kept and given.value == ""
        assert ("type points from 0 to 5" in at.head.value) == (typed in "6x")


def test_every_answer_is_met_once_and_space_goes_to_what_is_open(at):
    met = []
    for _ in range(4):
        met.append(at.deck.number)
        at.press(".")
    assert sorted(met[:3]) == ["001", "002", "005"] and met[3] == met[0]
    at.press(",")
    at.press(",")
    assert at.deck.number == met[2]
    for key in 3 * "123456 ":
        at.press(key)
    assert "Nothing of T5 is open." in at.head.value and "3 done" in at.head.value
    at.press("+")
    assert at.deck.task == "slurm.1" and "0 done" in at.head.value
    at.press("-")
    assert at.deck.task == "T5"


def test_a_letter_puts_a_comment_on_and_off_and_a_new_one_goes_into_the_bank_for_all(at, out):
    at.comment.value = '2 Say "where" \\ and <why>.'
    assert marks.load(out)[at.deck.number].comments == ["T5.2a"]
    assert rubric.load(out).comments == {"T5.2a": 'Say "where" \\ and <why>.'}
    for kept in ([], ["T5.2a"]):
        at.press("a")
        assert marks.load(out)[at.deck.number].comments == kept and ("[x]" in at.bank_list.value) == bool(kept)
    at.press(".")
    assert "[ ] a: Say &quot;where&quot; \\ and &lt;why&gt;. (T5.2a)" in at.bank_list.value
    at.comment.value = "9 no such item"
    assert "begins with the number of its item" in at.head.value and len(rubric.load(out).comments) == 1


def test_a_change_of_the_rubric_moves_the_points(at, out):
    to(at, "001")
    at.press("1")
    files.write(path := out / "rubric.toml", path.read_text().replace('T5.1", points = 5', 'T5.1", points = 7'))
    at.press("2")
    assert "60 of 103 points" in at.head.value
    files.write(path, "[notebook")
    at.press("2")
    assert at.deck.task == "T5" and "rubric.toml" in at.head.value
    assert "of 103 points" in at.head.value  # by the last one that can be read
    files.write(path, "[notebook.05]")  # which asks for nothing
    at.press("2")
    assert at.deck.task == "findings" and "of 0 points" in at.head.value


def test_what_another_grader_marks_is_seen_and_not_written_over(at, out):
    to(at, "001")
    other = desk.Desk(out, "T5")
    to(other, "001")
    at.press("1")
    other.press("2")
    at.press("3")
    assert marks.load(out)["001"].items == {"T5.1": 1.0, "T5.2": 1.0, "T5.3": 1.0} and "5 of 5: " in row(at, 1)
    marks.mark(out, "001", rubric.load(out), "T5.1", 0.0)
    at.press("1")  # the other's mark was not seen yet
    assert "Somebody else has marked T5.1 meanwhile." in at.head.value and "0 of 5" in row(at, 0)
    assert marks.load(out)["001"].items["T5.1"] == 0.0


def test_keys_that_are_typed_fast_are_each_taken_once(at, out):
    first = at.deck.number
    for value in ("1", "12.1", "12.12"):  # what the field holds after one key or, when the kernel is busy, several
        at.keys.value = value
    kept = marks.load(out)
    assert kept[first].items == kept[at.deck.number].items == {"T5.1": 1.0, "T5.2": 1.0} and len(kept) == 2
    at.keys.value = "12"
    assert marks.load(out) == kept and "taken back" in at.head.value


def test_what_cannot_be_kept_or_shown_is_told(at, out, tmp_path):
    files.write(out / "marks.json", "{")
    at.press("1")
    assert "marks.json" in at.head.value and "0 of 5" not in row(at, 0) and (out / "marks.json").read_text() == "{"
    for folder, says in ((out, r"marks\.json"), (tmp_path / "none", "teach in")):
        with pytest.raises(UseError, match=says):
            desk.Desk(folder, "T5")


def test_the_notebook_is_written_and_runs(out, capsys, monkeypatch):
    assert main(["desk", "--out", str(out)]) == 0
    code = json.loads((out / "grading.ipynb").read_text())["cells"][1]["source"]
    monkeypatch.chdir(out)
    exec("".join(code), {})
    assert "grading.ipynb" in capsys.readouterr().out


def test_answer_tables_scripts_logs_and_machine_stand_beside_what_asks_for_them(at):
    to(at, "001")
    beside = at.beside.value
    assert "on &lt;b&gt;1&lt;/b&gt; and 2 workers" in at.answer.value
    assert "1.61 [1.58, 1.64]" in beside and "+print(&#x27;mine&#x27;)" in beside and "-import" in beside
    assert "Epoch 1/7" in beside and "ResNet50_w2: measured, 2 workers" in beside and "AMD EPYC" in beside
    to(at, "002")
    assert "mine" not in at.beside.value and "1.61" not in at.beside.value


def test_findings_stand_below_the_answer_and_are_decided_there(at, out):
    to(at, "002")
    row, _ = at.decisions.children
    assert row.kind == "copy" and "serious, open: ResNet50_w1" in row.children[2].value
    row.children[1].value = "As submission 001 has it."
    row.children[0].value = "confirmed"
    assert "names submission 001" in at.head.value and marks.load(out) == {}
    row.children[1].value = "Measure your own run."
    row.children[0].value = "confirmed"
    kept = marks.load(out)["002"].findings["copy"]
    assert (kept.state, kept.sentence, kept.by) == ("confirmed", "Measure your own run.", "Grace")
    assert "confirmed (Grace, 20" in row.children[2].value
    row.children[0].value = None
    assert marks.load(out)["002"].findings == {}


def test_a_check_that_was_left_open_stands_there_with_its_code(at, out):
    at.press("+")
    assert at.deck.cards == ["005"] and "import os\nepochs_together = 72" in at.answer.value
    assert "imports &#x27;os&#x27;" in at.answer.value and "0 done" in at.head.value
    at.press("1")
    assert marks.load(out)["005"].checks == {"slurm.1": 1.0} and "1 done" in at.head.value and "2 of 2" in row(at, 0)


def test_a_comment_and_points_for_all_with_one_mistake_are_kept_with_one_click(at, out):
    assert at.pin.layout.display == "none"
    at.question.value = "resnet50.5"
    assert at.deck.cards in (["001", "002"], ["002", "001"]) and at.pin.layout.display is None
    comment, given, button = at.pin.children
    assert button.description == "For all 2 with this hint" and "[p / one for one, p" in at.answer.value
    comment.value, given.value = "Which is the baseline?", "0.5"
    button.click()
    (pin,) = rubric.load(out).pin
    assert (pin.check, pin.comment, pin.share) == ("resnet50.5", "Which is the baseline?", 0.5)
    assert "2 got this hint: 00" in at.head.value and "48.5 of 101 points" in at.head.value
    at.press("+")
    at.press("-")
    assert [each.value for each in (comment, given)] == ["Which is the baseline?", "0.5"]


def test_every_finding_is_met_and_decided_at_the_last_question(at, out):
    at.press("-"), at.press("-")  # before T1
    assert at.question.value == "findings" and sorted(at.deck.cards) == ["001", "002"]
    to(at, "002")
    assert [row.kind for row in at.decisions.children] == ["copy", "progress"] and "0 done" in at.head.value
    for row in at.decisions.children:
        row.children[0].value = "dismissed"
    assert "1 done" in at.head.value and {*marks.load(out)["002"].findings} == {"copy", "progress"}


def test_the_report_is_one_click_away_and_nothing_else_is_written_for_it(out):
    path = out / "reports/001.pdf"
    said = {"001": f'<a href="{path}">Report of submission 001</a>', "002": "that is a PDF", "005": "no report.pdf"}
    for pdf in (b"%PDF-1.7 of a student", b"%PDF-1.7, handed in again"):
        for number, contents in (("001", {"report.pdf": pdf}), ("002", {"report.pdf": b"<html>%PDF-<script>"})):
            files.write(out / f"submissions/{number}.zip", zipped(contents))
        before, at = {*out.rglob("*")}, desk.Desk(out, "T5")
        for _ in said:
            (shown,) = at.report.outputs
            assert said[at.deck.number] in shown["data"]["text/html"]
            at.press(".")
        assert path.read_bytes() == pdf and {*out.rglob("*")} - before <= {path, path.parent}
