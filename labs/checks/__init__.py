"""Self-checks of the notebooks: `check` compares an answer and gives a hint; `predict` keeps an expectation, and
`outcome` sets beside it what came of it; `reflect` shows what a good written answer contains.

tasks           the items of all lessons, read from their tasks.toml
judging         check, judge, answered, and the decorator `judges` that binds a function to an item
prediction      predict, outcome, and both over all items
reflection      reflect: what a written answer contains
student_code    a student's code while it is judged: its error with its line, and an end to what has none (SECONDS)
kept            points and answers, in progress.json; the progress over all items
reading         what judges compare: numbers, what a function gives and changes
"""

from labs.checks.judging import answered, check, judge
from labs.checks.kept import answers, progress
from labs.checks.prediction import outcome, predict, predictions
from labs.checks.reflection import reflect
from labs.checks.tasks import TaskError, task
