"""Moodle's and Canvas' files, through the command line: exports of every shape read, tables filled as importers ask.

The tables are made here as the platforms make them, in several languages; what reads them back does what Moodle's
importgradeslib.php and importziplib.php and Canvas' gradebook_importer.rb do.
"""

import csv
import io
import json
import zipfile

import pytest

from labs import files
from labs.course.release import digest
from labs.report.archive import zipped
from teaching.cli import main
from teaching.grading import collect, moodle

RECORD = "notebooks/runs/ResNet50_w1.json"
NOTEBOOK = "05_resnet50_scaling.ipynb"


def submission(contents=None):
    contents = contents or {"report.json": b"{}", "report.pdf": b"%PDF", RECORD: b"{}"}
    manifest = {"version": 1, "files": {name: {"sha256": digest(content)} for name, content in contents.items()}}
    return zipped({**contents, "manifest.json": json.dumps(manifest).encode()})


def collected(tmp_path, capsys, entries, *words, source="export.zip"):
    """({who: lines of the report}, {who: names of the files}, what was printed) of an export {path: bytes}."""
    if source == "export.zip":
        files.write(tmp_path / source, zipped(entries))
    else:
        for name, content in entries.items():
            files.write(tmp_path / source / name, content)
    assert main(["collect", str(tmp_path / source), "--out", str(tmp_path / "grades"), *words]) == 0
    names = {n: each["who"] for n, each in json.loads((tmp_path / "grades/names.json").read_text()).items()}
    report = json.loads((tmp_path / "grades/collection.json").read_text())
    held = {names[n]: set(collect.contents(path)) for n, path in collect.submissions(tmp_path / "grades").items()}
    assert len(set(names.values())) == len(names) == len(held)
    return {names[n]: lines for n, lines in report.items()}, held, capsys.readouterr().out


# ---- exports


def mac(name):
    folder, _, base = name.rpartition("/")
    return {f"__MACOSX/{folder}/._{base}": b"\0\5\x16\7", f"{folder}/.DS_Store": b"\0\0\0\1Bud1"}


def test_an_export_that_a_mac_packed_again_in_a_folder_is_read_as_if_it_had_not_been(tmp_path, capsys):
    inside = {"mine/" + name: b"{}" for name in ("report.json", RECORD)}
    inside |= mac("mine/report.json") | {"__MACOSX/mine/._submission.zip": b"\0"}
    entry = "Week 5/Ada King_4711_assignsubmission_file_/submission.zip"
    told, held, _ = collected(tmp_path, capsys, {entry: zipped(inside)} | mac(entry))
    assert held == {"Ada King": {"report.json", RECORD}}
    assert [line for line in told["Ada King"] if "left out" in line or "MACOSX" in line or "nested" in line] == []


@pytest.mark.parametrize("below", ["", "my work/"])
def test_notebooks_that_lie_in_no_folder_are_put_where_they_belong(below, tmp_path, capsys):
    inside = {NOTEBOOK: b"{}", "scripts/ResNet50.py": b"", "runs/ResNet50_w1.json": b"{}", ".ipynb_checkpoints/x": b""}
    entry = {"Ada King_1_assignsubmission_file_/submission.zip": zipped({below + n: c for n, c in inside.items()})}
    told, held, _ = collected(tmp_path, capsys, entry)
    assert held["Ada King"] == {f"notebooks/{NOTEBOOK}", "notebooks/scripts/ResNet50.py", "runs/ResNet50_w1.json"}
    assert "its notebooks and scripts lie in no folder notebooks/ (2 files): they were put there" in told["Ada King"]


def test_a_notebook_in_its_folder_counts_before_one_beside_it(tmp_path, capsys):
    inside = {"report.json": b"{}", f"notebooks/{NOTEBOOK}": b"{}", NOTEBOOK: b"[]"}
    told, held, _ = collected(tmp_path, capsys, {"Ada King_1_assignsubmission_file_/submission.zip": zipped(inside)})
    assert f"{NOTEBOOK} stands in notebooks/ as well: that one counts" in told["Ada King"]
    path = tmp_path / "grades/submissions/001.zip"
    assert collect.contents(path)[f"notebooks/{NOTEBOOK}"] == b"{}"


