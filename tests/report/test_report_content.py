"""Whatever a student writes or prints is content: the report is made, and says it."""

import json
import re

import pytest
import reported
from hostile import ANSWERS, LOGS
from pdf import Pdf, plain

from labs import files
from labs.checks import tasks
from labs.printed import as_json
from labs.report import content, document, gather_report
from labs.report.course import course_around

WRITTEN = [item.id for lesson in tasks.lessons().values() for item in lesson.task if item.kind == "answer"]


def a_report(answers):
    """A report that holds answers and nothing else, {id: Markdown}."""
    lists = ("hardware", "versions", "items", "runs", "findings", "missing")
    empty = {"kit": "1", "name": None} | {name: [] for name in lists}
    said = dict(notebook="05", kind="answer", title="What?", state="written", points=1)
    said |= {name: [] for name in ("holds", "runs", "tables", "figures", "scripts", "logs")}
    return empty | {"tasks": [said | {"id": id, "answer": text} for id, text in answers.items()]}


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


SHOWN = {
    "raw HTML": ["<script>", "<b>", "next", "onerror=alert(1)", "inside"],
    "TeX": ["\\input{/etc/passwd}", "\\notacommand{x}", "x^2"],
    "Typst": ['#include "/etc/passwd"', '#import "@preview/x:0.1.0"', "#panic()", "@label"],
    "raw Typst": ['#panic("no")', "<hr>"],
    "images": ["picture, not in the report: plot", "picture, not in the report: c", "https://e.org"],
    "emoji": ["[rocket]", "[white heavy check mark]", "[U+6F22]"],
    "controls": ["a[U+0000]b[U+0007]cred", "[U+D800]"],
    "bar": ["100%", "100/100"],
    "many": ["line 100", "line 499"],
}


def test_every_answer_is_within_the_margins_and_shown_as_content(every):
    found, pdf = every
    assert set(found) == set(ANSWERS) and pdf.blank_margins()
    assert [tag for tag in pdf.of("Figure", "Formula") if not tag.alt] == []
    for name, shown in SHOWN.items():
        text = text_of(found[name])
        assert (name, [words for words in shown if words not in text]) == (name, [])
    assert " 10%" not in text_of(found["bar"])
    assert "x" * 20_000 in re.sub(r"[\s\u200b]", "", "".join(tag.text for tag in found["long line"]))
    links = [plain(tag.text) for tag in found["images"] if tag.kind == "Link"]
    assert links == ["[picture, not in the report: plot]", "https://e.org"]


KNOWN = """formula unset verbatim raw link heading strong emph strike quote footnote grid-of grid linebreak
horizontalrule block enum list""".split()


def test_markup_of_an_answer_holds_no_program_of_the_students():
    for name, answer in ANSWERS.items():
        made = content.markup(answer)
        outside = re.sub(r'\\.|"(?:[^"\\]|\\.)*"', "", made, flags=re.DOTALL)  # without strings and what is escaped
        assert set(re.findall(r"#([\w.-]+)", outside)) <= {*KNOWN} and "javascript:" not in made, name
    texts = {"\t": "    ", "\x1b[1;31mred\x1b[0m": "red", "10%\r50%\r100%\nnext\r\n": "100%\nnext\n", "α → ½": "α → ½"}
    assert {text: content.shown(text) for text in texts} == texts


def test_what_cannot_be_set_is_shown_as_text_and_the_rest_stays(tmp_path, monkeypatch):
    markup = content.markup
    monkeypatch.setattr(content, "markup", lambda text: "#nothing(" if "odd" in text else markup(text))
    answers = {"T1": "good $x^2$ and bad $\\frac{}{}$", "T2": "$y^2$", "T3": "an *odd* one", "T4": "a *plain* one"}
    with document.source(a_report(answers), {}) as folder:
        (tmp_path / "report.pdf").write_bytes(document.compile(folder))
    pdf = Pdf(tmp_path / "report.pdf")
    assert [tag.alt for tag in pdf.of("Formula")] == ["y^2"]
    monkeypatch.undo()
    monkeypatch.setattr(content, "SECONDS", 1e-9)  # where pandoc fails
    assert content.markup("some *words*") == '#verbatim("some *words*")'
    for said in ("good $x^2$ and bad $\\frac{}{}$", "an *odd* one", "a plain one"):
        assert said in pdf.text


def test_whatever_a_course_holds_it_has_a_report(tmp_path):
    names = list(ANSWERS)
    answers = {id: ANSWERS[names[number % len(names)]] for number, id in enumerate(WRITTEN)}
    root = reported.keep(reported.course(tmp_path / "course", answers), reported.study())
    names_of_logs = ("ResNet50_w1.out", "ResNet50_w1.err", "ResNet50_w2.out", "ResNet50_w2.err")
    for name, text in zip(names_of_logs, LOGS.values(), strict=True):
        files.write(root / "notebooks/runs" / name, text.encode(errors="replace"))
    files.write(root / "notebooks/02_averages_and_rings.ipynb", "no notebook")
    files.write(root / "notebooks/runs/broken.json", '{"epochs": [')
    files.write(root / "notebooks/runs/x.maxbatch.json", '{"trials": 3}')
    files.write(root / "notebooks/runs/progress.json", '{"items": {"resnet50.1": {"answer": "\\u001b"')
    made, _ = gather_report(course_around(root))
    read = {task["id"]: task["answer"] for task in json.loads(as_json(made))["tasks"]}
    assert read["T3"] == ANSWERS[names[WRITTEN.index("T3")]].strip() and read["T2"] is None
    log = next(log for task in made["tasks"] for log in task["logs"] if log["file"] == "ResNet50_w1.out")
    assert len(log["lines"]) < 80 and "lines are left out" in " ".join(log["lines"])
