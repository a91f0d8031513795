"""Judges of 13b_harder_schedules."""

from labs.lessons.nb13.puzzles import PUZZLES
from labs.lessons.nb13.questions import bind

bind(id for id in PUZZLES if int(id.partition(".")[2]) > 6)
