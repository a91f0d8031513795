"""The desk: a notebook in which one written question is graded across all submissions, by keyboard.

Answer and evidence stand side by side, in an order that says nothing about names; below them the rubric's items, as
keys and as buttons, and the comment bank. Every key is kept at once (labs.grading.marks) and what others have marked
is read with it. When rubric.toml has changed, all points are computed anew, and those that moved are told.
"""

import hashlib
import html
from pathlib import Path

import ipywidgets

from labs import files
from labs.author import sources
from labs.errors import LabsError, UseError
from labs.grading import check, marks, points, rubric
from labs.printed import printable

NEXT = {None: 1.0, 1.0: 0.5, 0.5: 0.0, 0.0: None}  # what a key makes of a mark
NAMES = {1.0: "all", 0.5: "half", 0.0: "none"}
HELP = (
    "Keys, in the field above: 1 to 9: an item, all its points; again: half, none, open. a to z: a comment. "
    "Full stop and comma: the next answer, the one before. Space: the next one that is open. + and -: other questions. "
    "A new comment begins with the number of its item, and Enter keeps it: 2 Which run is it?"
)
_CELLS = (
    "# Grading by keyboard\n\nRun the cell below, and type into the field `keys`. Every key is kept at once, in "
    "`marks.json`. Change `rubric.toml` as you like, also meanwhile; then press `.`.",
    'from labs.grading import desk\n\ndesk.show(".")',
)


def write(out):
    """Write grading.ipynb, the notebook with the desk, into the folder of a grading; returns its path."""
    import nbformat
    from nbformat import v4

    path = Path(out, "grading.ipynb")
    cells = [v4.new_markdown_cell(_CELLS[0], id="keys"), v4.new_code_cell(_CELLS[1], id="desk")]
    files.write(path, nbformat.writes(v4.new_notebook(cells=cells, metadata={"kernelspec": sources.KERNEL})))
    return path


def show(out, task=None):
    """Show the desk for a grading's folder, at a written task (default: the rubric's first one)."""
    from IPython.display import display

    display(Desk(out, task).box)