@pytest.mark.parametrize("source", ["export.zip", "export"])
def test_files_that_nobody_packed_are_one_hand_in_and_one_line(source, tmp_path, capsys):
    entries = {f"Ada King_1_assignsubmission_file/{name}": b"{}" for name in (NOTEBOOK, "report.json", "runs/w1.json")}
    entries |= {"Bob_2_assignsubmission_file/report.docx": b"x", "Bob_2_assignsubmission_file/a.7z": b"7z"}
    told, held, out = collected(tmp_path, capsys, entries, source=source)
    assert held == {"Ada King": {f"notebooks/{NOTEBOOK}", "report.json", "runs/w1.json"}, "Bob": set()}
    if source == "export.zip":
        assert told["Bob"] == ["unreadable: no zip, where submission.zip is asked for: a.7z, report.docx"]
        assert "misnamed: 3 files instead of submission.zip" in told["Ada King"][0]
    assert "Bob" not in out and "Ada" not in out


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ("Ada King_1_assignsubmission_{}_/{}", ("onlinetext", "onlinetext.html")),
        ("Ada King_1_assignsubmission_{}/{}", ("onlinetext", "onlinetext.html")),
        ("Ada King_1_assignsubmission_{}_{}", ("onlinetext", "onlinetext.html")),
        ("kingada_4711_{}{}", ("text.html", "")),
        ("kingada_LATE_4711_{}{}", ("text.html", "")),
        ("anon_aB3dE_{}{}", ("link.html", "")),
    ],
)
def test_a_text_answer_is_a_line_and_no_second_hand_in(entry, text, tmp_path, capsys):
    file = ("file", "submission.zip") if "assignsubmission" in entry else ("98765_submission.zip", "")
    told, held, _ = collected(tmp_path, capsys, {entry.format(*text): b"<p>", entry.format(*file): submission()})
    ((who, lines),) = told.items()
    assert RECORD in held[who] and sum("a text answer" in line for line in lines) == 1
    assert not any("handed in" in line or "unreadable" in line for line in lines)

    told, held, _ = collected(tmp_path / "alone", capsys, {entry.format(*text): b"<p>"})
    assert held[who] == set() and "empty: a text answer came, and no file" in told[who]


@pytest.mark.parametrize(
    ("entry", "who", "id", "late"),
    [
        ("anon_aB3dE_98765_submission.zip", "anon_aB3dE", "anon_aB3dE", False),
        ("LATE_anon_aB3dE_98765_submission-1.zip", "anon_aB3dE", "anon_aB3dE", True),
        ("anon_12345_678_submission.zip", "anon_12345", "anon_12345", False),
        ("van_dyke_anna_LATE_4711_98765_submission.zip", "van_dyke_anna", "4711", True),
        ("Ada King_4711_assignsubmission_file/week 5/submission.zip", "Ada King", "4711", None),
        ("Teilnehmer-in_12_assignsubmission_file_/submission.zip", "Teilnehmer-in", "12", None),
        ("Eve_13_assignsubmission_file_Bob_14_assignsubmission_file_submission.zip", "Eve", "13", None),
        ("Eve_13_assignsubmission_file_/Bob_14_assignsubmission_file_/submission.zip", "Eve", "13", None),
        ("Eve_13_assignsubmission_file_7_8_submission.zip", "Eve", "13", None),
        ("evemoe_13_98765_7_8_submission.zip", "evemoe", "13", False),
        ("evemoe_13_98765_x_14_assignsubmission_file_submission.zip", "evemoe", "13", False),
    ],
)
def test_a_name_in_an_export_is_one_student_and_no_other(entry, who, id, late, tmp_path, capsys):
    told, held, _ = collected(tmp_path, capsys, {entry: submission()}, "--due", "2020-01-01")
    assert RECORD in held[who] and json.loads((tmp_path / "grades/names.json").read_text())["001"]["id"] == id
    assert ("late" in told[who]) is bool(late) and ("late or not: unknown" in told[who]) is (late is None)


def test_files_of_several_who_chose_each_others_names_stay_apart(tmp_path, capsys):
    entries = {
        "Bob_14_assignsubmission_file_/submission.zip": submission(),
        "Eve_13_assignsubmission_file_/Bob_14_assignsubmission_file_submission.zip": b"PK",
        "Bob_14_assignsubmission_file_15_assignsubmission_file_/submission.zip": b"PK",
        "x_assignsubmission_file_14_assignsubmission_file_/submission.zip": b"PK",
    }
    told, held, _ = collected(tmp_path, capsys, entries)
    assert RECORD in held["Bob"] and held["Eve"] == set() and len(held) == 3
    names = json.loads((tmp_path / "grades/names.json").read_text()).values()
    assert sorted((each["who"], each["id"]) for each in names if each["id"]) == [("Bob", "14"), ("Eve", "13")]


def test_folders_of_the_same_name_deeper_down_make_nobody_one_student(tmp_path, capsys):
    _, held, _ = collected(tmp_path, capsys, {f"{who}/mine/submission.zip": submission() for who in ("ada", "bob")})
    assert set(held) == {"ada", "bob"}


