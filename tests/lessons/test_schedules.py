"""The puzzles of notebooks 31 to 34: bars and bounds, what the engine says of programs that are wrong, the picture, and
what is kept."""

# ruff: noqa: F403, F405

import json
import re

import pytest
from answers.harder_schedules import once_round
from known import answers
from making import edited

from labs import checks
from lessons.write_the_schedule import game, pictures
from lessons.write_the_schedule.engine import Case, play
from lessons.write_the_schedule.programs import *
from lessons.write_the_schedule.programs import OPERATIONS, ProgramError
from lessons.write_the_schedule.puzzles import PUZZLES, measured

LESSONS = "write_the_schedule", "zero_schedules", "harder_schedules", "pipeline_schedules"
KNOWN = {id: known for name in LESSONS for id, known in answers(name).items()}
PLAIN = {id: known.wrong[0][0][0] for id, known in KNOWN.items()}  # right, but plain
TYPED = edited("schedule.1", "gradient(layer) for layer in range(L)", "gradient(layer) for layer in range(6)")


def right(id):
    return KNOWN[id].right[0][0]


def solved(id, case=None, program=None):
    case = case or PUZZLES[id].case
    return play(case, game.recorded(program or right(id), case))


@pytest.mark.parametrize("id", PUZZLES)
def test_the_best_known_keeps_the_bars_and_passes_no_bound_and_the_plain_program_misses_a_bar_by_15_per_cent(id):
    """The solution is the best known: the engine, which plays it, and the formula agree within 3 %."""
    example, others = PUZZLES[id].case, PUZZLES[id].others
    for case in (example, *others):
        values = measured(solved(id, case))
        for measure, (known, bound) in PUZZLES[id].best(case).items():
            assert known / 1.03 <= values[measure] <= 1.03 * known, (case, measure)
            assert bound is None or bound * (1 - 2e-9) <= min(known, values[measure]), (case, measure)
    plain = solved(id, example, PLAIN[id])
    assert plain.problem is None
    best = PUZZLES[id].best(example)
    assert max(measured(plain)[measure] / known for measure, (known, _) in best.items()) >= 1.15
    assert len({(case.ranks, case.layers, case.batches) for case in others}) >= 2


def test_a_check_is_kept_and_the_best_schedule_of_the_example_too(runs, capsys):
    def kept():
        return game.kept()["schedule.1"]["time"]

    slow, fast = PLAIN["schedule.1"], right("schedule.1")
    assert not checks.check("schedule.1", slow) and game.kept() == {}
    for shown, own, time in ((slow, {}, 38.6), (fast, {"ranks": 2}, 38.6), (fast, {}, 29.6), (slow, {}, 29.6)):
        game.show("schedule.1", shown, **own)
        assert kept() == pytest.approx(time)
    assert checks.check("schedule.1", fast) and checks.progress()[-1]
    assert re.search(r"time \(ms\) +29\.6 +31\.08", capsys.readouterr().out)
    (runs / "schedules.json").write_text('{"schedule.1": {"time": "x"}, "schedule.2": 5, ')
    game.show("schedule.1", fast)
    assert kept() == pytest.approx(29.6)


def test_the_case_in_which_a_check_found_something_can_be_shown(capsys):
    state, hint, _ = checks.judge("schedule.1", TYPED[0])
    assert state == "wrong" and "K = 4" not in hint
    game.show("schedule.1", TYPED[0], last=True)
    assert re.search(r"With (K = \d, L = \d, M = \d)", hint)[1] in capsys.readouterr().out


@program
def everything_everywhere(rank, K, L, M):
    for batch in range(M):
        load(batch)
        for layer in range(L):
            forward(layer, batch)
        for layer in reversed(range(L)):
            backward(layer, batch)
    for layer in range(L):
        update(layer)
        all_gather(weights(layer))


