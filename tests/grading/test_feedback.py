"""What a person decides, and what reaches students: through the command line, for five made students."""

import json
import random
import re
import sys
from pathlib import Path

import made_grading
import pytest

from labs import files
from labs.report import document
from teaching.cli import main
from teaching.grading import marks, points, rubric

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))
SENTENCE = "Your run on 1 worker is a scaled copy of another run: please measure your own."
PINNED = "Divide the time on 1 worker by the time on p workers."


@pytest.fixture
def out(tmp_path, monkeypatch):
    monkeypatch.setenv("LABS_GRADER", "Grace")
    return made_grading.write(tmp_path)


@pytest.fixture
def grade(out, capsys):
    """grade(*words) -> (exit code, output, errors) of `teach`."""

    def grade(*words):
        return main([*words, "--out", str(out)]), *capsys.readouterr()

    return grade


def text(out, number, page=None):
    """The text of a student's feedback, or of one of its pages from 0, without its line breaks."""
    import pypdfium2

    pdf = pypdfium2.PdfDocument(out / f"feedback/{number}.pdf")
    pages = [each.get_textpage().get_text_range() for each in pdf]
    return " ".join((pages[page] if page is not None else "\n".join(pages)).replace("\u200b", "").split())


def total(out, number):
    return json.loads((out / "points.json").read_text())[number]


def test_no_finding_reaches_a_student_unless_it_was_confirmed_with_a_sentence(out, grade):
    assert grade("mark", "001", "--dismiss", "copy")[0] == 0
    assert grade("mark", "002", "--confirm", "copy", "--sentence", SENTENCE)[0] == 0
    told = grade("out")[1]
    assert "Findings that nobody has confirmed or dismissed, in 001, 002" in told  # spread of 001, progress of 002
    for number in ("001", "002", "003", "004", "005"):
        said = text(out, number)
        for secret in ("0.8 times", "lies on a line", "honest cause", "equal to the last byte", "submission 00"):
            assert secret not in said, (number, secret)
        others = {f"00{n}" for n in range(1, 6)} - {number}
        assert not others & set(re.findall(r"\d+", said)), number
    assert "5 points are taken off for this" in text(out, "002", 0) and SENTENCE in text(out, "002", 0)
    assert "scaled copy" not in text(out, "001") and "evidence" not in text(out, "001")


def test_what_is_confirmed_or_dismissed_is_kept_with_who_and_when(out, grade):
    code, said, _ = grade("mark", "001", "--confirm", "copy")
    assert code == 0 and re.search(r"Kept of 001:\n  copy: confirmed \(Grace, \d{4}-\d\d-\d\d \d\d:\d\d\)", said)
    assert marks.load(out)["001"].findings["copy"].about == ["ResNet50_w1"]
    assert "copy is confirmed without a sentence" in grade("out")[1]
    before = total(out, "001")
    assert "copy: dismissed (Grace," in grade("mark", "001", "--dismiss", "copy")[1]
    assert "001: " in grade("out")[1] and total(out, "001") == before + 5
    path = out / "checked/001.json"
    files.write(path, path.read_text().replace('ResNet50_w1", "seen', 'other", "seen'))
    assert "Findings that nobody has confirmed or dismissed, in 001, 002" in grade("out")[1]  # a new one
    assert grade("mark", "001", "--reopen", "copy")[1] == "Kept of 001:\n  nothing\n"


@pytest.mark.parametrize("kind", ["clock", "Copy", "invented"])
def test_a_kind_that_the_submission_does_not_have_is_refused_with_those_it_has(out, grade, kind):
    code, said, problem = grade("mark", "001", "T5.1", "1", "--confirm", kind)
    assert code == 2 and said == "" and not (out / "marks.json").exists()
    assert f"{kind!r}" in problem and "It has: copy (ResNet50_w1); spread (ResNet50_w2)" in problem
    assert "Nothing was found in it" in grade("mark", "003", "--dismiss", kind)[2]


@pytest.mark.parametrize("named", ["See submission 001.", "As in 001", "no. 001", "#001"])
def test_a_text_for_a_student_names_no_other_submission(out, grade, named):
    for words in (["--confirm", "copy", "--sentence", named], ["--comment", named]):
        code, _, problem = grade("mark", "002", *words)
        assert code == 2 and "names submission 001" in problem and not (out / "marks.json").exists()
    assert grade("pin", "resnet50.5", named)[0] == 2 and "[[pin]]" not in (out / "rubric.toml").read_text()
    assert grade("mark", "002", "--comment", "As in your 002, 100 epochs, 1001 images, rate 0.001")[0] == 0