def test_of_two_files_at_canvas_the_one_with_the_later_number_counts(tmp_path, capsys):
    old, new = (submission({"report.json": b"%d" % n}) for n in (1, 2))
    names = {"kingada_4711_998_submission-1.zip": old, "kingada_4711_1002_submission.zip": new}
    _, held, _ = collected(tmp_path, capsys, names | {"kingada_4711_1003_text.html": b"a file of that name"})
    assert set(held) == {"kingada"}
    assert collect.contents(tmp_path / "grades/submissions/001.zip")["report.json"] == b"2"


def test_whom_to_write_to_stands_in_one_file_with_names_and_nowhere_else(tmp_path, capsys):
    entries = {
        "Ada King_1_assignsubmission_file_/submission.zip": submission(),
        "Bob Low_2_assignsubmission_file_/submission.zip": submission()[:99],
        "Cy Moe_3_assignsubmission_file_/final (new).zip": submission(),
        "Di Noe_4_assignsubmission_file_/submission.zip": zipped({}),
        "Ed\x1b\nOx_5_assignsubmission_file_/x.rar": b"Rar!",
    }
    told, _, out = collected(tmp_path, capsys, entries)
    assert "write_to.txt: whom to write to, with names (4 damaged" in out
    lines = sorted((tmp_path / "grades/write_to.txt").read_text().splitlines(), key=lambda line: line[4:])
    assert [line[4:].partition(":")[0] for line in lines] == [
        "Bob Low (2)",
        "Cy Moe (3)",
        "Di Noe (4)",
        r"Ed\x1b\nOx (5)",
    ]
    assert [line.split(": ")[1] for line in lines] == ["damaged", "misnamed", "empty", "unreadable"]
    report = (tmp_path / "grades/collection.json").read_text() + out
    assert not any(name in report for name in ("Bob", "Cy", "Moe", "Di Noe", "Ed"))
    again = {name.rpartition("/")[0] + "/submission.zip": submission() for name in list(entries)[1:]}
    collected(tmp_path, capsys, again)
    assert not (tmp_path / "grades/write_to.txt").exists()


# ---- tables, as the platforms make them

LAST_MODIFIED = "Last modified (grade)"
ENGLISH = "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed"
ENGLISH += f",Last modified (submission),Online text,{LAST_MODIFIED},Feedback comments"
GERMAN = "ID,Vollständiger Name,ID-Nummer,E-Mail-Adresse,Status,Bewertung,Bestwertung,Bewertung kann geändert werden"
GERMAN += ",Zuletzt geändert (Abgabe),Zuletzt geändert (Bewertung),Feedback als Kommentar"
SPANISH = "Identificador,Nombre completo,Dirección de correo,Estado,Calificación,Calificación máxima"
SPANISH += ",La calificación puede ser cambiada,Última modificación (entrega),Última modificación (calificación)"
JAPANESE = "ID,氏名,メールアドレス,ステータス,評点,最大評点,評点は変更可能,最終更新日時 (提出),最終更新日時 (評定)"


def row(language, id, name, late=None, when=None, grade="", email="x@y.edu"):
    """A row of a grading worksheet."""
    if language == "en":
        said = "Submitted for grading" + (f" - {late}" if late else "") + " -  - " if when else "No submission - "
        return [
            f"Participant {id}",
            name,
            email,
            said,
            grade,
            "100.00",
            "Yes",
            when or "-",
            'a "word"\nor two',
            "-",
            "",
        ]
    if language == "de":
        said = (
            "Zur Bewertung abgegeben" + (f" - {late}" if late else "")
            if when
            else "Nicht abgegeben - 3 Tage überfällig"
        )
        return [f"Teilnehmer/in{id}", name, "", email, said, grade, "100,00", "Ja", when or "-", "-", ""]
    if language == "es":
        said = "Enviado para calificar" + (f" - {late}" if late else "") if when else "Sin entrega"
        return [f"Participante {id}", name, email, said, grade, "100,00", "Sí", when or "-", "-"]
    return [
        f"参加者{id}",
        name,
        email,
        "評定のために提出済み" + (f" - {late}" if late else ""),
        grade,
        "100.00",
        "Yes",
        when or "-",
        "-",
    ]


def worksheet(head, rows, encoding="utf-8", separator=",", end="\n", quoting=csv.QUOTE_MINIMAL):
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=separator, lineterminator=end, quoting=quoting)
    writer.writerows([head.split(","), *rows])
    return buffer.getvalue().encode(encoding)


