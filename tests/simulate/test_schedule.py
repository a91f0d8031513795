"""Schedules that students write: the engine against closed formulas, and what it says of programs that are wrong."""

import itertools
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from tree import ROOT

from labs.simulate import memory
from labs.simulate.given import SimulationError
from labs.simulate.schedule import OPERATIONS, Case, play
from lessons.write_the_schedule.programs import (
    ProgramError,
    activation,
    all_gather,
    all_reduce,
    backward,
    error,
    forward,
    free,
    gradient,
    load,
    optimizer,
    program,
    receive,
    reduce_scatter,
    send,
    update,
    wait,
    weights,
)

GRID = list(itertools.product((1, 2, 3, 4, 8), (1, 2, 5, 12)))


def played(function, case):
    return play(case, [function(rank, case.ranks, case.layers, case.batches) for rank in range(case.ranks)])


def right(function, case):
    found = played(function, case)
    assert found.problem is None
    return found


@program
def all_forward_first(rank, K, L, M):
    for batch in range(M):
        load(batch) if rank == 0 else receive(activation(rank - 1, batch), rank - 1)
        forward(rank, batch)
        if rank < K - 1:
            send(activation(rank, batch), rank + 1)
    for batch in range(M):
        if rank < K - 1:
            receive(error(rank, batch), rank + 1)
        backward(rank, batch)
        if rank:
            send(error(rank - 1, batch), rank - 1)
    update(rank)


@pytest.mark.parametrize(("ranks", "batches"), GRID)
def test_the_bubble_of_a_pipeline(ranks, batches):
    case = Case(ranks, ranks, batches, "stages", activation=0.0)
    assert right(all_forward_first, case).idle == pytest.approx((ranks - 1) / (batches + ranks - 1))


def test_messages_in_a_pipeline_cost_latency_and_bytes():
    case = Case(3, 3, 4, "stages", activation=2.0, latency=0.25, bandwidth=4.0)
    found = right(all_forward_first, case)
    assert found.sent == [8.0, 16.0, 8.0] and found.time > 3 * (4 + 2) + 4 * 0.75
    message = next(each for each in found.transfers if each.sender == 1)
    assert message.end - message.begin == pytest.approx(0.25 + 2 / 4)


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_collectives_are_rings(ranks):
    case = Case(ranks, 3, ranks, "gradients", latency=0.5, bandwidth=2.0, parameters=6.0)

    @program
    def summed(rank, K, L, M):
        all_reduce(*map(gradient, range(L)))

    @program
    def in_two_halves(rank, K, L, M):
        for layer in range(L):
            reduce_scatter(gradient(layer))
            all_gather(gradient(layer))

    whole, halves = right(summed, case), right(in_two_halves, case)
    once = 2 * (ranks - 1) / ranks * 18
    assert whole.sent == pytest.approx([once] * ranks) and halves.sent == pytest.approx([once] * ranks)
    assert whole.time == pytest.approx(2 * (ranks - 1) * (0.5 + 18 / ranks / 2))
    assert halves.time == pytest.approx(3 * 2 * (ranks - 1) * (0.5 + 6 / ranks / 2))
    assert max(halves.peaks) == pytest.approx(18) and halves.holds(0, halves.time) == {
        f"gradient({n})": 6 for n in (0, 1, 2)
    }


@program
def by_parts(rank, K, L, M):
    load(rank)
    for layer in range(L):
        all_gather(weights(layer))
        forward(layer, rank)
        free(weights(layer), keep=rank)
    for layer in reversed(range(L)):
        all_gather(weights(layer))
        backward(layer, rank)
        free(weights(layer), keep=rank)
        reduce_scatter(gradient(layer))
    for layer in range(L):
        update(layer)


