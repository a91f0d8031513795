"""Moodle's and Canvas' files, through the command line: exports of every shape read, tables filled as importers ask.

The tables are made here as the platforms make them, in several languages.
"""

import csv
import io
import json
import re
import zipfile
from functools import partial

import pytest
import test_collect
from made_grading import RECORD, looked_at, submission

from labs import files
from labs.report import document
from labs.report.archive import zipped
from teaching.cli import main
from teaching.grading import collect

NOTEBOOK = "05_resnet50_scaling.ipynb"


@pytest.fixture
def collected(tmp_path):
    """collected(entries {path: bytes}) -> ({who: lines of the report}, {who: files})."""

    def collected(entries, source="export.zip"):
        for name, content in {"": zipped(entries)}.items() if source == "export.zip" else entries.items():
            files.write(tmp_path / source / name, content)
        return test_collect.collected(tmp_path, tmp_path / source)

    return collected


def identities(out):
    return json.loads((out / "names.json").read_text())


# ---- exports

GOOD, ONE, TWO = (submission({"report.json": b"%d" % n, "report.pdf": b"%PDF", RECORD: b""}) for n in (0, 1, 2))
KEPT = {"manifest.json", "report.json", "report.pdf", RECORD}
LOOSE = {NOTEBOOK: b"{}", "scripts/a.py": b"", "runs/w1.json": b"", ".ipynb_checkpoints/x": b""}
PLACED = {f"notebooks/{NOTEBOOK}", "notebooks/scripts/a.py", "runs/w1.json"}
MAC = {"__MACOSX/mine/._report.json": b"\0", "mine/.DS_Store": b"Bud1", "mine/report.json": b"", f"mine/{RECORD}": b""}
ENTRIES = {
    "Ada King_1_assignsubmission_file/week 5/submission.zip": GOOD,
    "Bob_14_assignsubmission_file_/submission.zip": GOOD,
    "Bob_14_assignsubmission_file_15_assignsubmission_file_/submission.zip": b"PK",
    "Eve_13_assignsubmission_file_/Bob_14_assignsubmission_file_/submission.zip": GOOD,
    "Hal_18_assignsubmission_onlinetext_/onlinetext.html": b"<p>",
    "Ida_19_assignsubmission_onlinetext_onlinetext.html": b"<p>",
    "Ida_19_assignsubmission_file_submission.zip": GOOD,
    "van_dyke_anna_LATE_4711_text.html": b"<p>",
    "van_dyke_anna_LATE_4711_98765_submission.zip": GOOD,
    "kingada_4712_998_submission-1.zip": ONE,
    "kingada_4712_1002_submission.zip": TWO,
    "kingada_4712_1003_text.html": b"a file of that name",
    "Mia_22_assignsubmission_file_/submission.zip": zipped({f"notebooks/{NOTEBOOK}": b"{}", NOTEBOOK: b"[]"}),
    **{f"Ned_23_assignsubmission_file/{name}": content for name, content in LOOSE.items()},
    "Pia_25_assignsubmission_file_/submission.zip": zipped(MAC),
    "__MACOSX/Pia_25_assignsubmission_file_/._submission.zip": b"\0",
    "Ty\x1b\nOx_29_assignsubmission_file_/x.rar": b"Rar!",
}
TEXT = "not read: {}: beside the archive, which counts"
# {who: (id, names of the files that are kept, how the lines on them begin)}
WANTED = {
    "Ada King": ("1", KEPT, []),
    "Bob": ("14", KEPT, ["handed in 2 times", "another one, submission.zip: not read: "]),
    "Eve": ("13", KEPT, []),
    "Hal": ("18", set(), ["empty: no file of a submission is in it", "not read: onlinetext.html: no file of a"]),
    "Ida": ("19", KEPT, [TEXT.format("onlinetext.html")]),
    "van_dyke_anna": ("4711", KEPT, [TEXT.format("text.html")]),
    "kingada": ("4712", KEPT, [TEXT.format("text.html"), "handed in 2 times"]),
    "Mia": ("22", {f"notebooks/{NOTEBOOK}", f"others/{NOTEBOOK}"}, [f"not read: {NOTEBOOK}: notebooks/"]),
    "Ned": ("23", PLACED, []),
    "Pia": ("25", {"report.json", RECORD}, []),
    "Ty\x1b\nOx": ("29", set(), ["not read: x.rar: rar archives"]),
}


