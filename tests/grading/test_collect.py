"""Submissions brought together: whatever comes in, each thing is a line in the report, and nothing is trusted."""

import io
import json
import os
import stat
import struct
import tracemalloc
import zipfile
from datetime import UTC, datetime

import pytest

from labs import files
from labs.checks import tasks
from labs.course.release import digest
from labs.errors import UseError
from labs.report.archive import zipped
from teaching.grading import collect, incoming

RECORD = "notebooks/runs/ResNet50_w1.json"


def submission(contents=None, **more):
    """The bytes of a submission.zip with a manifest."""
    contents = contents or {"report.json": b"{}", "report.pdf": b"%PDF", RECORD: b"{}"}
    manifest = {"version": 1, "files": {name: {"sha256": digest(content)} for name, content in contents.items()}}
    return zipped({**contents, "manifest.json": json.dumps(manifest).encode(), **more})


def raw(*entries):
    """A zip with these (name or ZipInfo, bytes), as they are."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, content in entries:
            archive.writestr(entry, content)
    return buffer.getvalue()


def link(name, target):
    entry = zipfile.ZipInfo(name)
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return entry, target


def unpacked_by_lzma():
    """A zip whose entry no LZMA decoder takes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("report.json", b"{}" * 99)
    content = bytearray(buffer.getvalue())
    at = content.index(b"report.json") + len("report.json") + 4
    content[at : at + 5] = b"\xff" * 5
    return bytes(content)


def far_away():
    """A zip whose entry begins at byte 2**64 - 100."""
    content = raw(("report.json", b"{}"))
    start, end = content.index(b"PK\1\2"), content.index(b"PK\5\6")
    entry, last = bytearray(content[start:end]), bytearray(content[end:])
    extra = struct.pack("<HHQ", 1, 8, 2**64 - 100)
    entry[30:32], entry[42:46] = struct.pack("<H", len(extra)), b"\xff" * 4
    last[12:16] = struct.pack("<L", len(entry) + len(extra))
    return content[:start] + bytes(entry) + extra + bytes(last)


def collected(tmp_path, due=None, **handed):
    """({who: lines}, {who: {path: bytes}}) of files {who: bytes} that were handed in."""
    for who, content in handed.items():
        files.write(tmp_path / f"in/{who}.zip", content)
    return by_name(tmp_path, tmp_path / "in", due)


def by_name(tmp_path, source, due=None):
    collect.collect(source, tmp_path / "grades", due)
    names = {n: each["who"] for n, each in json.loads((tmp_path / "grades/names.json").read_text()).items()}
    report = json.loads((tmp_path / "grades/collection.json").read_text())
    held = {names[n]: collect.contents(path) for n, path in collect.submissions(tmp_path / "grades").items()}
    assert set(report) == set(names) and set(held) == set(names.values())
    return {names[n]: lines for n, lines in report.items()}, held


def test_a_submission_is_kept_whole_under_a_number(tmp_path):
    told, held = collected(tmp_path, ada=submission(), bob=submission())
    assert sorted(told.values()) == [["complete", f"equal to the last byte: 00{n}"] for n in (1, 2)]
    assert RECORD in held["ada"]
    assert sorted(os.listdir(tmp_path / "grades")) == ["collection.json", "names.json", "submissions"]
    assert sorted(os.listdir(tmp_path / "grades/submissions")) == ["001.zip", "002.zip"]
    everything = b"".join(path.read_bytes() for path in (tmp_path / "grades/submissions").iterdir())
    assert b"ada" not in everything


