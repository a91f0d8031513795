"""Submissions brought together: whatever comes in, each thing is a line in the report, and nothing is trusted."""

import io
import json
import os
import stat
import zipfile

import made_grading
import pytest
from made_grading import RECORD, submission

from labs import files
from labs.checks import tasks
from labs.errors import UseError
from labs.report.archive import zipped
from teaching.grading import cells, collect, incoming


def raw(*entries):
    """A zip with these (name or ZipInfo, bytes), as they are."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, content in entries:
            archive.writestr(entry, content)
    return buffer.getvalue()


def collected(tmp_path, source=None, **handed):
    """({who: lines}, {who: {path: bytes}}) of what was handed in as files {who: bytes}, or of a source."""
    for who, content in handed.items():
        files.write(tmp_path / f"in/{who}.zip", content)
    collect.collect(source or tmp_path / "in", tmp_path / "grades")
    names = {n: each["who"] for n, each in json.loads((tmp_path / "grades/names.json").read_text()).items()}
    report = json.loads((tmp_path / "grades/collection.json").read_text())
    held = {names[n]: collect.contents(path) for n, path in collect.submissions(tmp_path / "grades").items()}
    assert set(report) == set(names) and set(held) == set(names.values())
    return {names[n]: lines for n, lines in report.items()}, held


def test_a_submission_is_kept_whole_under_a_number_that_stays(tmp_path):
    told, held = collected(tmp_path, ada=submission(), bob=submission({"report.json": b"[]"}))
    assert set(map(tuple, told.values())) == {("complete",)} and RECORD in held["ada"]
    assert sorted(os.listdir(tmp_path / "grades")) == ["collection.json", "names.json", "submissions"]
    assert sorted(os.listdir(tmp_path / "grades/submissions")) == ["001.zip", "002.zip"]
    first = json.loads((tmp_path / "grades/names.json").read_text())
    told, _ = collected(tmp_path, aaron=submission())
    names = json.loads((tmp_path / "grades/names.json").read_text())
    assert first.items() <= names.items() and len(names) == 3 and told["bob"] == ["complete"]


REPORT, LINK = ("report.json", b"{}"), zipfile.ZipInfo("report.pdf")
LINK.external_attr = (stat.S_IFLNK | 0o777) << 16
EVERY = {f"notebooks/{lesson.notebook}.ipynb": b"{}" for lesson in tasks.lessons().values()}
FEW = zipped({"report.json": b"{}", "report.pdf": b"%PDF" * 999})
SPOILT = FEW.index(b"report.pdf") + 15  # in the bytes of this file
REST, KEPT = {"runs/a.out", "others/the rest"}, {"report.json", "report.pdf", "manifest.json", RECORD}
# {what: (the file, a line on it, the names that are kept of it, where that matters)}
HOSTILE = {
    "leads_out": (raw(("../../up.json", b"x"), REPORT), "'../../up.json': its path leads out of the folder", None),
    "linked": (raw((LINK, "/etc/x"), REPORT), "not read: report.pdf: a symbolic link", {"report.json"}),
    "bomb": (raw(*((f"runs/{n}.out", bytes(110 << 20)) for n in "ab")), "unpacks to more than 200 MiB", REST),
    "many": (raw(*((f"notebooks/runs/r{n}.out", b"") for n in range(5001))), "5001 files, more than any", set()),
    "damaged": (submission()[:200], "not read: its file: it is damaged", set()),
    "nested": (raw(("a/submission.zip", submission())), "complete", KEPT),
    "others": (raw(REPORT, ("x.docx", b"\0")), "not read: x.docx: no file of a", {"report.json", "others/x.docx"}),
    "an_entry": (FEW[:SPOILT] + b"\xff" * 4 + FEW[SPOILT + 4 :], "not read: report.pdf: it is", {"report.json"}),
    "all_notebooks": (zipped(EVERY), "complete", EVERY.keys()),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_archive_is_a_line_and_harms_nobody(kind, tmp_path):
    content, line, kept = HOSTILE[kind]
    told, held = collected(tmp_path, **{kind: content, "honest": submission({"report.json": b"{}", RECORD: b""})})
    assert any(line in one for one in told[kind]), told[kind]
    assert held["honest"]["report.json"] == b"{}" and told["honest"] == ["complete"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["grades", "in"]
    assert not any(".." in name or name.startswith("/") for name in held[kind]) and kept in (None, held[kind].keys())


def test_of_several_submissions_the_last_one_that_can_be_read_counts(tmp_path):
    for name, content, day in (
        ("submission.zip", submission({"report.json": b"5"}), 5),
        ("final.zip", submission({"report.json": b"6"}), 6),
        ("submission (1).zip", b"PK", 9),
        ("x.pdf", b"", 9),
    ):
        path = tmp_path / "in" / f"Ada_1_assignsubmission_file_{name}"
        files.write(path, content)
        os.utime(path, (day * 86400, day * 86400))
    told, held = collected(tmp_path)
    assert held["Ada"]["report.json"] == b"6"
    beside, again, damaged = told["Ada"]
    assert again == "handed in 3 times: the last one that can be read counts"
    assert damaged.startswith("another one, submission (1).zip: not read: submission (1).zip: it is damaged")
    assert beside == "not read: x.pdf: beside the archive, which counts"
    assert collect.not_read({"001": told["Ada"], "002": ["complete"]}).keys() == {"001"}
    assert f"001: {again}" in collect.collect(tmp_path / "in", tmp_path / "grades")


def test_an_older_export_replaces_nothing_that_was_handed_in_later_or_can_be_read(tmp_path):
    exports = {}
    second = {"report.json": b"2", "notebooks/05_resnet50_scaling.ipynb": b"{}"}
    for number, content in ((1, b"PK"), (2, submission(second)), (3, submission({"report.json": b"3"}))):
        exports[number] = tmp_path / f"export{number}"
        files.write(exports[number] / f"lovelaceada_7_{number}_submission.zip", content)
    for number, kept, line in (
        (2, b"2", "complete"),
        (1, b"2", "is older than what is kept, which stays"),
        (
            3,
            b"3",
            "handed in again: this counts now; 05_resnet50_scaling.ipynb of the one before is not in it. To take",
        ),
        (2, b"3", "is older than what is kept, which stays"),
    ):
        told, held = collected(tmp_path, exports[number])
        assert held["lovelaceada"]["report.json"] == kept and line in told["lovelaceada"][-1], (number, told)


def test_what_would_take_much_memory_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(incoming, "MOST_READ", 4000)
    monkeypatch.setattr(incoming, "MOST_CODE", 10)
    held = {"report.json": b" " * 3900, "notebooks/scripts/a.py": b"a" * 9, "notebooks/scripts/b.py": b"b" * 9}
    held |= {f"notebooks/runs/{n}.json": b" " * 1500 for n in range(3)} | {"notebooks/runs/0.out": bytes(9000)}
    told, kept = collected(tmp_path, ada=submission(held | {"report.pdf": bytes(4001)}))
    assert held.keys() - kept["ada"].keys() == {"notebooks/scripts/b.py", "notebooks/runs/2.json"}
    assert sum("more than any has" in line for line in told["ada"]) == 3 and "report.pdf" not in kept["ada"]


def test_a_folder_is_read_without_following_links(tmp_path):
    files.write(tmp_path / "in/ada/report.json", "{}")
    files.write(tmp_path / "secret", "x")
    os.symlink(tmp_path / "secret", tmp_path / "in/ada/report.pdf")
    files.write(tmp_path / "others/x.out", "x")
    (tmp_path / "in/ada/notebooks").mkdir()
    os.symlink(tmp_path / "others", tmp_path / "in/ada/notebooks/runs")
    os.symlink(tmp_path / "in/ada", tmp_path / "in/bob")
    told, held = collected(tmp_path)
    assert any("report.pdf: a symbolic link" in line for line in told["ada"]) and set(held["ada"]) == {"report.json"}
    assert held["bob"] == {} and any("not followed" in line for line in told["bob"])


def test_a_submission_alone_is_no_export_of_many_and_nothing_is_a_refusal(tmp_path):
    (tmp_path / "in").mkdir()
    for source in (tmp_path / "in", tmp_path / "none"):
        with pytest.raises(UseError):
            collect.collect(source, tmp_path / "grades")
    assert not (tmp_path / "grades").exists()
    files.write(tmp_path / "submission.zip", submission())
    told, held = collected(tmp_path, tmp_path / "submission.zip")
    assert told == {"submission": ["complete"]} and RECORD in held["submission"]


NOTEBOOK = made_grading.notebook("from labs.checks import check", "check('resnet50.5', 1)", 'check("resnet50.4", 2)')
LESS = made_grading.notebook('check("resnet50.4", 2)')
NAMES = "05_resnet50_scaling (1).ipynb", "Copy of 05.ipynb", "week 1/Untitled.ipynb", "05_resnet50_scaling.ipynb.txt"


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_known_by_what_it_says_and_of_two_the_one_counts_in_which_more_is_filled_in(name, tmp_path):
    told, held = collected(
        tmp_path, ada=zipped({name: NOTEBOOK}), bob=zipped({"05_resnet50_scaling.ipynb": LESS, name: NOTEBOOK})
    )
    assert told["ada"][-1] == f"counted as 05_resnet50_scaling.ipynb: {name}"
    placed = {"notebooks/05_resnet50_scaling.ipynb": NOTEBOOK}
    assert held["ada"] == placed and held["bob"] == placed | {"others/05_resnet50_scaling.ipynb": LESS}
    assert (
        f"{name} counts as 05_resnet50_scaling.ipynb, of several the one in which more is filled in" in told["bob"][-1]
    )


def test_what_could_hold_work_and_cannot_be_run_is_kept_for_a_person(tmp_path):
    page = b"<html><i>check</i><i>(</i><i>&quot;resnet50.5&quot;</i>"
    work = {
        "05.py": b"check('resnet50.5', 1)",
        "06.html": page,
        "mine.pdf": b"%PDF",
        "rest.7z": b"7z\xbc\xaf\0",
        "..": b"",
    }
    told, held = collected(
        tmp_path, ada=zipped(work | {"report.json": b"{}", "data.npy": b"\0", "README.md": b"Hello"})
    )
    assert held["ada"].keys() == {"report.json", *(f"others/{name}" for name in work if name != "..")}
    assert sum(line.startswith("not read: ") for line in told["ada"]) == 7
    assert all(cells.elsewhere(held["ada"], lesson.notebook) for lesson in tasks.lessons().values())
    del held["ada"]["others/mine.pdf"], held["ada"]["others/rest.7z"]
    assert cells.beside(held["ada"]) == ["05_resnet50_scaling"]