@pytest.mark.parametrize("around", ["", "Week 5/"])
def test_whatever_an_export_holds_is_each_students_own_and_a_line_and_no_name_is_in_the_report(
    around, collected, tmp_path
):
    """Also of who chose a file's name like somebody else's, and where somebody has packed the export again."""
    told, held = collected({around + path: content for path, content in ENTRIES.items()})
    assert told.keys() == held.keys() == WANTED.keys()
    numbers = {each["who"]: (each["id"], number) for number, each in identities(tmp_path / "grades").items()}
    for who, (id, kept, lines) in WANTED.items():
        assert (numbers[who][0], held[who].keys()) == (id, kept), who
        said = told[who]
        assert len(said) == max(1, len(lines)) and (lines or said == ["complete"]), (who, said)
        assert all(line.startswith(begin) for line, begin in zip(said, lines, strict=False)), (who, said)
    assert held["kingada"]["report.json"] == b"2" and held["Mia"][f"notebooks/{NOTEBOOK}"] == b"{}"
    report = (tmp_path / "grades/collection.json").read_text()
    assert not any(who in report for who in ("Ada King", "Mia", "Ned", "van_dyke", "kingada"))
    assert around or collected(ENTRIES, source="unpacked")[1] == held


TEAM, ATTEMPT = "Blatt 1/Abgaben/Team", "_attempt_2026-11-0"
# Exports of platforms that have no module here: which file is whose ("": nobody's or a text).
OTHERS = {
    f"{TEAM} 7/King_Ada_u1_11/submission.zip": "Team 7/King_Ada_u1_11",
    f"{TEAM} 8/Moe_Bob_u2_12/submission.zip": "Team 8/Moe_Bob_u2_12",
    f"{TEAM} 8/Poe_Cy_u3_13/Late Submission - submission.zip": "Team 8/Poe_Cy_u3_13",
    "Blatt 1/status.csv": "",
}, {
    f"Lab 5_ada{ATTEMPT}1-10-00-00_submission.zip": "",  # the later one counts
    f"Lab 5_ada{ATTEMPT}2-10-00-00_mine": "Lab 5_ada",
    f"Lab 5_ada{ATTEMPT}2-10-00-00.txt": "",
}, {"12_file1_submission2": "12", "12_file1_submission1": "", "13+14_file1_submission1": "13+14", "info.csv": ""}, {
    "Lab/King, Ada(ak)/Submission attachment(s)/submission.zip": "King, Ada(ak)",
    "Lab/Moe, Bob(bm)/Submission attachment(s)/submission.zip": "Moe, Bob(bm)",
    "Lab/Moe, Bob(bm)/timestamp.txt": "",
}, {"A/ada.zip": "A/ada", "A/bob.zip": "A/bob", "B/cy.zip": "", "B/cy (1).zip": "B"}, {
    "submission.zip": "submission",
    "submission (1).zip": "submission (1)",
}, {"in\\ada\\submission.ZIP": "ada", "in\\bob\\my work.zip.download": "bob"}  # fmt: skip


@pytest.mark.parametrize("whose", OTHERS)
def test_of_a_platform_that_is_not_known_nobody_is_taken_for_somebody_else(whose, collected):
    packed = {path: submission({"report.json": path.encode()}) for path in whose}
    told, held = collected({path: b"text" if path[-4:] in (".txt", ".csv") else packed[path] for path in whose})
    assert {of["report.json"].decode(): who for who, of in held.items()} == {p: who for p, who in whose.items() if who}
    apart = {who for who, lines in told.items() if any("kept apart" in line for line in lines)}
    assert apart == {who for who in whose.values() if who.startswith(("Team 8", "A/", "submission ("))}


def test_names_from_windows_and_macos_are_as_everywhere(collected):
    """Backslashes, and UTF-8 whose flag is missing; an archive is known by its content."""
    work = {"notebooks/runs/Lösung.out": b"", "report.json": b"{}"}
    windows = zipped({name.replace("/", "\\"): content for name, content in work.items()} | {"notebooks\\": b""})
    mac = zipped({"notebooks/runs/L--sung.out": b"", "report.json": b"{}"}).replace(b"L--sung", "Lösung".encode())
    _, held = collected({"A_1_assignsubmission_file_/work": windows, "B_2_assignsubmission_file_/submission.zip": mac})
    assert [each.keys() for each in held.values()] == [work.keys()] * 2