def as_moodle_reads(content, head, word, encoding="utf-8", separator=","):
    """{id: (grade, cell with its date)}, as Moodle's importer finds it by the names of its columns."""
    rows = list(
        csv.reader(io.StringIO(content.decode(encoding).removeprefix("\ufeff"), newline=""), delimiter=separator)
    )
    assert {len(each) for each in rows} == {len(rows[0])}
    names = head.split(",")
    id, grade, modified = (
        rows[0].index(next(name for name in names if name in known))
        for known in (
            ("Identifier", "ID", "Identificador"),
            ("Grade", "Bewertung", "Calificación", "評点"),
            (
                LAST_MODIFIED,
                "Zuletzt geändert (Bewertung)",
                "Última modificación (calificación)",
                "最終更新日時 (評定)",
            ),
        )
    )
    return {each[id][len(word) :]: (each[grade].replace(",", "."), each[modified]) for each in rows[1:]}


def graded(tmp_path, capsys, entries, wrong=(), open_items=()):
    """A folder of a grading, of an export whose checks are right but for those named; the items of some are open."""
    files.write(tmp_path / "export.zip", zipped(entries))
    out = tmp_path / "grades"
    assert main(["collect", str(tmp_path / "export.zip"), "--out", str(out)]) == 0
    capsys.readouterr()
    files.write(out / "rubric.toml", '[checks]\n"resnet50.11" = 61.25\n"resnet50.12" = 8\n')
    for number, each in json.loads((out / "names.json").read_text()).items():
        state = {"state": "wrong" if each["who"] in wrong else "right", "how": "outside", "text": ""}
        last = {"state": "open", "how": "person", "text": "?"} if each["who"] in open_items else state
        found = {
            "checks": {"05": {"resnet50.11": state, "resnet50.12": last}},
            "answers": {},
            "findings": [],
            "told": [],
        }
        found |= {"speedups": [], "steps": [], "prints": {}, "alike": {}, "tables": {}, "key": number}
        files.write(out / f"checked/{number}.json", json.dumps(found))
    return out


def moodle_export(*who):
    return {f"{name}_{id}_assignsubmission_file_/submission.zip": submission() for name, id in who}


def filled(out, path, capsys, *words):
    """(what was printed, the bytes of the filled file)."""
    given = path.read_bytes()
    assert main(["out", "--out", str(out), "--worksheet", str(path), *words]) == 0
    assert path.read_bytes() == given
    return capsys.readouterr().out, (out / f"filled_{path.name}").read_bytes()


CLASS = (("Ada King", 4711), ("Bob Müller", 4712), ("Cy Moe", 4713))


@pytest.mark.parametrize(
    ("language", "head", "word", "encoding", "separator", "end", "quoting"),
    [
        ("en", ENGLISH, "Participant ", "utf-8", ",", "\n", csv.QUOTE_MINIMAL),
        ("en", ENGLISH, "Participant ", "utf-8-sig", ",", "\r\n", csv.QUOTE_ALL),
        ("de", GERMAN, "Teilnehmer/in", "utf-8", ",", "\n", csv.QUOTE_MINIMAL),
        ("de", GERMAN, "Teilnehmer/in", "cp1252", ";", "\r\n", csv.QUOTE_MINIMAL),
        ("es", SPANISH, "Participante ", "utf-16", "\t", "\r\n", csv.QUOTE_MINIMAL),
        ("ja", JAPANESE, "参加者", "utf-8-sig", ",", "\n", csv.QUOTE_MINIMAL),
    ],
)
def test_moodles_worksheet_gets_the_points_and_nothing_else_of_it_changes(
    language, head, word, encoding, separator, end, quoting, tmp_path, capsys
):
    out = graded(tmp_path, capsys, moodle_export(*CLASS), wrong=["Bob Müller"], open_items=["Cy Moe"])
    rows = [row(language, id, name, when="x 2025 10:37 1") for name, id in CLASS] + [row(language, 4719, "Zoe Last")]
    path = tmp_path / "Bewertungen.csv"
    path.write_bytes(worksheet(head, rows, encoding, separator, end, quoting))
    printed, content = filled(out, path, capsys)
    read = as_moodle_reads(content, head, word, encoding, separator)
    assert read == {"4711": ("69.25", "-"), "4712": ("0", "-"), "4713": ("", "-"), "4719": ("", "-")}
    grade = next(at for at, cell in enumerate(rows[0]) if cell == "")  # the id number stands before it in German
    grade = grade if language != "de" else 5
    comma = language in ("de", "es")
    for each, text in ((0, "69,25" if comma else "69.25"), (1, "0")):
        rows[each][grade] = text
    assert content == worksheet(head, rows, encoding, separator, end, quoting)  # byte for byte
    assert "points of 2 of 3" in printed and "Cells left as they were: 1 (items are open)." in printed
    assert "\n1 open: 00" in printed and "no submission is theirs: 4719 Zoe Last." in printed
    assert "The rubric has 69.25 points in all, the file 100" in printed