def test_the_first_page_says_what_to_do_next(out, grade):
    grade("mark", "001", "T5.1", "1", "--comment", "Name the machine of each run.")
    grade("out")
    first = text(out, "001", 0)
    assert first.startswith("Feedback for Ada Example ") and "of 98 points so far." in first
    steps = first[first.index("What to do next") : first.index("What was good")]
    assert re.findall(r"\b(\d)\. (\w+)", steps) == [("1", "Write"), ("2", "Correct"), ("3", "Correct")]
    assert "Upside down" in steps and "All 14 checks of notebook 01" in first and "Name the machine" in first
    assert "Hand it in" in (said := text(out, "004")) or "hand it in" in said
    third = text(out, "003", 0)
    assert "labs dispute" in third and "Go on with notebook 06" in third
    step = third[third.index("Go on with notebook 06") :].partition("3. ")[0]
    assert "(T5)" in step and "(up to 31 points)" in step  # what it has to write belongs to the same step
    assert "It stopped before" in (fifth := text(out, "005", 0)) and "NameError: name 'rows'" in fifth


def test_each_mistake_has_title_code_and_hint_and_no_path_or_traceback(out, grade):
    grade("out")
    behind = text(out, "001", 1)
    mistake = behind[behind.index("The speedup of each round (resnet50.5)") : behind.index("The slower of two")]
    assert "return [p / one for one, p" in mistake and "round 1 took 4.25 s" in mistake and "check(" not in mistake
    assert "KeyError: 'a'" in behind and "Not decided yet" in behind
    for number in ("001", "002", "003", "005"):
        said = text(out, number)
        assert "/tmp" not in said and "Traceback" not in said and "/work" not in said
        for found in re.finditer(r"\b(concepts|resnet50|slurm)\.\d+\b|\bT\d+(\.\d)?\b", said):
            assert said[found.start() - 1] + said[found.end()] == "()", said[found.start() - 60 : found.end()]


def test_a_name_that_no_platform_gave_is_not_shown(out, grade):
    made_grading.write(out, platform="folder")
    grade("out")
    assert text(out, "001", 0).startswith("Feedback on submission 001 ")


def test_a_pin_reaches_all_who_made_the_mistake_and_their_points_follow(out, grade):
    grade("out")
    before = {number: total(out, number) for number in ("001", "002", "003")}
    assert "2 x resnet50.5 (001, 002): Upside down" in grade("pin")[1]
    assert "Pinned to resnet50.5. It reaches 2: 001, 002." in grade("pin", "resnet50.5", PINNED)[1]
    assert "->" not in grade("out")[1]
    assert all(PINNED in text(out, number, page) for number in ("001", "002") for page in (0, 1))
    assert PINNED not in text(out, "003") and (out / "grades.csv").read_text().count(PINNED) == 2
    rules = (out / "rubric.toml").read_text()
    files.write(out / "rubric.toml", rules.replace("share = 0.0", "share = 0.5"))
    assert grade("out")[1].count("->") == 2
    assert {n: total(out, n) - before[n] for n in before} == {"001": 0.5, "002": 0.5, "003": 0}
    assert grade("pin", "resnet50.11", "x")[::2] == (2, "teach pin: Nobody made a mistake at resnet50.11.\n")
    assert grade("pin", "resnet50.5", "x", "--share", "2")[0] == grade("pin", "resnet50.5", "x", "--of", "003")[0] == 2


def test_a_dispute_waits_until_it_is_answered_in_the_next_feedback(out, grade):
    assert "002 disputes resnet50.5: not answered yet" in grade("out")[1]
    assert "It is not answered yet." in text(out, "002", 0) and "Speedup is new over old." in text(out, "002", 0)
    assert "disputes nothing, and not 'resnet50.5'" in grade("mark", "001", "resnet50.5", "--answer", "Yes.")[2]
    code, said, _ = grade("mark", "002", "resnet50.5", "1", "--answer", "You are right.")
    assert code == 0 and "resnet50.5: share 1 (Grace" in said and "dispute on resnet50.5: answered (Grace" in said
    assert "disputes" not in grade("out")[1] and "Answer: You are right." in text(out, "002", 0)


def test_a_check_that_was_not_judged_is_open_and_an_empty_hand_in_is_not(out, grade):
    path = out / "checked/003.json"
    found = json.loads(path.read_text())
    files.write(
        path, json.dumps(found | {"checks": {}, "findings": [made_grading.finding("no record", "runs", "none")]})
    )
    grade("out")
    rules = rubric.load(out)
    for number, waits in (("003", True), ("004", False)):
        read = json.loads((out / f"checked/{number}.json").read_text())
        assert {line.open for line in points.lines(read, rules) if line.id in rules.checks} == {waits}
    assert "nothing could be read" in text(out, "004").lower() and "Not decided yet" in text(out, "003")


