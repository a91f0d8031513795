"""Self-checks of the notebooks: `check` compares an answer and gives a hint, `predict` keeps an expectation.

judging         check, predict, progress
batch_scripts   is a batch script right?
stage           stand-ins on which a student's script runs up to its `fit`, as each rank
"""

from labs.checks.judging import answers, check, judge, predict, progress, task

__all__ = ["answers", "check", "judge", "predict", "progress", "task"]