def test_what_a_worksheet_says_of_lateness_is_told_in_any_language(tmp_path, capsys):
    cases = {
        "en": (ENGLISH, "2 days 3 hours late", "Tuesday, 2 December 2025, 10:37 PM"),
        "de": (GERMAN, "36 Tage 10 Stunden zu spät", "Dienstag, 2. Dezember 2025, 22:37"),
        "es": (SPANISH, "5 minutos después", "martes, 2 de diciembre de 2025, 22:37"),
        "ja": (JAPANESE, "3 日 遅れ", "2025年 12月 2日(火曜日) 22:37"),
    }
    for language, (head, late, when) in cases.items():
        here = tmp_path / language
        rows = [row(language, 4711, "Ada King", late, when), row(language, 4712, "Bob Müller", None, when)]
        files.write(here / "w.csv", worksheet(head, [*rows, row(language, 4713, "Cy Moe")]))
        words = ("--worksheet", str(here / "w.csv"))
        told, _, _ = collected(here, capsys, moodle_export(*CLASS), *words)
        assert f"late: the worksheet says {late!r}" in told["Ada King"], language
        assert not any("late" in line for line in told["Bob Müller"])
        assert "late or not: unknown" in told["Cy Moe"]
        for due, line in (("22:36", "late: 2025-12-02 22:37, due 2025-12-02 22:36"), ("22:37+01:00", None)):
            told, _, _ = collected(here, capsys, moodle_export(*CLASS), *words, "--due", f"2025-12-02T{due}")
            for who in ("Ada King", "Bob Müller"):
                assert [each for each in told[who] if "late" in each] == ([line] if line else []), (language, due)


def test_a_gradebook_does_not_say_when_and_a_worksheet_may_need_its_column_named(tmp_path, capsys):
    files.write(tmp_path / "g.csv", gradebook())
    files.write(tmp_path / "export.zip", zipped(moodle_export(*CLASS)))
    words = ["collect", str(tmp_path / "export.zip"), "--out", str(tmp_path / "grades"), "--worksheet"]
    assert main([*words, str(tmp_path / "g.csv")]) == 2
    assert "is a gradebook of Canvas, which does not say when" in capsys.readouterr().err
    rows = [
        each[:2] + ["", "2026"] + each[2:] for each in (row("en", id, name, "1 day late", "x") for name, id in CLASS)
    ]
    files.write(tmp_path / "w.csv", worksheet(ENGLISH.replace("Email", "ID number,Year,Email"), rows))
    assert main([*words, str(tmp_path / "w.csv")]) == 2 and "--column" in capsys.readouterr().err
    assert main([*words, str(tmp_path / "w.csv"), "--column", "Grade"]) == 0
    assert capsys.readouterr().out.count("Unknown whether late: 3 of 3.") == 1


def test_a_date_that_cannot_be_read_and_one_that_was_moved_leave_the_word_to_the_platform(tmp_path, capsys):
    rows = [
        row("en", 4711, "Ada King", "2 days late", "үйсэнбэ, 2 дев 2025, 10:37"),
        row(
            "en",
            4712,
            "Bob Müller",
            "Extension granted until: Friday, 5 December 2025, 12:00 PM",
            "2 December 2025, 10:37",
        ),
        row("en", 4713, "Cy Moe", None, "2/12/2025, 10:37"),
        row("en", 4714, "Di Noe", "3 days late", "4 December 2025, 10:37"),
    ]
    files.write(tmp_path / "w.csv", worksheet(ENGLISH, rows))
    words = ("--worksheet", str(tmp_path / "w.csv"), "--due", "2025-12-01T12:00")
    told, _, _ = collected(tmp_path, capsys, moodle_export(*CLASS, ("Group of others", 4714)), *words)
    assert [line for line in told["Ada King"] if "late" in line] == ["late: the worksheet says '2 days late'"]
    assert [line for line in told["Group of others"] if "late" in line] == ["late or not: unknown"]
    assert not any("late" in line for line in told["Bob Müller"] + told["Cy Moe"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mardi 2 mars 2027, 00:05", "2027-03-02 00:05"),
        ("Wednesday, September 23, 2026, 12:01 AM", "2026-09-23 00:01"),
        ("Friday, 4 September 2026, 12:30 PM", "2026-09-04 12:30"),
        ("samedi 1 août 2026, 9:07", "2026-08-01 09:07"),
        ("sobota, 3 października 2026, 21:30", "2026-10-03 21:30"),
        ("2026年2月3日 下午2:05", "2026-02-03 14:05"),
        ("3.12.2026 10:05", "2026-12-03 10:05"),
        ("2026-12-03 10:05", "2026-12-03 10:05"),
        ("3/12/2026 10:05", None),
        ("31 February 2026, 10:05", None),
        ("-", None),
    ],
)
def test_a_date_is_read_or_it_is_unknown(text, said):
    assert (moodle.when(text) and f"{moodle.when(text):%Y-%m-%d %H:%M}") == said


