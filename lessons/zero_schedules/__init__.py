"""Schedules that a student writes: ZeRO-1, 2 and 3."""