# ---- Moodle's worksheet

# {language: (head, a row)}: the points stand at {grade}
LANGUAGES = {
    "en": (
        "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
        "Last modified (submission),Online text,Last modified (grade),Feedback comments",
        'Participant {id}|{name}|x@y.edu|Submitted for grading - {late} -  - |{grade}|{most}.00|Yes|{when}|a "b"\nc|-|',
    ),
    "de": (
        "ID,Vollständiger Name,ID-Nummer,E-Mail-Adresse,Status,Bewertung,Bestwertung,Bewertung kann geändert werden,"
        "Zuletzt geändert (Abgabe),Zuletzt geändert (Bewertung),Feedback als Kommentar",
        "Teilnehmer/in{id}|{name}||x@y.edu|Zur Bewertung abgegeben - {late}|{grade}|{most},00|Ja|{when}|-|",
    ),
    "anonymous": (
        "ID,Status,Bewertung,Bestwertung,Bewertung kann geändert werden,Zuletzt geändert (Abgabe),Zuletzt geändert",
        "Teilnehmer/in{id}|Zur Bewertung abgegeben|{grade}|{most},00|Ja|-|-",
    ),
}
CLASS = (("Ada King", 4711), ("Bob Müller", 4712), ("Cy Moe", 4713))


def in_csv(rows, encoding="utf-8", separator=",", end="\n"):
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=separator, lineterminator=end).writerows(rows)
    return buffer.getvalue().encode(encoding)


def worksheet(language, rows, **form):
    """The bytes of a grading worksheet with these rows (who, more of the cells)."""
    head, cells = LANGUAGES[language]
    blank = {"late": "", "when": "-", "grade": "", "most": 100}
    made = [cells.format(**blank | {"name": who[0], "id": who[1]} | more).split("|") for who, more in rows]
    return in_csv([head.split(","), *made], **form)


def moodle_export(*who):
    return {f"{name}_{id}_assignsubmission_file_/submission.zip": submission() for name, id in who}


@pytest.fixture
def graded(tmp_path, collected, monkeypatch):
    """graded(export, wrong, left) -> the folder of a grading whose checks are right, but of these two ids."""
    monkeypatch.setattr(document, "pdf_of_data", lambda form, data, *_: f"{form.stem} {data['title']}".encode())

    def graded(entries, wrong=None, left=None):
        collected(entries)
        out = tmp_path / "grades"
        files.write(out / "rubric.toml", '[notebook.05]\n"resnet50.13" = 61.25\n"resnet50.14" = 38.75\n')
        for number, each in identities(out).items():
            state = {"state": "wrong" if each["id"] == wrong else "right", "how": "outside", "text": ""}
            last = {"state": "open", "how": "person", "text": "?"} if each["id"] == left else state
            last = state | {"state": "wrong"} if each["id"] == "4716" else last
            contents = collect.contents(out / f"submissions/{number}.zip")
            checks = {NOTEBOOK[:-6]: {"resnet50.13": state, "resnet50.14": last}} if contents else {}
            looked_at(out, number, contents, checks=checks)
        return out

    return graded


@pytest.fixture
def give_back(tmp_path, capsys):
    """give_back(content, *words) -> (what is printed, the filled file's bytes, or None where the command refuses)."""

    def give_back(content, *words, name="Bewertungen.csv"):
        path, out = tmp_path / name, tmp_path / "grades"
        files.write(path, content)
        code = main(["out", "--out", str(out), "--worksheet", str(path), *words])
        said, filled = "".join(capsys.readouterr()), out / f"filled_{name}"
        assert path.read_bytes() == content and code == (0 if filled.exists() else 2), said
        return said, filled.read_bytes() if filled.exists() else None

    return give_back