def test_nobody_gets_the_points_of_somebody_else(tmp_path, capsys):
    """A group's number that is a participant's too; a name twice; somebody of another course; spoiled letters."""
    who = (
        ("Group A", 4711),
        ("Bob Müller", 4712),
        ("Bob Muller", 4712),
        ("Cy Moe", 99),
        ("JosÃ© Poe", 4714),
        ("X", "0"),
    )
    out = graded(tmp_path, capsys, moodle_export(*who))
    rows = [row("en", id, name, when="-") for name, id in (*CLASS, ("José Poe", 4714))]
    files.write(tmp_path / "w.csv", worksheet(ENGLISH, rows))
    printed, content = filled(out, tmp_path / "w.csv", capsys)
    read = as_moodle_reads(content, ENGLISH, "Participant ")
    assert {id: grade for id, (grade, _) in read.items()} == {"4711": "", "4712": "", "4713": "", "4714": "69.25"}
    assert "Group A: in the file 4711 is 'Ada King'. Is it the submission of a group" in printed
    assert printed.count("several submissions have the identifier 4712") == 2
    assert "Cy Moe: the file has 0 rows of 99." in printed
    with zipfile.ZipFile(out / "feedback_moodle.zip") as archive:
        assert [name.split("_")[1] for name in archive.namelist()] == ["4714"]


def test_anonymous_marking_at_moodle_is_filled_by_number(tmp_path, capsys):
    out = graded(tmp_path, capsys, moodle_export(("Teilnehmer-in", 7), ("Teilnehmer-in", 8)))
    head = "ID,Status,Bewertung,Bestwertung,Bewertung kann geändert werden"
    head += ",Zuletzt geändert (Abgabe),Zuletzt geändert (Bewertung)"
    rows = [[f"Teilnehmer/in{id}", "Zur Bewertung abgegeben", "", "100,00", "Ja", "-", "-"] for id in (7, 8, 9)]
    files.write(tmp_path / "w.csv", worksheet(head, rows))
    _, content = filled(out, tmp_path / "w.csv", capsys)
    read = as_moodle_reads(content, head, "Teilnehmer/in")
    assert {id: grade for id, (grade, _) in read.items()} == {"7": "69.25", "8": "69.25", "9": ""}


def test_points_above_the_maximum_are_refused_by_name_and_the_rest_is_written(tmp_path, capsys):
    out = graded(tmp_path, capsys, moodle_export(*CLASS), wrong=["Bob Müller"])
    rows = [[cell.replace("100.00", "50.00") for cell in row("en", id, name)] for name, id in CLASS]
    files.write(tmp_path / "w.csv", worksheet(ENGLISH, rows))
    assert main(["out", "--out", str(out), "--worksheet", str(tmp_path / "w.csv")]) == 2
    said = capsys.readouterr().err
    assert (
        "takes at most 50 points in 'Grade'" in said
        and "001 has 69.25, 003 has 69.25." in said
        and "rubric.toml" in said
    )
    assert (
        not (out / "filled_w.csv").exists() and (out / "grades.csv").exists() and (out / "feedback_moodle.zip").exists()
    )


def test_a_cell_that_has_a_grade_keeps_it_where_items_are_open_or_the_points_are_the_same(tmp_path, capsys):
    out = graded(tmp_path, capsys, moodle_export(*CLASS), open_items=["Ada King"])
    rows = [
        row("en", id, name, grade=grade) for (name, id), grade in zip(CLASS, ("50.00", "69.250", "1.00"), strict=True)
    ]
    files.write(tmp_path / "w.csv", worksheet(ENGLISH, rows))
    printed, content = filled(out, tmp_path / "w.csv", capsys)
    assert [grade for grade, _ in as_moodle_reads(content, ENGLISH, "Participant ").values()] == [
        "50.00",
        "69.250",
        "69.25",
    ]
    assert "1 of them held other points before." in printed


def test_what_cannot_be_read_gets_no_zero(tmp_path, capsys):
    entries = moodle_export(*CLASS) | {"Bob Müller_4712_assignsubmission_file_/submission.zip": b"PK"}
    out = graded(tmp_path, capsys, entries, wrong=["Bob Müller"])
    files.write(tmp_path / "w.csv", worksheet(ENGLISH, [row("en", id, name) for name, id in CLASS]))
    printed, content = filled(out, tmp_path / "w.csv", capsys)
    assert [grade for grade, _ in as_moodle_reads(content, ENGLISH, "Participant ").values()] == ["69.25", "", "69.25"]
    assert "Cells left as they were: 1 (what was handed in cannot be read)." in printed


