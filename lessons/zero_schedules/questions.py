"""Judges of 32_zero_schedules."""

from lessons.write_the_schedule.questions import bind

bind("zero.1", "zero.2", "zero.3")
