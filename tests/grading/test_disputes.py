"""A dispute on its way: from the student's tree in the report's zip to whoever grades."""

import io
import json
import zipfile

import made_class
import pytest

from labs import files
from labs.checks import dispute
from labs.cli import main
from labs.report.archive import zipped
from teaching import cli as teaching
from teaching.grading import collect, disputes

NOTEBOOK = made_class.NOTEBOOKS[1]


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A student's course folder with one notebook, as the current folder."""
    root = tmp_path / "course"
    files.write(root / f"notebooks/{NOTEBOOK}.ipynb", json.dumps({"cells": [], "metadata": {}, "nbformat": 4}))
    monkeypatch.chdir(root / "notebooks")
    monkeypatch.delenv("LABS_RUNS", raising=False)
    return root


def test_a_dispute_is_handed_in_with_the_report_and_read_where_it_is_collected(course, tmp_path, capsys):
    assert main(["dispute", "resnet50.3", "My script is right: it scales the rate."]) == 0
    assert "labs report" in capsys.readouterr().out
    assert main(["dispute", "T5.2", "The lines are there."]) == main(["report", "--out", str(tmp_path / "report")]) == 0
    handed = (tmp_path / "report/submission.zip").read_bytes()
    assert f"notebooks/runs/{dispute.FILE}" in zipfile.ZipFile(io.BytesIO(handed)).namelist()
    files.write(tmp_path / "in/ada/submission.zip", handed)
    assert teaching.main(["collect", str(tmp_path / "in"), "--out", str(tmp_path / "grades")]) == 0
    reasons = {id: each.reason for id, each in disputes.every(collect.submissions(tmp_path / "grades"))["001"].items()}
    assert reasons == {"resnet50.3": "My script is right: it scales the rate.", "T5.2": "The lines are there."}


def test_disputes_are_listed_said_anew_and_withdrawn(course, capsys):
    main(["dispute", "resnet50.3", "First."])
    main(["dispute", "resnet50.3", "Second."])
    capsys.readouterr()
    assert main(["dispute"]) == 0 and capsys.readouterr().out == "resnet50.3: Second.\n"
    assert main(["dispute", "resnet50.3", "--withdraw"]) == 0 and dispute.kept(course / "notebooks/runs") == {}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["resnet50.99", "x"], "There is no task 'resnet50.99'"),
        (["resnet50.3"], "needs a reason"),
        (["resnet50.3", " "], "needs a reason"),
        (["resnet50.3", "x" * 2001], "2000 are read"),
    ],
)
def test_what_is_no_dispute_is_refused(course, capsys, words, says):
    assert main(["dispute", *words]) == 2 and says in capsys.readouterr().err
    assert not (course / f"notebooks/runs/{dispute.FILE}").exists()


def test_a_damaged_file_of_the_student_is_one_line_and_is_not_written_over(course, capsys):
    path = course / f"notebooks/runs/{dispute.FILE}"
    for content in (b"{", b"[]", b'{"disputes": {"resnet50.3": 7}}', b"[" * 99_999):
        files.write(path, content)
        assert main(["dispute", "resnet50.3", "x"]) == 2 and path.read_bytes() == content
        assert "disputes.json is damaged" in (problem := capsys.readouterr().err) and problem.count("\n") == 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[" * 99_999,
        b'{"disputes": 1}',
        b'{"disputes": {"resnet50.3": {"reason": ""}}}',
        b"\xff\xfe",
    ],
    ids=["empty", "cut", "null", "deep", "number", "no reason", "binary"],
)
def test_what_somebody_else_wrote_into_it_is_no_dispute(tmp_path, content):
    files.write(tmp_path / "submissions/001.zip", zipped({f"runs/{dispute.FILE}": content}))
    assert disputes.every(collect.submissions(tmp_path)) == {}