def test_a_column_is_never_guessed(tmp_path, capsys):
    out = graded(tmp_path, capsys, moodle_export(*CLASS))
    head = ENGLISH.replace("Email address", "ID number,Year,Email address")
    rows = [each[:2] + ["", "2026"] + each[2:] for each in (row("en", id, name) for name, id in CLASS)]
    files.write(tmp_path / "w.csv", worksheet(head, rows))
    words = ["out", "--out", str(out), "--worksheet", str(tmp_path / "w.csv")]
    assert (
        main(words) == 2 and "not clear: ID number, Grade could be it. Name it with --column" in capsys.readouterr().err
    )
    assert main([*words, "--column", "Note"]) == 2 and "has 0 columns 'Note'" in capsys.readouterr().err
    _, content = filled(out, tmp_path / "w.csv", capsys, "--column", "grade")
    assert [grade for grade, _ in as_moodle_reads(content, head, "Participant ").values()] == ["69.25"] * 3
    assert main(["out", "--out", str(out), "--column", "Grade"]) == 2
    assert "give that with --worksheet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "is neither a grading worksheet of Moodle"),
        (b"Name,Points\nAda,1\n", "is neither a grading worksheet of Moodle"),
        (b"PK\3\4", "is a spreadsheet, not a CSV file"),
        (b"\xff\xfeI\0\0\xd8\0\xd8", "is damaged: it is not utf-16-le throughout"),
        (b'Identifier,Full name\n"Participant 1,Ada\n', "the quote that opens in line 2 is not closed"),
        (worksheet(ENGLISH, [row("en", 1, "Ada")[:-2]]), "is neither a grading worksheet of Moodle"),
        (
            worksheet(ENGLISH.rsplit(",", 5)[0], [row("en", 1, "Ada")[:6]]),
            "Which column of the worksheet takes the points",
        ),
        (worksheet(ENGLISH.rsplit(",", 4)[0], [row("en", 1, "Ada")[:7]]), "has no column with dates behind 'Grade'"),
        (
            worksheet("Student,ID,Section,Lab (1)", [["Ada", 1, "S", ""]], "utf-16"),
            "The gradebook is UTF-16, comma, as",
        ),
        (worksheet("Student,ID,Section,Lab (1)", [["Bob Müller", 1, "S", ""]], "cp1252"), "(no Unicode), comma, as"),
        (b"Student,ID,SIS Login ID,Section,Lab (1)\nAda,1,a,s,\n", 'has no row "Points Possible"'),
        (
            b"Student,ID,Section,Total\nPoints Possible,,,(read only)\n",
            "has these assignments; name one with --column: none",
        ),
    ],
)
def test_a_file_that_cannot_be_filled_is_refused_with_the_reason(content, line, tmp_path, capsys):
    out = graded(tmp_path, capsys, moodle_export(*CLASS[:1]))
    path = tmp_path / "w.csv"
    path.write_bytes(content)
    assert main(["out", "--out", str(out), "--worksheet", str(path)]) == 2
    said = capsys.readouterr().err
    assert line in said and "\n" not in said.strip()
    assert main(["out", "--out", str(out), "--worksheet", str(tmp_path / "none.csv")]) == 2
    assert "none.csv cannot be read" in capsys.readouterr().err


def test_feedback_goes_back_as_moodle_takes_it(tmp_path, capsys):
    out = graded(tmp_path, capsys, moodle_export(*CLASS, (".~King", 4714), ("=a:b*", 4715), ("Ghost", 4716)))
    assert main(["out", "--out", str(out)]) == 0
    (out / "feedback/006.pdf").unlink()
    ghost = json.loads((out / "names.json").read_text())["006"]["id"]
    (out / "checked/006.json").unlink()
    assert main(["out", "--out", str(out)]) == 0
    assert "feedback for 5. Upload the worksheet first" in capsys.readouterr().out
    names = {each["id"]: number for number, each in json.loads((out / "names.json").read_text()).items()}
    with zipfile.ZipFile(out / "feedback_moodle.zip") as archive:
        found = {}
        for path in archive.namelist():
            assert not path.startswith((".", "~")) and "/" not in path
            name, id, kind, plugin, rest = path.split("_", 4)  # as Moodle splits it
            assert (kind, plugin, rest) == ("assignsubmission", "file", "feedback.pdf")
            found[id] = archive.read(path)
    assert found.keys() == names.keys() - {ghost}
    assert all(found[id] == (out / f"feedback/{names[id]}.pdf").read_bytes() for id in found)


# ---- Canvas

HEAD = [
    "Student",
    "ID",
    "SIS User ID",
    "SIS Login ID",
    "Section",
    "Notes (2026)",
    "Quiz, old (11)",
    "Scaling (12)",
    "Final Score",
]
STUDENTS = (("King, Ada", 4711), ("Müller, Bob", 4712), ("Van_Dyke, Cy", 4713), ("Student, Test", 4719))


