"""Whatever a student writes or prints is content: the report is made, and says it."""

import json
import re

import pytest
import reported
from hostile import ANSWERS, LOGS
from pdf import Pdf, plain

from labs import files, report
from labs.checks import tasks
from labs.report import content, document, form

WRITTEN = [item.id for lesson in tasks.lessons().values() for item in lesson.task if item.kind == "answer"]


def a_report(answers):
    """A Report that holds answers and nothing else, {id: Markdown}."""
    empty = dict(machine=None, hardware=[], versions={}, first_run=None, last_run=None, items=[], runs=[])
    said = dict(notebook="05", kind="answer", question="What?", state="written", points=1)
    written = [form.ReportTask(id=id, answer=text, **said) for id, text in answers.items()]
    return form.Report(kit="1", name=None, tasks=written, findings=[], missing=[], **empty)


@pytest.fixture(scope="module")
def every(tmp_path_factory):
    """({name of an answer: its tags from its heading to the next}, the PDF) of one report with all hostile answers."""
    ids = {f"T{number}": name for number, name in enumerate(ANSWERS, 1)}
    with document.source(a_report({id: ANSWERS[name] for id, name in ids.items()}), {}) as folder:
        path = tmp_path_factory.mktemp("hostile") / "report.pdf"
        path.write_bytes(document.compile(folder))
    pdf, found, name = Pdf(path), {}, None
    for tag in pdf.tags:
        if tag.kind in ("H1", "H2"):
            name = ids.get(tag.text.partition(":")[0])
        elif name:
            found.setdefault(name, []).append(tag)
    return found, pdf


def text_of(tags):
    """The text of tags, without the places to break lines."""
    kinds = {"P", "H3", "H4", "H5", "H6", "LBody", "Code", "TH", "TD", "Formula", "Link"}
    return plain(" ".join(tag.text or tag.alt or "" for tag in tags if tag.kind in kinds))


def test_every_answer_is_in_the_report_and_within_its_margins(every):
    found, pdf = every
    assert set(found) == set(ANSWERS) and pdf.blank_margins()
    assert [tag for tag in pdf.of("Figure", "Formula") if not tag.alt] == []


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("raw HTML", ["<script>", "<b>", "next", "onerror=alert(1)", "inside"]),
        ("TeX", ["\\input{/etc/passwd}", "\\notacommand{x}", "x^2"]),
        ("Typst", ['#include "/etc/passwd"', '#import "@preview/x:0.1.0"', "#panic()", "@label"]),
        ("raw Typst", ['#panic("no")', "<hr>"]),
        ("headings", ["five", "one", "six", "three"]),
        ("unclosed", ["never closed", "# not a heading", "| a | b"]),
        ("images", ["picture, not in the report: plot", "picture, not in the report: c", "https://e.org"]),
        ("emoji", ["[rocket]", "[white heavy check mark]", "[U+6F22]"]),
        ("right to left", ["1.5", "override]"]),
        ("controls", ["a[U+0000]b[U+0007]cred", "[U+D800]"]),
        ("bar", ["100%", "100/100"]),
        ("metadata", ["title: x", "#panic()"]),
        ("footnote", ["a note with"]),
        ("lists", ["one", "two", "both"]),
        ("many", ["line 100", "is longer than fits here"]),
    ],
)
def test_hostile_content_is_shown_as_content(every, name, shown):
    text = text_of(every[0][name])
    assert [words for words in shown if words not in text] == []


def test_bars_show_their_last_state_only(every):
    assert " 10%" not in text_of(every[0]["bar"])


def test_long_words_are_whole(every):
    assert "x" * 20_000 in re.sub(r"[\s\u200b]", "", "".join(tag.text for tag in every[0]["long line"]))


def test_only_links_to_the_web_are_links_and_no_picture_is_fetched(every):
    links = [plain(tag.text) for tag in every[0]["images"] if tag.kind == "Link"]
    assert links == ["[picture, not in the report: plot]", "https://e.org"]
    made = content.markup(ANSWERS["images"])
    assert "javascript" not in made and "image(" not in made