@program
def sharded(rank, K, L, M):
    load(rank)
    for layer in range(L):
        forward(layer, rank)
    for layer in reversed(range(L)):
        backward(layer, rank)
        reduce_scatter(gradient(layer))
    for layer in range(L):
        update(layer)
        all_gather(weights(layer))


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize(
    ("function", "start", "volumes", "shared"),
    [(sharded, "optimizer parts", 2, "optimizer"), (by_parts, "parts", 3, "everything")],
)
def test_volumes_and_memory_of_zero(function, start, volumes, shared, ranks):
    """2 times the parameters for ZeRO-1 and 2, 3 times for ZeRO-3, by (K - 1) / K (S. Rajbhandari and others, 2020)."""
    case = Case(ranks, 5, ranks, start, activation=0.0, load=1.0)
    found = right(function, case)
    assert found.sent == pytest.approx([volumes * (ranks - 1) / ranks * 40] * ranks)
    kept = memory.step(40, 0, 1, slots=2, bytes_per_value=1, devices=ranks, sharded=shared)
    del kept["gradients"]  # there are none before and after a step
    for moment in (0.0, found.time):
        assert sum(found.holds(1, moment).values()) == pytest.approx(sum(kept.values()))


def test_overlap_takes_what_is_longer():
    case = Case(2, 2, 2, latency=0.0, bandwidth=4.0)  # an all-reduce of a layer takes 2 ms, as its backward pass

    @program
    def overlapped(rank, K, L, M):
        load(rank)
        for layer in range(L):
            forward(layer, rank)
        started = []
        for layer in reversed(range(L)):
            backward(layer, rank)
            started.append(all_reduce(gradient(layer), wait=False))
        for each in started:
            wait(each)
            update(L - 1 - started.index(each))

    assert right(overlapped, case).time == 2 * 3 + 2


def test_a_link_carries_one_message_at_a_time():
    case = Case(3, 1, 3, "gradients", bandwidth=8.0)

    @program
    def into_rank_0(rank, K, L, M):
        for other in range(1, K):
            if rank == other:
                send(gradient(0), 0)
                receive(gradient(0), 0)
            if rank == 0:
                receive(gradient(0), other, add=True)
        if rank == 0:
            started = [send(gradient(0), other, wait=False) for other in (1, 2)]
            for each in started:
                wait(each)

    found = right(into_rank_0, case)
    assert found.time == 4.0 and found.sent == [16.0, 8.0, 8.0]


def test_halves_of_a_layer_need_their_sums():
    case = Case(2, 2, 1, "parts", wide=4.0)

    @program
    def split(rank, K, L, M):
        load(0)
        forward(0, 0, "columns")
        forward(1, 0, "rows")
        all_reduce(activation(1, 0))
        backward(1, 0, "rows")
        backward(0, 0, "columns")
        update(0)
        update(1)

    found = right(split, case)
    assert found.time == pytest.approx(2 * 3 / 2 + 2 * (0.5 / 8)) and found.sent == [1.0, 1.0]
    assert (
        max(found.peaks) == 2 * (4 + 8) + 2 * 4 + 1 + 2
    )  # weights and state, gradients, the input, a part of an error


def problem(function, **changes):
    return played(program(function), replace(Case(2, 2, 2), **changes)).problem


def computed(rank, L):
    load(rank)
    for layer in range(L):
        forward(layer, rank)
    for layer in reversed(range(L)):
        backward(layer, rank)


def used_before_it_came(rank, K, L, M):
    computed(rank, L)
    all_reduce(gradient(0), gradient(1), wait=False)
    update(0)


def added_while_it_is_summed(rank, K, L, M):
    computed(rank, L)
    all_reduce(gradient(0), wait=False)
    load(1 - rank)
    for layer in range(L):
        forward(layer, 1 - rank)
    for layer in reversed(range(L)):
        backward(layer, 1 - rank)


def forward_after_the_update(rank, K, L, M):
    computed(rank, L)
    all_reduce(gradient(0), gradient(1))
    update(0)
    load(rank)
    forward(0, rank)


def freed_too_early(rank, K, L, M):
    load(rank)
    free(weights(0))
    forward(0, rank)


def freed_whole(rank, K, L, M):
    computed(rank, L)
    all_reduce(gradient(0), gradient(1))
    update(0)
    free(weights(1))


