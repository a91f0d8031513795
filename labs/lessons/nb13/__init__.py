"""Schedules that a student writes: data parallelism and ZeRO. What the twelve puzzles share lies here, too."""
