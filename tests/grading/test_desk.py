"""The desk: keys mark, comment and go on; each is kept at once; a change of the rubric moves the points and is told."""

import io
import json
import stat
import zipfile

import made_grading
import pytest

from labs import files
from labs.errors import UseError
from labs.report.archive import zipped
from teaching.cli import main
from teaching.grading import collect, desk, incoming, marks, rubric

RUBRIC = """
[checks]
"resnet50.11" = 2
[comments]
"T5.1a" = "Which run is it?"
[[answer]]
id = "T5"
items = [ { id = "T5.1", points = 2, text = "Scripts" }, { id = "T5.2", points = 1, text = "Logs" } ]
[[answer]]
id = "T6"
items = [ { id = "T6.1", points = 4, text = "Plot" } ]
"""


@pytest.fixture
def out(tmp_path):
    files.write(tmp_path / "rubric.toml", RUBRIC)
    for number in ("001", "002", "003", "004"):
        files.write(tmp_path / f"submissions/{number}.zip", zipped({}))
        looked_at(tmp_path, number, {"T6": "a <b>plot</b>"} | ({} if number == "003" else {"T5": f"of {number}"}))
    return tmp_path


def looked_at(out, number, answers):
    """Write what `teach check` finds of a submission with these answers."""
    table = ["Speed", ["run", "speedup"], ["ResNet50_w2", "1.61 [1.58, 1.64]"]]
    found = {"key": number, "checks": {}, "answers": answers, "findings": [], "told": [], "speedups": []}
    found |= {"steps": [], "prints": {}, "alike": {}, "tables": {"T5": [table]}}
    files.write(out / f"checked/{number}.json", json.dumps(found))


@pytest.fixture
def at(out):
    """The desk, at question T5."""
    return desk.Desk(out, "T5")


def to(at, number):
    while at.number != number:
        at.press(".")


def test_a_key_marks_an_item_and_pressed_again_gives_less(at, out):
    to(at, "001")
    seen = []
    for _ in range(5):
        at.press("1")
        seen.append(marks.load(out)["001"].items.get("T5.1"))
    assert seen == [1.0, 0.5, 0.0, None, 1.0]
    assert "2 of 9 points" in at.head.value and at.items.children[0].children[0].value == 1.0


def test_answer_and_evidence_stand_side_by_side_and_no_text_is_markup(at):
    to(at, "002")
    assert "of 002" in at.answer.value and "1.61 [1.58, 1.64]" in at.beside.value
    at.press("+")
    assert at.task == "T6" and "a &lt;b&gt;plot&lt;/b&gt;" in at.answer.value
    at.press("-")
    assert at.task == "T5"


def test_every_answer_is_met_once_and_space_goes_to_what_is_open(at, out):
    """003 has written nothing, so it is not dealt out."""
    met = [at.number]
    for _ in range(3):
        at.press(".")
        met.append(at.number)
    assert sorted(met[:3]) == ["001", "002", "004"] and met[3] == met[0]
    at.press(",")
    assert at.number == met[2]
    for number in ("001", "002", "004"):
        at.press(" ")
        while at.number != number:
            at.press(" ")
        at.press("1")
        at.press("2")
    at.press(" ")
    assert "Every answer to T5 is marked." in at.head.value and "3 done" in at.head.value


def test_a_letter_puts_a_comment_on_and_takes_it_off(at, out):
    number = at.number
    at.press("a")
    assert marks.load(out)[number].comments == ["T5.1a"] and "[x]" in at.bank_list.value
    at.press("a")
    assert marks.load(out)[number].comments == [] and "[x]" not in at.bank_list.value


