"""Schedules that a student writes: rings and tensor parallelism."""
