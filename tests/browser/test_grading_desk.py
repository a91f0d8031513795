"""The instructor's desk in a real browser: five answers of four students are graded by keyboard, while somebody else
marks, too; then the rubric changes, and the points move."""

import io
import json
from threading import Thread

import pypdfium2
import pytest
from waiting import until

from labs import files
from labs.report.archive import zipped
from teaching.grading import desk, marks, points, rubric

from . import lab

SCREEN = {"width": 1366, "height": 768}
TASKS, NUMBERS, SHARES = ("T1", "T5", "T6", "T7", "T8"), ("001", "002", "003", "004"), (1.0, 0.5, 0.0, None)


def pdf():
    """The bytes of a report of one empty page."""
    document, content = pypdfium2.PdfDocument.new(), io.BytesIO()
    document.new_page(595, 842)
    document.save(content)
    return content.getvalue()


def rules(most=2):
    """A rubric of two items for each task, the first of so many points."""
    text = '[checks]\n"resnet50.11" = 1\n[comments]\n"T5.2a" = "Which run is it?"\n'
    for task in TASKS:
        text += f'[[answer]]\nid = "{task}"\nitems = [\n  {{ id = "{task}.1", points = {most}, text = "What ran" }},\n'
        text += f'  {{ id = "{task}.2", points = 1, text = "Speedup with its interval" }},\n]\n'
    return text


@pytest.fixture(scope="module")
def grades(course):
    """The folder of a grading in the course, looked at, with nothing marked."""
    out = course / "grades"
    files.write(out / "rubric.toml", rules())
    for number in NUMBERS:
        answers = {task: f"Answer of {number} to {task}: the ring waits for its slowest worker." for task in TASKS}
        table = ["Speed", ["run", "workers", "speedup"], ["ResNet50_w2", "2", f"1.{number} [1.1, 1.9]"]]
        found = {"key": number, "answers": answers, "checks": {}, "findings": [], "told": [], "speedups": []}
        found |= {"steps": [], "prints": {}, "alike": {}, "tables": {task: [table] for task in TASKS}}
        files.write(out / f"submissions/{number}.zip", zipped({"report.pdf": pdf()}))
        files.write(out / f"checked/{number}.json", json.dumps(found))
    desk.write(out)
    return out


@pytest.fixture(scope="module")
def opened(grades, address, chromium):
    notebook = lab.Notebook(chromium, address, "grading", "grades")
    notebook.page.set_viewport_size(SCREEN)
    notebook.run()
    return notebook


def field(notebook, label):
    return notebook.page.locator(f".widget-text:has(.widget-label:text-is('{label}')) input")


def items(grades):
    return {number: of_one.items for number, of_one in marks.load(grades).items()}


def test_keys_items_and_answer_are_on_the_first_screen(opened, kept):
    page = opened.page
    seen = [field(opened, "keys"), field(opened, "new comment"), page.get_by_text("Speedup with its interval").first]
    seen += [page.get_by_text("the ring waits for its slowest worker").first]
    boxes = [each.bounding_box() for each in seen]
    page.screenshot(path=kept / "12_desk_first_screen.png")
    assert all(box and box["y"] > 0 and box["y"] + box["height"] < SCREEN["height"] - 30 for box in boxes), boxes
    assert all(box["x"] + box["width"] < SCREEN["width"] for box in boxes), boxes


def test_the_report_of_the_submission_is_opened_by_keyboard_and_by_one_click(opened, kept):
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
        page.screenshot(path=kept / "12_desk_report.png")
        report.locator(".jp-icon-hover").first.click()
        tab.click()
    assert opened.problems() == [] and opened.outside == []


def test_five_answers_of_four_students_are_graded_by_keyboard(opened, grades, kept):
    at, wanted, page = desk.Desk(grades), {number: {} for number in NUMBERS}, opened.page
    field(opened, "keys").focus()
    typed = ""
    for task in TASKS:
        at.task = task
        for number, share in zip([number for number, _ in at.cards], SHARES, strict=True):
            wanted[number] |= {f"{task}.1": 1.0} | ({} if share is None else {f"{task}.2": share})
            typed += "1" + "2" * (1 + SHARES.index(share)) + "."
        typed += "+"
    other = Thread(
        target=lambda: [marks.mark(grades, n, at.rules, "resnet50.11", 1.0) for n in NUMBERS for _ in range(20)]
    )
    other.start()
    page.keyboard.type(typed, delay=40)
    other.join()
    assert until(lambda: items(grades) == wanted), (items(grades), wanted)
    assert [of_one.checks for of_one in marks.load(grades).values()] == [{"resnet50.11": 1.0}] * 4
    assert field(opened, "keys").evaluate("element => document.activeElement === element")
    assert until(lambda: "T1, submission" in head(opened) and "(1 of 4; 3 done)" in head(opened)), head(opened)
    page.locator(".jp-Cell").last.screenshot(path=kept / "12_desk_graded.png")
    assert opened.problems() == [] and opened.outside == []


def head(notebook):
    return notebook.page.locator(".widget-html:has-text('submission')").first.inner_text()


def test_a_comment_is_written_by_keyboard_and_offered_to_all(opened, grades):
    field(opened, "keys").focus()
    opened.page.keyboard.press("Tab")
    opened.page.keyboard.type("1 Which machine?")
    opened.page.keyboard.press("Enter")
    assert until(lambda: rubric.load(grades).comments.get("T1.1a") == "Which machine?")
    opened.page.keyboard.press("Shift+Tab")
    opened.page.keyboard.type(".a", delay=40)
    assert until(lambda: sum("T1.1a" in each.comments for each in marks.load(grades).values()) == 2)


def test_a_change_of_the_rubric_moves_the_points(opened, grades, kept):
    field(opened, "keys").focus()
    files.write(grades / "rubric.toml", (grades / "rubric.toml").read_text().replace("points = 2", "points = 6"))
    opened.page.keyboard.type(".")
    page, now = opened.page, rubric.load(grades)
    said = page.locator("[role=status]", has_text="The rubric has changed.")
    said.wait_for()
    for number, of_one in marks.load(grades).items():
        found = json.loads((grades / f"checked/{number}.json").read_text())
        total = points.total(points.lines(found, now, of_one))
        assert f"{number}: {total - 20:g} -> {total:g}" in said.inner_text()
    page.locator(".jp-Cell").last.screenshot(path=kept / "12_desk_rubric.png")
    assert opened.problems() == []