def test_a_new_comment_goes_into_the_bank_for_all(at, out):
    at.comment.value = '2 Say "where" \\ and <why>.'
    assert marks.load(out)[at.number].comments == ["T5.2a"]
    assert rubric.load(out).comments["T5.2a"] == 'Say "where" \\ and <why>.'
    at.press(".")
    assert "b: Say &quot;where&quot; \\ and &lt;why&gt;. (T5.2a)" in at.bank_list.value
    for text in ("no number", "9 no such item", "1"):
        at.comment.value = text
        assert "begins with the number of its item" in at.head.value
    assert sorted(rubric.load(out).comments) == ["T5.1a", "T5.2a"]


def test_a_bank_is_begun_where_a_rubric_has_none(tmp_path):
    files.write(tmp_path / "rubric.toml", RUBRIC.replace('[comments]\n"T5.1a" = "Which run is it?"\n', ""))
    assert [rubric.add_comment(tmp_path, "T5.1", text) for text in "xy"] == ["T5.1a", "T5.1b"]
    assert rubric.load(tmp_path).comments == {"T5.1a": "x", "T5.1b": "y"} and rubric.load(tmp_path).most == 9


def test_a_change_of_the_rubric_moves_the_points_and_is_told(at, out):
    to(at, "001")
    at.press("1")
    files.write(out / "rubric.toml", RUBRIC.replace("points = 2", "points = 7"))
    at.press("2")
    assert "The rubric has changed. Points: 001: 3 -&gt; 8." in at.head.value and "8 of 14 points" in at.head.value
    for text in ("[checks", "[checks]"):
        files.write(out / "rubric.toml", text)
        at.press("2")
    assert at.task == "T5"
    files.write(out / "rubric.toml", "[checks")
    at.press("2")
    assert "rubric.toml" in at.head.value and "of 14 points" in at.head.value  # the last one that can be read


def test_what_another_grader_marks_is_seen_and_not_lost(at, out):
    to(at, "001")
    other = desk.Desk(out, "T5")
    to(other, "001")
    at.press("1")
    other.press("2")
    at.press("a")
    assert marks.load(out)["001"].items == {"T5.1": 1.0, "T5.2": 1.0} and "1 of 1: Logs" in row(at, 1)


def test_a_mark_that_was_not_seen_is_not_written_over(at, out):
    to(at, "001")
    marks.mark(out, "001", rubric.load(out), "T5.1", 0.0)
    at.press("1")
    assert "Somebody else has marked T5.1 meanwhile." in at.head.value and "0 of 2" in row(at, 0)
    assert marks.load(out)["001"].items == {"T5.1": 0.0}
    at.press("1")
    assert marks.load(out)["001"].items == {}


def row(at, place):
    return at.items.children[place].children[1].value


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_any_share_is_shown_and_a_button_marks_too(at, out, share):
    marks.mark(out, at.number, rubric.load(out), "T5.1", share)
    at.draw()
    assert f"{2 * share:g} of 2" in row(at, 0)
    at.items.children[0].children[0].value = 0.5
    assert marks.load(out)[at.number].items["T5.1"] == 0.5 and "1 of 2" in row(at, 0)


def test_keys_that_are_typed_fast_are_each_taken_once(at, out):
    """What a browser sends: the field as it is, after one key or, when the kernel is busy, after several."""
    first = at.number
    for value in ("1", "12.1", "12.12", "12.122."):
        at.keys.value = value
    at.keys.value += "2"
    kept, third = marks.load(out), at.number
    at.press(",")
    assert kept[first].items == {"T5.1": 1.0, "T5.2": 1.0} and kept[at.number].items == {"T5.1": 1.0, "T5.2": 0.5}
    assert kept[third].items == {"T5.2": 1.0} and len({first, at.number, third}) == 3
    at.keys.value = "12"  # keys that are taken back
    at.keys.value = ""
    assert marks.load(out) == kept and at.number != third and "taken back" in at.head.value
    at.keys.value = "."
    assert at.number == third
    at.keys.value = "2"  # in the place of what was selected
    assert marks.load(out)[third].items == {"T5.2": 0.5}


def test_what_is_no_key_is_told(at, out):
    at.press("9")
    assert "no key here" in at.head.value and marks.load(out) == {}


