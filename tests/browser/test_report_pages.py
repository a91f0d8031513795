"""Notebook 11 in a real browser: it runs from top to bottom, and shows the pages of the report."""


def test_the_report_is_made_and_its_pages_are_shown(open_notebook):
    notebook = open_notebook("11_report")
    notebook.run()
    assert notebook.problems() == [] and notebook.outside == [] and all(notebook.counts)
    pages = notebook.page.locator("img[alt*='of your report. All of its text is in report.pdf.']")
    assert pages.count() == 2
    sizes = pages.evaluate_all("found => found.map(image => image.complete && image.naturalWidth)")
    assert all(width > 400 for width in sizes)
