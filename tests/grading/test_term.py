"""In the middle of a term: graded three times, a kit that judges otherwise, a late second hand-in; and who tried the
checks out."""

import json
import random
from difflib import ndiff

import pytest
from tree import ROOT

from labs import files
from labs.checks import tasks
from labs.report import document
from labs.report.archive import zipped
from teaching.cli import main
from teaching.grading import check, desk, guessing, judge, likeness, marks, points, rubric
from teaching.grading.judge import CheckResult

FIVE, SIX = "05_resnet50_scaling", "06_a_job_for_slurm"
WORDS = "ring server gradient slower core batch memory epoch worker sends twice bandwidth noise half more less".split()


def answer(seed):
    draw = random.Random(seed)
    return " ".join(draw.choices(WORDS, k=80))


def notebook(text, *code):
    """Notebook 05 as bytes, with a written answer to T5 and cells of code, which did run."""
    cells = [
        {"cell_type": "code", "id": f"c{n}", "metadata": {}, "source": s, "outputs": [{}]} for n, s in enumerate(code)
    ]
    mark = {"labs": {"id": "T5", "kind": "answer"}}
    cells.append({"cell_type": "markdown", "id": "t5", "metadata": mark, "source": f"### T5: your answer\n{text}"})
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


@pytest.fixture
def grade(tmp_path, monkeypatch, capsys):
    """grade(*words) -> what the command prints; in the course, into a folder of its own."""
    monkeypatch.chdir(ROOT)
    (tmp_path / "in").mkdir()

    def grade(*words):
        assert main([*map(str, words), "--out", str(tmp_path / "grades")]) == 0
        return capsys.readouterr().out

    return grade


def hand_in(tmp_path, who, *cell_contents, text="mine", **more):
    content = {f"notebooks/{FIVE}.ipynb": notebook(text, *cell_contents)} | more
    files.write(tmp_path / f"in/{who}.zip", zipped(content))


def numbers(tmp_path):
    return {each["who"]: n for n, each in json.loads((tmp_path / "grades/names.json").read_text()).items()}


def lines_of(tmp_path, number):
    """{id: (points, open)} of grades.csv's total and the checks that are judged."""
    found = check.results(tmp_path / "grades")[number]
    rules, decided = rubric.load(tmp_path / "grades"), marks.load(tmp_path / "grades")
    return {each.id: each for each in points.lines(found, rules, decided.get(number))}


@pytest.fixture
def judged(monkeypatch):
    """judged(resnet50.11=state, ...): from now on the kit judges so, as another kit would."""

    def judged(**states):
        found = {id.replace("_", "."): CheckResult(state, "outside", f"it is {state}.") for id, state in states.items()}
        monkeypatch.setattr(judge, "judged", lambda *_: (found, []))
        monkeypatch.setattr(check, "_kit", lambda root: str(states))

    return judged


def hand_in_all(tmp_path, who, lessons):
    """Hand in the notebooks of some lessons, with all their written answers."""
    contents = {}
    for lesson in lessons:
        marks_of = [{"labs": {"id": item.id, "kind": "answer"}} for item in lesson.task if item.kind == "answer"]
        cells = [
            {"cell_type": "markdown", "metadata": mark, "source": f"### \n{answer(who + mark['labs']['id'])}"}
            for mark in marks_of
        ]
        text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
        contents[f"notebooks/{lesson.notebook}.ipynb"] = text.encode()
    files.write(tmp_path / f"in/{who}.zip", zipped(contents))


def all_right(submission, root, notebook, seed):
    """In place of judge.judged: every check of a notebook that was handed in is right."""
    state = "right" if f"notebooks/{notebook}.ipynb" in submission.contents else "open"
    return {id: CheckResult(state, "outside") for id, (of, _) in tasks.items().items() if of.notebook == notebook}, []