@pytest.mark.parametrize(
    ("language", "form"),
    [
        ("en", {"encoding": "utf-8-sig", "end": "\r\n"}),
        ("de", {"separator": ";", "end": "\r\n"}),
        ("anonymous", {"separator": "\t"}),
    ],
)
def test_a_worksheet_gets_the_points_and_every_other_cell_stays(language, form, graded, give_back):
    """A cell with a grade keeps it where items are open or the points are the same; what is damaged gets no zero."""
    every = (*CLASS, ("Di Noe", 4714), ("Ed Ox", 4715), ("Flo Poe", 4716), ("Zoe Last", 4719))
    called = [("Teilnehmer-in" if language == "anonymous" else name, id) for name, id in every[:-1]]
    out = graded(moodle_export(*called) | dict.fromkeys(moodle_export(called[3]), b"PK"), wrong="4712", left="4713")
    before, after = ("", "", "50.00", "", "100.0", "1.00", ""), ("100", "0", "50.00", "", "100.0", "61.25", "")
    sign, rows = "," if language in ("de", "anonymous") else ".", partial(zip, every, strict=True)
    given, wanted = (
        worksheet(language, [(who, {"grade": of.replace(".", sign)}) for who, of in rows(grades)], **form)
        for grades in (before, after)
    )
    said, content = give_back(given)
    assert content == wanted and (out / "feedback_moodle.zip").exists()
    assert "points of 4 of 6 in" in said and "(resnet50.14): 00" in said
    assert re.search(r"left as they were: 00\d \(items are open\); 004 \(what was handed in cannot be read\)\.", said)
    assert "theirs: 4719" in said and "The rubric has" not in said


def test_nobody_gets_the_points_of_somebody_else(graded, give_back):
    """A group's number that is a participant's too; a name twice; somebody of another course; one from Canvas."""
    twice = (("Bob Müller", 4712), ("Bob Muller", 4712))
    moodle = moodle_export(("Group A", 4711), *twice, ("Cy Moe", 99), ("José Poe", 4714))
    out = graded(moodle | {"moecy_4713_1_submission.zip": submission()})
    rows = [(who, {}) for who in (*CLASS, ("José Poe", 4714))]
    said, content = give_back(worksheet("en", rows))
    assert content == worksheet("en", [*rows[:3], (rows[3][0], {"grade": "100"})])
    assert "Group A: in the file 4711 is 'Ada King'. Is it the submission of a group" in said
    assert said.count("several submissions have the identifier 4712") == 2
    assert "Cy Moe: the file has 0 rows of 99." in said and "Not from Moodle, so not in this file: 00" in said
    with zipfile.ZipFile(out / "feedback_moodle.zip") as archive:
        assert [name.split("_")[1] for name in archive.namelist()] == ["4714"]


def test_a_column_is_never_guessed(graded, give_back, capsys):
    def with_year(grade):
        text = worksheet("de", [(who, {"grade": grade}) for who in CLASS]).replace(b"-Nummer,", b"-Nummer,Jahr,")
        return text.replace(b",,x@y.edu", b",,2026,x@y.edu")

    out, given = graded(moodle_export(*CLASS)), with_year("")
    assert "could take the points; name one with --column: ID-Nummer, Bewertung." in give_back(given)[0]
    assert "--column 'Note' names 0 of them" in give_back(given, "--column", "Note")[0]
    assert give_back(given, "--column", "bewertung")[1] == with_year("100")
    assert main(["out", "--out", str(out), "--column", "Grade"]) == 2
    assert "give that with --worksheet" in capsys.readouterr().err


def test_a_file_that_cannot_be_filled_is_refused_with_the_reason(graded, give_back):
    graded(moodle_export(CLASS[0]))
    for content, line in (
        (b"", "is neither a grading worksheet of Moodle"),
        (b"\xff\xfeI\0\0\xd8\0\xd8", "is not UTF-8"),
        (b'Identifier,Full name\n"Participant 1,Ada\n', "is damaged: unexpected end of data"),
        (worksheet("en", [(CLASS[0], {})]).rpartition(b",")[0] + b"\n", "is neither a grading worksheet of Moodle"),
        (b"Student,ID,SIS Login ID,Section,Lab (1)\nAda,1,a,s,\n", "could take the points; name one with --column"),
    ):
        said, filled = give_back(content)
        assert filled is None and line in said and "\n" not in said.strip()


