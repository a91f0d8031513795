"""The instructor's desk in a real browser: the answers of three students are graded by keyboard, while somebody else
marks, too. What else it does: tests/grading/test_desk.py."""

import io
import sys
from threading import Thread

import pypdfium2
import pytest
from tree import ROOT
from waiting import until

from labs import files
from labs.report.archive import zipped
from teaching.grading import deck, desk, marks

from . import lab

sys.path.insert(0, str(ROOT / "tests/grading"))
import made_grading

SHARES = (1.0, 0.5, 0.0, None, 0.5, 1.0)  # of the items of T5


@pytest.fixture(scope="module")
def grades(course):
    """The folder of a grading in the course, looked at, with nothing marked; each report is an empty page."""
    out, document, pdf = made_grading.write(course / "grades"), pypdfium2.PdfDocument.new(), io.BytesIO()
    document.new_page(595, 842)
    document.save(pdf)
    for path in out.glob("submissions/*.zip"):
        files.write(path, zipped({"report.pdf": pdf.getvalue()}))
    desk.write(out)
    return out


@pytest.fixture(scope="module")
def opened(grades, address, chromium):
    notebook = lab.Notebook(chromium, address, "grading", "grades")
    notebook.run()
    field(notebook, "keys").focus()
    notebook.page.keyboard.type("+")  # from T1, which nobody has answered, to T5
    notebook.page.get_by_text("Report of submission").wait_for()
    yield notebook
    assert notebook.problems() == notebook.outside == []


def field(notebook, label):
    return notebook.page.locator(f".widget-text:has(.widget-label:text-is('{label}')) input")


def head(notebook):
    return notebook.page.locator(".widget-html:has-text('submission')").first.inner_text()


def test_the_report_of_the_submission_is_opened_by_keyboard_and_by_one_click(opened):
    page, tab = opened.page, opened.page.get_by_role("tab", name="grading.ipynb")
    for open_it in (lambda: page.keyboard.press("Enter"), lambda: page.locator(":focus").click()):
        field(opened, "keys").focus()
        page.keyboard.press("Shift+Tab")
        link = page.locator(":focus")
        number = link.inner_text().rpartition(" ")[2]
        assert f"submission {number} " in head(opened) and link.inner_text() == f"Report of submission {number}"
        assert f"/grades/reports/{number}.pdf" in link.get_attribute("href")
        open_it()
        report = page.get_by_role("tab", name=f"{number}.pdf")
        report.wait_for()
        page.locator(".jp-PDFViewer, .jp-PDFContainer").first.wait_for()
        report.locator(".jp-icon-hover").first.click()
        tab.click()


def test_the_answers_of_three_students_are_graded_by_keyboard(opened, grades):
    at, wanted = deck.Deck(grades, "T5"), {f"T5.{n}": share for n, share in enumerate(SHARES, 1) if share is not None}
    keys = "".join(str(n) * (1 + (1.0, 0.5, 0.0, None).index(share)) for n, share in enumerate(SHARES, 1))
    typed = (keys + ".") * len(at.cards)
    other = Thread(
        target=lambda: [marks.mark(grades, n, at.rules, "resnet50.13", 1.0) for n in at.cards for _ in range(20)]
    )
    field(opened, "keys").focus()
    other.start()
    opened.page.keyboard.type(typed, delay=40)
    other.join()
    assert until(lambda: [marks.load(grades)[n].items for n in at.cards] == [wanted] * 3), marks.load(grades)
    assert [marks.load(grades)[n].checks for n in at.cards] == [{"resnet50.13": 1.0}] * 3
    assert field(opened, "keys").evaluate("element => document.activeElement === element")
    assert until(lambda: "T5, submission" in head(opened) and "(1 of 3; 0 done)" in head(opened)), head(opened)
