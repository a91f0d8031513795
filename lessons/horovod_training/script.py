"""The six steps of ResNet50_horovod.py: a check is of one of them, while others may still be blank."""

import re
from functools import wraps
from pathlib import Path

from labs.checks import scripts
from lessons import training_scripts


def lines_of(path, step):
    """The lines of a step as a range, from its comment `# 1. ...` to the next; without such comments all lines."""
    text = Path(path).read_text()
    begins = {int(m[1]): text.count("\n", 0, m.start()) + 1 for m in re.finditer(r"^# ([1-6])\. ", text, re.M)}
    return range(begins.get(step, 0), begins.get(step + 1, 10**6) if step in begins else 10**6)


def step(number):
    """Decorator: turns a judge of what the ranks do into one of a path, which looks at the blanks of one step only."""

    def decorate(judge):
        @wraps(judge)
        def judged(path):
            yield from scripts.no_script(path)
            scripts.refuse_blanks(path, lines=lines_of(path, number))
            yield from judge(training_scripts.ranks(path))

        return judged

    return decorate
