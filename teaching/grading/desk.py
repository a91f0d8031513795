"""The desk: a notebook in which answers are graded across all submissions, by keyboard.

A link to the report, keys and items stand on top, then answer and evidence side by side, then findings. What the keys
do is the deck's; here it is shown.
"""

import html
from functools import cache
from pathlib import Path

import ipywidgets

from labs import files
from labs.checks import tasks
from labs.errors import LabsError
from labs.printed import grouped, printable
from teaching.author import sources
from teaching.grading import collect, feedback, handed, overview, pins, points, shown
from teaching.grading.deck import FINDINGS, Deck, share

NAMES = {1.0: "all", 0.5: "half", 0.0: "none"}
DECISIONS = (("open", None), ("confirm", "confirmed"), ("dismiss", "dismissed"))
HELP = """\
Keys, typed into the field above: 1 to 9 give an item all its points; the same key again gives half, then none, and \
then leaves it open. a to z add or remove a comment. A full stop goes to the next answer, a comma to the one before, \
a space to the next open one; + and - change the question. A new comment begins with the number of its item, as in: \
2 Which run is it? Enter keeps it, and also any number of points that you type beside an item. Shift+Tab and Enter, \
in the field of keys, open the student's report. Of a finding, the student reads only your sentence, and only after \
you confirm it."""
_CELLS = (
    "Run the cell below (Shift+Enter) and type into the field `keys`. Every key is kept at once, in `marks.json`.",
    'from teaching.grading import desk; desk.Desk(".").box',
)
_TIGHT = 'style="line-height: 1.3; margin: 0; padding: 0 0 0 1em"'


def write(out):
    """Write grading.ipynb, the notebook with the desk, into the folder of a grading; returns its path."""
    import nbformat
    from nbformat import v4

    path = Path(out, "grading.ipynb")
    cells = [v4.new_markdown_cell(_CELLS[0], id="keys"), v4.new_code_cell(_CELLS[1], id="desk")]
    files.write(path, nbformat.writes(v4.new_notebook(cells=cells, metadata={"kernelspec": sources.KERNEL})))
    return path


