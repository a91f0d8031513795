"""Playing the puzzles: a student's program on all ranks, its picture and its verdict; one's best is kept."""

import json
import re
from pathlib import Path

from labs import files, jobs
from labs.checks import student_code
from labs.show import tables
from lessons.write_the_schedule import pictures
from lessons.write_the_schedule.engine import STARTS, play
from lessons.write_the_schedule.programs import ProgramError
from lessons.write_the_schedule.puzzles import BEYOND, MEASURES, PUZZLES, bars, broken_rule, changed, measured, sizes

_LAST = {}  # id: the case in which the newest check found something


def recorded(program, case):
    """The operations of each rank, a list of lists."""
    found = []
    for rank in range(case.ranks):
        with student_code.tried(f"rank {rank}, {sizes(case)}"):
            found.append(program(rank, case.ranks, case.layers, case.batches))
    return found


def judged(id, program):
    """Cases of a program that does not solve a puzzle: with the example first, then with other sizes."""
    puzzle = PUZZLES[id]
    for case in (puzzle.case, *puzzle.others):
        other = "" if case is puzzle.case else " (not the example: see it with `last=True`)"
        _LAST[id], how = case, f"With {sizes(case)}{other}"
        try:
            operations = recorded(program, case)
        except ProgramError as problem:
            yield True, f"{how}: {problem}"
        played, problem = played_of(puzzle, case, operations)
        yield problem, f"{how}: {problem}"
        values, over = measured(played), []
        for measure, bar in bars(puzzle, case).items():
            if values[measure] > bar:
                unit, cause = MEASURES[measure], BEYOND[measure][id]
                takes = f"{_OVER[measure]} {values[measure]:.4g} {unit}; the bar is at {bar:.4g} {unit}"
                over.append(f"{takes}. {cause(played) if callable(cause) else cause}")
        yield over, f"{how}, the sums are right, but {' Also, '.join(over)}"
    del _LAST[id]


def played_of(puzzle, case, operations):
    """(the PlayedSchedule, None or why it does not solve the puzzle, whatever it takes: a wrong sum, a broken rule)."""
    played = play(case, operations)
    problem = played.problem or broken_rule(puzzle, operations)
    if puzzle.shared and re.search(r"`(for|back)ward\(\d+, \d+\)` .*parts? .* of weights", played.problem or ""):
        problem = f"{problem} Without `split=`, a rank computes with the whole layer."
    return played, problem


_WHAT = {"time": "time", "memory": "peak memory of a rank", "bytes": "sent by a rank"}
_OVER = {"time": "the step takes", "memory": "a rank holds up to", "bytes": "a rank sends"}


def puzzle(id):
    """Say what a puzzle is played with: what each rank holds, words, times and sizes, and the bars of the example."""
    puzzle, case = PUZZLES[id], PUZZLES[id].case
    print(f"{id} {puzzle.title}. Example: {sizes(case)}.")
    print(f"At the start, each rank holds {STARTS[case.start]}.")
    print(f"Words: {', '.join(case.words).replace('wait', 'wait=False, wait')}.")
    if case.start != "gradients":
        both = f"backward {case.inputs + case.weights:.4g} ms, update {case.update:.4g} ms"
        print(f"A layer: forward {case.forward:.4g} ms, {both}. To load a micro-batch takes {case.load:.4g} ms.")
        held = f"weights {case.parameters:.4g} MB, gradient as much, state {case.slots:.4g} times as much"
        wide = f", {case.size('activation', 0):.4g} MB for even layers" if case.wide != 1 else ""
        print(f"A layer: {held}; an activation {case.activation:.4g} MB{wide}.")
    else:
        print(f"The gradient: {case.parameters:.4g} MB.")
    print(f"A message: {case.latency:.4g} ms, and 1 ms for each {case.bandwidth:.4g} MB.")
    for measure, bar in bars(puzzle, case).items():
        known, bound = puzzle.best(case)[measure]
        limit = ""
        if bound:
            limit = "; nobody can do better" if bound > 0.9999 * known else f"; nobody gets below {bound:.4g}"
        print(f"Bar: {_WHAT[measure]} {bar:.4g} {MEASURES[measure]} or less (best known {known:.4g}{limit}).")