def gradebook(most="100.00", scores=("", "", "", ""), encoding="utf-8", separator=",", end="\n", comma=False):
    number = (lambda text: text.replace(".", ",")) if comma else str
    rows = [
        HEAD,
        [""] * 7 + ["Manual Posting", ""],
        ["    Points Possible", *[""] * 5, number("10.00"), number(most), "(läs endast)"],
    ]
    rows += [
        [name, str(id), f"S{id}", f"u{id}", "A and B", "=1+1", number("7.50"), number(score), number("80.25")]
        for (name, id), score in zip(STUDENTS, scores, strict=True)
    ]
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=separator, lineterminator=end).writerows(rows)
    return buffer.getvalue().encode(encoding)


def as_canvas_reads(content, column="Scaling (12)"):
    """{id: score} of a column, as Canvas' importer finds them; it reads UTF-8, and looks for the separator itself."""
    text = content.decode()
    separator = ";" if text.partition("\n")[0].count(";") > text.partition("\n")[0].count(",") else ","
    head, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    assert "Student" in head[0] and "ID" in head[1] and head[2:5] == ["SIS User ID", "SIS Login ID", "Section"]
    assert "Points Possible" in rows[1][0]
    return {each[1]: each[head.index(column)].strip().replace(",", ".") for each in rows[2:]}


def canvas_export(*more):
    names = (
        "kingada_4711_1_submission.zip",
        "müllerbob_LATE_4712_2_submission-1.zip",
        "van_dykecy_4713_3_submission.zip",
    )
    return {name: submission() for name in (*names, *more)}


@pytest.mark.parametrize(
    ("encoding", "separator", "end", "comma"),
    [("utf-8", ",", "\n", False), ("utf-8-sig", ";", "\r\n", True), ("utf-8", ",", "\n", True)],
)
def test_canvas_gradebook_gets_the_points_in_one_column_and_nothing_else_of_it_changes(
    encoding, separator, end, comma, tmp_path, capsys
):
    out = graded(tmp_path, capsys, canvas_export(), open_items=["van_dykecy"], wrong=["kingada"])
    path = tmp_path / "2026-11-24T1137_Grades-ML.csv"
    path.write_bytes(gradebook(encoding=encoding, separator=separator, end=end, comma=comma))
    assert main(["out", "--out", str(out), "--worksheet", str(path)]) == 2
    assert "name one with --column: Quiz, old (11), Scaling (12)." in capsys.readouterr().err
    for name in ("scaling", "12", "Scaling (12)"):
        printed, content = filled(out, path, capsys, "--column", name)
    assert as_canvas_reads(content) == {"4711": "0", "4712": "69.25", "4713": "", "4719": ""}
    scores = ("0", "69.25", "", "")
    assert content == gradebook(scores=scores, encoding=encoding, separator=separator, end=end, comma=comma)
    assert "points of 2 of 3 in 'Scaling (12)'" in printed and "4719 Student, Test" in printed
    assert not (out / "feedback_moodle.zip").exists()


def test_canvas_keeps_who_is_excused_and_takes_nobody_for_somebody_else(tmp_path, capsys):
    more = ("anon_4713_9_submission.zip", "mallory_4712_4711_5_submission.zip", "evemoe_4719_6_submission.zip")
    out = graded(tmp_path, capsys, canvas_export(*more))
    path = tmp_path / "g.csv"
    files.write(path, gradebook(scores=("EX", "", "N/A", "")))
    printed, content = filled(out, path, capsys, "--column", "Scaling")
    assert as_canvas_reads(content) == {"4711": "EX", "4712": "", "4713": "N/A", "4719": ""}
    assert "Cells left as they were: 1 ('EX' stands there), 1 ('N/A' stands there)." in printed
    assert "anon_4713: collected anonymously: the file does not say who that is." in printed
    assert "evemoe: in the file 4719 is 'Student, Test'." in printed
    assert printed.count("several submissions have the identifier 4712") == 2

    files.write(path, gradebook(most="0.00"))
    assert main(["out", "--out", str(out), "--worksheet", str(path), "--column", "12"]) == 2
    assert "takes at most 0 points" in capsys.readouterr().err


def test_a_file_of_the_other_platform_fills_nothing_and_says_so(tmp_path, capsys):
    out = graded(tmp_path, capsys, canvas_export())
    files.write(tmp_path / "w.csv", worksheet(ENGLISH, [row("en", id, name) for name, id in CLASS]))
    printed, content = filled(out, tmp_path / "w.csv", capsys)
    assert content == (tmp_path / "w.csv").read_bytes()
    assert "points of 0 of 0" in printed and printed.count("not collected from Moodle") == 3