@pytest.mark.parametrize("name", ANSWERS)
def test_markup_of_an_answer_holds_no_program_of_the_students(name):
    made = content.markup(ANSWERS[name])
    outside = re.sub(r'\\.|"(?:[^"\\]|\\.)*"', "", made, flags=re.DOTALL)  # without strings and what is escaped
    calls = set(re.findall(r"#([\w.-]+)", outside))
    known = {"formula", "unset", "verbatim", "raw", "link", "heading", "strong", "emph", "strike", "quote", "footnote"}
    assert calls <= known | {"grid-of", "grid", "linebreak", "horizontalrule", "block", "enum", "list"}


def test_a_formula_that_cannot_be_set_is_shown_as_code_and_the_others_stay(tmp_path):
    answers = {"T1": "good $x^2$ and bad $\\frac{}{}$", "T2": "$y^2$"}
    with document.source(a_report(answers), {}) as folder:
        (tmp_path / "report.pdf").write_bytes(document.compile(folder))
    pdf = Pdf(tmp_path / "report.pdf")
    assert [tag.alt for tag in pdf.of("Formula")] == ["x^2", "y^2"]
    assert "\\frac{}{} (this formula could not be set)" in pdf.text


def test_an_answer_whose_markup_cannot_be_set_stands_as_text_and_the_others_stay(tmp_path, monkeypatch):
    markup = content.markup
    monkeypatch.setattr(content, "markup", lambda text: "#nothing(" if "odd" in text else markup(text))
    with document.source(a_report({"T1": "an *odd* one", "T2": "a *plain* one"}), {}) as folder:
        (tmp_path / "report.pdf").write_bytes(document.compile(folder))
    text = Pdf(tmp_path / "report.pdf").text
    assert "an *odd* one" in text and "a plain one" in text


def test_where_pandoc_fails_the_text_is_shown(monkeypatch):
    monkeypatch.setattr(content, "_SECONDS", 1e-9)
    assert content.markup("some *words*") == '#verbatim("some *words*")'


def test_the_whole_report_of_a_hostile_course(tmp_path):
    names = list(ANSWERS)
    answers = {id: ANSWERS[names[number % len(names)]] for number, id in enumerate(WRITTEN)}
    root = reported.keep(reported.course(tmp_path / "course", answers), reported.study(), log=False)
    for number, text in enumerate(LOGS.values()):
        name = "ResNet50_w1" if number < 2 else "ResNet50_w2"
        ending = ".out" if number % 2 == 0 else ".err"
        files.write(root / f"notebooks/runs/{name}{ending}", text.encode(errors="replace"))
    files.write(root / "notebooks/02b_rings.ipynb", "no notebook")
    files.write(root / "notebooks/runs/broken.json", '{"epochs": [')
    files.write(root / "notebooks/runs/x.maxbatch.json", '{"trials": 3}')
    files.write(
        root / "notebooks/runs/progress.json", '{"items": {"resnet50.1": {"state": "predicted", "answer": "\\u001b"'
    )
    made = report.make(tmp_path / "out", start=root)
    read = {task["id"]: task["answer"] for task in json.loads(made.json.read_text())["tasks"]}
    assert read["T3"] == ANSWERS[names[WRITTEN.index("T3")]].strip() and read["T2"] is None
    log = next(log for task in made.report.tasks for log in task.logs if log.file == "ResNet50_w1.out")
    assert len(log.lines) < 80 and log.left_out > 9000
    assert Pdf(made.pdf).blank_margins()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\t", "    "),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("10%\r50%\r100%\nnext\r\n", "100%\nnext\n"),
        ("🚀", "[rocket]"),
        ("漢", "[U+6F22]"),
        ("α → ∥x∥ ½ é", "α → ∥x∥ ½ é"),
        ("a\u202eb", "a[right-to-left override]b"),
    ],
)
def test_characters_without_a_glyph_are_named(text, shown):
    assert content.shown(text) == shown
