"""PDF for students: on the first page what to do next, then each mistake. Tagged, as the report is.

Of the findings only what a person has confirmed, in that person's own sentence, reaches a student; and nothing about
anybody else.
"""

import re
from functools import cache
from pathlib import Path

from labs.checks import tasks
from labs.printed import grouped
from teaching.grading import pins, points

FORM = Path(__file__).with_name("feedback.typ")
STEPS, GOOD, NAMED = 3, 4, 3  # of the first page: next steps, what was good, questions that one line names
LONGEST, MOST_LINES = 500, 24  # characters of a hint, lines of a student's code
_CALL = re.compile(r"\s*^(?:\w+ = )?check\([^\n]*\)\s*\Z", re.MULTILINE)
_PATH = re.compile(r"(?<![\w.])(?:~|[A-Za-z]:)?(?:[/\\][\w.+@ -]*[\w.+@-]){2,}[/\\]?")


def page(graded, number, made):
    """All that the feedback on a submission says, as data for feedback.typ. graded: a Graded; made: the submission's
    PointsLines."""
    found, rules, own = graded.found[number], graded.rules, graded.own(number)
    who = _who(graded.names.get(number))
    pinned = {id: pin.comment for id, pin in pins.pinned(rules.pin, found).items()}
    waiting, unread = [line for line in made if line.open], not points.handed_in(found)
    of_checks = grouped((line.state, line) for line in made if line.id in rules.checks)
    off = [line for line in made if line.of == 0 and line.points < 0]  # for findings
    state = f"A person still has to look at {_count(len(waiting), 'item')}, so the points can change."
    said = [each.sentence for each in own.findings.values() if each.state == "confirmed" and each.sentence]
    if off:
        said.append(f"Taken off for this, in the total above: {_count(-sum(line.points for line in off), 'point')}.")
        if not all(own.findings[line.id].sentence for line in off):
            said.append("Ask your instructor for the reason.")
    collected = [clean(line) for line in graded.collected.get(number, []) if unread]
    given = [(titled(id, rules) + ": " if id else "") + clean(text) for id, text in comments(graded, number)]
    return {
        "title": f"Feedback for {who}" if who else f"Feedback on submission {number}",
        "points": f"{points.total(made):g}",
        "most": f"{rules.most:g}",
        "state": state if waiting else "",
        "unread": unread,
        "collected": "".join(collected[:1]),
        "good": _good(made, rules)[:GOOD],
        "steps": _steps(made, rules, pinned, own)[:STEPS],
        "comments": given,
        "said": [clean(each) for each in said],
        "mistakes": [
            {
                "title": titled(line.id, rules),
                "code": _cut(found["code"].get(line.id, "")),
                "hint": clean(line.why),
                "comment": clean(pinned.get(line.id, "")),
            }
            for line in of_checks.get("wrong", ())
        ],
        "answers": _answers(made, rules),
        "right": _by_notebook(of_checks.get("right", ()), rules),
        "left": [] if unread else _by_notebook(of_checks.get("not done", ()), rules),
        "waiting": _by_notebook(waiting, rules),
    }


def _who(name):
    """The student's own name, if the learning platform gave one; None where a folder's or nobody's is all there is."""
    known = name and name["platform"] == "moodle" and name["who"].strip()
    return known if known and not known.casefold().startswith("anon") else None


def comments(graded, number):
    """(None, text) of the comments on a submission, and (check, text) of those that are pinned to its mistakes."""
    rules, pinned = graded.rules, pins.pinned(graded.rules.pin, graded.found[number])
    yield from ((None, rules.comments.get(each, each)) for each in graded.own(number).comments)
    yield from ((id, pin.comment) for id, pin in pinned.items() if pin.comment)


_course = cache(tasks.items)


def titled(id, rules):
    """An id as a student reads it: the title of its task, or what the rubric asks for, with the id behind it."""
    title = _course()[id][1].title if id in _course() else "A question of your instructor's"
    return f"{rules.items[id][1].text.rstrip('.') if id in rules.items else title} ({id})"


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
    text = before + after.strip().rpartition("\n")[2] if trace else text
    text = " ".join(_PATH.sub(lambda found: re.split(r"[/\\]", found[0].rstrip("/\\"))[-1], text).split())
    return text[:1].upper() + text[1:LONGEST] + (" ..." if len(text) > LONGEST else "")


