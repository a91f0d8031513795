"""Scripts and answers that are alike: renaming hides nothing; what the course gives, or all have, accuses nobody."""

import random
from pathlib import Path

import pytest
from made_class import script

from labs.grading import likeness

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
    from labs.grading import reference

    held = " ".join(reference.criteria()[:12])
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
