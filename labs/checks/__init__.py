"""Self-checks of the notebooks: `check` compares an answer and gives a hint, `predict` keeps an expectation.

tasks           the items of all lessons, read from their tasks.toml
judging         check, predict, judge, and the decorator `judges` that binds a function to an item
kept            progress.json, and the progress over all items
reading         what judges look at: numbers, the curves of a figure, a line of a file
tryout          a training script tried out in a process of its own: what it does, as facts
scripts         is a training script right, by what it did?
batch_scripts   is a batch script right?
"""

from labs.checks.judging import check, judge, predict
from labs.checks.kept import answers, progress
from labs.checks.tasks import TaskError, task

__all__ = ["TaskError", "answers", "check", "judge", "predict", "progress", "task"]
