"""Judges of 13_write_the_schedule, and of its later parts: each program is played on all ranks."""

from labs.checks.judging import judges
from labs.lessons.nb13 import game


def bind(first, last):
    """Bind a judge to each of the puzzles with these numbers and between them."""
    for number in range(first, last + 1):
        judges(f"13.{number}")(_judge(f"13.{number}"))


def _judge(id):
    def judge(program):
        yield from game.judged(id, program)

    judge.__module__, judge.__qualname__ = __name__, f"judge_of_{id}"
    return judge


bind(1, 3)
