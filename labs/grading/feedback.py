"""PDF for students: on the first page what to do next, then each mistake. Tagged, as the report is.

Of the findings only what a person has confirmed, in that person's own sentence, reaches a student; and nothing about
anybody else.
"""

import re
from functools import cache
from pathlib import Path

from labs.checks import tasks
from labs.grading import pins, points, shown

FORM = Path(__file__).with_name("feedback.typ")
STEPS, GOOD, NAMED = 3, 4, 3  # of the first page: next steps, what was good, questions that one line names
LONGEST, MOST_LINES = 500, 24  # characters of a hint, lines of a student's code
_CALL = re.compile(r"\s*^(?:\w+ = )?check\([^\n]*\)\s*\Z", re.MULTILINE)
_PATH = re.compile(r"(?<![\w.])(?:~|[A-Za-z]:)?(?:[/\\][\w.+@ -]*[\w.+@-]){2,}[/\\]?")


def page(number, packed, who, found, made, rules, own, disputed, collected=()):
    """All that stands in the feedback on a submission, as data for feedback.typ.

    packed: its path; who: the student's name, or None; found: of check.results; made: its Lines; rules: the Rubric;
    own: its Marks; disputed: {id: Dispute}, or None; collected: what its collection told.
    """
    code = shown.code(packed)
    pinned = {id: pin.comment for id, pin in pins.pinned(rules.pin, found).items()}
    waiting, unread = [line for line in made if line.open], not points.handed_in(found)
    blank = [line for line in made if line.state == "not done" and line.id in rules.checks]
    off = [line for line in made if line.of == 0 and line.points < 0]
    state = f"A person still has to look at {_count(len(waiting), 'item')}, so the points can change."
    said = [each.sentence for each in own.findings.values() if each.state == "confirmed" and each.sentence]
    if off and not all(own.findings[line.id].sentence for line in off):
        said.append("Points were taken off. Ask your instructor for the reason.")
    return {
        "title": f"Feedback for {who}" if who else f"Feedback on submission {number}",
        "points": f"{points.total(made):g}",
        "most": f"{rules.most:g}",
        "state": state if waiting else "",
        "unread": unread,
        "collected": next((clean(line) for line in collected if not line.startswith("equal")), "") if unread else "",
        "good": _good(made, rules)[:GOOD],
        "steps": _steps(found, made, rules, pinned, own)[:STEPS],
        "comments": [
            f"{titled(id, rules)}: {clean(text)}" if id else clean(text) for id, text in comments(found, rules, own)
        ],
        "said": [clean(each) for each in said],
        "off": f"{-sum(line.points for line in off):g}" if off else "",
        "disputes": [_dispute(id, each, own, rules) for id, each in (disputed or {}).items()],
        "mistakes": [
            {
                "title": titled(line.id, rules),
                "code": _cut(code.get(line.id, "")),
                "hint": clean(line.why),
                "comment": clean(pinned.get(line.id, "")),
            }
            for line in made
            if line.state == "wrong" and line.id in rules.checks
        ],
        "answers": _answers(made, rules),
        "right": _by_notebook([line for line in made if line.state == "right" and line.id in rules.checks], rules),
        "left": [] if unread else _by_notebook(blank, rules),
        "waiting": _by_notebook(waiting, rules),
    }


def comments(found, rules, own):
    """(None, text) of the comments on a submission, and (check, text) of those that are pinned to its mistakes."""
    yield from ((None, rules.comments.get(each, each)) for each in own.comments)
    yield from ((id, pin.comment) for id, pin in pins.pinned(rules.pin, found).items())


@cache
def _course():
    """{id: (lesson, item)} of the course."""
    return {item.id: (lesson, item) for lesson in tasks.lessons().values() for item in lesson.task}


def titled(id, rules):
    """An id as a student reads it: the title of its task, or what the rubric asks for, with the id behind it."""
    if id in rules.items:
        return f"{rules.items[id][1].text.rstrip('.')} ({id})"
    if id in _course():
        return f"{_course()[id][1].title} ({id})"
    return f"A question of your instructor's ({id})"


def _quoted(id, rules):
    """The same, with its title in quotes, to stand inside of a sentence."""
    title, _, number = titled(id, rules).rpartition(" ")
    return f"“{title}” {number}"


def _lesson(id):
    """The title of the notebook that an id belongs to."""
    return f"notebook {_course()[id][0].notebook.partition('_')[0]}, “{_course()[id][0].title}”"


def clean(text):
    """A text without paths of a machine, without a traceback but for its last line, and not too long."""
    before, trace, after = text.partition("Traceback (most recent call last)")
    if trace:
        text = before + after.strip().rpartition("\n")[2]
    text = _PATH.sub(lambda found: re.split(r"[/\\]", found[0].rstrip("/\\"))[-1], text)
    text = " ".join(text.split())
    text = text[:1].upper() + text[1:]
    return text if len(text) <= LONGEST else text[:LONGEST] + " ..."


def _cut(code):
    """The first lines of a student's code, without the call of the check."""
    lines = _CALL.sub("", code).split("\n")
    more = [f"... and {len(lines) - MOST_LINES} more lines"] if len(lines) > MOST_LINES else []
    return "\n".join(line[:110] for line in lines[:MOST_LINES] + more)


