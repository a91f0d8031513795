"""What the texts of the lessons say in numbers and names, found again."""

import math
import re

import pytest
from tree import ROOT

from labs.checks import tasks


def test_numbers_of_the_texts():
    text = re.sub(r"\n# ?", " ", (ROOT / "solutions/02_averages_and_rings.py").read_text(encoding="utf-8"))
    messages = r"takes 2 log2 K successive messages .*?: for (\d+) workers, (\d+) instead of (\d+)"
    workers, tree, ring = map(int, re.search(messages, text).groups())
    assert (tree, ring) == (2 * math.log2(workers), 2 * (workers - 1))


@pytest.mark.parametrize("lesson", tasks.lessons().values(), ids=lambda lesson: lesson.notebook)
def test_a_notebook_says_on_which_paths_it_lies(lesson):
    text = (ROOT / f"solutions/{lesson.notebook}.py").read_text(encoding="utf-8")
    (told,) = re.findall(r"(?m)^# (\*\*Paths:\*\* .*)$", text)
    for path, name in (("afternoon", "an afternoon"), ("practical", "the practical")):
        lessons = tasks.on_path(path)
        later = lessons[lessons.index(lesson) + 1 :] if lesson in lessons else []
        assert re.findall(rf"\*{name}\* \(next: `(.*?)`\)", told) == [each.notebook for each in later[:1]]
    lessons = list(tasks.lessons().values())
    for later in lessons[lessons.index(lesson) + 1 :][:1]:
        told = text.rpartition("Next: ")[2].partition("# %%")[0]
        assert later.optional or f"`{later.notebook}`" in told, f"ends without: Next: `{later.notebook}`"
