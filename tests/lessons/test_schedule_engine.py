"""Schedules that students write: the engine against closed formulas, and what it says of programs that are wrong.

Overlap, ZeRO, layers in halves and the puzzles' other formulas: test_schedules.py, with the right answers.
"""

# ruff: noqa: F403, F405
import itertools
import re

import pytest
from making import edited

from lessons.write_the_schedule.engine import Case, play
from lessons.write_the_schedule.programs import *
from lessons.write_the_schedule.programs import OPERATIONS, ProgramError


def played(function, case):
    return play(case, [function(rank, case.ranks, case.layers, case.batches) for rank in range(case.ranks)])


def right(function, case):
    found = played(function, case)
    assert found.problem is None
    return found


def test_a_pipeline_has_its_bubble_and_its_messages_cost_latency_and_bytes():
    (all_forward_first,) = edited("pipeline.1")
    for ranks, batches in itertools.product((1, 2, 3, 8), (1, 2, 5, 12)):
        case = Case(ranks, ranks, batches, "stages", activation=0.0)
        assert right(all_forward_first, case).idle == pytest.approx((ranks - 1) / (batches + ranks - 1))
    found = right(all_forward_first, Case(3, 3, 4, "stages", activation=2.0, latency=0.25, bandwidth=4.0))
    assert found.sent == [8.0, 16.0, 8.0] and found.time > 3 * (4 + 2) + 4 * 0.75
    message = next(each for each in found.transfers if each.ranks[0] == 1)
    assert message.end - message.begin == pytest.approx(0.25 + 2 / 4)


@pytest.mark.parametrize("ranks", [2, 3, 8])
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
    assert max(halves.peaks) == pytest.approx(18)
    assert halves.holds(0, halves.time) == {("gradient", n, None): 6 for n in range(3)}


def computed(rank, L=2, then=lambda layer: None):
    load(rank)
    for layer in range(L):
        forward(layer, rank)
    for layer in reversed(range(L)):
        backward(layer, rank)
        then(layer)


def test_a_link_carries_one_message_at_a_time_out_of_a_rank_and_one_into_it():
    @program
    def each_its_layer(rank, K, L, M):
        others = [other for other in range(K) if other != rank]
        for other in others:
            send(gradient(other), other, wait=False)
        for other in others:
            receive(gradient(rank), other, add=True)
        for other in others:
            send(gradient(rank), other, wait=False)
        for other in others:
            receive(gradient(other), other, wait=False)

    # 12 messages of 1 ms; in order of the ranks, those of 0 and 1, of 0 and 2, and of 1 and 2 follow each other.
    found = right(each_its_layer, Case(3, 3, 3, "gradients", bandwidth=8.0))
    assert found.time == 6.0 and found.sent == [32.0] * 3
    assert all(found.holds(rank, 6.0) == {("gradient", n, None): 8.0 for n in range(3)} for rank in range(3))


def summed(rank):
    computed(rank)
    all_reduce(gradient(0), gradient(1))


G, W = gradient(0), weights(0)


@pytest.mark.parametrize(
    ("operations", "text"),
    [
        (lambda r: (computed(r), all_reduce(G, wait=False), update(0)), ": gradient(0) is under way in `all_reduce(gr"),
        (lambda r: (summed(r), all_reduce(G), update(0)), "gradient(0) contains 2 copies of micro-batch 0"),
        (lambda r: (summed(r), update(0), load(r), forward(0, r)), ": weights(0) is updated already."),
        (lambda r: (summed(r), update(0), free(weights(1))), "end, rank 0 does not have weights(1), which was freed"),
        (lambda r: (load(r), forward(0, r), forward(1, r), backward_weights(1, r)), "call backward_inputs(1, 0) first"),
        (lambda r: all_reduce(W), "weights and optimizer state are not sums"),
        (lambda r: all_reduce(G) if r else all_gather(W), ": for rank 0, collective number 1 is `all_gather(weig"),
        (lambda r: r and all_gather(W), " for rank 0, which has ended without it."),
        (lambda r: send(W, r), "cannot send a message to itself"),
    ],
)
def test_what_is_wrong_is_named(operations, text):
    @program
    def wrong(rank, K, L, M):
        operations(rank)

    said = played(wrong, Case(2, 2, 2)).problem
    assert said and text in said, said


def test_a_deadlock_names_its_cycle_and_leaves_out_who_only_waits_for_it():
    @program
    def stuck(rank, K, L, M):
        if rank == 0:
            receive(gradient(0), 1)
        else:
            wait(send(gradient(0), 3 - rank, wait=False))

    found = played(stuck, Case(3, 1, 3, "gradients"))
    assert [(rank, other) for rank, _, other in found.cycle] == [(1, 2), (2, 1)]
    said = r"Deadlock: rank 1 waits in `send\(gradient\(0\), to=2\)` \(line \d+: `wait\(.*\)`\) for rank 2; rank 2 "
    assert re.match(said, found.problem) and "rank 0" not in found.problem


def test_operations_that_no_program_gives_are_a_problem_and_no_error():
    for operations in (
        [("forward", (0, float("nan"), None), "line 1")],
        [("receive", (("gradient", 0, None, ()), 1, 2, True), "line 1")],
        [("load", (0,), "line 1")] * (OPERATIONS + 1),
    ):
        found = play(Case(2, 2, 2), [operations, operations])
        assert found.problem and len(found.peaks) == len(found.sent) == 2


def test_a_program_is_recorded_and_no_more():
    @program
    def endless(rank, K, L, M):
        while True:
            load(0)

    with pytest.raises(ProgramError, match=r"goes on \(line \d+: `load\(0\)`\)"):
        endless(0, 1, 1, 1)
    with pytest.raises(ProgramError, match="outside of a program"):
        load(0)  # also after one that was broken off
