"""Known answers to every check: those of choices and of lessons/forms.py, and those of answers/NAME.py.

answers/NAME.py holds rows that begin with the id of a check that has a judge of its own. After it, RIGHT and WRONG have
a tuple of what the check is given, or a function of a folder that gives such a tuple. Where students write a script or
a function, the solution is right; STYLES and MISTAKES change it: after the id comes a text of it and the one in its
place, or several such pairs. SAMPLES is {id: [what the notebook hands over beside the answer to a question of a form]}.
"""

import functools
import importlib
import inspect
import re
import textwrap
from dataclasses import dataclass, field
from importlib.util import find_spec

import numpy as np
from making import edited

from labs.checks import judging, tasks
from lessons import forms


@dataclass
class Known:
    """Answers to one check, as tuples of what `check` gets, or as answers/NAME.py gives them.

    wrong: (answer, its hint, or None if any will do); secret: patterns that no hint may match
    """

    right: list = field(default_factory=list)
    wrong: list = field(default_factory=list)
    secret: list = field(default_factory=list)


@functools.cache
def answers(name):
    """{id: Known} of all that a lesson checks."""
    importlib.import_module(f"lessons.{name}.questions")
    beside = find_spec(f"answers.{name}") and importlib.import_module(f"answers.{name}")
    samples = getattr(beside, "SAMPLES", {})
    found = {}
    for item in tasks.lessons()[name].task:
        if isinstance(item, tasks.Choice):
            found[item.id] = Known([(item.right,)], [((letter,), hint) for letter, hint in item.wrong.items()])
        elif isinstance(item, tasks.Check):
            known = found[item.id] = Known()
            for sample in samples.get(item.id, [()]):
                _add(known, getattr(judging.JUDGES.get(item.id), "parts", ()), sample)
            right, wrong, styles, mistakes = (
                [rest for id, *rest in getattr(beside, kind, ()) if id == item.id]
                for kind in ("RIGHT", "WRONG", "STYLES", "MISTAKES")
            )
            known.right += [edited(item.id, *texts) for texts in [(), *styles]] if mistakes else []
            known.right += [answer for (answer,) in right]
            known.wrong += [(answer, None) for (answer,) in wrong]
            known.wrong += [(edited(item.id, *texts), None) for texts in mistakes]
            known.secret += [re.escape(texts[0].strip()) for texts in mistakes if "(" in texts[0]]
    return found


def _add(known, parts, sample):
    """What a form says of itself. sample: what the notebook hands over beside the answer."""
    rights = [part.right for part in parts]
    for place, part in enumerate(parts):
        if isinstance(part, forms.Value):
            right, *more = [part.of(each, sample) for each in forms.alternatives(part.right)]
            known.right += [(*each, *sample) for each in (right, *more)]
            for wrong, hint in part.wrong:
                for each in forms.alternatives(wrong):
                    pairs = zip(part.of(each, sample), right, strict=True)
                    known.wrong.append(((*(own if value is ... else value for value, own in pairs), *sample), hint))
            numbers = [value for value in right if not isinstance(value, str)]
        else:
            around = rights[:place], rights[place + 1 :]
            known.right.append(tuple(rights))
            for wrong, hint in part.wrong:
                mistakes = [_filled(each, part.right) for each in forms.alternatives(wrong)]
                known.wrong += [((*around[0], each, *around[1]), hint) for each in mistakes]
            numbers = [
                result for result in part.results(part.right) if np.ndim(result) == 0 and not isinstance(result, str)
            ]
            source = textwrap.dedent(inspect.getsource(part.right)).splitlines()[0]
            formula = re.search(r"lambda[^:]*: (.*?),?$", source)
            whole = formula and formula[1].count("(") == formula[1].count(")")
            known.secret += [re.escape(formula[1])] if whole else []
        digits = {f"{value:.{digits}g}" for value in numbers if value > 10 or value % 1 for digits in (2, 3, 4)}
        known.secret += [rf"(?<![\w.]){re.escape(each)}(?![\w.])" for each in digits]


def _filled(wrong, right):
    """A wrong function; where it gives `...`, it gives what the right one does."""

    def mistaken(*arguments):
        result = wrong(*arguments)
        if isinstance(result, tuple) and any(each is ... for each in result):
            return tuple(own if each is ... else each for each, own in zip(result, right(*arguments), strict=True))
        return result

    return mistaken
