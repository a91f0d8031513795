"""What the texts of the lessons say in numbers, computed again; and which intervals they call 95 %."""

import math
import re
from pathlib import Path

import pytest

from labs.checks import tasks

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted((ROOT / "solutions").glob("[0-9]*.py"))
ABSOLUTE = re.compile(r"epoch times?\b|images?(?:/| per )second|images/s\b|seconds", re.IGNORECASE)
of_each_lesson = pytest.mark.parametrize("file", LESSONS, ids=lambda file: file.stem)


def texts(file):
    """The text of each Markdown cell of a lesson, in one line."""
    cells = re.split(r"^# %%", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [re.sub(r"\s*\n# ?", " ", cell.partition("\n")[2]) for cell in cells if cell.startswith(" [markdown]")]


def found(pattern, name):
    """The groups of a pattern in a lesson's texts, as numbers."""
    (match,) = re.finditer(pattern, " ".join(texts(next((ROOT / "solutions").glob(f"{name}_*.py")))))
    return [float(group.replace(",", "")) for group in match.groups()]


def test_numbers_of_the_texts():
    messages = r"takes 2 log2 K successive messages .*?: for (\d+) workers, (\d+) instead of (\d+)"
    workers, tree, ring = found(messages, "02")
    assert (tree, ring) == (2 * math.log2(workers), 2 * (workers - 1))


@of_each_lesson
def test_intervals_of_seconds_hold_in_these_minutes_only_and_a_quotation_has_its_mark_at_each_line(file):
    for sentence in (sentence for text in texts(file) for sentence in re.split(r"(?<=[.:?!]) ", text)):
        if "95 % interval" in sentence and ABSOLUTE.search(sentence):
            assert "these minutes" in sentence or "the same few minutes" in sentence, sentence
    for block in re.findall(r"(?m)^# > .*\n(?:# .*\n)*", file.read_text(encoding="utf-8")):
        assert all(re.match(r"# >(?!.* > )", line) for line in block.splitlines()), f"wrapped as a paragraph: {block}"


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
