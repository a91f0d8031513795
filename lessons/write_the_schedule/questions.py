"""Judges of 31_write_the_schedule, and of its later parts: each program is played on all ranks."""

from functools import partial

from labs.checks.judging import judges
from lessons.write_the_schedule import game
from lessons.write_the_schedule.puzzles import PUZZLES

for id in PUZZLES:
    judges(id)(partial(game.judged, id))
