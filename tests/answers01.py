"""Rows of the table in test_tasks.py for 01_basic_concepts."""

ANSWERS = {}
