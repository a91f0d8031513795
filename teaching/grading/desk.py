"""The desk: a notebook in which answers are graded across all submissions, by keyboard.

Question by question: each written answer, then each check that was left for a person, with its code, then what students
dispute. A link to the report, keys and items stand on top, then answer and evidence side by side, in an order that says
nothing about names. Every key is kept at once (see marks) and what others have marked is read with it. When
rubric.toml has changed, all points are computed anew, and those that moved are told.
"""

import hashlib
import html
import re
from functools import cache
from pathlib import Path
from typing import Any

import ipywidgets

from labs import files
from labs.checks import tasks
from labs.errors import LabsError, UseError
from labs.printed import grouped, printable
from teaching.author import sources
from teaching.grading import collect, feedback, handed, marks, overview, points, rubric, shown
from teaching.grading.finding import by_id
from teaching.grading.graded import Graded

NEXT = {None: 1.0, 1.0: 0.5, 0.5: 0.0, 0.0: None}  # what a key makes of a mark
NAMES = {1.0: "all", 0.5: "half", 0.0: "none"}
DECISIONS = (("open", None), ("confirm", "confirmed"), ("dismiss", "dismissed"))
DISPUTES = "disputes"
_SAID = files.beside(__file__)
_CELLS = (
    "Run the cell below (Shift+Enter) and type into the field `keys`. Every key is kept at once, in `marks.json`.",
    'from teaching.grading import desk; desk.show(".")',
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


def show(out, task=None):
    """Show the desk for a grading's folder, at a question (default: the rubric's first written task)."""
    from IPython.display import display

    display(Desk(out, task).box)


class Desk:
    """The desk as a widget, `box`. task: the question; number: of the submission that is shown, None without one.

    Raises UseError: nothing was looked at, or there is no such question.
    """

    def __init__(self, out, task=None):
        self.graded = Graded(out)
        self.out, self.found, self.disputed = self.graded.out, self.graded.found, self.graded.disputed
        self.rules, self._marks = self.graded.rules, self.graded.own
        self._code = cache(lambda number: shown.code(self.graded.paths[number]))
        self._evidence, self._report = cache(self._evidence), cache(self._report)
        self.task: str = task or next(iter(self._tasks()), "")
        if self.task not in self._tasks():
            raise UseError(f"The rubric has no written answer {self.task!r}; it has {', '.join(self._tasks())}.")
        self.said, self.place, self._drawing = "", 0, False
        wide = {"layout": {"width": "50%"}, "style": {"description_width": "9em"}}
        self.keys = ipywidgets.Text(description="keys", placeholder="1 2 a .", **wide)
        self.comment = ipywidgets.Text(description="new comment", continuous_update=False, **wide)
        self.head, self.answer, self.beside, self.bank_list, self.foot = (ipywidgets.HTML() for _ in range(5))
        self.report = ipywidgets.Output()  # JupyterLab resolves links in outputs, and none in widgets.HTML
        self.items, self.decisions = ipywidgets.VBox(), ipywidgets.VBox()
        for half in (self.answer, self.beside):
            half.layout = {"width": "50%", "max_height": "18em", "overflow": "auto", "padding": "0 1em 0 0"}
        self.items.layout = {"max_height": "14em", "overflow": "auto"}
        self.report.layout = {"flex": "0 0 auto"}
        self.bank_list.layout = {"width": "35%", "max_height": "14em", "overflow": "auto"}
        row = ipywidgets.HBox
        parts = [row([self.head, self.report], layout={"align_items": "baseline"})]
        parts += [row([self.keys, self.comment]), row([self.items, self.bank_list])]
        parts += [row([self.answer, self.beside]), self.decisions, self.foot]
        self.box = ipywidgets.VBox(parts)
        self.keys.observe(self._typed, names="value")
        self.comment.observe(self._commented, names="value")
        self.draw()

    def _tasks(self):
        """The questions: written answers, checks that a person has to judge, and what is disputed."""
        written = [each.id for each in self.rules.answer if each.items]
        left = [id for id, of in self.rules.checks.items() if of and any(self._left(n, id) for n in self.found)]
        return written + left + ([DISPUTES] if self.disputed else [])

    def _left(self, number, id):
        """How a check was judged, if that is left to a person, else None."""
        judged = by_id(self.found[number]["checks"]).get(id)
        return judged if judged and judged["how"] == "person" else None

    @property
    def cards(self):
        """(number, id of what is graded) of all that this question deals out, in an order of its own: nobody's who has
        handed in nothing to look at."""
        found = [(number, self.task) for number, each in self.found.items() if each["answers"].get(self.task)]
        if self.task == DISPUTES:
            found = [(number, id) for number, each in self.disputed.items() for id in each]
        elif self.task in self.rules.checks:
            found = [(number, self.task) for number in self.found if self._left(number, self.task)]
        return sorted(found, key=lambda card: hashlib.sha256(f"{card[1]} {card[0]}".encode()).hexdigest())

    @property
    def card(self) -> tuple[Any, str]:
        """(number, id) of what is shown; (None, the question) where nobody has handed in anything."""
        return ([(None, self.task)] if not self.cards else self.cards)[self.place % max(1, len(self.cards))]

    @property
    def number(self):
        return self.card[0]

    @property
    def asked(self):
        """What is marked here: items of the rubric, or a check as one of them."""
        return self._asked(self.card[1])

    def _asked(self, id):
        if id in self.rules.checks:
            return [rubric.Criterion(id=id, points=self.rules.checks[id], text=feedback.titled(id, self.rules))]
        if id in self.rules.items:
            return [self.rules.items[id][1]]
        return next((each.items for each in self.rules.answer if each.id == id), [])

    @property
    def bank(self):
        """{letter: (id, text)} of the comment bank's comments on what is marked here."""
        ids = {item.id for item in self.asked}
        own = {id: text for id, text in self.rules.comments.items() if id[:-1] in ids}
        return dict(zip("abcdefghijklmnopqrstuvwxyz", sorted(own.items()), strict=False))

    def press(self, key):
        """Do what a key says, keep it, and draw."""
        item = self._item(key)
        steps = {".": 1, ",": -1, "+": 1, "-": -1}.get(key)
        if item and self.number:
            self._do(self._mark, item.id, NEXT.get(self._share(item.id), 1.0))
        elif key in self.bank and self.number:
            self._do(self._comment, self.bank[key][0])
        elif steps:
            self._do(self._go if key in ".," else self._ask, steps)
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

    def _share(self, id, own=None):
        own = own or self._marks(self.number)
        return own.items.get(id, own.checks.get(id))

    def _mark(self, id, share):
        now = marks.load(self.out).get(self.number, marks.Marks())
        if self._share(id, now) != self._share(id):
            return f"Somebody else has marked {id} meanwhile. Look at it, and mark it again if you want another mark."
        marks.mark(self.out, self.number, self.rules, id, share)

    def _comment(self, id):
        there = id in self._marks(self.number).comments
        marks.mark(self.out, self.number, self.rules, **{"without" if there else "comments": [id]})

    def _go(self, steps):
        self.place = (self.place + steps) % max(1, len(self.cards))

    def _ask(self, steps):
        known = self._tasks()
        self.task, self.place = known[(known.index(self.task) + steps) % len(known)], 0

    def _open(self, number, id):
        if self.task == DISPUTES:
            return id in self.graded.waits(number)
        return any(self._share(item.id, self._marks(number)) is None for item in self._asked(id))

    def _to_open(self):
        for _ in self.cards:
            self._go(1)
            if self._open(*self.card):
                return ""
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
        """Answer the dispute that is shown; else put a new comment into the bank, for the item whose number stands in
        front, and on this answer."""
        text = self.comment.value.strip()
        if text and self.number and self.task == DISPUTES:
            self._do(self._reply, text)
        elif text:
            number, _, text = text.partition(" ")
            self._do(self._new_comment, self._item(number), text.strip())

    def _reply(self, text):
        marks.reply(self.out, self.number, self.card[1], text, self.disputed[self.number])
        self._empty_fields()
        return "Kept: it stands in the student's next feedback."

    def _new_comment(self, item, text):
        if not (item and text and self.number):
            return "A new comment begins with the number of its item: 2 Which run is it?"
        text = marks.fit_to_read(self.out, self.number, text)
        id = rubric.add_comment(self.out, item.id, text)
        marks.mark(self.out, self.number, self.rules, comments=[id])
        self._empty_fields()
        return f"Kept as {id}."

    def _empty_fields(self):
        self.comment.value = ""
        self.keys.unobserve(self._typed, names="value")
        self.keys.value = ""  # nobody types there now; Shift+Tab would select what stands in it
        self.keys.observe(self._typed, names="value")

    def draw(self):
        """Read rubric and marks again, and show them."""
        try:
            self.graded.read()
        except UseError as problem:
            self.said = str(problem)
        rules = self.graded.rules
        if rules != self.rules and any(each.items for each in rules.answer):
            totals = {n: [points.total(self.graded.lines(n, by)) for by in (self.rules, rules)] for n in self.found}
            moved = [f"{n}: {before:g} -> {now:g}" for n, (before, now) in sorted(totals.items()) if now != before]
            self.said = f"The rubric has changed. Points: {', '.join(moved) or 'as they were'}. {self.said}"
            self.rules = rules
            if self.task not in self._tasks():
                self.task, self.place = next(iter(self._tasks())), 0
        said = f' <b role="status">{_text(self.said)}</b>'
        if self.number is None:
            self.head.value = f"<b>{_text(self.task)}</b>: nobody has handed in an answer.{said}"
            self.answer.value = self.beside.value = self.bank_list.value = ""
            self.items.children = self.decisions.children = self.report.outputs = ()
        else:
            self._draw_card(said)
        self.foot.value = f'<p style="line-height: 1.3">{_text(_SAID["help"])}</p>'

    def _draw_card(self, said):
        (number, id), cards = self.card, self.cards
        found, own = self.found[number], self._marks(number)
        total, done = points.total(self.graded.lines(number, self.rules)), sum(not self._open(*card) for card in cards)
        question = self.task if self.task != DISPUTES else f"Dispute about {id}"
        self.head.value = (
            f"<b>{_text(question)}, submission {number}</b> ({self.place % len(cards) + 1} of {len(cards)}; {done} "
            f"done): {total:g} of {self.rules.most:g} points.{said}"
        )
        data = {"text/html": self._report(number)}
        self.report.outputs = ({"output_type": "display_data", "data": data, "metadata": {}},)
        self.answer.value = self._answer(number, id, found, own)
        self.beside.value = f"<b>Evidence</b>{self._evidence(number, id)}"
        self._draw_items(own)
        self._draw_decisions(found, own)
        rows = "".join(
            f"<li>{'<b>[x]</b>' if key in own.comments else '[ ]'} {letter}: {_text(text)} ({_text(key)}"
            f"{_text(f'; {own.stamps[key]}') if key in own.stamps else ''})</li>"
            for letter, (key, text) in self.bank.items()
        )
        self.items.layout.width, self.bank_list.layout.display = ("65%", None) if rows else ("100%", "none")
        self.bank_list.value = f'<ul style="list-style: none; margin: 0; padding: 0; line-height: 1.3">{rows}</ul>'

    def _report(self, number):
        """A link to the report that was handed in, as HTML, or why there is none. For it the file is taken out of the
        submission, as reports/NUMBER.pdf."""
        try:
            content = collect.contents(self.graded.paths[number], {"report.pdf"}).get("report.pdf")
            if content is None:
                return "No report: this submission holds no report.pdf."
            if not content.startswith(b"%PDF-"):
                return "No report: what this submission holds as report.pdf is not a PDF."
            files.write(path := self.out / f"reports/{number}.pdf", content)
        except LabsError as problem:
            return _text(problem)
        return f'<a href="{_text(path)}">Report of submission {number}</a> (its first page may name the student)'

    def _answer(self, number, id, found, own):
        """What the student wrote, as HTML: an answer, or the code of a check; of a dispute its reason first."""
        parts = []
        if self.task == DISPUTES:
            parts.append(f"<b>What the student says</b>{_pre(self.disputed[number][id].reason)}")
            if id not in self.graded.waits(number):
                parts.append(f"<b>Answered</b> ({_text(own.replies[id])}){_pre(own.replies[id].text)}")
        written = self.rules.question(id)
        if id in found["answers"] or id in self.rules.items:
            said, code = "", found["answers"].get(written) or "(no answer is written)"
        else:
            judged = by_id(found["checks"]).get(id, {"state": "", "text": ""})
            code = judged.get("code") or self._code(number).get(id) or "(its cell is as students get it, or is missing)"
            state = f"In the sandbox: {judged['state']}" if judged.get("how") == "person" else judged["state"]
            said = f"{state}. {feedback.clean(judged['text'])}".strip(". ") or "not judged"
            said = f"<p>{_text(said)}</p>"
        parts.append(f"<b>{_text(feedback.titled(written, self.rules))}</b>{said}{_pre(code)}")
        return "".join(parts)

    def _evidence(self, number, id):
        """Beside a question, as HTML: tables from the records, then scripts, logs and machines; what the rubric asks
        for is open, the rest is folded."""
        found, parts = self.found[number], []
        task, item = self._about(id)
        for caption, head, *rows in found["tables"].get(task, ()):
            body = "".join(_row_of(row, "td") for row in rows)
            parts.append(f"<table><caption>{_text(caption)}</caption>{_row_of(head, 'th')}{body}</table>")
        pieces = []  # (kind, heading, text)
        if item:
            wanted = " ".join([item.title, *(each.text for each in self._asked(task))])
            code = by_id(found["checks"]).get(id, {}).get("code", "")
            with handed.opened(number, self.graded.paths[number]) as submission:
                pieces = [("machines", "Where the runs were made", "\n".join(shown.machines(submission, item)))]
                pieces += [("logs", each.file, "\n".join(each.lines)) for each in shown.logs(submission, item)]
                changes = shown.changes(submission.contents, item.evidence, wanted + code)
                pieces += [("scripts", f"{name}: what was changed", "\n".join(lines)) for name, lines in changes]
        for kind, head, text in pieces:
            if text:
                unfolded = " open" if re.search(_SAID["asks"][kind], wanted, re.IGNORECASE) else ""
                parts.append(f"<details{unfolded}><summary>{_text(head)}</summary>{_pre(text)}</details>")
        return "".join(parts) or "<p>No run, log or script belongs to this question.</p>"

    def _about(self, id):
        """(id of the task that an item of the rubric, or a check, belongs to; the course's item, or None)."""
        task = self.rules.question(id)
        return task, tasks.items().get(task, (None, None))[1]

    def _draw_items(self, own):
        """The items as buttons, at the marks that are kept, with who gave them."""
        self._drawing = True
        if [row.item for row in self.items.children] != self.asked:
            self.items.children = [self._row(item) for item in self.asked]
        for place, row in enumerate(self.items.children, 1):
            item, (buttons, text) = row.item, row.children
            share, by = self._share(item.id, own), own.stamps.get(item.id)
            buttons.value = share if share in NAMES else None
            of = "open" if share is None else f"{share * item.points:g}"
            who = f" <i>({_text(by)})</i>" if by else ""
            said = f"<b>{place}</b>: {of} of {item.points:g}: {_text(item.text)}{who}"
            text.value = f'<div style="line-height: 1.3; padding-top: 4px">{said}</div>'
        self._drawing = False

    def _row(self, item):
        buttons = _buttons([(name, share) for share, name in NAMES.items()], "4.5em")

        def pressed(change):
            if not self._drawing and change["new"] is not None:
                self._do(self._mark, item.id, change["new"])

        buttons.observe(pressed, names="value")
        row = ipywidgets.HBox([buttons, ipywidgets.HTML()], layout={"flex": "0 0 auto"})
        row.item = item
        return row

    def _draw_decisions(self, found, own):
        """The findings of this question, each kind with what was decided of it, and the sentence for the student."""
        here = [each for each in found["findings"] if self._is_here(each)]
        said = grouped(
            (each.kind, f"{each.severity}, {state}: {each.where}, {each.seen} (honest: {each.honest})")
            for each, state in overview.states(here, own)
        )
        self._drawing = True
        if [(row.number, row.kind) for row in self.decisions.children] != [(self.number, kind) for kind in said]:
            self.decisions.children = [self._decision(kind) for kind in said]
        for row in self.decisions.children:
            decision, (buttons, sentence, findings) = own.findings.get(row.kind), row.children
            buttons.value = decision.state if decision else None
            if decision and decision.sentence:
                sentence.value = decision.sentence
            lines = "".join(f"<li>{_text(line)}</li>" for line in said[row.kind])
            findings.value = f"<b>{_text(row.kind)}</b><ul {_TIGHT}>{lines}</ul>"
        self._drawing = False

    def _decision(self, kind):
        buttons, number = _buttons(DECISIONS, "6em"), self.number
        sentence = ipywidgets.Text(placeholder="sentence for the student", continuous_update=False)
        said = ipywidgets.HTML(layout={"flex": "1 1 auto", "width": "auto"})
        row = ipywidgets.HBox([buttons, sentence, said])
        row.kind, row.number = kind, number

        def decided(state):
            marks.decide(self.out, number, self.found[number], [kind], state, sentence.value)
            return f"{kind}: {state or 'open again'}."

        def changed(change):
            if not self._drawing and (change["owner"] is buttons or buttons.value == "confirmed"):
                self._do(decided, buttons.value)

        for each in (buttons, sentence):
            each.observe(changed, names="value")
        return row

    def _is_here(self, finding):
        """Whether a finding is about the question that is shown: its answer, its runs, its files."""
        task, item = self._about(self.card[1])
        places = {part.strip() for part in finding.where.replace("the answer to ", "").split(",")}
        if task in places or item is None:
            return task in places
        names, has = {Path(place).name for place in places}, item.evidence
        stems = {re.sub(r"\.(out|err|json|maxbatch\.json|breakdown\.json)$", "", name) for name in names}
        of_runs = any(re.fullmatch(pattern, stem) for pattern in has.runs for stem in stems)
        return of_runs or bool(names & {*has.scripts, *has.batch})


def _buttons(options, width):
    layout = {"width": "auto", "flex": "0 0 auto"}
    return ipywidgets.ToggleButtons(options=options, value=None, style={"button_width": width}, layout=layout)


def _row_of(cells, tag):
    return f"<tr>{''.join(f'<{tag}>{_text(cell)}</{tag}>' for cell in cells)}</tr>"


def _text(text):
    return html.escape(printable(str(text)))


def _pre(text):
    lines = "\n".join(_text(line) for line in text.split("\n"))
    return f'<pre style="white-space: pre-wrap; word-break: normal">{lines}</pre>'
