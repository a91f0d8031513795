"""A widget of widgets.explore as the keyboard sees it: its controls, the picture, the time from key to picture."""

from dataclasses import dataclass

# Runs in the page. The time begins when the browser has the key (before JupyterLab sees it) and ends with the frame in
# which the new, decoded picture is drawn. `over` also holds when the kernel has answered and the picture is the same.
SCRIPT = """
window.labs = {
  watch(picture) {
    const old = labs.old = picture.querySelector('img')?.src
    const status = document.querySelector('.jp-Notebook-ExecutionIndicator')
    labs.stop?.()
    Object.assign(labs, {began: null, took: null, busy: false, idle: null})
    const drawn = new MutationObserver(async () => {
      const image = picture.querySelector('img')
      if (!image || image.src === old) return
      await image.decode()
      requestAnimationFrame(() => { labs.took ??= performance.now() - labs.began })
    })
    const worked = new MutationObserver(() => {
      labs.busy ||= status.dataset.status !== 'idle'
      labs.idle = labs.busy && status.dataset.status === 'idle' ? performance.now() : null
    })
    drawn.observe(picture, {childList: true, subtree: true, attributes: true})
    worked.observe(status, {attributes: true})
    labs.stop = () => { drawn.disconnect(); worked.disconnect() }
  },
  over(picture) {
    const image = picture.querySelector('img')
    const same = image?.src === labs.old && labs.idle !== null && performance.now() - labs.idle > 1000
    return !image || labs.took !== null || same
  },
}
window.addEventListener('keydown', () => { labs.began = performance.now() }, true)
"""
SHOWN = "picture => { const image = picture.querySelector('img'); return [image?.src, image?.alt] }"
# [place, first, last, text] of a slider's handle or a drop-down
VALUE = """element => element.tagName === 'SELECT'
  ? [element.selectedIndex, 0, element.options.length - 1, element.selectedOptions[0].text]
  : [...['now', 'min', 'max'].map(part => Number(element.getAttribute('aria-value' + part))),
     element.getAttribute('aria-valuetext')]"""
FOCUSED = "element => document.activeElement === element"


@dataclass
class Press:
    """What one key did. seconds: from the key to the new picture; None if the picture stayed the same."""

    control: str
    key: str
    before: str
    after: str
    alts: tuple
    seconds: float | None
    stayed: bool  # the focus is still on the control

    @property
    def problem(self):
        """What is wrong with it in a few words; None if value, picture and text alternative changed."""
        what = f"{self.control}: {self.key} at {self.before!r}"
        if not self.stayed:
            return f"{what} did not reach the control, JupyterLab took it: the focus is elsewhere"
        if self.before == self.after:
            return f"{what} did not change the control's value"
        if self.alts[1] is None:
            return f"{what} -> {self.after!r} shows an error instead of a picture"
        if self.seconds is None:
            return f"{what} -> {self.after!r} did not change the picture"
        if not self.alts[1] or self.alts[0] == self.alts[1]:
            return f"{what} -> {self.after!r} changed the picture but not its text alternative {self.alts[1]!r}"
        return None


class Control:
    """A slider or a drop-down."""

    def __init__(self, widget, element):
        self.widget, self.page = widget, widget.page
        self.label = element.locator(".widget-label").first.text_content().strip()
        self.target = element.locator(".noUi-handle, select")
        if self.target.count() != 1:
            raise AssertionError(
                f"{self.label!r} of {widget.name} is neither a slider nor a drop-down: these tests "
                "cannot move it. Teach it to tests/browser/keys.py."
            )
        self.menu = self.target.evaluate("element => element.tagName") == "SELECT"
        self.forward = True

    @property
    def value(self):
        return self.target.evaluate(VALUE)[3]

    @property
    def values(self):
        """How many values it has at most: of a drop-down its options, of a slider two, here and one step on."""
        return self.target.evaluate(VALUE)[2] + 1 if self.menu else 2

    @property
    def focused(self):
        return self.target.evaluate(FOCUSED)

    def press(self):
        """One arrow key, on and on in one direction, and back from the end; waits for what comes of it."""
        if not self.focused:
            self.target.focus()
        place, first, last, before = self.target.evaluate(VALUE)
        self.forward = place < last if self.forward else place <= first
        key = ("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight")[2 * (not self.menu) + self.forward]
        picture = self.widget.picture
        old = picture.evaluate(SHOWN)
        picture.evaluate("picture => labs.watch(picture)")
        self.page.keyboard.press(key)
        after = self.value
        if after != before:
            self.page.wait_for_function("picture => labs.over(picture)", arg=picture.element_handle())
        new, took = picture.evaluate(SHOWN), self.page.evaluate("labs.took")
        seconds = None if took is None or new[0] == old[0] else took / 1000
        return Press(self.label, key, before, after, (old[1], new[1]), seconds, self.focused)


class Widget:
    """Controls above one picture, in cell `number` of an open lab.Notebook."""

    def __init__(self, notebook, number, name):
        self.page, self.name = notebook.page, name
        if not self.page.evaluate("Boolean(window.labs)"):
            self.page.evaluate(SCRIPT)
        self.box = notebook.cell(number).locator(".widget-vbox:has(> .widget-html)").first
        self.box.locator("> .widget-html img").wait_for(state="attached", timeout=300_000)
        self.box.scroll_into_view_if_needed()
        self.picture = self.box.locator("> .widget-html .widget-html-content")
        self.controls = [Control(self, element) for element in self.box.locator("> :not(.widget-html)").all()]

    def tab(self, at_most=4):
        """Labels of the controls that Tab reaches, in turn, from the first one on."""
        self.controls[0].target.focus()
        found = [self.controls[0].label]
        for _ in range(at_most * len(self.controls)):
            self.page.keyboard.press("Tab")
            found += [control.label for control in self.controls if control.focused]
            if not self.box.evaluate("box => box.contains(document.activeElement)"):
                break
        return found

    def change(self, control):
        """Press keys of one control until one changes the picture; returns them all, the decisive one last.

        Some values do not matter beside others (how to shard, with one device). So if the first two keys change the
        control but not the picture, each other control is moved, a drop-down through its values and a slider by one
        step, and after each move the key is tried again. If nothing helps, the last Press says so.
        """
        presses = [control.press()]
        if _useless(presses[-1]):
            presses.append(control.press())
        for other in self.controls:
            for _ in range(other.values - 1 if other is not control else 0):
                if not _useless(presses[-1]):
                    return presses
                other.press()
                presses.append(control.press())
        return presses


def _useless(press):
    return press.stayed and press.before != press.after and press.seconds is None and press.alts[1] is not None