def test_a_class_is_graded_after_weeks_5_9_and_12_in_one_folder(tmp_path, grade, monkeypatch):
    """All notebooks count in the end, no mark is lost, and the rubric stays as the instructor has changed it. Ada hands
    in three times, Ben once."""
    monkeypatch.setattr(check.sandbox, "sandbox_missing", lambda: None)
    monkeypatch.setattr(judge, "judged", all_right)
    monkeypatch.setattr(document, "of_data", lambda _, data, beside=None: repr(data).encode())
    out, practical, lessons, marked, own = tmp_path / "grades", tasks.on_path("practical"), [], {}, ""
    for last, handing_in in (("06", ("Ada", "Ben")), ("10", ("Ada",)), ("11", ("Ada",))):
        new = [each for each in practical if each not in lessons and each.notebook.partition("_")[0] <= last]
        lessons += new
        for who in handing_in:
            hand_in_all(tmp_path, who, lessons)
        grade("collect", tmp_path / "in")
        said = grade("check", "--notebooks", *(each.notebook for each in lessons))
        assert f"Added to rubric.toml: {', '.join(each.notebook for each in new)}.\n" in said
        assert "Added" not in grade("check"), "it is said once"

        ids = [item.id for each in new for item in each.task if item.kind == "answer"]
        assert [id for id in desk.Desk(out)._tasks() if id in ids] == ids
        number = numbers(tmp_path)
        for who in handing_in:
            for id in ids:
                grade("mark", number[who], f"{id}.1", 1 if who == "Ada" else 0.5)
                marked[who, f"{id}.1"] = (5, False) if who == "Ada" else (2.5, False)
        kept = {(who, id): (at.points, at.open) for who in number for id, at in lines_of(tmp_path, number[who]).items()}
        assert marked.items() <= kept.items(), "a mark was lost"

        grade("out")
        rules, totals = rubric.load(out), json.loads((out / "points.json").read_text())
        of_checks = {id: of for id, of in rules.checks.items() if of}
        assert {each.id for lesson in lessons for each in lesson.task if isinstance(each, tasks.Check)} == {
            *rules.checks, "concepts.2"
        }  # fmt: skip
        assert totals[number["Ada"]] == sum(of_checks.values()) + sum(5 for who, _ in marked if who == "Ada")
        table, overview = (out / "grades.csv").read_text(), (out / "overview.pdf").read_text()
        assert all(f"{id}" in table and f"({id})" in overview for id in [*of_checks, *rules.items])
        feedback = (out / f"feedback/{number['Ada']}.pdf").read_text()
        assert all(lesson.title in feedback for lesson in lessons if any(item.points for item in lesson.task))

        text = (out / "rubric.toml").read_text()
        gone = [line for line in ndiff(own.splitlines(), text.splitlines()) if line.startswith("-")]
        assert [line.partition(" = ")[0] for line in gone] == (["- notebooks"] if own else [])
        own = text.replace('"concepts.1" = 1\n', '"concepts.1" = 4  # the first one\n').replace(
            '"concepts.2" = 2\n', ""
        )
        own = own.replace('"concepts.4" = 2\n', '"concepts.4" = 0\n')
        files.write(out / "rubric.toml", own)
    assert (rules.checks["concepts.1"], rules.checks["concepts.4"]) == (4, 0)
    assert totals[number["Ben"]] == sum(at.points for at in lines_of(tmp_path, number["Ben"]).values()) > 50


def test_a_check_that_was_mended_gives_points_and_takes_none_without_a_person(tmp_path, grade, judged):
    hand_in(tmp_path, "one")
    grade("collect", tmp_path / "in")
    judged(resnet50_5="right", resnet50_11="wrong", resnet50_12="right")
    grade("check", "--notebooks", FIVE), grade("out")
    before = json.loads((tmp_path / "grades/points.json").read_text())["001"]
    judged(resnet50_5="right", resnet50_11="right", resnet50_12="wrong")
    said = grade("check", "--notebooks", FIVE)
    assert "right now, and not before: resnet50.11; not right any more, and kept until you decide: resnet50.12" in said
    said = grade("out")
    assert f"001: {before:g} -> {before + 1:g} points" in said
    assert (
        "001: resnet50.12 was right, and this kit says: it is wrong." in said and "teach mark 001 resnet50.12 0" in said
    )
    assert (lines_of(tmp_path, "001")["resnet50.12"].points, lines_of(tmp_path, "001")["resnet50.12"].open) == (1, True)
    judged(
        resnet50_5="right", resnet50_11="right", resnet50_12="wrong", resnet50_6="wrong"
    )  # a third kit: it stays kept, and is told once
    assert "resnet50.12" not in grade("check", "--notebooks", FIVE)
    grade("mark", "001", "resnet50.12", 0)
    said = grade("out")
    assert f"001: {before + 1:g} -> {before:g} points" in said and "resnet50.12" not in said
    hand_in(tmp_path, "one", text="other work")
    grade("collect", tmp_path / "in"), grade("check", "--notebooks", FIVE)
    assert "fell" not in json.dumps(
        check.results(tmp_path / "grades")["001"]["checks"]
    )  # of other work nothing is kept