class Desk:
    """The Deck of a grading's folder as a widget, `box`. task: the question (default: the rubric's first written task).
    Raises UseError as the deck does."""

    def __init__(self, out, task=None):
        self.deck, self._drawing = Deck(out, task), False
        self._evidence, self._report = cache(self._evidence), cache(self._report)
        wide = {"layout": {"width": "32%"}, "style": {"description_width": "8em"}}
        self.keys = ipywidgets.Text(description="keys", placeholder="1 2 a .", **wide)
        self.comment = ipywidgets.Text(description="new comment", continuous_update=False, **wide)
        self.head, self.answer, self.beside, self.bank_list, self.foot = (ipywidgets.HTML() for _ in range(5))
        self.report = ipywidgets.Output()  # JupyterLab resolves links in outputs, and none in widgets.HTML
        self.items, self.decisions = ipywidgets.VBox(), ipywidgets.VBox()
        self.question = ipywidgets.Dropdown(description="question", **wide)
        self.pin = self._pin_row()
        for half in (self.answer, self.beside):
            half.layout = {"width": "50%", "max_height": "18em", "overflow": "auto", "padding": "0 1em 0 0"}
        self.items.layout = {"max_height": "14em", "overflow": "auto"}
        self.report.layout = {"flex": "0 0 auto"}
        self.bank_list.layout = {"width": "35%", "max_height": "14em", "overflow": "auto"}
        self.foot.value = f'<p style="line-height: 1.3">{_text(HELP)}</p>'
        row = ipywidgets.HBox
        parts = [row([self.head, self.report], layout={"align_items": "baseline"})]
        parts += [row([self.keys, self.comment, self.question]), row([self.items, self.bank_list]), self.pin]
        parts += [row([self.answer, self.beside]), self.decisions, self.foot]
        self.box = ipywidgets.VBox(parts)
        self.keys.observe(self._typed, names="value")
        self.comment.observe(self._commented, names="value")
        self.question.observe(self._chosen, names="value")
        self.draw()

    def press(self, key):
        self.deck.press(key)
        self.draw()

    def _do(self, function, *arguments):
        self.deck.do(function, *arguments)
        self.draw()

    def _typed(self, change):
        """Press what stands behind the keys of before, or in their place. A browser sends several at once when the
        kernel is busy, and would lose some of them if the field were emptied meanwhile: so it keeps all."""
        new, old = change["new"], change["old"]
        if old.startswith(new):
            self._do(lambda: "Keys were taken back in the field: marks stay as they are.")
        for key in "" if old.startswith(new) else new.removeprefix(old):
            self.press(key)

    def _commented(self, _):
        if text := self.comment.value.strip():
            self._do(self.deck.new_comment, text)
            if self.deck.message.startswith("Kept"):
                self._empty_fields()

    def _chosen(self, change):
        if not self._drawing:
            self._do(self.deck.ask, change["new"])

    def _empty_fields(self):
        self.comment.value = ""
        self.keys.unobserve(self._typed, names="value")
        self.keys.value = ""  # nobody types there now; Shift+Tab would select what stands in it
        self.keys.observe(self._typed, names="value")

    def draw(self):
        """Show the card on top."""
        deck = self.deck
        number, cards, message = deck.number, deck.cards, f' <b role="status">{_text(deck.message)}</b>'
        self._drawing = True
        self.question.options = [(self._title(task), task) for task in deck.tasks]
        self.question.value = deck.task
        self._drawing = False
        if number is None:
            self.head.value = f"<b>{_text(deck.task)}</b>: there is nothing to look at.{message}"
            self.answer.value = self.beside.value = self.bank_list.value = ""
            self.items.children = self.decisions.children = self.report.outputs = ()
            self.pin.layout.display = "none"
            return
        total, done = points.total(deck.graded.lines(number)), sum(not deck.is_open(card) for card in cards)
        self.head.value = (
            f"<b>{_text(deck.task)}, submission {number}</b> ({deck.place % len(cards) + 1} of {len(cards)}; {done} "
            f"done): {total:g} of {deck.rules.most:g} points.{message}"
        )
        data = {"text/html": self._report(number)}
        self.report.outputs = ({"output_type": "display_data", "data": data, "metadata": {}},)
        self.answer.value = f'<div style="line-height: 1.3">{self._answer()}</div>'
        evidence = self._evidence(number, deck.task)
        self.beside.value = f'<div style="line-height: 1.3"><b>Evidence</b>{evidence}</div>'
        self._drawing = True
        self._draw_items()
        self._draw_bank()
        self._draw_pin()
        self._draw_decisions()
        self._drawing = False

    def _title(self, task):
        return "Findings" if task == FINDINGS else feedback.titled(task, self.deck.rules)

    def _report(self, number):
        """A link to the report that was handed in, as HTML, or why there is none. For it the file is taken out of the
        submission, as reports/NUMBER.pdf."""
        try:
            content = collect.contents(self.deck.graded.paths[number], {"report.pdf"}).get("report.pdf", b"")
            if not content.startswith(b"%PDF-"):
                return "No report: this submission holds no report.pdf that is a PDF."
            files.write(path := self.deck.out / f"reports/{number}.pdf", content)
        except LabsError as problem:
            return _text(problem)
        return f'<a href="{_text(path)}">Report of submission {number}</a> (its first page may name the student)'

    def _answer(self):
        """What the student wrote, as HTML: an answer, or the code of a check with how it was judged; with checks and
        findings, what was seen when the submission was collected and checked."""
        deck, task, found = self.deck, self.deck.task, self.deck.found[self.deck.number]
        title = f"<b>{_text(self._title(task))}</b>"
        if task in found["answers"]:
            return title + _pre(found["answers"][task])
        lines, code = [*deck.graded.collected.get(deck.number, ()), *found["told"]], ""
        lines = [line for line in lines if line != "complete"]
        if task != FINDINGS:
            judged = deck.judged[deck.number][task]
            says = feedback.clean(judged.get("fell", judged["text"]))
            lines.insert(0, f"In the sandbox: {judged['state']}. {says}".strip(". "))
            code = _pre(found["code"].get(task, "(its cell is as students get it, or is missing)"))
        return title + "".join(f"<p>{_text(line)}</p>" for line in lines) + code

    def _evidence(self, number, task):
        """Beside a question, as HTML: tables from the records, then machines, logs and scripts."""
        deck, parts = self.deck, []
        for caption, head, *rows in deck.found[number]["tables"].get(task, ()):
            body = "".join(_row_of(row, "td") for row in rows)
            parts.append(f"<table><caption>{_text(caption)}</caption>{_row_of(head, 'th')}{body}</table>")
        pieces = []  # (heading, text)
        if item := tasks.items().get(task, (None, None))[1]:
            with handed.opened(number, deck.graded.paths[number]) as submission:
                pieces = [("Where the runs were made", "\n".join(shown.machines(submission, item)))]
                pieces += [(each["file"], "\n".join(each["lines"])) for each in shown.logs(submission, item)]
                changes = shown.changes(submission.contents, item.evidence, deck.found[number]["code"].get(task, ""))
                pieces += [(f"{name}: what was changed", "\n".join(lines)) for name, lines in changes]
        for head, text in pieces:
            if text:
                parts.append(f"<details open><summary>{_text(head)}</summary>{_pre(text)}</details>")
        return "".join(parts) or "<p>No run, log or script belongs to this question.</p>"

    def _draw_items(self):
        """The items as buttons, at the marks that are kept, with who gave them."""
        own, unmarked = self.deck.own, "open" if self.deck.is_open(self.deck.number) else "as judged"
        if [row.item for row in self.items.children] != self.deck.items:
            self.items.children = [self._item_row(item) for item in self.deck.items]
        for place, row in enumerate(self.items.children, 1):
            item, (buttons, _, text) = row.item, row.children
            marked, by = share(own, item.id), own.stamps.get(item.id)
            buttons.value = marked if marked in NAMES else None
            got = unmarked if marked is None else f"{marked * item.points:g}"
            who = f" <i>({_text(by)})</i>" if str(by or "") else ""  # nobody is noted who has written it by hand
            line = f"<b>{place}</b>: {got} of {item.points:g}: {_text(item.text)}{who}"
            text.value = f'<div style="line-height: 1.3; padding-top: 4px">{line}</div>'

    def _item_row(self, item):
        def changed(widget):
            if widget is buttons and buttons.value is not None:
                self._do(self.deck.mark, item.id, buttons.value)
            elif widget is given and given.value:
                self._do(self.deck.give, item, given.value)
                given.value = ""

        row = self._row([(name, worth) for worth, name in NAMES.items()], "4.5em", "points", "5em", changed)
        buttons, given, _ = row.children
        row.item = item
        return row

    def _row(self, options, width, asked, field, changed):
        """Buttons, a field that says what is asked for, and a text, which is HTML; changed(widget) is called when a
        person has changed one of the first two."""
        layout = {"width": "auto", "flex": "0 0 auto"}
        style = {"button_width": width}
        buttons = ipywidgets.ToggleButtons(options=options, value=None, style=style, layout=layout)
        given = ipywidgets.Text(
            placeholder=asked, continuous_update=False, layout={"flex": f"0 0 {field}", "width": field}
        )
        for widget in (buttons, given):
            widget.observe(lambda change: None if self._drawing else changed(change["owner"]), names="value")
        text = ipywidgets.HTML(layout={"flex": "1 1 auto", "width": "auto"})
        return ipywidgets.HBox([buttons, given, text], layout={"flex": "0 0 auto"})

    def _pin_row(self):
        """What all read, and get, who made the mistake on top; a click on its button keeps it."""
        comment = ipywidgets.Text(placeholder="comment for all with this hint", layout={"width": "50%"})
        given, button = ipywidgets.Text(placeholder="points", layout={"width": "5em"}), ipywidgets.Button()
        button.layout.width = "auto"
        button.on_click(lambda _: self._do(self.deck.pin, comment.value.strip(), given.value.strip()))
        row = ipywidgets.HBox([comment, given, button])
        row.card = None
        return row

    def _draw_pin(self):
        deck, (comment, given, button) = self.deck, self.pin.children
        mistake = deck.mistake
        self.pin.layout.display = None if mistake else "none"
        if mistake and self.pin.card != (deck.task, deck.number):  # else what is being typed stays
            self.pin.card = deck.task, deck.number
            there = pins.pinned(deck.rules.pin, deck.found[deck.number]).get(deck.task)
            comment.value = there.comment if there else ""
            given.value = f"{there.share * deck.items[0].points:g}" if there else ""
            button.description = f"For all {len(mistake.numbers)} with this hint"

    def _draw_bank(self):
        """The comment bank, each with its letter, and whether it is on this answer."""
        own = self.deck.own
        rows = "".join(
            f"<li>{'<b>[x]</b>' if id in own.comments else '[ ]'} {letter}: {_text(text)} ({_text(id)})</li>"
            for letter, (id, text) in self.deck.bank.items()
        )
        self.items.layout.width, self.bank_list.layout.display = ("65%", None) if rows else ("100%", "none")
        self.bank_list.value = f'<ul style="list-style: none; margin: 0; padding: 0; line-height: 1.3">{rows}</ul>'

    def _draw_decisions(self):
        """The findings of this question, each kind with what was decided of it, and the sentence for the student."""
        own, number = self.deck.own, self.deck.number
        lines = grouped(
            (one.kind, f"{one.severity}, {overview.state(one, own)}: {one.where}, {one.seen} (honest: {one.honest})")
            for one in self.deck.findings
        )
        if [(row.number, row.kind) for row in self.decisions.children] != [(number, kind) for kind in lines]:
            self.decisions.children = [self._decision_row(number, kind) for kind in lines]
        for row in self.decisions.children:
            decision, (buttons, sentence, findings) = own.findings.get(row.kind), row.children
            buttons.value = decision.state if decision else None
            if decision and decision.sentence:
                sentence.value = decision.sentence
            shown_lines = "".join(f"<li>{_text(line)}</li>" for line in lines[row.kind])
            findings.value = f"<b>{_text(row.kind)}</b><ul {_TIGHT}>{shown_lines}</ul>"

    def _decision_row(self, number, kind):
        def changed(widget):
            if widget is buttons or buttons.value == "confirmed":
                self._do(self.deck.decide, kind, buttons.value, sentence.value)

        row = self._row(DECISIONS, "6em", "sentence for the student", "20em", changed)
        buttons, sentence, _ = row.children
        row.kind, row.number = kind, number
        return row


def _row_of(cells, tag):
    return f"<tr>{''.join(f'<{tag}>{_text(cell)}</{tag}>' for cell in cells)}</tr>"


def _text(text):
    return html.escape(printable(str(text)))


def _pre(text):
    lines = "\n".join(_text(line) for line in text.split("\n"))
    return f'<pre style="white-space: pre-wrap; word-break: normal">{lines}</pre>'