def test_a_mark_that_cannot_be_kept_is_told(at, out):
    files.write(out / "marks.json", "{")
    at.press("1")
    assert "marks.json" in at.head.value and "0 of 2" not in row(at, 0) and (out / "marks.json").read_text() == "{"
    with pytest.raises(UseError, match=r"marks\.json"):
        desk.Desk(out, "T5")


def test_where_there_is_no_such_question_it_says_so(out, tmp_path):
    with pytest.raises(UseError, match="no written answer 'T9'; it has T5, T6"):
        desk.Desk(out, "T9")
    with pytest.raises(UseError, match="teach check"):
        desk.Desk(tmp_path / "none")


def test_the_notebook_is_written_and_runs(out, capsys, monkeypatch):
    assert main(["desk", "--out", str(out)]) == 0
    code = json.loads((out / "grading.ipynb").read_text())["cells"][1]["source"]
    monkeypatch.chdir(out)
    exec("".join(code), {})
    assert "grading.ipynb" in capsys.readouterr().out


@pytest.fixture
def five(tmp_path, monkeypatch):
    """The desk of a grading of five students, with what they handed in."""
    monkeypatch.setenv("LABS_GRADER", "Grace")
    return desk.Desk(made_grading.write(tmp_path / "five"))


def ask(at, task):
    while at.task != task:
        at.press("+")


def test_scripts_logs_and_machine_stand_beside_what_asks_for_them(five):
    ask(five, "T5")
    to(five, "001")
    beside = five.beside.value
    assert "1.61 [1.58, 1.64]" in beside and "+print(&#x27;mine&#x27;)" in beside and "-import" in beside
    assert "Epoch 1/7" in beside and "ResNet50_w2: measured, 2 workers" in beside and "AMD EPYC" in beside
    assert beside.count("<details open>") == 3  # the rubric asks for all three
    to(five, "002")
    assert "mine" not in five.beside.value


def test_only_findings_of_the_question_stand_there_and_are_decided_there(five):
    ask(five, "T5")
    to(five, "002")
    (row,) = five.decisions.children  # progress is about no run of this question
    assert row.kind == "copy" and "serious, open: ResNet50_w1" in row.children[2].value
    row.children[1].value = "As submission 001 has it."
    row.children[0].value = "confirmed"
    assert "names submission 001" in five.head.value and marks.load(five.out) == {}
    row.children[1].value = "Measure your own run."
    row.children[0].value = "confirmed"
    kept = marks.load(five.out)["002"].findings["copy"]
    assert (kept.state, kept.sentence, kept.by) == ("confirmed", "Measure your own run.", "Grace")
    assert "confirmed (Grace, 20" in row.children[2].value
    row.children[0].value = None
    assert marks.load(five.out)["002"].findings == {}
    ask(five, "slurm.1")
    assert five.number == "005" and five.decisions.children == ()


def test_a_question_that_nobody_has_answered_is_said_to_be_so(five):
    assert five.task == "T1" and five.number is None and "nobody has handed in an answer" in five.head.value
    five.press("1")
    five.press(" ")
    five.comment.value = "1 Why?"
    assert marks.load(five.out) == {} and rubric.load(five.out).comments == {}


def test_a_check_that_was_left_open_stands_there_with_its_code_and_who_marked_it(five):
    ask(five, "slurm.1")
    assert [number for number, _ in five.cards] == ["005"] and "import os\nepochs_together = 72" in five.answer.value
    assert "imports &#x27;os&#x27;" in five.answer.value and "0 done" in five.head.value
    five.press("1")
    assert marks.load(five.out)["005"].checks == {"slurm.1": 1.0} and "1 done" in five.head.value
    assert "2 of 2" in row(five, 0) and "(Grace, 20" in row(five, 0)