def test_a_program_that_passes_a_bound_breaks_a_rule_and_is_nowhere_right(runs, capsys):
    case, program = PUZZLES["zero.1"].case, everything_everywhere
    played = solved("zero.1", case, program)
    bounds = {measure: bound for measure, (_, bound) in PUZZLES["zero.1"].best(case).items()}
    assert played.problem is None
    assert any(value < 0.99 * bounds[measure] for measure, value in measured(played).items() if measure in bounds)
    assert game.show("zero.1", program) is not None and game.kept() == {}
    assert "Not right: `forward(0, 0)` is computed 4 times, on ranks 0, 1, 2, 3. In" in capsys.readouterr().out
    (runs / "schedules.json").write_text(json.dumps({"zero.1": {"programs": game.recorded(program, case)}}))
    assert list(game.pictured()) == []


# The engine


def played(operations, case):
    @program
    def made(rank, K, L, M):
        operations(rank)

    return play(case, game.recorded(made, case))


@pytest.mark.parametrize(
    "operations",
    [
        lambda r: receive(gradient(r - 1), 0) if r else [send(gradient(n), n + 1, wait=False) for n in (0, 1)],
        lambda r: send(gradient(r - 1), 0) if r else [receive(gradient(n), n + 1, wait=False) for n in (0, 1)],
    ],
)
def test_a_link_carries_one_message_at_a_time(operations):
    found = played(operations, Case(3, 2, 3, "gradients", latency=0.5))
    assert found.time == 2 * (0.5 + 8 / 8) and sum(found.sent) == 2 * 8


def computed(rank):
    load(rank)
    forward(0, rank)
    forward(1, rank)
    backward(1, rank)
    backward(0, rank)


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
        (lambda r: send(W, 1) if r == 0 else receive(W, 0), "weights(0) stays where it is"),
    ],
)
def test_what_is_wrong_is_named(operations, text):
    said = played(operations, Case(2, 2, 2)).problem
    assert said and text in said, said


def test_a_deadlock_names_its_cycle_and_leaves_out_who_only_waits_for_it():
    found = played(lambda r: wait(send(G, 3 - r, wait=False)) if r else receive(G, 1), Case(3, 1, 3, "gradients"))
    assert [(rank, other) for rank, _, other in found.cycle] == [(1, 2), (2, 1)]
    said = r"Deadlock: rank 1 waits in `send\(gradient\(0\), to=2\)` \(line \d+: `.*`\) for rank 2; rank 2 "
    assert re.match(said, found.problem) and "rank 0" not in found.problem


def test_operations_that_no_program_gives_are_a_problem_and_no_error():
    for operations in (
        [("forward", (0, float("nan"), None), "line 1")],
        [("receive", (("gradient", 0, None, ()), 1, 2, True), "line 1")],
        [("load", (0,), "line 1")] * (OPERATIONS + 1),
    ):
        assert play(Case(2, 2, 2), [operations, operations]).problem


def test_a_program_is_recorded_and_no_more():
    with pytest.raises(ProgramError, match=r"goes on \(line \d+: `.*load\(0\)"):
        played(lambda r: [load(0) for _ in range(OPERATIONS + 1)], Case(1, 1, 1))
    with pytest.raises(ProgramError, match="outside of a program"):
        load(0)  # also after one that was broken off


# The picture


def test_the_picture_moves_and_says_what_each_rank_does_and_holds():
    draw, moments = pictures.moving(solved("pipeline.3"), "Zero bubble")
    first, last = draw(0.0).alt, draw(moments[-1]).alt
    assert "K = 4, L = 4, M = 8: 27.35 ms, idle 12%" in first and "rank 3 50 MB" in first
    assert "At 0 ms: rank 0 load(0); holds 26 MB: weights 0, optimizer 0, micro-batch 0; rank 1 waits in rec" in first
    assert "rank 1 has ended; holds 24 MB" in last and draw(5.0).png() != draw(6.0).png()
    assert pictures.use(solved("harder.1", program=once_round)) == "idle 100%, links in use 25%"


def test_the_picture_of_a_deadlock_shows_its_cycle_and_that_of_nothing_is_drawn():
    stuck = edited("harder.1", "right, wait=False)", "right)")[0]
    figure = pictures.moving(solved("harder.1", program=stuck), "A ring")[0]()
    assert figure.axes[0].get_title() == "A ring: deadlock, stopped at 0 ms" and len(figure.axes[0].texts) == 4
    assert "rank 3 waits in `send(gradient(0, 3), to=0)`" in figure.alt and figure.png()[:4] == b"\x89PNG"
