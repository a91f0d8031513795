"""Scripts and answers that are alike: renaming hides nothing; what the course gives, or all have, accuses nobody."""

import json
import random
from pathlib import Path

import pytest
from made_class import notebook, script

from labs.checks import kept, tasks
from teaching.grading import likeness

ROOT = Path(__file__).resolve().parents[2]
NAME = "notebooks/scripts/ResNet50.py"
OWN = '''
def summary(history, workers):
    """What came of it."""
    best = max(history.history["accuracy"])
    for epoch, (loss, accuracy) in enumerate(zip(history.history["loss"], history.history["accuracy"])):
        print(f"{epoch}: {loss / workers:.3f}", "best" if accuracy == best else "")
    if best < 0.5 and workers > 1:
        print("more epochs would help:", [round(x * workers, 2) for x in history.history["loss"][-3:]])
    return {"best": best, "workers": workers, "last": history.history["loss"][-1] ** 2 - best}
'''
WORDS = (
    "the ring waits server gradient slower because core batch memory epoch each worker sends twice bandwidth".split()
)


def answer(seed, words=120):
    draw = random.Random(seed)
    return " ".join(draw.choice(WORDS) for _ in range(words))


def found(*submissions):
    """What is found among some (script, answer)."""
    owned = {
        f"{number:03d}": likeness.own({NAME: code.encode()}, {"T5": text}, ROOT)
        for number, (code, text) in enumerate(submissions, 1)
    }
    return [(what, one, other) for what, one, other, _, _ in likeness.pairs(owned)]


def renamed(code):
    for old, new in (("history", "h"), ("best", "top"), ("epoch", "n"), ("accuracy", "acc"), ("workers", "w")):
        code = code.replace(old, new)
    return "# my own work\n" + code.replace("    ", "  ").replace('"""What came of it."""', '"""Mine."""')


def test_the_same_script_with_other_names_is_alike():
    mine, theirs = script() + OWN, script() + renamed(OWN)
    assert found((mine, answer(1)), (theirs, answer(2)), (script(), answer(3))) == [(NAME, "001", "002")]


def test_right_scripts_are_not_alike_since_the_course_gave_or_all_have_their_lines():
    assert found(*((script(), answer(seed)) for seed in range(6))) == []


@pytest.mark.parametrize("change", [str, str.upper, lambda text: "First of all: " + text.replace(" ", "\n")])
def test_the_same_answer_in_another_setting_is_alike(change):
    assert found(("", answer(1)), ("", change(answer(1))), ("", answer(2))) == [("the answer to T5", "001", "002")]


def test_a_part_that_was_taken_is_alike_and_a_quoted_sentence_is_not():
    taken = answer(1) + " " + answer(9, 60)
    assert found(("", answer(1)), ("", taken)) == [("the answer to T5", "001", "002")]
    quoted = answer(1, 12) + " " + answer(9)
    assert found(("", answer(1)), ("", quoted)) == []


def test_what_a_good_answer_holds_may_stand_in_every_answer():
    items = [item for lesson in tasks.lessons().values() for item in lesson.task]
    held = " ".join([text for item in items for text in getattr(item, "holds", ())][:12])
    assert found(("", held), ("", held)) == []


def test_pairs_are_shown_side_by_side_and_no_text_is_markup():
    owned = {n: likeness.own({}, {"T5": "<b>" + answer(1)}, ROOT) for n in ("001", "002")}
    page = likeness.page(likeness.pairs(owned), {n: {"the answer to T5": "<b>" + answer(1)} for n in owned})
    assert page.count("<mark>&lt;b&gt;the") + page.count("<mark>&lt;b&gt;") >= 2 and "<b>" not in page
    assert "submissions 001 and 002, 100%" in page


@pytest.mark.parametrize("code", ["", "x = (", "'''", "\x00", "\tx\n  y", "a" * 10_000, "é \ud800"])
def test_what_is_no_python_has_fingerprints_or_none(code):
    assert likeness.prints(NAME, code).keys() == likeness.prints(NAME, code).keys()
    assert isinstance(likeness.own({NAME: code.encode(errors="replace")}, {}, ROOT), dict)


@pytest.mark.parametrize("group", [2, 4, 12, 20])
def test_an_answer_that_many_have_is_found_at_all_of_them_and_at_nobody_else(group):
    texts = [answer(1)] * group + [answer(seed) for seed in range(2, 22 - group)]
    owned = {f"{n:03d}": likeness.own({}, {"T5": text}, ROOT) for n, text in enumerate(texts, 1)}
    found = likeness.findings(likeness.pairs(owned))
    assert sorted(found) == sorted(owned)[:group] and all(len(of_one) == 1 for of_one in found.values())
    assert "002 (" in found["001"][0].seen


def test_one_way_to_fill_a_blank_that_many_found_is_nobodys_own():
    blank = "learning_rate = 0.01 * args.n_gpus"
    assert blank in script()
    other = "learning_rate = 0.01\nfor step in range(1, args.n_gpus):\n    learning_rate = learning_rate + 0.01"
    code = script().replace(blank, "number = args.n_gpus\n" + other.replace("args.n_gpus", "number"))
    assert found(*((code, answer(seed)) for seed in range(12))) == []


def test_code_that_no_blank_asks_for_is_found_also_in_a_group():
    theirs = [script() + (OWN, renamed(OWN))[n % 2] for n in range(6)]
    others = [script() for _ in range(14)]
    pairs = found(*((code, answer(seed)) for seed, code in enumerate(theirs + others)))
    assert {number for what, *both in pairs for number in both if what == NAME} == {f"00{n}" for n in range(1, 7)}


def model_answer(id="T5", name="06_a_job_for_slurm"):
    """The written answer of a solution."""
    cells = json.loads(notebook(name, True))["cells"]
    (source,) = ["".join(c["source"]) for c in cells if c["metadata"].get("labs", {}) | {"kind": "answer", "id": id}
                 == c["metadata"].get("labs", {})]  # fmt: skip
    return kept.written(source)


@pytest.mark.parametrize(
    "change", [str, str.upper, lambda text: f"{answer(3)} {text}", lambda text: text[: len(text) // 2]]
)
def test_the_solutions_own_words_are_found(change):
    (one,) = likeness.of_solutions({"T5": change(model_answer()), "T1": answer(2)}, str(ROOT))
    assert (one.kind, one.severity, one.where) == ("solution", "look", "the answer to T5") and one.honest


def test_what_the_course_says_to_students_is_nobodys_own_in_an_answer():
    read = json.loads(notebook("05_resnet50_scaling", False))["cells"]
    text = max(("".join(cell["source"]) for cell in read if cell["cell_type"] == "markdown"), key=len)
    assert list(likeness.of_solutions({"T5": text}, str(ROOT))) == []
    assert found(("", text), ("", text)) == []