def _cut(code):
    """The first lines of a student's code, without the call of the check."""
    lines = _CALL.sub("", code).split("\n")
    more = [f"... and {len(lines) - MOST_LINES} more lines"] if len(lines) > MOST_LINES else []
    return "\n".join(line[:110] for line in lines[:MOST_LINES] + more)


def _count(number, what):
    return f"{round(number, 2):g} {what}{'' if number == 1 else 's'}"


def _good(made, rules):
    """What was good, a line each: whole notebooks, then what has the most points."""
    of_course = [line for line in made if line.id in rules.checks and line.id in _course()]
    full = [line for line in made if line.state == "right" and line.of and line.points == line.of]
    full.sort(key=lambda line: -line.of)
    lines, told = [], []
    for of_one in grouped((_lesson(line.id), line) for line in of_course).values():
        if len(of_one) > 1 and all(line in full for line in of_one):
            lines.append(f"All {len(of_one)} checks of {_lesson(of_one[0].id)} are right.")
            told += of_one
    for line in (line for line in full if line not in told):
        if line.id in rules.items:
            lines.append(f"In your answer to {_quoted(rules.items[line.id][0], rules)}: {clean(line.why)}")
        else:
            why = _course()[line.id][1].why if line.id in _course() else ""
            lines.append(f"{_quoted(line.id, rules)}: {why}".strip())
    return lines


def _steps(made, rules, pinned, own):
    """What to do next, with what it can bring: [{do, why, points}], the most points first."""
    steps, blank = [], {}
    lost = {line.id: line.of - line.points for line in made if not line.open and line.of and line.of > line.points}
    for line in (line for line in made if line.id in lost):
        asked, item = rules.items.get(line.id, (line.id, None))
        if line.state == "not done":
            blank.setdefault(_course()[asked][0].notebook if asked in _course() else "", []).append(line)
        elif item is None:
            why = clean(pinned.get(line.id) or line.why)
            steps.append((lost[line.id], f"Correct {_quoted(asked, rules)}", why))
        else:
            given = [rules.comments[each] for each in own.comments if each in rules.comments and each[:-1] == line.id]
            why = clean(" ".join([item.text, *given]))
            steps.append((lost[line.id], f"Say more in {_quoted(asked, rules)}", why))
    for notebook, lines in blank.items():
        steps.append((sum(line.of for line in lines), *_fill(notebook, lines, rules)))
    steps.sort(key=lambda step: -step[0])
    return [{"points": _count(points, "point"), "do": do, "why": why} for points, do, why in steps]


def _fill(notebook, lines, rules):
    """(what to do, why) about questions of a notebook that have no answer."""
    written = sorted(lines, key=lambda line: line.id in rules.checks)  # written answers first
    ids = list(dict.fromkeys(rules.question(line.id) for line in written))
    where = _lesson(ids[0]) if notebook else "the questions of your instructor's"
    names = "; ".join(_quoted(id, rules) for id in ids[:NAMED])
    names += f"; and {len(ids) - NAMED} more" if ids[NAMED:] else ""
    reasons = {line.why for line in lines if line.id in rules.checks}
    if reasons == {"the notebook was not handed in"}:
        return f"Hand in {where}", f"It was not in your submission; {_count(len(ids), 'question')}: {names}."
    return f"Go on with {where}", f"It has {_count(len(ids), 'question')} without an answer: {names}."


def _answers(made, rules):
    """The written answers that were marked: [{title, rows: [what was asked for, points, of]}]."""
    marked = [line for line in made if line.id in rules.items and line.state in ("right", "wrong") and not line.open]
    rows = ([*rules.items[line.id], f"{round(line.points, 2):g}", f"{line.of:g}"] for line in marked)
    found = grouped((titled(answer, rules), [clean(item.text), *of]) for answer, item, *of in rows)
    return [{"title": title, "rows": rows} for title, rows in found.items()]


def _by_notebook(lines, rules):
    """One text for each notebook: its title, and the titles of some of its questions."""
    ids = dict.fromkeys(rules.question(line.id) for line in lines)
    found = grouped((_lesson(id) if id in _course() else "other questions", titled(id, rules)) for id in ids)
    return [f"{where[0].upper()}{where[1:]}: {'; '.join(titles)}" for where, titles in found.items()]
