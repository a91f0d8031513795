"""Schedules that a student writes: pipelines."""