class Desk:
    """The desk as a widget, `box`. task: the question; number: of the submission that is shown.

    Raises UseError: nothing was looked at, or the rubric has no such written task.
    """

    def __init__(self, out, task=None):
        self.out, self.found = Path(out), check.results(out)
        self.rules, self.decided = rubric.load(out), marks.load(out)
        if not self.found:
            raise UseError(f"{out} holds no results: run `labs grade check` first.")
        self.task = task or next(iter(self._tasks()), None)
        if self.task not in self._tasks():
            raise UseError(f"The rubric has no written answer {self.task!r}; it has {', '.join(self._tasks())}.")
        self.said, self.place, self._drawing = "", 0, False
        wide = {"layout": {"width": "40em"}, "style": {"description_width": "8em"}}
        self.keys = ipywidgets.Text(description="keys", placeholder="1 2 a .", **wide)
        self.comment = ipywidgets.Text(description="new comment", continuous_update=False, **wide)
        self.head, self.answer, self.beside, self.foot = (ipywidgets.HTML() for _ in range(4))
        self.items = ipywidgets.VBox()
        for half in (self.answer, self.beside):
            half.layout = {"width": "50%", "max_height": "28em", "overflow": "auto", "padding": "0 1em 0 0"}
        sides = ipywidgets.HBox([self.answer, self.beside])
        self.box = ipywidgets.VBox([self.head, sides, self.items, self.keys, self.comment, self.foot])
        self.keys.observe(self._typed, names="value")
        self.comment.observe(self._commented, names="value")
        self.draw()

    def _tasks(self):
        return [each.id for each in self.rules.answer if each.items]

    @property
    def order(self):
        """The numbers of all submissions, in an order of this question's own."""
        return sorted(self.found, key=lambda number: hashlib.sha256(f"{self.task} {number}".encode()).hexdigest())

    @property
    def number(self):
        return self.order[self.place]

    @property
    def asked(self):
        """The rubric's items of this question."""
        return next((each.items for each in self.rules.answer if each.id == self.task), [])

    @property
    def bank(self):
        """{letter: (id, text)} of the comment bank's comments on this question."""
        own = {id: text for id, text in self.rules.comments.items() if id.startswith(f"{self.task}.")}
        return dict(zip("abcdefghijklmnopqrstuvwxyz", sorted(own.items()), strict=False))

    def press(self, key):
        """Do what a key says, keep it, and draw."""
        item = self._item(key)
        if item:
            self._do(self._mark, item.id, NEXT.get(self._marks().items.get(item.id), 1.0))
        elif key in self.bank:
            self._do(self._comment, self.bank[key][0])
        elif key in ".,":
            self._do(self._go, 1 if key == "." else -1)
        elif key in "+-":
            self._do(self._ask, 1 if key == "+" else -1)
        elif key == " ":
            self._do(self._to_open)
        else:
            self._do(lambda: f"{key!r} is no key here.")

    def _do(self, function, *arguments):
        """Call the function and draw; what it returns is told, and so is why something could not be kept."""
        try:
            self.said = function(*arguments) or ""
        except LabsError as problem:
            self.said = str(problem)
        self.draw()

    def _item(self, key):
        """The item of which a text is the number, or None."""
        return self.asked[int(key) - 1] if key.isdecimal() and 0 < int(key) <= len(self.asked) else None

    def _marks(self, number=None):
        return self.decided.get(number or self.number, marks.Marks())

    def _mark(self, id, share):
        now = marks.load(self.out).get(self.number, marks.Marks())
        if now.items.get(id) != self._marks().items.get(id):
            return f"Somebody else has marked {id} meanwhile. Look at it, and mark it again if you want another mark."
        marks.mark(self.out, self.number, self.rules, id, share)
        return None

    def _comment(self, id):
        there = id in self._marks().comments
        marks.mark(self.out, self.number, self.rules, **{"without" if there else "comments": [id]})

    def _go(self, steps):
        self.place = (self.place + steps) % len(self.found)

    def _ask(self, steps):
        known = self._tasks()
        self.task, self.place = known[(known.index(self.task) + steps) % len(known)], 0

    def _open(self, number):
        return bool(self.found[number]["answers"].get(self.task)) and any(
            item.id not in self._marks(number).items for item in self.asked
        )

    def _to_open(self):
        for _ in self.found:
            self._go(1)
            if self._open(self.number):
                return None
        return f"Every answer to {self.task} is marked."

    def _typed(self, change):
        """Press what stands behind the keys of before, or in their place. A browser sends several at once when the
        kernel is busy, and would lose some of them if the field were emptied meanwhile: so it keeps all."""
        new, old = change["new"], change["old"]
        if old.startswith(new):
            self._do(lambda: "Keys were taken back in the field: marks stay as they are.")
        for key in "" if old.startswith(new) else new.removeprefix(old):
            self.press(key)

    def _commented(self, _):
        """Put a new comment into the bank, for the item whose number stands in front, and on this answer."""
        number, _, text = self.comment.value.strip().partition(" ")
        if number:
            self._do(self._new_comment, self._item(number), text.strip())

    def _new_comment(self, item, text):
        if not (item and text):
            return "A new comment begins with the number of its item: 2 Which run is it?"
        id = rubric.add_comment(self.out, item.id, text)
        marks.mark(self.out, self.number, self.rules, comments=[id])
        self.comment.value = ""
        self.keys.unobserve(self._typed, names="value")
        self.keys.value = ""  # nobody types there now; Shift+Tab would select what stands in it
        self.keys.observe(self._typed, names="value")
        return f"Kept as {id}."

    def draw(self):
        """Read rubric and marks again, and show them."""
        rules = self.rules
        try:
            self.decided, rules = marks.load(self.out), rubric.load(self.out)
        except UseError as problem:
            self.said = str(problem)
        if rules != self.rules and any(each.items for each in rules.answer):
            before, now = self._totals(self.rules), self._totals(rules)
            moved = [f"{n}: {before[n]:g} -> {now[n]:g}" for n in sorted(now) if now[n] != before[n]]
            self.said = f"The rubric has changed. Points: {', '.join(moved) or 'as they were'}. {self.said}"
            self.rules = rules
            if self.task not in self._tasks():
                self.task, self.place = next(iter(self._tasks())), 0
        found, own = self.found[self.number], self._marks()
        total = points.total(points.lines(found, self.rules, own))
        done = sum(not self._open(number) for number in self.found)
        self.head.value = (
            f"<b>{_text(self.task)}, submission {self.number}</b> ({self.place + 1} of {len(self.found)}; {done} are "
            f"done): {total:g} of {self.rules.most:g} points"
        )
        self.answer.value = f"<b>Answer</b>{_pre(found['answers'].get(self.task) or '(no answer is written)')}"
        self.beside.value = f"<b>Evidence</b>{_evidence(found, self.task)}"
        self._draw_items(own)
        bank = "".join(
            f"<li>{'<b>[x]</b>' if id in own.comments else '[ ]'} {letter}: {_text(text)} ({_text(id)})</li>"
            for letter, (id, text) in self.bank.items()
        )
        said = f'<p role="status"><b>{_text(self.said)}</b></p>'
        self.foot.value = f'{said}<ul style="list-style: none">{bank}</ul><p>{_text(HELP)}</p>'

    def _totals(self, rules):
        return {n: points.total(points.lines(each, rules, self._marks(n))) for n, each in self.found.items()}

    def _draw_items(self, own):
        """The items as buttons, at the marks that are kept."""
        self._drawing = True
        if [row.item for row in self.items.children] != self.asked:
            self.items.children = [self._row(item) for item in self.asked]
        for place, row in enumerate(self.items.children, 1):
            share = own.items.get(row.item.id)
            row.children[0].value = share if share in NAMES else None
            of = "open" if share is None else f"{share * row.item.points:g}"
            row.children[1].value = f"<b>{place}</b>: {of} of {row.item.points:g}: {_text(row.item.text)}"
        self._drawing = False

    def _row(self, item):
        options = [(name, share) for share, name in NAMES.items()]
        buttons = ipywidgets.ToggleButtons(options=options, value=None, style={"button_width": "4.5em"})

        def pressed(change):
            if not self._drawing and change["new"] is not None:
                self._do(self._mark, item.id, change["new"])

        buttons.observe(pressed, names="value")
        row = ipywidgets.HBox([buttons, ipywidgets.HTML()])
        row.item = item
        return row


def _evidence(found, task):
    """The tables that the records give, and the findings, as HTML."""
    parts = []
    for caption, head, *rows in found["tables"].get(task, ()):
        body = "".join(_row_of(row, "td") for row in rows)
        parts.append(f"<table><caption>{_text(caption)}</caption>{_row_of(head, 'th')}{body}</table>")
    told = [each for each in found["findings"] if each.severity != "note" or each.where == task]
    parts += [f"<p>{_text(f'{f.severity}: {f.where}, {f.seen} (honest: {f.honest})')}</p>" for f in told]
    return "".join(parts) or "<p>There is none.</p>"


def _row_of(cells, tag):
    return f"<tr>{''.join(f'<{tag}>{_text(cell)}</{tag}>' for cell in cells)}</tr>"


def _text(text):
    return html.escape(printable(str(text)))


def _pre(text):
    lines = "\n".join(_text(line) for line in text.split("\n"))
    return f'<pre style="white-space: pre-wrap; word-break: normal">{lines}</pre>'
