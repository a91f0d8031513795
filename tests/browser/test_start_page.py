"""Notebook 00 in a real browser: a student begins with Shift+Enter."""


def test_the_map_is_on_the_screen_after_its_cell_was_run(open_notebook):
    """Shift+Enter goes on to the next cell, which must not push the map off a screen of 1366x768."""
    page = (notebook := open_notebook("00_start_here")).page
    notebook.cell(1).locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    picture = notebook.cell(1).locator("img")
    picture.wait_for(state="visible")
    notebook.idle()
    shown, panel = picture.bounding_box(), page.locator(".jp-WindowedPanel-outer").bounding_box()
    assert panel["y"] <= shown["y"] and shown["y"] + shown["height"] <= panel["y"] + panel["height"], (shown, panel)
    assert notebook.problems() == []