def show(id, program, last=False, **changes):
    """Play a program on the example of a puzzle: a table of what it takes, and a picture whose slider moves the time.

    last: on the case in which the newest check has found something, instead of the example; changes: of the case, as
    ranks=8, layers=4, batches=16, latency=0 or bandwidth=4 (engine.Case): a game of one's own, without bars (see
    `changed`). Nothing is judged here; one's best schedule of the example is kept.
    """
    from labs.show import widgets

    puzzle = PUZZLES[id]
    case = _LAST.get(id, puzzle.case) if last else puzzle.case
    if last and id not in _LAST:
        print("There is no case from a check to show: this is the example.")
    case = changed(case, **changes) if changes else case
    try:
        operations = student_code.within_time(lambda: recorded(program, case))
    except ProgramError as problem:
        return print(f"{puzzle.title}: {sizes(case)}. Not right: {problem}")
    except student_code.Endless as problem:
        return print(f"{problem}: stopped after {student_code.SECONDS} s without an end. Does this loop end?")
    played, problem = played_of(puzzle, case, operations)
    print(f"{puzzle.title}: {sizes(case)}. {f'Not right: {problem}' if problem else 'The sums are right.'}")
    if not problem:
        if case is puzzle.case:
            _keep(id, measured(played), operations)
        rows = [_row(puzzle, None if changes else case, *each) for each in measured(played).items()]
        tables.show(rows, ("measure", "yours") if changes else ("measure", "yours", "bar", "best known", "bound"))
    draw, moments = pictures.moving(played, puzzle.title)
    return widgets.explore(draw, time=moments)


def _row(puzzle, case, measure, value):
    """A row of a measure; without a bar where it does not count, or case is None."""
    row = {"measure": f"{_WHAT[measure]} ({MEASURES[measure]})", "yours": value}
    if case and measure in (best := puzzle.best(case)):
        known, bound = best[measure]
        row |= {"bar": bars(puzzle, case)[measure], "best known": known, "bound": bound or "not known"}
    return row


# One's best


def _file(runs=None):
    return Path(runs or jobs.folder()) / "schedules.json"


def kept(runs=None):
    """{id: {measure: value, "programs": [...]}} of one's best schedules; {} where there are none yet."""
    try:
        found = json.loads(_file(runs).read_text(encoding="utf-8"))
        return {id: found[id] for id in PUZZLES if isinstance(found.get(id), dict)}
    except (OSError, ValueError, AttributeError):
        return {}


def _keep(id, values, operations):
    """Keep a right schedule of the example if it is better than the one before: nearer to the best known in the measure
    in which it is farthest from it. So one that meets all bars is better than one that does not."""
    best = PUZZLES[id].best(PUZZLES[id].case)

    def farthest(row):
        return max(row[measure] / known for measure, (known, _) in best.items())

    try:
        with files.locked(_file()):
            before = kept()
            if id not in before or farthest(values) < farthest(before[id]):
                row = values | {"programs": operations}
                files.write(_file(), json.dumps(before | {id: row}))
    except (OSError, TypeError, ValueError, KeyError):  # what cannot be kept still counts
        return


def pictured(runs=None):
    """(caption, picture) of each of one's best schedules in a folder of runs; of those that can be played."""
    for id, mine in kept(runs).items():
        programs, case = mine.get("programs"), PUZZLES[id].case
        if not isinstance(programs, list) or len(programs) != case.ranks:
            continue
        played, problem = played_of(PUZZLES[id], case, programs)
        if not problem:
            draw, _ = pictures.moving(played, PUZZLES[id].title)
            yield f"{id} {PUZZLES[id].title}: one's best schedule of the example", draw()