def _count(number, what):
    return f"{number:g} {what}" if number == 1 else f"{number:g} {what}s"


def _good(made, rules):
    """What was good, a line each: whole notebooks, parts of answers, then the checks with the most points."""
    lines, told, by_lesson = [], set(), {}
    for line in made:
        if line.id in rules.checks and line.id in _course():
            by_lesson.setdefault(_course()[line.id][0].notebook, []).append(line)
    for of_one in by_lesson.values():
        if len(of_one) > 1 and all(line.state == "right" and line.points == line.of for line in of_one):
            lines.append(f"All {len(of_one)} checks of {_lesson(of_one[0].id)} are right.")
            told |= {line.id for line in of_one}
    full = [line for line in made if line.state == "right" and line.of and line.points == line.of]
    for line in sorted((each for each in full if each.id in rules.items), key=lambda each: -each.of):
        lines.append(f"In your answer to {_quoted(rules.items[line.id][0], rules)}: {clean(line.why)}")
    best = sorted((each for each in full if each.id in rules.checks and each.id not in told), key=lambda each: -each.of)
    for line in best:
        why = _course()[line.id][1].why if line.id in _course() else ""
        lines.append(f"{_quoted(line.id, rules)}: {why}".strip())
    return lines


def _steps(found, made, rules, pinned, own):
    """What to do next, with what it can bring: [{do, why, points}], the most points first."""
    steps, blank = [], {}
    for line in made:
        lost = line.of - line.points
        if line.open or not line.of or lost <= 0:
            continue
        if line.id in rules.checks and line.state == "wrong":
            why = clean(pinned.get(line.id) or line.why)
            steps.append((lost, f"Correct {_quoted(line.id, rules)}", why))
        elif line.id in rules.checks:
            blank.setdefault(_course()[line.id][0].notebook if line.id in _course() else "", []).append(line)
        elif line.state != "not done":
            given = [rules.comments[each] for each in own.comments if each in rules.comments and each[:-1] == line.id]
            answer = _quoted(rules.items[line.id][0], rules)
            steps.append((lost, f"Say more in {answer}", clean(" ".join([rules.items[line.id][1].text, *given]))))
    unwritten = {}
    for line in made:
        if line.id in rules.items and line.state == "not done":
            answer = rules.items[line.id][0]
            more = blank.get(_course()[answer][0].notebook) if answer in _course() else None
            (unwritten.setdefault(answer, []) if more is None else more).insert(0, line)
    for answer, lines in unwritten.items():
        why = "Nothing is written yet." + (f" Its cell is in {_lesson(answer)}." if answer in _course() else "")
        steps.append((sum(line.of for line in lines), f"Write your answer to {_quoted(answer, rules)}", why))
    for notebook, lines in blank.items():
        steps.append((sum(line.of for line in lines), *_fill(notebook, lines, found, rules)))
    steps.sort(key=lambda step: -step[0])
    return [{"points": _count(lost, "point"), "do": do, "why": why} for lost, do, why in steps]


def _fill(notebook, lines, found, rules):
    """(what to do, why) about questions of a notebook that have no answer."""
    where = _lesson(lines[-1].id) if notebook else "the questions of your instructor's"
    ids = list(dict.fromkeys(rules.items[line.id][0] if line.id in rules.items else line.id for line in lines))
    names = "; ".join(_quoted(id, rules) for id in ids[:NAMED])
    names += f"; and {len(ids) - NAMED} more" if ids[NAMED:] else ""
    reasons = {line.why for line in lines if line.id in rules.checks}
    if reasons == {"the notebook was not handed in"}:
        return f"Hand in {where}", f"It was not in your submission; {_count(len(ids), 'question')}: {names}."
    if reasons == {"its cell was not reached"}:
        told = next((line for line in found["told"] if line.startswith(f"{notebook}, cell")), "")
        stop = f" The first error: {clean(told.partition(', ')[2])}." if told else ""
        return f"Run {where}, from its first cell to its last", f"It stopped before: {names}.{stop}"
    return f"Go on with {where}", f"It has {_count(len(ids), 'question')} without an answer: {names}."


def _answers(made, rules):
    """The written answers that were marked: [{title, rows: [what was asked for, points, of]}]."""
    found = {}
    for line in made:
        if line.id in rules.items and line.state in ("right", "wrong") and not line.open:
            item = rules.items[line.id]
            found.setdefault(item[0], []).append([clean(item[1].text), f"{line.points:g}", f"{line.of:g}"])
    return [{"title": titled(answer, rules), "rows": rows} for answer, rows in found.items()]


def _by_notebook(lines, rules):
    """One text for each notebook: its title, and the titles of some of its questions."""
    found = {}
    for line in lines:
        id = rules.items[line.id][0] if line.id in rules.items else line.id
        titles = found.setdefault(_lesson(id) if id in _course() else "other questions", [])
        titles += [titled(id, rules)] if titled(id, rules) not in titles else []
    return [f"{where[0].upper()}{where[1:]}: {'; '.join(titles)}" for where, titles in found.items()]


def _dispute(id, disputed, own, rules):
    answered = own.replies.get(id)
    new = answered is None or answered.reason != disputed.reason
    return {"title": titled(id, rules), "reason": clean(disputed.reason), "answer": "" if new else clean(answered.text)}
