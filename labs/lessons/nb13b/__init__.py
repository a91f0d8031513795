"""Schedules that a student writes: rings, tensor parallelism and pipelines."""