def test_beside_an_open_check_about_a_script_stands_what_was_changed_in_it(tmp_path):
    path = made_grading.write(tmp_path) / "checked/001.json"
    found = json.loads(path.read_text())
    left = made_grading.judged("right", "person", "not judged: it imports 'os'", code='script = "scripts/ResNet50.py"')
    found["checks"][made_grading.NOTEBOOKS[1]]["resnet50.3"] = left
    files.write(path, json.dumps(found))
    at = desk.Desk(tmp_path)
    ask(at, "resnet50.3")
    assert "In the sandbox: right. Not judged: it imports" in at.answer.value
    assert "ResNet50.py: what was changed" in at.beside.value and "+print(&#x27;mine&#x27;)" in at.beside.value


def test_disputes_are_a_queue_and_their_answer_is_kept(five):
    ask(five, "disputes")
    assert five.card == ("002", "resnet50.5") and "Speedup is new over old." in five.answer.value
    assert "round_speedups" in five.answer.value and "0 done" in five.head.value
    five.press("1")
    five.comment.value = "New over old is the slowdown."
    kept = marks.load(five.out)["002"]
    assert kept.replies["resnet50.5"].text == "New over old is the slowdown." and kept.checks == {"resnet50.5": 1.0}
    assert "1 done" in five.head.value and "Answered" in five.answer.value and five.comment.value == ""


PDF, MISSING = b"%PDF-1.7 of a student", "No report: this submission holds no report.pdf."


def link():
    """A zip whose report.pdf is a symbolic link."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        entry = zipfile.ZipInfo("report.pdf")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, "../../names.json")
    return made.getvalue()


HANDED_IN = {
    "honest": ({"report.pdf": PDF}, None),
    "missing": ({"report.json": b"{}"}, MISSING),
    "a page": (
        {"report.pdf": b"<html>%PDF-<script>"},
        "No report: what this submission holds as report.pdf is not a PDF.",
    ),
    "empty": ({"report.pdf": b""}, "No report: what this submission holds as report.pdf is not a PDF."),
    "too large": ({"report.pdf": PDF + bytes(incoming.MOST_READ)}, MISSING),
    "out of it": (
        {"../report.pdf": PDF, "../../reports/001.pdf": PDF, "reports/002.pdf": PDF, "/report.pdf": PDF},
        MISSING,
    ),
    "a link": (link(), MISSING),
}


def test_the_report_is_one_click_away_and_nothing_else_is_written_for_it(tmp_path):
    out = tmp_path / "grades"
    for who, (contents, _) in HANDED_IN.items():
        files.write(tmp_path / f"in/{who}.zip", contents if type(contents) is bytes else zipped(contents))
    collect.collect(tmp_path / "in", out)
    whose = {number: each["who"] for number, each in json.loads((out / "names.json").read_text()).items()}
    files.write(out / "rubric.toml", RUBRIC)
    for number in whose:
        looked_at(out, number, {"T5": "of mine"})
    before, at, honest = {*tmp_path.rglob("*")}, desk.Desk(out), None
    for _ in whose:
        (shown,) = at.report.outputs
        said = shown["data"]["text/html"]
        if (told := HANDED_IN[whose[at.number]][1]) is None:
            honest = out / f"reports/{at.number}.pdf"
            assert said.startswith(f'<a href="{honest}">Report of submission {at.number}</a>') and "name" in said
        else:
            assert said == told, whose[at.number]
        at.press(".")
    assert honest and honest.read_bytes() == PDF
    assert {*tmp_path.rglob("*")} - before == {honest, honest.parent}


def test_a_later_report_takes_the_place_of_the_one_before(out):
    for content in (PDF, PDF + b", mended"):
        files.write(out / "submissions/001.zip", zipped({"report.pdf": content}))
        to(desk.Desk(out, "T5"), "001")
        assert (out / "reports/001.pdf").read_bytes() == content
    files.write(out / "submissions/001.zip", b"PK")
    with pytest.raises(UseError, match=r"001\.zip is damaged"):
        desk.Desk(out, "T5")