def test_a_later_hand_in_keeps_the_marks_of_answers_that_are_the_same(tmp_path, grade):
    hand_in(tmp_path, "one", text="My speedup\nis 1.6.")
    grade("collect", tmp_path / "in"), grade("check", "--no-run", "--notebooks", FIVE, SIX)
    grade("mark", "001", "T5.1", 1), grade("mark", "001", "T5.2", 0.5)
    hand_in(tmp_path, "one", "x = 1", text="My speedup is  1.6.")  # another notebook, the same answer
    grade("collect", tmp_path / "in"), grade("check", "--no-run", "--notebooks", FIVE, SIX)
    assert [lines_of(tmp_path, "001")[f"T5.{n}"].points for n in (1, 2)] == [5, 2.5]
    hand_in(tmp_path, "one", text="My speedup is 1.9.")
    grade("collect", tmp_path / "in"), grade("check", "--no-run", "--notebooks", FIVE, SIX)
    line = lines_of(tmp_path, "001")["T5.2"]
    assert (line.points, line.open) == (2.5, True)  # kept until somebody has looked
    assert line.why == "marked with 0.5, and the answer was changed since: look at it again"
    grade("mark", "001", "T5.2", 1)
    assert lines_of(tmp_path, "001")["T5.2"].points == 5


def found(tmp_path, grade):
    """{who: {(kind, severity, where)}} of a class that was looked at, without notes."""
    grade("collect", tmp_path / "in"), grade("check", "--no-run", "--notebooks", FIVE)
    results = check.results(tmp_path / "grades")
    return {
        who: {(each.kind, each.where) for each in results[n]["findings"] if each.severity != "note"} - {REPORT, PDF}
        for who, n in numbers(tmp_path).items()
    }


REPORT, PDF = ("report", "report.json"), ("report", "report.pdf")  # which these do not hand in
TRIES = {
    "in a loop": ('for letter in "abcd":\n    check("resnet50.9", letter)',),
    "read": ("!cat ../lessons/resnet50_scaling/tasks.toml",),
    "imported": ("from labs.checks import judging\njudging.judge_of('resnet50.9')",),
    "one by one": tuple(
        f'check("{id}", "{letter}")' for id in ("resnet50.9", "concepts.9", "concepts.2") for letter in "abc"
    ),
}


def test_who_tries_the_checks_out_or_has_the_solutions_words_is_named(tmp_path, grade):
    for name, code in TRIES.items():
        hand_in(tmp_path, name, *code, text=answer(name))
    hand_in(
        tmp_path, "magics", "%matplotlib inline", 'check("resnet50.9", "c")\ncheck("resnet50.9", "a")', text=answer("m")
    )
    for name in ("w", "x", "y", "z", "q"):
        hand_in(tmp_path, f"group {name}", f"x = '{name}'", text=answer("theirs"))
    own = likeness._of_answers(str(ROOT))[1]["T5"]
    source = (ROOT / "solutions/06_a_job_for_slurm.py").read_text().partition('"id": "T5"')[2]
    text = " ".join(line.lstrip("# ") for line in source.split("\n")[1:] if line.startswith("#") and "###" not in line)
    hand_in(tmp_path, "solution", text=text)
    files.write(tmp_path / "in/blank one.zip", zipped({f"notebooks/{FIVE}.ipynb": b'{"cells": []}'}))
    files.write(tmp_path / "in/blank two.zip", zipped({f"notebooks/{FIVE}.ipynb": b'{"cells": []}'}))
    seen = found(tmp_path, grade)
    assert {who for who, each in seen.items() if ("guessing", f"notebooks/{FIVE}.ipynb") in each} == TRIES.keys()
    assert {who for who, each in seen.items() if ("alike", "the answer to T5") in each} == {
        f"group {name}" for name in "wxyzq"
    }
    assert {who for who, each in seen.items() if ("solution", "the answer to T5") in each} == {"solution"} and own
    assert seen["magics"] == seen["blank one"] == seen["blank two"] == set()
    assert "equal to the last byte" not in (tmp_path / "grades/collection.json").read_text()


def test_the_courses_own_code_tries_nothing_out():
    from teaching.author import regions

    for path in ROOT.glob("solutions/**/*.py"):
        for form in (regions.strip_markers, regions.blank):
            assert list(guessing.tried([form(path.read_text(), path.name)])) == [], path


def test_the_first_rubric_gives_the_larger_part_to_work_that_can_be_seen(tmp_path):
    rubric.add(tmp_path / "whole", check.counting(tmp_path / "whole"))
    whole = rubric.load(tmp_path / "whole")
    written = sum(item.points for each in whole.answer for item in each.items)
    choices = sum(points for id, points in whole.checks.items() if tasks.task(id).kind == "choice")
    assert written > whole.most / 2 and choices < whole.most / 10
    head = (tmp_path / "whole/rubric.toml").read_text().partition("\n\n")[0]
    assert f"# written answers {written:18g} points, {written / whole.most:.0%}" in head
    assert "they are practice" in head and "scripts and plots of own runs" in head
