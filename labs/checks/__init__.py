"""Self-checks of the notebooks: `check` compares an answer and gives a hint, `predict` keeps an expectation.

tasks           the items of all lessons, read from their tasks.toml
judging         check, predict, judge, and the decorator `judges` that binds a function to an item
kept            progress.json, and the progress over all items
reading         what judges look at: a script's calls and blanks, the curves of a figure, a line of a file
batch_scripts   is a batch script right?
stage           stand-ins on which a student's script runs up to its `fit`, as each rank
"""

from labs.checks.judging import check, judge, predict
from labs.checks.kept import answers, progress
from labs.checks.tasks import TaskError, task

__all__ = ["TaskError", "answers", "check", "judge", "predict", "progress", "task"]
