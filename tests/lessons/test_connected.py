"""lessons.connected: ranks that are played in one process meet as they would with Horovod, and never hang."""

import re
import sys
import threading
import time

import numpy as np
import pytest
import tensorflow as tf

import labs
from labs.checks import student_code
from labs.errors import HorovodError
from lessons import connected


def test_every_rank_gets_the_results_of_all_and_goes_on_where_it_was_and_functions_are_graphs_again():
    world, seen = connected.World(3), []

    def program():
        value = np.float32(world.rank())
        for step in range(4):
            seen.append((step, world.rank()))
            try:
                value = world.allreduce(value, op=world.Sum).numpy() + world.local_rank()
            except Exception:  # a student who swallows exceptions does not swallow the meeting
                value = None
        return value

    assert world.play(program) == [120.0, 121.0, 122.0]
    assert [exchange.kind for exchange in world.exchanges] == ["allreduce"] * 4
    assert seen == [(step, rank) for step in range(4) for rank in range(3)]
    assert not tf.config.functions_run_eagerly()


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (lambda w: w.allreduce(1.0, op=w.Sum if w.rank() else w.Average), r"\(Sum\)"),
        (lambda w: w.allgather(1.0), "a scalar has no rows"),
        (lambda w: w.broadcast(1.0, 2), "There is no rank 2 for weights: give one from 0 to 1"),
    ],
)
def test_what_would_wait_for_ever_or_mix_up_is_said(program, says):
    world = connected.World(2)
    with pytest.raises((connected.ConnectedError, HorovodError), match=says):
        world.play(lambda: program(world))
    assert [world.local_size(), world.cross_rank(), world.cross_size()] == [2, 0, 1]


def test_definitions_of_a_script_see_the_stand_in_and_nobody_else_does(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text("from labs import hvd\nimport horovod.tensorflow as real\nhere = hvd\n")

    def modules():
        return [sys.modules.get(name) for name in ("labs.hvd", "horovod", "horovod.tensorflow")], vars(labs).get("hvd")

    before, world = modules(), connected.World(2)
    names = connected.definitions(script, world)
    assert names["here"] is world and names["real"].rank
    assert modules() == before


SLOW = r"have exchanged \d{1,2} times, and go on: does every loop end"


@pytest.mark.parametrize(
    ("seconds", "code", "says", "lines"),
    [
        (0.5, "    if world.rank():\n        while True: pass\n    world.allreduce(1.0)\n", "Line 3$", {3, 4}),
        (30, "    while True:\n        world.allreduce(1.0)\n", "have exchanged 2000 times, and go on", {3}),
        (0.1, "    while True:\n        time.sleep(0.03)\n        world.allreduce(1.0)\n", SLOW, {4}),
    ],
)
def test_what_has_no_end_is_stopped_in_all_ranks_and_no_thread_is_left(seconds, code, says, lines):
    world, before = connected.World(2, seconds), threading.active_count()
    exec(compile(f"def program():\n{code}", "/student.py", "exec"), names := {"world": world, "time": time})
    with pytest.raises((student_code.Endless, connected.ConnectedError)) as caught:
        world.play(names["program"])
    assert re.search(says, str(caught.value)), caught.value
    assert {*world.lines} == lines and threading.active_count() == before
