"""What students dispute, read from what they handed in, and which of it a person has not answered yet."""

from contextlib import suppress

from labs.checks import dispute
from teaching.grading import collect

_PLACES = tuple(f"{runs}/{dispute.FILE}" for runs in ("notebooks/runs", "runs"))


def of(contents):
    """{id: Dispute} in the files of a submission; a file that is not one holds no disputes."""
    given = [contents[place] for place in _PLACES if place in contents]
    with suppress(ValueError):
        return dispute.read(given[0]) if given else {}
    return {}


def every(paths):
    """{number: {id: Dispute}} of the collected submissions, {number: path}, that dispute something."""
    found = ((number, of(collect.contents(path, _PLACES))) for number, path in paths.items())
    return {number: disputed for number, disputed in found if disputed}


def waits(disputed, own):
    """The ids of one submission's disputes to which `own`, its marks, hold no answer yet."""
    return [id for id, each in disputed.items() if id not in own.replies or own.replies[id].reason != each.reason]
