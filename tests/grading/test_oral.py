"""The oral sheet: three questions for each student from what is theirs, no two alike, the same ones each time."""

import made_class
import pytest
from tree import ROOT

from labs import files
from labs.report.archive import zipped
from teaching.cli import main
from teaching.grading import collect, handed, oral


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """A grading of six: two with work of their own, twins, one whose runs are scaled ones, and one with nothing."""
    folder, one = tmp_path_factory.mktemp("oral"), made_class.study(1)
    twin = zipped(made_class.work(one, writer="twin"))
    handed_in = {
        "own": zipped(made_class.work(made_class.study(2))),
        "other": zipped(made_class.work(made_class.study(3))),
        "twin": twin,
        "again": twin,
        "scaled": zipped(made_class.work(made_class.scaled(one, 0.8), writer="twin")),
        "empty": zipped({}),
    }
    for name, content in handed_in.items():
        files.write(folder / f"in/{name}.zip", content)
    collect.collect(folder / "in", folder / "grades")
    return folder / "grades"


def questions(out):
    """{number: Questions} as they are drawn."""
    taken, drawn = set(), {}
    for number, path in collect.submissions(out).items():
        with handed.opened(number, path) as submission:
            drawn[number] = oral.draw(oral.candidates(submission, str(ROOT)), taken, f" {number}")
    return drawn


def test_each_has_three_questions_of_their_own_and_no_two_are_alike(out):
    drawn = questions(out)
    assert sorted(map(len, drawn.values())) == [0, 3, 3, 3, 3, 3]
    every = [(each.text, each.quoted) for asked in drawn.values() for each in asked]
    assert len(set(every)) == len(every) == 15
    for asked in drawn.values():
        assert len({each.kind for each in asked}) == len(asked) and all(each.record for each in asked)


def test_the_question_of_an_epoch_says_what_the_record_says(out):
    with handed.opened("001", next(p for p in collect.submissions(out).values() if collect.contents(p))) as submission:
        asked = [each for each in oral.candidates(submission, str(ROOT)) if each.kind == "epoch"]
        record = submission.records["ResNet50_w2"]
    seconds = sorted(epoch.seconds for epoch in record.epochs[1:])
    middle = (seconds[2] + seconds[3]) / 2
    worst = max(record.epochs[1:], key=lambda epoch: abs(epoch.seconds - middle))
    said = f"Epoch {worst.epoch + 1} of your run ResNet50_w2, on 2 workers, took {worst.seconds / middle:.2f} times"
    assert any(each.text.startswith(said) for each in asked)


def test_the_command_writes_it_the_same_each_time_without_a_name(out, monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT / "tests/report")
    from pdf import Pdf

    monkeypatch.chdir(ROOT)
    assert main(["oral", "--out", str(out)]) == 0
    said, first = capsys.readouterr().out, (out / "oral.pdf").read_bytes()
    assert "3 questions for each of 6 submissions, but fewer for 00" in said
    assert main(["oral", "--out", str(out)]) == 0 and (out / "oral.pdf").read_bytes() == first
    sheet = Pdf(out / "oral.pdf")
    assert sheet.text.count("What the record says") == 15 and "scaled" not in sheet.text
    assert "Nothing of their own was handed in" in sheet.text
    assert main(["oral", "--out", str(out), "--seed", "again"]) == 0 and (out / "oral.pdf").read_bytes() != first


def test_without_submissions_it_says_what_to_do(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert main(["oral", "--out", str(tmp_path)]) == 2
    assert "run `teach collect` first" in capsys.readouterr().err
