"""Judges of 13a_zero_schedules."""

from labs.lessons.nb13.questions import bind

bind(4, 6)
