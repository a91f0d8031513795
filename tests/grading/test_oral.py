"""The oral sheet: three questions for each student from what is theirs, no two alike, the same ones each time."""

from statistics import median

import made_class
import pytest
from tree import ROOT

from labs import files
from labs.report.archive import zipped
from teaching.grading import collect, handed, oral


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """A grading of four: one with work of their own, twins, and one with nothing."""
    folder, one = tmp_path_factory.mktemp("oral"), made_class.study(1)
    twin = zipped(made_class.work(one, writer="twin"))
    handed_in = {"own": zipped(made_class.work(made_class.study(2))), "twin": twin, "again": twin}
    for name, content in (handed_in | {"empty": zipped({})}).items():
        files.write(folder / f"in/{name}.zip", content)
    collect.collect(folder / "in", folder / "grades")
    return folder / "grades"


def test_each_has_three_questions_of_their_own_no_two_are_alike_and_they_say_what_the_record_says(out):
    taken, drawn, offered = set(), [], []
    for number, path in collect.submissions(out).items():
        with handed.opened(number, path) as submission:
            offered.append((submission.records, oral.candidates(submission, str(ROOT))))
            drawn.append(oral.draw(offered[-1][1], taken, number))
    assert sorted(map(len, drawn)) == [0, 3, 3, 3]
    assert len({(each.text, each.quoted) for asked in drawn for each in asked}) == 9
    for asked in drawn:
        assert len({each.kind for each in asked}) == len(asked) and all(each.record for each in asked)
    records, asked = next(of for of in offered if of[0])
    first, *others = (epoch.seconds for epoch in records["ResNet50_w2"].epochs)
    said = f"The first epoch of ResNet50_w2, on 2 workers, took {first / median(others):.2f} times as long"
    assert any(each.text.startswith(said) for each in asked)


def test_it_is_written_the_same_each_time_without_a_name(out, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tests/report")
    from pdf import Pdf

    said, first = oral.write(out, ROOT), (out / "oral.pdf").read_bytes()
    assert "3 questions for each of 4 submissions, but fewer for 00" in said[0]
    assert oral.write(out, ROOT) == said and (out / "oral.pdf").read_bytes() == first
    sheet = Pdf(out / "oral.pdf")
    assert sheet.text.count("What the record says") == 9 and "twin" not in sheet.text
    assert "No more runs, lines of scripts or sentences, that nobody else has" in sheet.text
