"""The puzzles of notebook 31, judged from outside of the sandbox: the programs run inside, the engine does not."""

import pytest

BEGIN = """
from labs.checks import check
from lessons.write_the_schedule import game
from lessons.write_the_schedule.programs import *
"""
PROGRAM = """
@program
def data_parallel(rank, K, L, M):
    load(rank)
    for layer in range(L):
        forward(layer, rank)
    for layer in reversed(range(L)):
        backward(layer, rank)
    all_reduce(*[gradient(layer) for layer in range(L)])
    for layer in range(L):
        update(layer)
"""
CHECK = "\ncheck('schedule.1', data_parallel)\n"
SHOW = "game.show('schedule.1', data_parallel)"
SLOW = PROGRAM.replace(
    "all_reduce(*[gradient(layer) for layer in range(L)])", "[all_reduce(gradient(n)) for n in range(L)]"
)
CHANGED = """
from lessons.write_the_schedule import puzzles
from labs.simulate import schedule
puzzles.BAR = game.bars = puzzles.bars = lambda *_: {}
schedule.play = game.play = lambda case, programs: schedule.Played(case, changes=[[]] * case.ranks, sent=[0.0])
schedule.Case.message = schedule.Case.ring = lambda *_: 0.0
"""
ENDLESS = PROGRAM.replace("    load(rank)\n", "    while True:\n        load(rank)\n", 1)
TYPED = PROGRAM.replace("range(L)", "range(6)")
LOOKS = PROGRAM.replace(
    "    load(rank)\n",
    "    import sys\n    frame = sys._getframe()\n    while frame:\n        case = frame.f_locals.get('case')\n"
    "        if case is not None:\n            object.__setattr__(case, 'latency', 0.0)\n        frame = frame.f_back\n"
    "    load(rank)\n",
).replace("all_reduce(*[gradient(layer) for layer in range(L)])", "[all_reduce(gradient(n)) for n in range(L)]")


@pytest.mark.parametrize(
    ("cells", "state", "text"),
    [
        ((PROGRAM + CHECK, SHOW), "right", "Every rank computes its own micro-batch"),
        ((SLOW + CHECK, SHOW), "wrong", "With K = 4, L = 6, M = 4, the sums are right, but the step takes 38.6 ms"),
        ((CHANGED, SLOW + CHECK), "wrong", "the step takes 38.6 ms"),
        ((LOOKS + CHECK,), "wrong", "the step takes 38.6 ms"),
        ((TYPED + CHECK,), "wrong", "With K = "),
        ((ENDLESS + CHECK,), "wrong", "your function raises ProgramError: The program has 2000 operations and goes on"),
        (("@program\ndef data_parallel(rank, K, L, M):\n    ...\n" + CHECK, SHOW), "open", "not done"),
    ],
    ids=["right", "slow", "changed engine", "looks for the case", "typed", "endless", "blank"],
)
def test_a_program_is_played_outside(run, cells, state, text):
    found, told = run("31_write_the_schedule", BEGIN, *cells)
    result = found["schedule.1"]
    assert (result.state, result.how) == (state, "outside") and text in result.text, (result, told)
    assert not told
