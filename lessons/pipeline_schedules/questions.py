"""Judges of 34_pipeline_schedules: those of 31_write_the_schedule are of all puzzles."""

import lessons.write_the_schedule.questions  # noqa: F401
