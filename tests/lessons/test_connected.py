"""lessons.connected: ranks that are played in one process meet as they would with Horovod, and never hang."""

import re
import sys
import threading

import numpy as np
import pytest

import labs
from labs.checks import student_code
from labs.errors import HorovodError
from lessons import connected


def refused(size, program):
    world = connected.World(size)
    with pytest.raises(connected.ConnectedError) as caught:
        world.play(lambda: program(world))
    return str(caught.value)


def test_every_rank_gets_the_results_of_all_and_keeps_its_own_state():
    world = connected.World(3)

    def program():
        value = np.float32(world.rank())
        for _ in range(4):
            value = world.allreduce(value, op=world.Sum).numpy() + world.rank()
        return value

    results = world.play(program)
    assert results == [120.0, 121.0, 122.0]
    assert [exchange.kind for exchange in world.exchanges] == ["allreduce"] * 4


def test_values_are_known_inside_a_tf_function_and_afterwards_functions_are_graphs_again():
    import tensorflow as tf

    world = connected.World(2)

    @tf.function
    def step(value):
        return 2 * world.allreduce(value)

    assert [float(each) for each in world.play(lambda: step(tf.constant(world.rank() + 1.0)))] == [3.0, 3.0]
    assert not tf.config.functions_run_eagerly()


def test_what_would_wait_for_ever_or_mix_up_is_said():
    ended = refused(2, lambda w: w.rank() or w.allreduce(1.0))
    assert "rank 1 has ended and rank 0 waits in allreduce number 1 for ever" in ended
    other = refused(2, lambda w: w.allgather([1.0]) if w.rank() else w.reducescatter([1.0, 2.0]))
    assert "Rank 0 calls reducescatter" in other and "rank 1 calls allgather" in other
    assert "(Sum)" in refused(2, lambda w: w.allreduce(1.0, op=w.Sum if w.rank() else w.Average))
    assert "they do not fit" in refused(2, lambda w: w.allreduce(np.zeros(2 + w.rank())))
    assert "a scalar has no rows" in refused(2, lambda w: w.allgather(1.0))


def test_a_student_who_swallows_exceptions_does_not_swallow_the_meeting():
    world = connected.World(2)

    def program():
        try:
            return float(world.allreduce(float(world.rank())))
        except Exception:
            return "swallowed"

    assert world.play(program) == [0.5, 0.5]


@pytest.mark.parametrize("kind, values", [("allreduce", 12), ("reducescatter", 6), ("allgather", 6)])
def test_values_that_a_ring_sends(kind, values):
    world = connected.World(4)
    size = 2 if kind == "allgather" else 8
    world.play(lambda: getattr(world, kind)(np.zeros(size, "float32")))
    assert world.exchanges[0].sent() == values


def test_definitions_of_a_script_see_the_stand_in_and_nobody_else_does(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text(
        "from labs import hvd\nimport horovod.tensorflow as real\nfrom horovod import tensorflow\nhere = hvd\n"
        "if __name__ == '__main__':\n    raise SystemExit('ran')\n"
    )

    def modules():
        return [sys.modules.get(name) for name in ("labs.hvd", "horovod", "horovod.tensorflow")], vars(labs).get("hvd")

    before, world = modules(), connected.World(2)
    names = connected.definitions(script, world)
    assert names["here"] is world and names["real"] is names["tensorflow"]
    assert modules() == before


def test_a_collective_in_a_graph_meets_those_of_the_others():
    import tensorflow as tf

    world = connected.World(2, graphs=True)

    @tf.function
    def step(value):
        assert not tf.executing_eagerly()
        whole, rows = world.grouped_allreduce([value, [1.0]], op=world.Sum), world.allgather([value])
        return whole[0] + tf.reduce_sum(world.reducescatter(rows)) + world.allreduce(value, op=world.Sum)

    found = world.play(lambda: float(step(tf.constant(world.rank() + 1.0))))
    assert found == [7.0, 8.0]
    assert [each.kind for each in world.exchanges] == ["grouped_allreduce", "allgather", "reducescatter", "allreduce"]


def test_each_rank_goes_on_where_it_was():
    world, steps = connected.World(2), []

    def program():
        for step in range(3):
            steps.append((world.rank(), step))
            world.allreduce(1.0)

    world.play(program)
    assert steps == [(rank, step) for step in range(3) for rank in range(2)]


def test_horovods_own_options_are_known_by_its_own_collectives_only():
    world = connected.World(2)
    own, one = connected.Horovod(world), np.float32(1)
    assert world.play(lambda: float(own.allreduce(one + own.rank(), average=True))) == [1.5, 1.5]
    assert world.play(lambda: float(own.allreduce(one, op=own.Sum, postscale_factor=0.25))) == [0.5, 0.5]
    with pytest.raises(TypeError):
        world.play(lambda: world.allreduce(one, average=True))


def endless(size, code, seconds=0.5):
    """What a play says of a student's code that has no end, and the threads that it has left."""
    world, before = connected.World(size, seconds), threading.active_count()
    names = {"world": world}
    exec(compile(code, "/student.py", "exec"), names)
    with pytest.raises((student_code.Endless, connected.ConnectedError)) as caught:
        world.play(names["program"])
    return str(caught.value), world.lines, threading.active_count() - before


def test_a_rank_that_computes_without_end_is_stopped_and_the_others_with_it():
    code = "def program():\n    if world.rank():\n        while True: pass\n    world.allreduce(1.0)\n"
    assert endless(2, code) == ("Line 3", [4, 3], 0)
    code = "def program():\n    while True:\n        world.allreduce(1.0)\n"
    said, lines, left = endless(2, code, seconds=30)
    assert "have exchanged 2000 times, and go on" in said and (lines, left) == ([3, 3], 0)


def test_a_loop_without_end_of_slow_exchanges_is_stopped_after_some_seconds_of_the_whole_play():
    code = "def program():\n    while True:\n        time.sleep(0.03)\n        world.allreduce(1.0)\n"
    said, lines, left = endless(2, "import time\n" + code, seconds=0.1)
    assert re.search(r"have exchanged \d{1,2} times, and go on: does every loop end", said), said
    assert (set(lines), left) == ({5}, 0)


def test_a_rank_that_does_not_exist_is_refused():
    world = connected.World(2)
    with pytest.raises(HorovodError, match="There is no rank 2 to take weights from. Give one from 0 to 1"):
        world.play(lambda: world.broadcast(1.0, 2))
    assert [world.local_rank(), world.local_size(), world.cross_rank(), world.cross_size()] == [0, 2, 0, 1]
