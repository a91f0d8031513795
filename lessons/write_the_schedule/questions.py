"""Judges of 31_write_the_schedule, and of its later parts: each program is played on all ranks."""

from labs.checks.judging import judges
from lessons.write_the_schedule import game


def bind(*ids):
    """Bind a judge to each of these puzzles."""
    for id in ids:
        judges(id)(_judge(id))


def _judge(id):
    def judge(program):
        yield from game.judged(id, program)

    judge.__module__, judge.__qualname__ = __name__, f"judge_of_{id}"
    return judge


bind("schedule.1", "schedule.2", "schedule.3")
