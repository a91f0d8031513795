"""Points: a pure function of what was found, the rubric and the marks; changes of either are told; nothing is lost."""

import json
import random
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from made_grading import judged, looked_at

from labs import files
from labs.checks import tasks
from labs.checks.judging import Judged
from labs.errors import UseError
from labs.report import document
from lessons.own_runs import NOT_YOURS
from teaching.grading import check, judge, marks, overview, points, results, rubric

FIVE, SIX = "05_resnet50_scaling", "07_horovod_sharding"
RUBRIC = """
[notebook.05]
"resnet50.13" = 2
"resnet50.14" = 1
"resnet50.3" = 3
[findings]
copy = 4
[[comment]]
id = "T5.1a"
text = "Which run is it?"
[[answer]]
id = "T5"
items = [ { id = "T5.1", points = 2, text = "Scripts" }, { id = "T5.2", points = 1, text = "Logs" } ]
"""


@pytest.fixture
def out(tmp_path, monkeypatch):
    """A grading of two submissions whose checks were judged; what is set as PDF is written as data."""
    monkeypatch.setattr(document, "pdf_of_data", lambda _, data, *more: repr(data).encode())
    files.write(tmp_path / "rubric.toml", RUBRIC)
    one = {"resnet50.13": judged("right"), "resnet50.14": judged("wrong", text="Upside down")}
    two = {"resnet50.13": judged("open"), "resnet50.3": judged("right", "person", "not judged: it imports 'os'")}
    looked_at(tmp_path, "001", answers={"T5": "mine"}, checks={FIVE: one})
    looked_at(tmp_path, "002", checks={FIVE: two})
    return tmp_path


def lines(out, number):
    read = check.results(out)[number]
    return {each.id: each for each in points.points_lines(read, rubric.load(out), marks.load(out).get(number))}


def test_points_are_those_that_a_person_would_add_up(out):
    """Random checks, marks and findings, against the rules one by one; nothing is below 0, nothing guessed."""
    draw, rules = random.Random(1), rubric.load(out)
    for _ in range(400):
        state, how = draw.choice(("right", "wrong", "open")), draw.choice(("outside", "inside", "person"))
        of_check = judged(state, how) | draw.choice(({}, {"fell": "wrong now"}))
        there, share, taken = draw.random() < 0.8, draw.choice((None, 0.0, 0.25, 1.0)), draw.choice((0, 4))
        written, marked = draw.choice(("", "mine", "changed")), draw.choice((None, 0.0, 0.5))
        own = marks.Marks(checks={} if share is None else {"resnet50.3": share})
        if marked is not None:
            own.items, own.stamps["T5.1"] = {"T5.1": marked}, marks.DecidedBy(answer=marks.digest("mine"))
        own.findings = {"copy": marks.Decision(state="confirmed" if taken else "dismissed")}
        checks = {FIVE: {"resnet50.3": of_check}} if there else {}
        code, now = draw.choice(("", "a = 1")), draw.choice(("", "a = 1", "a = 2"))
        if share is not None:  # given for `code`; that of a later hand-in is judged anew
            own.stamps["resnet50.3"] = marks.DecidedBy(answer=marks.digest(code))
        found = {"checks": checks, "notebooks": [*checks], "answers": {"T5": written} if written else {}}
        found["code"] = {"resnet50.3": now} if now else {}
        made = {each.id: each for each in points.points_lines(found, rules, own)}
        wanted = (3 if state == "right" and how != "person" else 0), how == "person"
        wanted = (3, True) if "fell" in of_check else wanted
        wanted = wanted if there else (0, bool(written))  # where there is anything, it was not looked at
        wanted = wanted if share is None or now not in ("", code) else (3 * share, False)
        answer = 2 * (marked or 0), bool(written) if marked is None else written != "mine"
        assert (made["resnet50.3"].points, made["resnet50.3"].open) == wanted, (of_check, share, there)
        assert (made["T5.1"].points, made["T5.1"].open) == answer, (written, marked)
        assert points.total(made.values()) == max(0, wanted[0] + answer[0] - taken)


