"""How good the schedules of notebooks 31 to 34 can be: the bars beside references and plain programs, and searches.

    python benchmarks/schedules.py [--search | --moves]

The table shows for the example of each puzzle, and for each measure that counts: best known, bound, bar (5 % above the
best known), what the reference takes, and what the plain program takes. --search looks for better schedules than the
best known in small cases, by trying all of a family:

    pipelines            every order of the operations on each rank in which micro-batches stay in order
    tensor parallelism   every choice of columns or rows for each layer, with the cheapest exchange that it allows
    ZeRO-3               how many layers ahead weights are gathered, and how many layers late sums are waited for

--moves draws 1F1B on 8 ranks, about 64 operations each, and prints how long a move of the cursor takes, until the
picture is there as PNG: the median, and the time within which 90 % of the moves are done.
"""

import argparse
import itertools
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[1] / "tests/lessons")]

from known import answers

from lessons.write_the_schedule import game, pictures
from lessons.write_the_schedule.engine import play
from lessons.write_the_schedule.programs import (
    activation,
    all_gather,
    all_reduce,
    backward,
    backward_inputs,
    backward_weights,
    error,
    forward,
    free,
    gradient,
    load,
    program,
    receive,
    reduce_scatter,
    send,
    update,
    wait,
    weights,
)
from lessons.write_the_schedule.puzzles import MEASURES, PUZZLES, bars, changed, measured

LESSONS = "write_the_schedule", "zero_schedules", "harder_schedules", "pipeline_schedules"
KNOWN = {id: known for name in LESSONS for id, known in answers(name).items()}  # the first wrong one is only plain


def played(function, case):
    return play(case, game.recorded(function, case))


def table():
    heads = ("best", "bound", "bar", "reference", "plain")
    print(f"{'puzzle':40} {'measure':10}" + "".join(f"{head:>10}" for head in heads) + "  above the best")
    for id, puzzle in PUZZLES.items():
        right, plain = KNOWN[id].right[0][0], KNOWN[id].wrong[0][0][0]
        found, other = (measured(played(each, puzzle.case)) for each in (right, plain))
        for measure, (known, bound) in puzzle.best(puzzle.case).items():
            values = (known, bound, bars(puzzle, puzzle.case)[measure], found[measure], other[measure])
            told = "".join(f"{value:10.2f}" if value else f"{'-':>10}" for value in values)
            print(f"{f'{id} {puzzle.title}'[:40]:40} {measure + ' ' + MEASURES[measure]:10}{told}", end="")
            print(f"  {other[measure] / known - 1:+.0%}")


def orders(batches, steps):
    """Every order of `steps` operations on each of the micro-batches 0, 1, ..., where each operation takes them in turn
    and follows the one before it: a list of lists of (operation, micro-batch)."""

    def after(counts):
        if counts[-1] == batches:
            yield []
        for step in range(steps):
            if counts[step] < (batches if step == 0 else counts[step - 1]):
                more = (*counts[:step], counts[step] + 1, *counts[step + 1 :])
                yield from ([(step, counts[step]), *rest] for rest in after(more))

    return list(after((0,) * steps))


def pipeline(by_rank, halves):
    @program
    def stages(rank, K, L, M):
        for step, batch in by_rank[rank]:
            if step == 0:
                if rank == 0:
                    load(batch)
                else:
                    receive(activation(rank - 1, batch), rank - 1)
                forward(rank, batch)
                if rank < K - 1:
                    send(activation(rank, batch), rank + 1, wait=False)
            elif step == 2:
                backward_weights(rank, batch)
            else:
                if rank < K - 1:
                    receive(error(rank, batch), rank + 1)
                (backward_inputs if halves else backward)(rank, batch)
                if rank:
                    send(error(rank - 1, batch), rank - 1, wait=False)
        update(rank)

    return stages


def search_pipelines():
    for id, ranks, batches in (("pipeline.1", 3, 4), ("pipeline.2", 2, 6), ("pipeline.2", 3, 4), ("pipeline.3", 2, 3)):
        halves, puzzle = id == "pipeline.3", PUZZLES[id]
        case = replace(puzzle.case, ranks=ranks, layers=ranks, batches=batches)
        limit, least, shortest, count = bars(puzzle, case)["time"], None, None, 0
        for by_rank in itertools.product(orders(batches, 3 if halves else 2), repeat=ranks):
            found = played(pipeline(by_rank, halves), case)
            if found.problem:
                continue
            count, values = count + 1, measured(found)
            shortest = min(shortest or values["time"], values["time"])
            if values["time"] <= limit:
                least = min(least or values["memory"], values["memory"])
        best = puzzle.best(case)
        memory = f"; least memory within the bar for the time {least:.2f} MB" if least else ""
        known = ", ".join(f"{measure} {known:.2f}" for measure, (known, _) in best.items())
        print(f"{id} {puzzle.title}, K = {ranks}, M = {batches}: {count} schedules, shortest {shortest:.2f} ms{memory}")
        print(f"    best known: {known}")