def test_an_answer_that_was_changed_after_it_was_marked_is_open_again(out, grade):
    def line():
        found = json.loads(path.read_text())
        return next(each for each in points.lines(found, rubric.load(out), marks.load(out)["001"]) if each.id == "T5.1")

    path = out / "checked/001.json"
    grade("mark", "001", "T5.1", "1")
    assert not line().open and line().points == 5
    files.write(path, path.read_text().replace("divided the epoch times", "added the epoch times"))
    assert line().open and line().points == 5 and "changed since: look at it again" in line().why


@pytest.fixture
def no_pdf(monkeypatch):
    """Without the PDFs, which take most of the time."""
    monkeypatch.setattr(document, "of_data", lambda _, data, beside=None: repr(data).encode(errors="replace"))


def test_a_comment_that_only_looks_like_one_of_the_bank_is_a_text(out, grade, no_pdf):
    grade("mark", "001", "T5.1", "0.5", "--comment", "T5.1z")
    assert grade("out")[0] == 0 and "T5.1z" in (out / "feedback/001.pdf").read_text()


DAMAGED = ("names.json", "collection.json", "points.json", "marks.json", "checked/001.json", "rubric.toml")
DAMAGE = {
    "empty": b"", "cut": None, "null": b"null", "list": b"[1]", "text": b'"x"', "number": b"7", "nan": b"NaN",
    "binary": b"\x80\x00\xff", "deep": b"[" * 99_999, "texts": b'{"001": "x", "version": "x"}',
    "nulls": b'{"001": null, "marks": null, "checks": null}', "lists": b'{"001": [1], "marks": [], "findings": 3}',
    "inside": b'{"001": {"who": 1}, "marks": {"001": {"items": {"T5.1": 7}}}, "key": ""}',
}  # fmt: skip
COMMANDS = (["out"], ["mark", "001", "T5.1", "1"], ["mark", "001", "--dismiss", "copy"], ["pin"])


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_one_line_that_says_what_to_do(out, grade, name, no_pdf):
    grade("mark", "001", "T5.1", "1")
    files.write(out / "points.json", '{"001": 3.5}')
    whole = (out / name).read_bytes()
    for damage, content in DAMAGE.items():
        content = whole[: len(whole) // 2 + 1] if content is None else content
        if name == "rubric.toml" and damage in ("empty", "number"):
            content = b"checks = 3"
        files.write(out / name, content)
        codes = [grade(*words) for words in COMMANDS]
        told = [problem for code, _, problem in codes if code]
        assert told and {code for code, _, _ in codes} <= {0, 2}, (damage, codes)
        for problem in told:
            assert problem.count("\n") == 1 and f"{name} is damaged: " in problem and "Nothing was changed; " in problem
        assert (out / name).read_bytes() == content
    (out / name).unlink()
    (out / name).mkdir()
    assert {grade(*words)[0] for words in COMMANDS} <= {0, 2}


def test_a_damaged_submission_is_one_line_too(out, grade):
    files.write(out / "submissions/001.zip", b"PK")
    code, _, problem = grade("out")
    assert code == 2 and "001.zip is damaged" in problem and "teach collect" in problem


ODD = [None, True, 7, -1, 1e308, "", "x", "\ud800", [], {}, [[]], [None], {"": None}, 10**400, float("nan"), "drop"]


def places(value, way=()):
    """The ways to all parts of some JSON, of long lists to the first ones."""
    inside = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for key, part in inside:
        yield (*way, key)
        yield from places(part, (*way, key))


def changed(value, way, odd):
    made = json.loads(json.dumps(value))
    part = made
    for key in way[:-1]:
        part = part[key]
    if odd == "drop":
        del part[way[-1]]
    else:
        part[way[-1]] = odd
    return made


@pytest.mark.parametrize("name", DAMAGED[:-1])
def test_no_value_in_a_file_gives_a_traceback(out, grade, name, no_pdf):
    """What can be used is used; of all else one line tells the file."""
    grade("mark", "002", "T5.1", "1", "--comment", "x", "--confirm", "copy")
    grade("out")
    whole, draw, refused = json.loads((out / name).read_text()), random.Random(name), 0
    every = [(way, odd) for way in places(whole) for odd in ODD]
    for way, odd in draw.sample(every, min(20, len(every))):
        files.write(out / name, json.dumps(changed(whole, way, odd)), lasting=False)
        code, _, problem = grade("out")
        assert code == 0 or (code == 2 and f"{name} is damaged: " in problem and problem.count("\n") == 1), (way, odd)
        refused += bool(code)
    assert refused > 3
