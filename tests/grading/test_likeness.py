"""Scripts and answers that are alike: renaming hides nothing; what the course gives, or all have, accuses nobody."""

import random
from pathlib import Path

from made_class import script

from teaching.grading import likeness

ROOT = Path(__file__).resolve().parents[2]
WORDS = "the ring waits server gradient slower because core batch memory epoch worker sends twice bandwidth".split()


def answer(seed, words=120):
    draw = random.Random(seed)
    return " ".join(draw.choices(WORDS, k=words))


def pairs(*submissions):
    """The pairs that are found among some (script, answer)."""
    owned = {
        f"00{number}": likeness.own({"notebooks/scripts/ResNet50.py": code.encode()}, {"T5": text}, ROOT)
        for number, (code, text) in enumerate(submissions, 1)
    }
    return {pair[:3] for pair in likeness.pairs(owned)}


def test_what_is_alike_is_found_also_with_other_names_and_not_what_the_course_gave():
    own = "def mine(h):\n" + "".join(f"    best{n} = max(h[{n}:]) * {n} - sum(h) ** {n}\n" for n in range(12))
    mine, renamed = script() + own, script() + own.replace("best", "top").replace("mine", "f")
    copied = pairs((mine, answer(1)), (renamed, "First: " + answer(1).upper()), (script(), answer(2)))
    assert copied == {("notebooks/scripts/ResNet50.py", "001", "002"), ("the answer to T5", "001", "002")}
    assert pairs(*((script(), answer(seed)) for seed in range(5))) == set()