def test_feedback_goes_back_as_moodle_takes_it(graded, give_back, capsys):
    """Also under their names; and points are scaled to the maximum of the file."""
    out = graded(moodle_export(*CLASS, (".~King", 4714), ("=a:b*", 4715), ("Ghost", 4716)), wrong="4712")
    given, wanted = (
        worksheet("en", [(who, {"most": 50, "grade": grade}) for who, grade in zip(CLASS, grades, strict=True)])
        for grades in (("", "", ""), ("50", "0", "50"))
    )
    said, content = give_back(given)
    assert content == wanted and "The rubric has 100 points in all, the file 50: points are scaled" in said
    names = {each["id"]: number for number, each in identities(out).items()}
    (out / f"checked/{names.pop('4716')}.json").unlink()
    assert main(["out", "--out", str(out)]) == 0
    assert "feedback for 5. Upload the worksheet first" in capsys.readouterr().out
    with zipfile.ZipFile(out / "feedback_moodle.zip") as archive:
        found = {}
        for path in archive.namelist():
            assert not path.startswith((".", "~")) and "/" not in path
            _, id, kind, plugin, rest = path.split("_", 4)  # as Moodle splits it
            assert (kind, plugin, rest) == ("assignsubmission", "file", "feedback.pdf")
            found[id] = archive.read(path)
    assert found == {id: (out / f"feedback/{number}.pdf").read_bytes() for id, number in names.items()}
    with zipfile.ZipFile(out / "feedback_by_name.zip") as archive:
        folders = "Ada King", "Bob Müller", "Cy Moe", "King", "=ab"
        assert {*archive.namelist()} == {f"{name}/feedback.pdf" for name in folders}


# ---- Canvas' gradebook

STUDENTS = (("King, Ada", 4711), ("Müller, Bob", 4712), ("Van_Dyke, Cy", 4713), ("Student, Test", 4719))


def gradebook(most="120.00", scores=("", "", "", ""), comma=False, **form):
    head = "Student,ID,SIS User ID,SIS Login ID,Section,Notes (2026),Quiz|old (11),Scaling (12),Final Score"
    rows = [["    Points Possible", *[""] * 5, "10.00", most, "(läs endast)"]]
    for (name, id), score in zip(STUDENTS, scores, strict=True):
        rows.append([name, id, f"S{id}", f"u{id}", "A and B", "=1+1", "7.50", score, "80.25"])
    rows = [row[:6] + [cell.replace(".", "," if comma else ".") for cell in row[6:]] for row in rows]
    head = [cell.replace("|", ", ") for cell in head.split(",")]
    return in_csv([head, [*[""] * 7, "Manual Posting", ""], *rows], **form)


def canvas_export(*more):
    names = ("kingada_4711_1_submission.zip", "müllerbob_LATE_4712_2_submission-1.zip")
    return dict.fromkeys((*names, "van_dykecy_4713_3_submission.zip", *more), submission())


@pytest.mark.parametrize("form", [{}, {"encoding": "utf-8-sig", "separator": ";", "end": "\r\n", "comma": True}])
def test_canvas_gradebook_gets_the_points_in_one_column_and_nothing_else_of_it_changes(form, graded, give_back):
    out = graded(canvas_export(), wrong="4711", left="4713")
    assert "name one with --column: Quiz, old (11), Scaling (12)." in give_back(gradebook(**form))[0]
    said, content = give_back(gradebook(**form), "--column", "scaling" if form else "12")
    assert content == gradebook(scores=("0", "120", "", ""), **form)
    assert "The rubric has 100 points in all, the file 120: points are scaled" in said
    assert "points of 2 of 3 in 'Scaling (12)'" in said and "4719 Student, Test" in said
    assert not (out / "feedback_moodle.zip").exists()


def test_canvas_keeps_who_is_excused_and_takes_nobody_for_somebody_else(graded, give_back, capsys):
    more = ("mallory_4712_4711_5_submission.zip", "evemoe_4719_6_submission.zip")
    graded(canvas_export(*more))
    scores = ("EX", "", "N/A", "")
    said, content = give_back(gradebook(scores=scores), "--column", "Scaling")
    assert content == gradebook(scores=scores)
    assert re.search(r"Cells left as they were: 00\d \('EX' stands there\); 00\d \('N/A' stands there\)\.", said)
    assert "evemoe: in the file 4719 is 'Student, Test'." in said
    assert said.count("several submissions have the identifier 4712") == 2