BOMB = raw(("report.json", b"{}"), ("notebooks/runs/big.out", bytes(incoming.MOST_BYTES + 1)))
HOSTILE = {
    "leads_out": (raw(("../../up.json", b"x"), ("report.json", b"{}")), "'../../up.json' leads out of the folder"),
    "absolute": (raw(("/etc/passwd", b"x"), ("report.json", b"{}")), "'/etc/passwd' is an absolute path: left out"),
    "linked": (raw(link("report.pdf", "/etc/passwd"), ("report.json", b"{}")), "report.pdf: a symbolic link"),
    "bomb": (BOMB, "unpacks to more than 200 MiB"),
    "many": (raw(*((f"notebooks/runs/r{n}.out", b"") for n in range(5001))), "5001 files, more than any"),
    "damaged": (submission()[:200], "damaged: it cannot be read as a zip"),
    "no_zip": (b"%PDF-1.7", "damaged: it cannot be read as a zip"),
    "nothing": (raw(), "empty: no file of a submission"),
    "nested": (raw(("mine/submission.zip", submission())), "nested: mine/submission.zip is a zip in a zip"),
    "deep": (raw(("a.zip", raw(("b.zip", submission())))), "b.zip: no file of a submission"),
    "below": (raw(("course/report/report.json", b"{}")), "its files lie in course/report/"),
    "others": (raw(("report.json", b"{}"), ("notes.docx", b"x")), "notes.docx: no file of a submission; left out"),
    "edited": (submission(**{RECORD: b"{ }"}), f"{RECORD} was changed after it was packed"),
    "added": (submission(**{"notebooks/runs/x.out": b""}), "notebooks/runs/x.out was added after it was packed"),
    "bare": (zipped({"report.json": b"{}"}), "no manifest.json"),
    "lzma": (unpacked_by_lzma(), "is damaged: left out"),
    "far_away": (far_away(), "is damaged: left out"),
    "empty_file": (b"", "damaged: it cannot be read as a zip"),
    "bad_manifest": (zipped({"report.json": b"{}", "manifest.json": b"[" * 9999}), "manifest.json cannot be read"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_archive_is_a_line_and_harms_nobody(kind, tmp_path):
    content, line = HOSTILE[kind]
    told, held = collected(tmp_path, **{kind: content, "honest": submission({"report.json": b"{}", RECORD: b""})})
    assert any(line in one for one in told[kind]), told[kind]
    assert held["honest"]["report.json"] == b"{}" and told["honest"] == ["complete"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["grades", "in"]
    assert not any(".." in name or name.startswith("/") for name in held[kind])


def test_an_entry_that_is_damaged_is_left_out_and_the_others_are_kept(tmp_path):
    content = bytearray(zipped({"report.json": b"{}", "report.pdf": b"%PDF" * 999}))
    at = content.index(b"report.pdf") + 15
    content[at : at + 4] = b"\xff" * 4
    told, held = collected(tmp_path, ada=bytes(content))
    assert any("report.pdf" in line and "is damaged" in line for line in told["ada"]) and set(held["ada"]) == {
        "report.json"
    }


@pytest.mark.parametrize(
    ("entry", "who", "id"),
    [
        ("Ada King_4711_assignsubmission_file_/submission.zip", "Ada King", "4711"),
        ("Ada King_4711_assignsubmission_file_submission.zip", "Ada King", "4711"),
        ("kingada_4711_98765_submission.zip", "kingada", "4711"),
        ("kingada_LATE_4711_98765_submission-2.zip", "kingada", "4711"),
    ],
)
def test_the_export_of_a_platform_says_who_it_is(entry, who, id, tmp_path):
    files.write(tmp_path / "export.zip", zipped({entry: submission()}))
    told, held = by_name(tmp_path, tmp_path / "export.zip")
    assert told == {who: ["late"] if "LATE" in entry else ["complete"]} and RECORD in held[who]
    assert json.loads((tmp_path / "grades/names.json").read_text())["001"]["id"] == id


@pytest.mark.parametrize("entry", ["Eve Moe_13_assignsubmission_file_", "evemoe_13_98765_"])
def test_the_name_of_a_students_own_file_makes_nobody_else_of_them(entry, tmp_path):
    own = {f"{entry}x_4711_assignsubmission_file_submission.zip": submission()}
    files.write(tmp_path / "export.zip", zipped(own))
    by_name(tmp_path, tmp_path / "export.zip")
    (who,) = json.loads((tmp_path / "grades/names.json").read_text()).values()
    assert (who["id"], who["who"]) == ("13", entry.partition("_")[0])


def test_of_two_submissions_the_later_one_counts_and_a_files_date_makes_nobody_late(tmp_path):
    for name, when in (("submission.zip", 5), ("final.zip", 9)):
        path = tmp_path / "in" / f"Ada_1_assignsubmission_file_{name}"
        files.write(path, submission({"report.json": b"%d" % when}))
        os.utime(path, (when * 86400, when * 86400))
    told, held = by_name(tmp_path, tmp_path / "in", datetime(1970, 1, 8, tzinfo=UTC))
    again = "handed in 2 times: the last one that can be read counts"
    assert told["Ada"] == ["misnamed: final.zip instead of submission.zip", again, "late or not: unknown"]
    assert held["Ada"]["report.json"] == b"9"


def test_what_cannot_be_read_takes_no_place_and_is_told(tmp_path):
    for name, content, when in (
        ("submission.zip", submission(), 5),
        ("submission (1).zip", b"PK", 9),
        ("x.pdf", b"", 9),
    ):
        path = tmp_path / "in" / f"Ada_1_assignsubmission_file_{name}"
        files.write(path, content)
        os.utime(path, (when * 86400, when * 86400))
    told, held = by_name(tmp_path, tmp_path / "in")
    assert RECORD in held["Ada"]
    again, damaged, beside = told["Ada"]
    assert again == "handed in 2 times: the last one that can be read counts"
    assert damaged.startswith("another one, submission (1).zip: damaged: ")
    assert beside == "beside the zip, and not read: x.pdf"


def test_many_lines_of_one_kind_hide_none_of_another(tmp_path):
    files = {"report.json": b"{}", **{f"junk{n}": b"" for n in range(4000)}}
    named = {name: {"sha256": "0"} for name in ["report.json", *(f"no{n}" for n in range(4000))]}
    manifest = json.dumps({"version": 1, "files": named}).encode()
    told, _ = collected(tmp_path, ada=raw(*files.items(), ("manifest.json", manifest)))
    assert len(told["ada"]) < 30 and "report.json was changed after it was packed" in told["ada"]
    assert {"3992 others: no file of a submission; left out", "3992 others: is missing: the manifest names it"} < set(
        told["ada"]
    )


def test_what_would_take_much_memory_is_left_out_and_what_does_not_count_takes_none(tmp_path, monkeypatch):
    monkeypatch.setattr(incoming, "MOST_READ", 4000)
    monkeypatch.setattr(incoming, "MOST_CODE", 10)
    held = {"report.json": b" " * 3900, "notebooks/scripts/a.py": b"a" * 9, "notebooks/scripts/b.py": b"b" * 9}
    held |= {f"notebooks/runs/{n}.json": b" " * 1500 for n in range(3)} | {"notebooks/runs/0.out": bytes(9000)}
    held |= {"report.pdf": bytes(4001)}
    told, kept = collected(tmp_path, ada=submission(held))
    assert held.keys() - kept["ada"].keys() == {"notebooks/scripts/b.py", "notebooks/runs/2.json", "report.pdf"}
    assert sum("more than any has; left out" in line for line in told["ada"]) == 3

    own = {f"Bob_1_assignsubmission_file_{n}.zip": raw(("notebooks/runs/a.out", bytes(10 << 20))) for n in range(20)}
    files.write(tmp_path / "export.zip", zipped(own))
    tracemalloc.start()
    collect.collect(tmp_path / "export.zip", tmp_path / "grades")
    assert tracemalloc.get_traced_memory()[1] < 80 << 20
    tracemalloc.stop()


def test_every_notebook_of_the_course_is_taken(tmp_path):
    names = {f"notebooks/{lesson.notebook}.ipynb" for lesson in tasks.lessons().values()}
    _, held = collected(tmp_path, ada=submission({"report.json": b"{}", **dict.fromkeys(names, b"{}")}))
    assert set(held["ada"]) >= names > {"notebooks/02b_rings.ipynb"}


def test_a_folder_is_read_without_following_links(tmp_path):
    files.write(tmp_path / "in/ada/report.json", "{}")
    files.write(tmp_path / "secret", "x")
    os.symlink(tmp_path / "secret", tmp_path / "in/ada/report.pdf")
    os.symlink(tmp_path / "in/ada", tmp_path / "in/bob")
    told, held = by_name(tmp_path, tmp_path / "in")
    assert any("report.pdf: a symbolic link" in line for line in told["ada"]) and set(held["ada"]) == {"report.json"}
    assert held["bob"] == {} and any("not followed" in line for line in told["bob"])


def test_names_that_are_no_utf_8_stay_one_student_and_stop_nobody(tmp_path):
    for folder in (b"M\xf6ller", b"M\xfcller"):
        here = os.path.join(os.fsencode(tmp_path / "in"), folder, b"runs")
        os.makedirs(here)
        for name in (b"../report.json", b"gr\xf6sse.out", b"a\nb.out", b"w1.out"):
            with open(os.path.join(here, name), "wb") as file:
                file.write(folder)
    for _ in range(2):
        collect.collect(tmp_path / "in", tmp_path / "grades")
        found = collect.submissions(tmp_path / "grades")
        assert {tuple(collect.contents(path)) for path in found.values()} == {("report.json", "runs/w1.out")}
    report = json.loads((tmp_path / "grades/collection.json").read_text())
    assert set(report) == set(found) == {"001", "002"}
    assert sum("left out" in line for line in report["001"]) == 2
    assert not any("\n" in line for line in report["001"])


def test_a_name_that_is_too_long_for_a_file_is_left_out(tmp_path):
    told, held = collected(tmp_path, ada=raw((f"notebooks/runs/{'ü' * 125}.out", b""), ("report.json", b"{}")))
    assert any("is no plain path" in line for line in told["ada"]) and set(held["ada"]) == {"report.json"}


def test_numbers_stay_when_more_is_collected_and_twins_are_told(tmp_path):
    _, _ = collected(tmp_path, ada=submission())
    first = json.loads((tmp_path / "grades/names.json").read_text())
    told, _ = collected(tmp_path, **{f"s{n}": submission() for n in range(9)})
    names = json.loads((tmp_path / "grades/names.json").read_text())
    assert names["001"] == first["001"] and len(names) == 10
    assert any(line.startswith("equal to the last byte: 002, 003") for line in told["ada"])


def test_a_submission_alone_is_no_export_of_many(tmp_path):
    files.write(tmp_path / "submission.zip", submission())
    told, held = by_name(tmp_path, tmp_path / "submission.zip")
    assert told == {"submission": ["complete"]} and RECORD in held["submission"]


def test_where_there_is_nothing_it_says_so(tmp_path):
    (tmp_path / "in").mkdir()
    for source in (tmp_path / "in", tmp_path / "none"):
        with pytest.raises(UseError):
            collect.collect(source, tmp_path / "grades")
    assert not (tmp_path / "grades").exists()


def test_the_command_prints_the_report(tmp_path, capsys):
    from teaching.cli import main

    files.write(tmp_path / "in/ada.zip", submission())
    words = ["collect", str(tmp_path / "in"), "--out", str(tmp_path / "grades")]
    assert main(words) == 0 and capsys.readouterr().out == "001: complete\n"
    assert main([*words, "--due", "2020-01-01"]) == 0
    assert capsys.readouterr().out.startswith("001: late or not: unknown\nUnknown whether late: 1 of 1.")
    assert main([*words, "--due", "tomorrow"]) == 2 and "is no date" in capsys.readouterr().err
