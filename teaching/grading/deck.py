"""The answers of a grading as a deck of cards, and what a key does to the one on top; the desk shows it.

Question by question: each written answer, each check that a person has to decide, each check with mistakes, and all
findings; in an order that says nothing about names. Every key is kept at once (see marks), and what others have marked
is read with it.
"""

import hashlib
from functools import cached_property

from labs.errors import LabsError, UseError
from labs.printed import few
from teaching.grading import feedback, marks, overview, pins, rubric, table
from teaching.grading.finding import by_id
from teaching.grading.graded import Graded

FINDINGS = "findings"  # the last question
NEXT = {None: 1.0, 1.0: 0.5, 0.5: 0.0, 0.0: None}  # what a key makes of a mark


class Deck:
    """The deck of a grading's folder. task: the question (default: the rubric's first written task); message: what
    there is to say of the last key. Raises UseError: nothing was looked at.
    """

    def __init__(self, out, task=None):
        self.graded = Graded(out)
        self.out, self.found = self.graded.out, self.graded.found
        self.task, self.place, self.message = task or self.tasks[0], 0, ""

    @property
    def rules(self):
        return self.graded.rules

    @cached_property
    def judged(self):
        """{number: {check: how it was judged}}."""
        return {number: by_id(each["checks"]) for number, each in self.found.items()}

    @cached_property
    def mistakes(self):
        """All Mistakes that were made, the most frequent first."""
        return pins.mistakes(self.found)

    @property
    def tasks(self):
        """The questions: written answers, checks that a person has to decide, then those with mistakes; findings."""
        left = {id for checks in self.judged.values() for id, each in checks.items() if _is_left(each)}
        worth = [id for id, points in self.rules.checks.items() if points]
        wrong = [each.check for each in self.mistakes if each.check in worth]
        checks = dict.fromkeys([id for id in worth if id in left] + wrong)
        return [*(each.id for each in self.rules.answer if each.items), *checks, FINDINGS]

    @property
    def cards(self):
        """The numbers of the submissions that have something to look at for this question; the same mistakes stand
        side by side."""

        def place(number):
            hint = self.judged[number].get(self.task, {}).get("text", "")
            return pins.form(hint), hashlib.sha256(f"{self.task} {number}".encode()).hexdigest()

        return sorted(filter(self._has_card, self.found), key=place)

    def _has_card(self, number):
        if self.task == FINDINGS:
            return any(each.severity != "note" for each in self.found[number]["findings"])
        if self.task not in self.rules.checks:
            return bool(self.found[number]["answers"].get(self.task))
        judged = self.judged[number].get(self.task)
        return bool(judged) and (_is_left(judged) or judged["state"] == "wrong")

    @property
    def number(self):
        """Of the submission on top, None without one."""
        cards = self.cards
        return cards[self.place % len(cards)] if cards else None

    @property
    def own(self):
        """The Marks of the submission on top."""
        return self.graded.own(self.number)

    @property
    def items(self):
        """What is marked here, as Criterions: items of the rubric, or a check as one of them."""
        if self.task in self.rules.checks:
            text = feedback.titled(self.task, self.rules)
            return [rubric.Criterion(id=self.task, points=self.rules.checks[self.task], text=text)]
        return next((each.items for each in self.rules.answer if each.id == self.task), [])

    @property
    def bank(self):
        """{letter: (id, text)} of the comment bank's comments on what is marked here."""
        ids = {item.id for item in self.items}
        comments = sorted(each for each in self.rules.comments.items() if each[0][:-1] in ids)
        return dict(zip("abcdefghijklmnopqrstuvwxyz", comments, strict=False))

    @property
    def mistake(self):
        """The Mistake on top, which others may have made, too; None where there is none."""
        made = (each for each in self.mistakes if each.check == self.task and self.number in each.numbers)
        return next(made, None)

    @property
    def findings(self):
        """The findings about the submission on top; beside an answer without mere notes."""
        every = self.found[self.number]["findings"]
        return [each for each in every if self.task == FINDINGS or each.severity != "note"]

    def is_open(self, number):
        """Whether a person still has to decide something of a submission here."""
        if self.task == FINDINGS:
            own = self.graded.own(number)
            return any(overview.undecided(each, own) for each in self.found[number]["findings"])
        ids = {item.id for item in self.items}
        return any(line.open for line in self.graded.lines(number) if line.id in ids)

    def press(self, key):
        """Do what a key says."""
        item, steps = self._item(key), {".": 1, ",": -1, "+": 1, "-": -1}.get(key)
        if item and self.number:
            self.do(self.mark, item.id, NEXT.get(share(self.own, item.id), 1.0))
        elif key in self.bank and self.number:
            self.do(self._comment, self.bank[key][0])
        elif steps:
            self.do(self._go if key in ".," else self._ask_next, steps)
        elif key == " ":
            self.do(self._to_open)
        else:
            self.do(lambda: f"{key!r} is no key here.")

    def do(self, function, *arguments):
        """Call the function and read again what people change; what it returns is the message, and so is why something
        could not be kept."""
        try:
            self.message = function(*arguments) or ""
        except LabsError as problem:
            self.message = str(problem)
        try:
            self.graded.read()
        except UseError as problem:
            self.message = str(problem)
        if self.task not in self.tasks:
            self.task, self.place = self.tasks[0], 0

    def mark(self, id, new):
        now = marks.load(self.out).get(self.number, marks.Marks())
        if share(now, id) != share(self.own, id):
            return f"Somebody else has marked {id} meanwhile. Look at it, and mark it again if you want another mark."
        marks.mark(self.out, self.number, self.rules, id, new)

    def give(self, item, text):
        """Mark an item with points, as they were typed."""
        return self.mark(item.id, _share_of(text, item.points))

    def pin(self, comment, text):
        """Give the comment, and points as they were typed, to all who made the mistake on top, now and later."""
        (item,), mistake = self.items, self.mistake
        if not mistake:
            return "Nobody got a hint here."
        pins.add(self.out, mistake, comment, _share_of(text or "0", item.points))
        return f"{len(mistake.numbers)} got this hint: {few(mistake.numbers)}."

    def decide(self, kind, state, sentence):
        """Keep what a person says of the findings of one kind (see marks.decide)."""
        places = [each.where for each in self.found[self.number]["findings"] if each.kind == kind]
        marks.decide(self.out, self.number, kind, state, sentence, places)
        return f"{kind}: {state or 'open again'}."

    def new_comment(self, text):
        """Put a comment into the bank, for the item whose number stands in front, and on this answer."""
        number, _, text = text.partition(" ")
        item, text = self._item(number), text.strip()
        if not (item and text and self.number):
            return "A new comment begins with the number of its item: 2 Which run is it?"
        text = marks.fit_to_read(self.out, None, text)
        id = rubric.add_comment(self.out, item.id, text)
        marks.mark(self.out, self.number, self.rules, comments=[id])
        return f"Kept as {id}."

    def _comment(self, id):
        there = id in self.own.comments
        marks.mark(self.out, self.number, self.rules, **{"without" if there else "comments": [id]})

    def _item(self, key):
        """The item of which a text is the number, or None."""
        return self.items[int(key) - 1] if key.isdecimal() and 0 < int(key) <= len(self.items) else None

    def _go(self, steps):
        self.place = (self.place + steps) % max(1, len(self.cards))

    def ask(self, task):
        """Go to a question."""
        self.task, self.place = task, 0

    def _ask_next(self, steps):
        self.ask(self.tasks[(self.tasks.index(self.task) + steps) % len(self.tasks)])

    def _to_open(self):
        for _ in self.cards:
            self._go(1)
            if self.is_open(self.number):
                return ""
        return f"Nothing of {self.task} is open."


def _is_left(judged):
    """Whether a person has to decide a check, by how it was judged."""
    return judged["how"] == "person" or "fell" in judged


def _share_of(text, most):
    """The share of `most` points that a typed number is. Raises UseError."""
    typed = table.number(text)
    if typed is None or typed > most:
        raise UseError(f"{text.strip()!r} cannot be given: type points from 0 to {most:g}.")
    return typed / most if most else 0.0


def share(own, id):
    """The share of an item or check in some Marks; None where it is not marked."""
    return own.items.get(id, own.checks.get(id))
