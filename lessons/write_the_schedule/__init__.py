"""Schedules that a student writes: data parallelism. What the twelve puzzles share lies here, too."""