def test_marks_change_points_and_are_taken_back(out):
    rules, first = rubric.load(out), lines(out, "001")
    assert rules.most == 9 and first["resnet50.14"].why == "Upside down" and points.total(first.values()) == 2
    marks.mark(out, "001", rules, "T5.1", 0.5)
    marks.decide(out, "001", "copy", "confirmed", "These are not your runs.")
    again = marks.decide(out, "001", "copy", "confirmed")
    assert again.findings["copy"].sentence == "These are not your runs."
    marks.mark(out, "001", rules, "resnet50.13", 0.0)  # the judge took it for right
    now = lines(out, "001")
    assert (now["T5.1"].points, now["copy"].points, now["resnet50.13"].points) == (1, -4, 0)
    line = lines(out, "002")["resnet50.3"]
    assert (line.points, line.open, line.why) == (0, True, "not judged: it imports 'os'")
    for share in (1.0, None):
        marks.mark(out, "002", rules, "resnet50.3", share)
        now = lines(out, "002")["resnet50.3"]
        assert (now.points, now.open) == (3, False) if share else now == line


def test_a_change_of_the_rubric_is_told_old_against_new(out):
    first = results.write(out)
    assert first[0] == "2 submissions, 5 items are open." and not [line for line in first if "->" in line]
    before = (out / "feedback/002.pdf").read_bytes()
    assert results.write(out) == first and (out / "feedback/002.pdf").read_bytes() == before
    files.write(out / "rubric.toml", RUBRIC.replace('"resnet50.13" = 2', '"resnet50.13" = 5'))
    assert [line for line in results.write(out) if "->" in line] == ["001: 2 -> 5 points"]
    assert (out / "feedback/002.pdf").read_bytes() != before  # the points that can be had are others
    assert "Which run is it?" not in (out / "grades.csv").read_text()
    marks.mark(out, "001", rubric.load(out), comments=["T5.1a"])
    looked_at(out, "003")
    (out / "checked/003.json").unlink()
    assert results.write(out)[1].startswith("Not looked at yet, so not in any of this: 003.")
    assert "Which run is it?" in (out / "grades.csv").read_text()


def test_two_who_mark_at_once_lose_nothing(out):
    rules, ids = rubric.load(out), ("T5.1", "T5.2", "resnet50.13")
    every = [(number, id, share) for number in ("001", "002") for id in ids for share in (0.0, 0.25, 0.5, 1.0)]
    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(marks.mark, out, n, rules, id, share, [f"{n} {id} {share}"]) for n, id, share in every]
        assert all(job.result() for job in jobs)
    kept = [(len(of.comments), sorted(of.items)) for of in marks.load(out).values()]
    assert kept == [(12, ["T5.1", "T5.2"])] * 2


def test_a_mark_that_cannot_be_is_refused(out):
    with pytest.raises(UseError, match="no submission 009"):
        marks.mark(out, "009", rubric.load(out), "T5.1", 1.0)
    assert not (out / "marks.json").exists()


def test_what_is_written_into_marks_json_by_hand_counts_or_is_named(out):
    own = {"items": {"T5.1": 0.25, "T5.9": 1}, "comments": ["T5.1a"], "findings": {"copy": {"state": "confirmed"}}}
    files.write(out / "marks.json", json.dumps({"version": 1, "marks": {"001": own, "009": {}}}))
    said = "\n".join(results.write(out))
    assert lines(out, "001")["T5.1"].points == 0.5 and lines(out, "001")["copy"].points == -4
    assert "001: marks.json has T5.9, and rubric.toml not" in said and "marks.json marks 009" in said
    looked_at(out, "001", answers={"T5": "another one"})  # and it is noticed that they are about the answer of before
    assert lines(out, "001")["T5.1"].open and "answer was changed since" in lines(out, "001")["T5.1"].why
    files.write(out / "marks.json", json.dumps({"version": 1, "marks": {"001": {"items": {"T5.1": 2}}}}))
    with pytest.raises(UseError, match=r"marks\.json is damaged"):
        results.write(out)


TWICE = "answer = [{id = 'T5', items = [{id = 'a', points = 1, text = ''}, {id = 'a', points = 1, text = ''}]}]"


def test_a_rubric_that_cannot_be_used_is_named(out):
    for text in ("[notebook", "[other]", "[notebook.05]\nx = -1", "[notebook.05]\nx = nan", TWICE):
        files.write(out / "rubric.toml", text)
        with pytest.raises(UseError, match=r"rubric\.toml"):
            rubric.load(out)


def test_a_new_comment_leaves_a_rubric_that_can_be_read(out):
    before = rubric.load(out)
    assert [rubric.add_comment(out, "T5.1", said) for said in ("Which?", 'Say "why".')] == ["T5.1b", "T5.1c"]
    assert rubric.load(out).comments == before.comments | {"T5.1b": "Which?", "T5.1c": 'Say "why".'}