def search_tensor():
    puzzle = PUZZLES["harder.3"]
    case, found = puzzle.case, {}
    for splits in itertools.product(("columns", "rows"), repeat=case.layers):

        @program
        def chosen(rank, K, L, M, splits=splits):
            load(0)
            for layer, split in enumerate(splits):
                forward(layer, 0, split)
                part = layer + 1 < L and splits[layer + 1] == "rows"  # the next layer takes a part as it is
                if split == "columns" and not part:
                    all_gather(activation(layer, 0))
                if split == "rows":
                    (reduce_scatter if part else all_reduce)(activation(layer, 0))
            for layer in reversed(range(L)):
                backward(layer, 0, splits[layer])
                if layer:
                    part = splits[layer - 1] == "columns"
                    if splits[layer] == "rows" and not part:
                        all_gather(error(layer - 1, 0))
                    if splits[layer] == "columns":
                        (reduce_scatter if part else all_reduce)(error(layer - 1, 0))
            for layer in range(L):
                update(layer)

        result = played(chosen, case)
        if not result.problem:
            found[splits] = measured(result)
    least = min(found, key=lambda splits: found[splits]["bytes"])
    print(f"harder.3 {puzzle.title}: {len(found)} choices; least {found[least]['bytes']:.2f} MB and ", end="")
    print(f"{min(each['time'] for each in found.values()):.2f} ms, with {' '.join(least)}")
    print(f"    best known: {', '.join(f'{m} {known:.2f}' for m, (known, _) in puzzle.best(case).items())}")


def search_zero_3():
    puzzle = PUZZLES["zero.3"]
    case, found = puzzle.case, {}
    for ahead, behind, late, at_once in itertools.product((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3), (True, False)):

        @program
        def chosen(rank, K, L, M, ahead=ahead, behind=behind, late=late, at_once=at_once):
            def layers(what, order, ahead):
                arriving = {}
                for place, layer in enumerate(order):
                    for each in order[place : place + ahead + 1]:
                        if each not in arriving and not (what is backward and each == L - 1):
                            arriving[each] = all_gather(weights(each), wait=False)
                    if place == 0 and what is forward:
                        load(rank)
                    if layer in arriving:
                        wait(arriving[layer])
                    what(layer, rank)
                    if not (what is forward and layer == L - 1):
                        free(weights(layer), keep=rank)
                    if what is backward:
                        started.append((layer, reduce_scatter(gradient(layer), wait=False)))
                        if len(started) > late:
                            finish()

            def finish():
                layer, summed = started.pop(0)
                wait(summed)
                update(layer) if at_once else done.append(layer)

            started, done = [], []
            layers(forward, list(range(L)), ahead)
            layers(backward, list(reversed(range(L))), behind)
            while started:
                finish()
            for layer in done:
                update(layer)

        result = played(chosen, case)
        if not result.problem:
            found[ahead, behind, late, at_once] = measured(result)
    limit = bars(puzzle, case)["time"]
    within = {how: each for how, each in found.items() if each["time"] <= limit}
    least = min(within, key=lambda how: within[how]["memory"])
    print(
        f"zero.3 {puzzle.title}: {len(found)} schedules, shortest {min(e['time'] for e in found.values()):.2f} ms; ",
        end="",
    )
    print(f"within the bar for the time {len(within)}, least memory {within[least]['memory']:.2f} MB, {least}")
    print(f"    best known: {', '.join(f'{m} {known:.2f}' for m, (known, _) in puzzle.best(case).items())}")


def moves():
    case = changed(PUZZLES["pipeline.2"].case, ranks=8, batches=16)
    found = played(KNOWN["pipeline.2"].right[0][0], case)
    draw, moments = pictures.moving(found, "1F1B")
    begin = time.perf_counter()
    draw().png()
    first, taken = time.perf_counter() - begin, []
    for moment in moments:
        begin = time.perf_counter()
        draw(moment).png()
        taken.append(1000 * (time.perf_counter() - begin))
    taken.sort()
    print(f"{len(found.events)} boxes on {case.ranks} ranks, {len(taken)} moves: ", end="")
    print(f"median {taken[len(taken) // 2]:.1f} ms, ", end="")
    print(f"90 % within {taken[len(taken) * 9 // 10]:.1f} ms; drawn the first time in {first:.2f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--moves", action="store_true")
    chosen = parser.parse_args()
    if chosen.moves:
        return moves()
    table()
    if chosen.search:
        search_tensor()
        search_zero_3()
        search_pipelines()


if __name__ == "__main__":
    main()
