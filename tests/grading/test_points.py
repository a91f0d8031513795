"""Points: a pure function of what was found, the rubric and the marks; changes of either are told; nothing is lost."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from labs import files
from labs.checks import tasks
from labs.errors import UseError
from labs.report.archive import zipped
from teaching.cli import main
from teaching.grading import check, marks, overview, points, results, rubric, sheet
from teaching.grading.finding import Finding

RUBRIC = """
notebooks = ["05"]
[checks]
"resnet50.11" = 2
"resnet50.12" = 1
"resnet50.3" = 3
[findings]
copy = 4
[comments]
"T5.1a" = "Which run is it?"
[[answer]]
id = "T5"
items = [ { id = "T5.1", points = 2, text = "Scripts" }, { id = "T5.2", points = 1, text = "Logs" } ]
"""


def judged(state, how="outside", text=""):
    return {"state": state, "how": how, "text": text}


def found(answers=None, **checks):
    named = {id.strip("_").replace("_", "."): each for id, each in checks.items()}
    return {"checks": {"05": named}, "answers": answers or {}, "findings": [], "told": [], "speedups": []}


@pytest.fixture
def out(tmp_path):
    """A grading of two submissions whose checks were judged."""
    files.write(tmp_path / "rubric.toml", RUBRIC)
    one = found({"T5": "mine"}, resnet50_11=judged("right"), resnet50_12=judged("wrong", text="Upside down"))
    two = found(resnet50_11=judged("open"), resnet50_3=judged("right", "person", "not judged: it imports 'os'"))
    for number, each in (("001", one), ("002", two)):
        files.write(tmp_path / f"submissions/{number}.zip", zipped({}))
        each |= {"steps": [], "prints": {}, "alike": {}, "tables": {}, "key": number}
        files.write(tmp_path / f"checked/{number}.json", json.dumps(each))
    return tmp_path


def lines(out, number):
    read = json.loads((out / f"checked/{number}.json").read_text())
    return {each.id: each for each in points.lines(read, rubric.load(out), marks.load(out).get(number))}


def test_results_read_each_file_of_the_grading_once(out, monkeypatch):
    marks.mark(out, "001", rubric.load(out), "T5.1", 1.0)
    read, real = [], files.read
    monkeypatch.setattr(files, "read", lambda path: read.append(Path(path)) or real(path))
    results.write(out)
    times = Counter(str(path.relative_to(out)) for path in read if path.is_relative_to(out))
    assert {"rubric.toml", "marks.json", "checked/001.json"} <= times.keys() and {*times.values()} == {1}, times


def test_points_come_from_checks_marks_and_confirmed_findings(out):
    rules = rubric.load(out)
    assert rules.most == 9
    first = lines(out, "001")
    assert (first["resnet50.11"].points, first["resnet50.12"].points, first["resnet50.3"].points) == (2, 0, 0)
    assert first["resnet50.12"].why == "Upside down" and first["T5.1"].open and not lines(out, "002")["T5.1"].open
    marks.mark(out, "001", rules, "T5.1", 0.5, comments=["T5.1a", "Well done."])
    copied = {"findings": [Finding("copy", "serious", "w1", "equal")]}
    marks.decide(out, "001", copied, ["copy"], "confirmed", "These are not your runs.")
    again = marks.decide(out, "001", copied, ["copy"], "confirmed")
    assert again.findings["copy"].sentence == "These are not your runs."
    now = lines(out, "001")
    assert (now["T5.1"].points, now["copy"].points) == (1, -4)
    assert points.total(now.values()) == 0 and points.total(first.values()) == 2  # never below 0


def test_what_only_a_person_can_judge_gives_no_point_until_then(out):
    line = lines(out, "002")["resnet50.3"]
    assert (line.points, line.open, line.why) == (0, True, "not judged: it imports 'os'")
    marks.mark(out, "002", rubric.load(out), "resnet50.3", 1.0)
    assert (lines(out, "002")["resnet50.3"].points, lines(out, "002")["resnet50.3"].open) == (3, False)
    marks.mark(out, "001", rubric.load(out), "resnet50.11", 0.0)  # the judge took it for right
    assert (lines(out, "001")["resnet50.11"].points, lines(out, "001")["resnet50.11"].state) == (0, "wrong")
    marks.mark(out, "002", rubric.load(out), "resnet50.3")
    assert lines(out, "002")["resnet50.3"].open


def test_what_was_right_and_is_not_any_more_keeps_its_points_until_a_person_decides(out):
    checked = found(resnet50_11=judged("right") | {"fell": "Upside down."})
    (line, *_) = points.lines(checked, rubric.load(out))
    assert (line.id, line.points, line.open) == ("resnet50.11", 2, True) and "Upside down." in line.why


def test_a_change_of_the_rubric_is_told_old_against_new(out):
    first = results.write(out)
    assert first[0] == "2 submissions, 5 items are open." and not [line for line in first if "->" in line]
    assert results.write(out) == first
    before = (out / "feedback/002.pdf").stat().st_mtime_ns
    files.write(out / "rubric.toml", RUBRIC.replace('"resnet50.11" = 2', '"resnet50.11" = 5'))
    assert [line for line in results.write(out) if "->" in line] == ["001: 2 -> 5 points"]
    assert (out / "feedback/002.pdf").stat().st_mtime_ns != before  # the points that can be had are others
    assert "T5.1a" not in (out / "grades.csv").read_text()
    marks.mark(out, "001", rubric.load(out), comments=["T5.1a"])
    results.write(out)
    assert "Which run is it?" in (out / "grades.csv").read_text()


def test_one_submission_of_a_thousand_runs_does_not_fill_the_overview():
    runs = {"001": [["a.json", 2, 1.5, None]], "002": [[f"r{n}.json", n, 1.5, None] for n in range(2, 1000)]}
    assert overview._speedups(runs).alt.count(": 1.5") == 1 + overview.MOST_SPEEDUPS


def test_what_was_not_looked_at_is_named(out):
    files.write(out / "submissions/003.zip", zipped({}))
    assert results.write(out)[1].startswith("Not looked at yet, so not in any of this: 003.")


def test_two_who_mark_at_once_lose_nothing(out):
    rules = rubric.load(out)
    with ThreadPoolExecutor(8) as pool:
        jobs = [
            pool.submit(marks.mark, out, number, rules, id, share, [f"{number} {id} {share}"])
            for number in ("001", "002")
            for id in ("T5.1", "T5.2", "resnet50.11")
            for share in (0.0, 0.25, 0.5, 1.0)
        ]
        assert all(job.result() for job in jobs)
    kept = marks.load(out)
    assert [len(kept[number].comments) for number in ("001", "002")] == [12, 12]
    assert [sorted(kept[number].items) for number in ("001", "002")] == [["T5.1", "T5.2"]] * 2


@pytest.mark.parametrize(
    ("number", "id", "share", "says"),
    [
        ("009", "T5.1", 1.0, "no submission 009"),
        ("001", "T5.9", 1.0, "no item and no check 'T5.9'"),
        ("001", "T5.1", 1.5, "no share"),
        ("001", "T5.1", float("nan"), "no share"),
    ],
)
def test_a_mark_that_cannot_be_is_refused(out, number, id, share, says):
    with pytest.raises(UseError, match=says):
        marks.mark(out, number, rubric.load(out), id, share)
    assert not (out / "marks.json").exists()


TWICE = (
    "answer = [{id = 'T5', items = [{id = 'a', points = 1, text = ''}, {id = 'a', points = 1, text = ''}]}]\n[checks]"
)


@pytest.mark.parametrize(
    "text",
    [
        "[checks",
        "[checks]\nx = 'a'",
        "[other]\n[checks]",
        "answer = [{id = 'T5'}]\n[checks]",
        "[checks]\nx = -1",
        "[checks]\nx = nan",
        "[checks]\n[findings]\ncopy = -5",
        TWICE,
    ],
)
def test_a_rubric_that_cannot_be_used_is_named(out, text):
    files.write(out / "rubric.toml", text)
    with pytest.raises(UseError, match=r"rubric\.toml"):
        rubric.load(out)


@pytest.mark.parametrize("head", ["[comments] # the bank\n", " [ comments ]\n", "[comments]\r\n", "", None])
def test_a_new_comment_leaves_a_rubric_that_can_be_read(out, head):
    text = RUBRIC.replace("[comments]\n", head or "") if head else RUBRIC.partition("[comments]")[0]
    files.write(out / "rubric.toml", 'comments = {"T5.1a" = "x"}' + text if head is None else text)
    before = rubric.load(out).comments
    if head is None:
        with pytest.raises(UseError, match=r'T5\.1b" = "Which'):
            rubric.add_comment(out, "T5.1", "Which?")
        assert rubric.load(out).comments == before
    else:
        id = rubric.add_comment(out, "T5.1", "Which?")
        assert rubric.load(out).comments == before | {id: "Which?"}


FIVE, SIX = "05_resnet50_scaling", "07_horovod_sharding"
ONLY_WRITTEN = 'notebooks = ["05"] # mine\n[checks]\n# no check counts\n' + RUBRIC.partition("[comments]\n")[2]
FORMS = {
    "as at first": RUBRIC,
    "without a last line's end": RUBRIC.rstrip(),
    "of Windows": RUBRIC.replace("\n", "\r\n"),
    "checks last": RUBRIC.partition("[findings]")[0] + "# the end",
    "no check": ONLY_WRITTEN.replace('"T5.1a"', '#"T5.1a"'),
    "in lines": RUBRIC.replace('["05"]', "[\n  '05', # ours\n]"),
}


@pytest.mark.parametrize("form", FORMS)
def test_what_later_notebooks_ask_for_is_put_in_and_every_byte_stays(out, form):
    """And nothing comes back of a notebook that was in it before."""
    path, text = out / "rubric.toml", FORMS[form].encode()
    files.write(path, text)
    before = rubric.load(out)
    assert rubric.add(out, [FIVE]) == [] and path.read_bytes() == text
    assert rubric.add(out, [FIVE, SIX]) == [SIX]
    now, rest = rubric.load(out), iter(path.read_bytes().split(b"\n"))
    assert all(line in rest for line in text.split(b"\n") if not line.startswith(b"notebooks"))
    of_six = (item for lesson, item in tasks.items().values() if lesson.notebook == SIX)
    asked = {item.id: item.points for item in of_six if isinstance(item, tasks.Check)}
    assert now.checks == before.checks | asked and now.comments == before.comments
    assert [each.id for each in now.answer] == [each.id for each in before.answer] + ["S1"]
    assert rubric.add(out, [FIVE, SIX]) == [] and rubric.load(out) == now


@pytest.mark.parametrize(
    "text", ["checks = {'resnet50.11' = 2}\n", "answer = []\n[checks]\n", "checks.'resnet50.11' = 2\n"]
)
def test_a_rubric_that_takes_nothing_more_is_told_and_stays(out, text):
    files.write(out / "rubric.toml", text)
    with pytest.raises(UseError, match=f"so {SIX} would not count"):
        rubric.add(out, [SIX])
    assert (out / "rubric.toml").read_text() == text


@pytest.mark.parametrize("text", ["{", '{"marks": {"001": {"items": {"T5.1": "x"}}}}', '{"version": 2}'])
def test_marks_that_cannot_be_read_are_not_written_over(out, text):
    files.write(out / "marks.json", text)
    with pytest.raises(UseError, match=r"marks\.json"):
        marks.mark(out, "001", rubric.load(out), "T5.1", 1.0)
    assert (out / "marks.json").read_text() == text


def test_the_first_rubric_is_what_the_tasks_say(tmp_path):
    rubric.add(tmp_path, ["05_resnet50_scaling", "06_a_job_for_slurm"])
    rules = rubric.load(tmp_path)
    assert rules.checks["T6"] == 6 and [item.id for item in rules.answer[0].items][:2] == ["T5.1", "T5.2"]
    rubric.add(tmp_path / "all", check.counting(tmp_path / "all"))
    assert set(rubric.load(tmp_path / "all").checks) > set(rules.checks)


def test_an_optional_lesson_counts_only_where_it_is_named(tmp_path):
    optional = {lesson.notebook: lesson for lesson in tasks.lessons().values() if lesson.optional}
    assert "26_where_a_step_goes" in optional
    ids = {item.id for lesson in optional.values() for item in lesson.task}
    rubric.add(tmp_path / "all", check.counting(tmp_path / "all"))
    every = rubric.load(tmp_path / "all")
    assert not ids & {*every.checks, *(each.id for each in every.answer)}
    rubric.add(tmp_path / "named", ["05_resnet50_scaling", "26_where_a_step_goes"])
    named = rubric.load(tmp_path / "named")
    assert named.checks["step.2"] == 2 and named.checks["T6"] == 6


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@x", "\t=1", "  =1", "\r=1", "=cmd|' /C calc'!A0"])
def test_a_formula_is_text(name):
    assert sheet.cell(name) == f"'{name}".replace("\t", " ").replace("\r", " ")


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("well; =cmd()", "well;' =cmd()"),
        ('well;"=cmd()"', 'well;\'"=cmd()"'),
        ("a;b, -1 point", "a;b, -1 point"),
        ("＝1", "'＝1"),
        ("Ad\x1b[31ma\x85 \u202eKing", "Ad [31ma   King"),
        ("a\r\n=1;\n=1", "a  =1;' =1"),
    ],
)
def test_a_cell_holds_no_control_characters_and_no_formula_behind_a_semicolon(text, cell):
    assert sheet.cell(text) == cell


def test_a_name_is_a_name():
    assert [sheet.cell(each) for each in ("Ada", "O'Neill", "x=1", "", "日本")] == ["Ada", "O'Neill", "x=1", "", "日本"]


def test_an_honest_cause_stands_beside_every_kind_of_finding():
    assert all(Finding(kind, "look", "x", "y").honest for kind in ("clock", "copy", "counted twice"))


def test_marks_by_command(out, capsys):
    words = ["mark", "001", "T5.1", "0.25", "--comment", "T5.1a", "--out", str(out)]
    assert main(words) == 0 and marks.load(out)["001"].items == {"T5.1": 0.25}
    assert main(["mark", "009", "T5.1", "1", "--out", str(out)]) == 2
    assert "There is no submission 009" in capsys.readouterr().err
