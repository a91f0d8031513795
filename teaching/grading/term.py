"""What stays when the kit, or a submission, changes in the middle of a term.

A check that was mended may judge the same work differently. A student who gains by it gets the points at once; one who
would lose points keeps them until a person has decided. A person's mark is about an answer: it also holds for a later
submission with the same answer.
"""

from teaching.grading.finding import by_id


def carried(before, after):
    """The checks of a notebook as they are judged now, {id: result}, where none falls by itself: what was right of the
    same work stays so, and `fell` says what the kit finds now.

    before: the checks of the same notebook as they were judged before, by the same kit or an earlier one.
    """
    made = dict(after)
    for id, was in before.items():
        now = made.get(id, {"state": "open", "how": "person", "text": "this kit has no such check"})
        if _right(was) and not _right(now):
            made[id] = was | {"fell": now["text"] or now["state"]}
    return made


def moved(before, after):
    """What `carried` gave beside what was before, as a line on the checks that are judged otherwise; "" for none."""
    rose = [id for id, each in after.items() if id in before and _right(each) and not _right(before[id])]
    fell = [id for id, each in after.items() if "fell" in each and "fell" not in before.get(id, {})]
    said = {"right now, and not before": rose, "not right any more, and kept until you decide": fell}
    return "; ".join(f"{what}: {', '.join(ids)}" for what, ids in said.items() if ids)


def waiting(number, checks, decided=()):
    """A line for each check of a submission that a person has to decide, since the kit judges it otherwise now.

    decided: ids of those for which somebody has.
    """
    for id, each in by_id(checks).items():
        if "fell" in each and id not in decided:
            said = f"{number}: {id} was right, and this kit says: {each['fell']:.120}"
            yield f"{said} Its points stay until you decide at the desk."


def _right(result):
    return result["state"] == "right" and result["how"] != "person"
