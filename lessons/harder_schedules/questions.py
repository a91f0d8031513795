"""Judges of 33_harder_schedules."""

from lessons.write_the_schedule.questions import bind

bind("harder.1", "harder.2", "harder.3")