def made_again_after_it_was_freed(rank, K, L, M):
    load(rank)
    free(activation(-1, rank))
    load(rank)
    for layer in range(L):
        forward(layer, rank)
    for layer in reversed(range(L)):
        backward(layer, rank)
    forward(0, rank)


def a_part_is_left(rank, K, L, M):
    load(rank)
    free(weights(0), keep=rank)
    forward(0, rank)


def twice_updated(rank, K, L, M):
    computed(rank, L)
    all_reduce(gradient(0), gradient(1))
    update(0)
    update(0)


def weights_are_added(rank, K, L, M):
    all_reduce(weights(0))


def other_words(rank, K, L, M):
    if rank:
        all_reduce(gradient(0))
    else:
        all_gather(weights(0))


def one_comes_never(rank, K, L, M):
    if rank:
        all_gather(weights(0))


def no_parts_here(rank, K, L, M):
    all_gather(weights(0, 1))


def the_same_twice(rank, K, L, M):
    all_gather(weights(0), weights(0))


def adds_to_nothing(rank, K, L, M):
    receive(gradient(0), 1 - rank, add=True)


def weights_come_twice(rank, K, L, M):
    receive(weights(0), 1 - rank, add=True)


def state_is_gone(rank, K, L, M):
    computed(rank, L)
    all_reduce(gradient(0), gradient(1))
    free(optimizer(0))
    update(0)


def split_by_nothing(rank, K, L, M):
    load(0)
    forward(0, 0, "rank")


def keeps_what_is_not(rank, K, L, M):
    free(weights(0), keep=2)