def test_what_later_notebooks_ask_for_is_put_in_and_every_byte_stays(out):
    """And nothing comes back of a notebook that was in it before."""
    path, text = out / "rubric.toml", (RUBRIC.replace("\n", "\r\n") + "# the end").encode()
    files.write(path, text)
    before = rubric.load(out)
    assert rubric.add(out, [FIVE]) == [] and path.read_bytes() == text
    assert rubric.add(out, [FIVE, SIX]) == [SIX]
    now = rubric.load(out)
    assert path.read_bytes().startswith(text)
    of_six = [item for lesson, item in tasks.items().values() if lesson.notebook == SIX]
    assert now.checks == before.checks | {of.id: of.points for of in of_six if isinstance(of, tasks.Check)}
    assert now.comments == before.comments and [each.id for each in now.answer] == ["T5", "S1"]
    assert rubric.add(out, [FIVE, SIX]) == [] and rubric.load(out) == now
    files.write(path, closed := "notebook = {05 = {'resnet50.13' = 2}}\n")
    with pytest.raises(UseError, match="takes nothing more at its end"):
        rubric.add(out, [SIX])
    assert path.read_text() == closed


def test_the_first_rubric_is_what_the_tasks_say_of_what_is_not_optional(tmp_path):
    rubric.add(tmp_path, [lesson.notebook for lesson in tasks.lessons().values() if not lesson.optional])
    whole = rubric.load(tmp_path)
    optional = {item.id for lesson in tasks.lessons().values() if lesson.optional for item in lesson.task}
    asked = {*whole.checks, *(each.id for each in whole.answer)}
    assert optional and not optional & asked and {"T6", "T5", "concepts.1"} < asked
    assert whole.checks["T6"] == 6 and {"T5.1", "T5.2"} < whole.items.keys()


def test_a_cell_holds_no_formula_and_no_control_characters():
    cells = {text: f"'{text}" for text in ("=1+1", "+1", "-1", "@x", "  =1", "=cmd|' /C calc'!A0", "＝1")}
    cells |= {"well; =cmd()": "well;' =cmd()", "Ad\x1b[31ma\x85 \u202eKing": "Ad [31ma   King"}
    cells |= {"a\r\n=1;\n=1": "a  =1;' =1", "O'Neill x=1 日本": "O'Neill x=1 日本"}
    assert {text: results.cell(text) for text in cells} == cells


def test_runs_that_were_not_handed_in_are_for_a_person_and_wrong_ones_are_not():
    foreign, upside = (Judged("wrong", text, None) for text in (f"a.json {NOT_YOURS}: ...", "Upside down"))
    assert [judge._of_judge(each, "inside").how for each in (foreign, upside)] == ["person", "inside"]


def test_what_was_marked_is_noted_once_and_a_later_answer_or_code_does_not_take_its_place(out):
    rules = rubric.load(out)
    for id in ("T5.1", "resnet50.14"):
        marks.mark(out, "001", rules, id, 0.5)
    before = marks.load(out)["001"].stamps
    looked_at(out, "001", answers={"T5": "other"}, checks={FIVE: {"resnet50.14": judged("right")}})
    marks.stamp(out, rules)
    assert marks.load(out)["001"].stamps == before and all(each.by for each in before.values())
    assert lines(out, "001")["T5.1"].open
    by_hand = json.loads((out / "marks.json").read_text())  # another share: somebody has looked at it again
    by_hand["marks"]["001"]["items"]["T5.1"] = 1.0
    files.write(out / "marks.json", json.dumps(by_hand))
    marks.stamp(out, rules)
    assert not lines(out, "001")["T5.1"].open


def test_many_questions_of_the_same_submissions_have_one_line(out, monkeypatch):
    looked_at(out, "001", answers={"T5": "mine"}, checks={FIVE: {"resnet50.14": judged("open", "person")}})
    every = [line for line in results.write(out) if re.match("Open: .*: 001$", line)]
    monkeypatch.setattr(overview, "MOST", 1)
    (one,) = (line for line in results.write(out) if re.match("Open: .*: 001$", line))
    assert len(every) == 2 and re.fullmatch(r"Open: 2 questions, .*\(resnet50\.14\) to .*\(T5\): 001", one), (
        every,
        one,
    )
