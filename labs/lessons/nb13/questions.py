"""Judges of 13_write_the_schedule, and of its second part: each program is played on all ranks."""

from labs.checks.judging import judges
from labs.lessons.nb13 import game
from labs.lessons.nb13.puzzles import PUZZLES


def bind(ids):
    """Bind a judge to each of these puzzles."""
    for id in ids:
        judges(id)(_judge(id))


def _judge(id):
    def judge(program):
        yield from game.judged(id, program)

    judge.__module__, judge.__qualname__ = __name__, f"judge_of_{id}"
    return judge


bind(id for id in PUZZLES if int(id.partition(".")[2]) <= 6)