def waits_twice(rank, K, L, M):
    started = all_gather(weights(0), wait=False)
    wait(started)
    wait(started)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (used_before_it_came, r"Rank 0, operation 7, `update\(0\)` \(line \d+: `update\(0\)`\): gradient\(0\) is"),
        (added_while_it_is_summed, r"`backward\(0, 1\)` .*: gradient\(0\) is under way in `all_reduce"),
        (forward_after_the_update, r"`forward\(0, 0\)` .*: weights\(0\) is updated already\."),
        (
            freed_too_early,
            r"`forward\(0, 0\)` .*: rank 0 does not have weights\(0\), which was freed in operation 2, line \d+: `free",
        ),
        (freed_whole, r"^At the end, rank 0 does not have weights\(1\), which was freed in operation 8, line"),
        (made_again_after_it_was_freed, r"rank 0 does not have micro-batch 0\.$"),
        (a_part_is_left, r"rank 0 does not have part 1 of weights\(0\), which was freed in operation 2, line"),
        (twice_updated, r"operation 8, `update\(0\)` .*: rank 0 does not have gradient\(0\)\."),
        (weights_are_added, r"weights and optimizer state are not sums"),
        (other_words, r"Rank 1, .*: for rank 0, collective number 1 is `all_gather"),
        (one_comes_never, r"Deadlock: rank 1 waits in `all_gather.* for rank 0, which has ended without it\."),
        (no_parts_here, r"takes whole tensors"),
        (the_same_twice, r"and each of them once\."),
        (adds_to_nothing, r"rank 0 does not have gradient\(0\)\."),
        (weights_come_twice, r"weights\(0\) is not a sum, so"),
        (state_is_gone, r"rank 0 does not have optimizer\(0\), which was freed in operation 7, line"),
        (split_by_nothing, r"split must be 'columns' or 'rows'\."),
        (keeps_what_is_not, r"keep is 2: it must be a whole number, from 0 to 1\."),
        (waits_twice, r"operation 3, wait \(line \d+: `wait\(started\)`\): it waits for an exchange that"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_rank_operation_and_line(function, text):
    said = problem(function)
    assert said and re.search(text, said), said


def test_a_deadlock_names_its_cycle_and_leaves_out_who_only_waits_for_it():
    @program
    def stuck(rank, K, L, M):
        if rank == 0:
            receive(gradient(0), 1)
        else:
            send(gradient(0), 3 - rank)

    found = played(stuck, Case(3, 1, 3, "gradients"))
    assert [(rank, other) for rank, _, other in found.cycle] == [(1, 2), (2, 1)]
    assert "rank 0" not in found.problem


def test_a_deadlock_of_started_messages_names_the_messages():
    @program
    def stuck(rank, K, L, M):
        wait(send(gradient(0), 1 - rank, wait=False))
        receive(gradient(0), 1 - rank)

    said = played(stuck, Case(2, 1, 2, "gradients")).problem
    assert re.match(
        r"Deadlock: rank 0 waits in `send\(gradient\(0\), to=1\)` \(line \d+: `wait\(.*\)`\) for rank 1;", said
    )


@pytest.mark.parametrize(
    ("parts", "words"), [((1,), "part 1 of gradient(0)"), ((0, 1), "parts 0 and 1 of gradient(0)"), ((), "gradient(0)")]
)
def test_parts_of_a_tensor_are_told_in_words(parts, words):
    @program
    def lost(rank, K, L, M):
        if rank == 0:
            send(gradient(0, *parts), 2, wait=False)
        if rank < 2:
            receive(gradient(0), 1 - rank)

    assert f"Rank 0 is sending {words} to rank 2, and" in played(lost, Case(3, 1, 3, "gradients")).problem


@pytest.mark.parametrize("comes", [False, True])
def test_a_deadlock_tells_of_a_message_that_nobody_receives(comes):
    @program
    def stuck(rank, K, L, M):
        if rank == 0:
            send(gradient(0), 2, wait=False)
        if rank == 2 and comes:
            receive(gradient(0), 1)  # and the other one after it
            receive(gradient(0), 0)
        if rank < 2:
            receive(gradient(0), 1 - rank)

    said = played(stuck, Case(3, 1, 3, "gradients")).problem
    lost = "Rank 0 is sending gradient(0) to rank 2, and nobody is receiving it."
    assert said.startswith("Deadlock: rank 0 waits in ") and said.endswith(lost) is not comes


@pytest.mark.parametrize(
    "operations",
    [
        None,
        "all_reduce",
        [1],
        [("forward", (0, 0), "line 1")],
        [("forward", (0, 0, None, 0), "line 1")],
        [("forward", (0, -1, None), "line 1")],
        [("forward", (0, float("nan"), None), "line 1")],
        [("compute", (), "line 1")],
        [("load", ([],), "line 1")],
        [("send", (("gradient", 0, None, ()), True, True), "line 1")],
        [("send", (("gradient", 0, 0, ()), 1, True), "line 1")],
        [("send", ("gradient", 1, True), "line 1")],
        [("receive", (("gradient", 0, None, ()), 1, 2, True), "line 1")],
        [("all_reduce", ((), True), "line 1")],
        [("wait", (10**9,), "line 1")],
        [("load", (0,), "line 1")] * (OPERATIONS + 1),
    ],
)
def test_operations_that_no_program_gives_are_a_problem_and_no_error(operations):
    found = play(Case(2, 2, 2), [operations, operations])
    assert found.problem and len(found.peaks) == len(found.sent) == 2


def test_a_program_is_recorded_and_no_more():
    with pytest.raises(ProgramError, match="outside of a program"):
        load(0)

    @program
    def endless(rank, K, L, M):
        while True:
            load(0)

    with pytest.raises(ProgramError, match=r"goes on \(line \d+: `load\(0\)`\)"):
        endless(0, 1, 1, 1)
    with pytest.raises(ProgramError, match="outside of a program"):
        load(0)  # also after one that was broken off


@pytest.mark.parametrize("changes", [{"ranks": 0}, {"forward": -1.0}, {"bandwidth": 0.0}, {"start": "none"}])
def test_a_case_must_make_sense(changes):
    with pytest.raises(SimulationError):
        replace(Case(2, 2, 2), **changes)


def test_it_needs_no_numpy():
    text = "import sys, labs.simulate.schedule; print([n for n in ('numpy', 'pydantic') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "[]", done.stderr
