"""A widget of widgets.explore as the keyboard sees it: its controls and the picture."""

from typing import NamedTuple

# [source, text alternative] of a picture
SHOWN = "picture => { const image = picture.querySelector('img'); return [image?.src, image?.alt] }"
# The kernel answers in order: after an answer all pictures have come, if any is on its way.
DRAWN = """async ([picture, source]) => {
  await jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestKernelInfo()
  for (let waited = 0; waited < 3000 && picture.querySelector('img')?.src === source; waited += 50)
    await new Promise(done => setTimeout(done, 50))
}"""
# [place, first, last, text] of a slider's handle or a drop-down
VALUE = """element => element.tagName === 'SELECT'
  ? [element.selectedIndex, 0, element.options.length - 1, element.selectedOptions[0].text]
  : [...['now', 'min', 'max'].map(part => Number(element.getAttribute('aria-value' + part))),
     element.getAttribute('aria-valuetext')]"""
FOCUSED = "element => document.activeElement === element"


class Press(NamedTuple):
    """What one key did. pictures: (source, text alternative) before and after it."""

    control: str
    key: str
    before: str
    after: str
    pictures: tuple
    stayed: bool  # the focus is still on the control

    @property
    def problem(self):
        """What is wrong with it in a few words; None if value, picture and text alternative changed."""
        (source, alt), (new_source, new_alt) = self.pictures
        for wrong, says in (
            (not self.stayed, "did not reach the control, JupyterLab took it: the focus is elsewhere"),
            (self.before == self.after, "did not change the control's value"),
            (new_alt is None, "shows an error instead of a picture"),
            (source == new_source, USELESS),
            (alt == new_alt or not new_alt, "did not change the text alternative"),
        ):
            if wrong:
                return f"{self.control}: {self.key} at {self.before!r} -> {self.after!r} {says}"


USELESS = "did not change the picture"


class Control:
    """A slider or a drop-down."""

    def __init__(self, widget, element):
        self.widget, self.page, self.forward = widget, widget.page, True
        self.label = element.locator(".widget-label").first.text_content().strip()
        self.target = element.locator(".noUi-handle, select")
        assert self.target.count() == 1, f"{self.label!r} of {widget.name} is neither a slider nor a drop-down"
        self.menu = self.target.evaluate("element => element.tagName") == "SELECT"

    @property
    def values(self):
        """How many values it has at most: of a drop-down its options, of a slider two, here and one step on."""
        return self.target.evaluate(VALUE)[2] + 1 if self.menu else 2

    def press(self):
        """One arrow key, on and on in one direction, and back from the end; waits for what comes of it."""
        self.target.focus()
        place, first, last, before = self.target.evaluate(VALUE)
        self.forward = place < last if self.forward else place <= first
        key = ("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight")[2 * (not self.menu) + self.forward]
        picture = self.widget.picture
        old = picture.evaluate(SHOWN)
        self.page.keyboard.press(key)
        after = self.target.evaluate(VALUE)[3]
        self.page.evaluate(DRAWN, [picture.element_handle(), old[0]])
        return Press(self.label, key, before, after, (old, picture.evaluate(SHOWN)), self.target.evaluate(FOCUSED))


class Widget:
    """Controls above one picture, in cell `number` of an open lab.Notebook."""

    def __init__(self, notebook, number, name):
        self.page, self.name = notebook.page, name
        self.box = notebook.cell(number).locator(".widget-vbox:has(> .widget-html)").first
        self.box.locator("> .widget-html img").wait_for(state="attached", timeout=300_000)
        self.box.scroll_into_view_if_needed()
        self.picture = self.box.locator("> .widget-html .widget-html-content")
        self.controls = [Control(self, element) for element in self.box.locator("> :not(.widget-html)").all()]

    def tab(self):
        """Labels of the controls that Tab reaches, in turn, from the first one on."""
        self.controls[0].target.focus()
        found = [self.controls[0].label]
        for _ in range(4 * len(self.controls)):
            self.page.keyboard.press("Tab")
            found += [control.label for control in self.controls if control.target.evaluate(FOCUSED)]
            if not self.box.evaluate("box => box.contains(document.activeElement)"):
                break
        return found

    def change(self, control):
        """Press keys of one control until one changes the picture; returns them all, the decisive one last.

        Some values do not matter beside others (how to shard, with one device). So if the first two keys change the
        control but not the picture, each other control is moved, a drop-down through its values and a slider by one
        step, and after each move the key is tried again. If nothing helps, the last Press says so.
        """
        others = [other for other in self.controls if other is not control for _ in range(other.values - 1)]
        presses = [control.press()]
        for other in (None, *others):
            if USELESS not in (presses[-1].problem or ""):
                break
            if other:
                other.press()
            presses.append(control.press())
        return presses
