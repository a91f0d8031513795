"""Judges of 13b_harder_schedules."""

from labs.lessons.nb13.questions import bind

bind(7, 9)
