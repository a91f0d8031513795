"""Judges of 34_pipeline_schedules."""

from lessons.write_the_schedule.questions import bind

bind("pipeline.1", "pipeline.2", "pipeline.3")
