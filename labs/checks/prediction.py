"""Predictions: `predict` keeps what a student expects, `outcome` sets what came of it beside it.

What a prediction may be stands in the tasks.toml of its lesson, as `number`, `words` and `count` (labs.checks.tasks).
The last one before the outcome counts: after it, another one is refused.
"""

import ast
import math
import re
from contextlib import suppress
from typing import Any

import numpy as np

from labs.checks import judging, kept, tasks
from labs.printed import digits


def predict(id: str, value: Any) -> None:
    """Keep a prediction before you run anything. One that is blank, or cannot be, is asked for again.

    id: of a prediction
    value: a number, a word, or a list of them, as the question asks

    Raises TaskError for an unknown id, and NotRight in strict mode for a prediction that is not kept.
    """
    item = tasks.task(id)

    def judged():
        if judging.unfilled([value]):
            raise judging.NotDone("Commit yourself before you look: a wrong prediction teaches more than none.")
        return judging.Judged("predicted", read(item, value))

    state, found, _ = judging.judged_safely(judged, [value])
    if state == "wrong" or (state == "predicted" and found is None):
        state, found = "open", f"{kept.brief(value)[:60]} cannot be a prediction here: {may_be(item)}"
    if state == "open":
        kept.keep(item, state, [value])
        judging.show(id, state, found)
        judging.refuse_if_strict(id, state, found)
        return
    before = kept.read_progress().get(id, {})
    predicted = _predicted(before)
    if before.get("outcome") is not None and predicted is not None and predicted != found:
        judging.show(id, state, f"{item.title}: {_text(predicted)} stays, since you have already seen the outcome.")
        return
    kept.keep(item, state, [found])
    judging.show(id, state, f"{item.title}: {kept.brief(value, str)}. Kept; now find out.")


def outcome(id: str, found: Any, interval: tuple[float, float] | None = None, *, how: str = "measured") -> None:
    """Show the outcome beside your prediction, and keep both.

    id: of a prediction, also of an earlier notebook
    found: the number, word or list that `predict` asked for, in the same unit; None as long as it is not known
    interval: (low, high) around `found`, if it has one
    how: measured, recorded, counted, computed or simulated

    Raises TaskError for an unknown id, or an outcome that its prediction could not be.
    """
    item = tasks.task(id)
    predicted = _predicted(kept.read_progress().get(id, {}))
    text = "You made no prediction" if predicted is None else f"You said {_text(predicted)}"
    if found is None:
        judging.show(id, "predicted" if predicted is not None else "open", f"{text}; the outcome is not known yet.")
        return
    value = read(item, found, within=False)
    if value is None:
        raise tasks.TaskError(f"{id}: {found!r} cannot be the outcome. {may_be(item)}")
    span = tuple(map(float, interval)) if interval is not None else None
    text += f"; {how} {_text(value)}" + (f" [{_text(span[0])}, {_text(span[1])}]" if span else "")
    if predicted is None:
        judging.show(id, "open", f"{text}.")
        return
    kept.keep_outcome(item, value, span)
    judging.show(id, "predicted", f"{text}.")


def predictions() -> list[dict]:
    """The predictions of the course in order: rows {id, title, notebook, predicted, outcome, interval, ratios, right}.

    predicted, outcome: a number, word or list, or None. ratios: outcome / prediction of each number, inf where only the
    prediction is 0; right: for words. Both are None as long as one of the two is not there.
    """
    items, rows = kept.read_progress(), []
    for id, (lesson, item) in tasks.items().items():
        if isinstance(item, tasks.PredictionTask):
            entry = items.get(id, {})
            predicted, found = _predicted(entry), entry.get("outcome")
            row = {"id": id, "title": item.title, "notebook": lesson.notebook, "predicted": predicted, "outcome": found}
            row |= {"interval": entry.get("interval"), "ratios": None, "right": None}
            if predicted is not None and found is not None:
                row |= {"right": predicted == found} if item.words else {"ratios": _ratios(predicted, found)}
            rows.append(row)
    return rows


def _ratios(predicted, found):
    pairs = zip(np.atleast_1d(found), np.atleast_1d(predicted), strict=False)
    return [1.0 if a == b else float(a / b) if b else math.inf for a, b in pairs]


def _predicted(entry):
    """The prediction that progress.json keeps in an item, or None, also of a text that was changed or is cut."""
    with suppress(ValueError, SyntaxError):
        return ast.literal_eval(entry["answer"]) if entry.get("state") == "predicted" else None


def _text(value):
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if value == round(value) else digits(value)


def read(item, value, within=True):
    """A prediction as it is kept: a float, int, word, or a list of them; None if the value is not allowed.

    within=False: a number may lie outside of the item's range, as an outcome may.
    """
    parts = _parts(item, value)
    if not parts or item.count not in ("any", len(parts)):
        return None
    found: list = [_word(item, part) if item.words else _number(item, part, within) for part in parts]
    if any(each is None for each in found):
        return None
    if item.count == "any":
        return "".join(sorted(set(found)))
    if item.words:
        return "".join(found)
    return found[0] if item.count == 1 else found


def _parts(item, value):
    """What a prediction consists of: the letters of "ssa", "s, s, a" or ["s", "s", "a"]; [value] for a single one."""
    if item.count == 1:
        return [value]
    if isinstance(value, str) or (item.words and isinstance(value, int)):
        return list(re.sub(r"[\s,;+]|and", "", str(value))) if item.words else re.split(r"[\s,;]+", value.strip())
    return list(value)


def _word(item, part):
    plain = {word.lower(): word for word in item.words}
    return plain.get(str(part).strip().strip(".\"'()").replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").lower())


def _number(item, part, within):
    part = judging.as_number(part)
    if isinstance(part, bool | np.bool_ | str):
        return None
    number, (low, high) = float(part), item.number
    if not math.isfinite(number) or (within and not low <= number <= high):
        return None
    return int(number) if number.is_integer() else number


def may_be(item):
    """A sentence: what a prediction of this item may be."""
    if item.number:
        low, high = map(_text, item.number)
        share = " (75 % is 0.75)" if item.number == (0, 1) else ""
        many = "a number" if item.count == 1 else f"a list of {item.count} numbers, each"
        return f"write {many} from {low} to {high}{share}."
    words = f"{', '.join(item.words[:-1])} or {item.words[-1]}"
    if item.count == 1:
        return f"write {words}."
    return f"write {'one or more' if item.count == 'any' else item.count} of the characters {words}, in one word."
