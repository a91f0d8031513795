"""Judges of 13c_pipeline_schedules."""

from labs.lessons.nb13.questions import bind

bind(10, 12)
