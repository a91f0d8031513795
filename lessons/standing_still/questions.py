"""Questions of 21_standing_still. Scripts are played on ranks that take turns (playing)."""

import itertools
from dataclasses import dataclass
from unittest import mock

import numpy as np

from labs.checks.judging import judges
from labs.checks.reading import near
from lessons.forms import as_array, value
from lessons.standing_still import playing

LINE = 2.0, 1.0  # slope and intercept of the line near which the points of each script lie
KINDS = ("allreduce", "allgather", "broadcast")


@dataclass(frozen=True)
class Place:
    """Where a job stands still, by the line numbers of the script as students get it (tests/lessons/test_stuck.py).

    who, at, kind: the rank that is asked for, its lines, and the collective in which it waits
    other: lines of the other rank; stack: lines above and below the right one in the same stack
    """

    script: str
    who: int
    at: tuple[int, ...]
    kind: str
    other: tuple[int, ...]
    stack: tuple[int, ...]


PLACES = {
    "standing.2": Place("reports_loss.py", 0, (32,), "allgather", (21, 29), (39, 46)),
    "standing.14": Place("keeps_best.py", 0, (37,), "allgather", (21, 34), (26, 45)),
    "standing.18": Place("own_share.py", 0, (32,), "allreduce", (42,), (19, 41)),
    "standing.7": Place("prepares_once.py", 1, (33, 32), "allreduce", (17, 25, 31), (42, 53)),
}


def spelled(kind):
    """The name of a collective as `labs why`, a script, the notebook or Horovod's message writes it."""
    return [kind, f"hvd.{kind}", f"horovod{kind}", *(kind.replace("all", f"all{between}") for between in "-_ ")]


for id, place in PLACES.items():
    value(
        id,
        right=[(place.who, line, name) for line in place.at for name in spelled(place.kind)],
        wrong=[
            ([(1 - place.who, line, ...) for line in place.at], "That is the line. But whose stack is it in?"),
            ([(..., line, ...) for line in place.other], "The other rank was at this line. Compare the two stacks."),
            ([(..., line, ...) for line in place.stack], "This line is in the stack, but in which function is it?"),
            (
                [(place.who, line, kind) for line in place.at for kind in KINDS if kind != place.kind],
                "Rank and line are right. Which collective does `labs why` name there?",
            ),
        ],
        otherwise=(
            "The rank stands above its stack: which one is it?",
            "No rank was at that line when the job stood still. Give one line's number, in the function in question.",
            "Rank and line are right. Write the collective as `labs why` does.",
        ),
    )

value(
    "standing.16",
    right=[*itertools.product(spelled("allreduce"), spelled("allgather"))],
    wrong=[
        (("allgather", "allreduce"), "The other way round: which stack belongs to rank 0?"),
        (
            [("allreduce", "allreduce"), ("allgather", "allgather")],
            "Two ranks in the same collective would not wait: read both stacks again.",
        ),
    ],
    otherwise="This line calls `allreduce` and `allgather`. In which of them does each stack end?",
)

value(
    "standing.11",
    right=9,
    wrong=[
        (15, "Signal 15, SIGTERM, asks a program to end. Which number is in the launcher's lines?"),
        ([137, -9], "A shell adds 128 to a signal's number, and Python a minus sign. Which signal is it?"),
    ],
    otherwise="What do the launcher's lines say about the process that ended first? Give the number of the signal.",
)


def on_ranks(path, change=None):
    """What ranks have played. Yields cases of a job that stands still, or whose ranks do not end with the same line."""
    played = yield from playing.play(path, change=change)
    first = played.returned[0]
    for rank, each in enumerate(played.returned):
        yield as_array(each) is None, "`main` no longer returns what the ranks have found."
        same = np.shape(each) == np.shape(first) and np.allclose(each, first)
        found = f"rank 0 ends with {_shown(first)} and rank {rank} with {_shown(each)}"
        yield not same, f"The job ends, but {found}. Do they exchange all that they need, in the same order?"
    off = np.size(first) < 2 or not np.allclose(np.ravel(first)[:2], LINE, atol=0.08)
    yield off, f"All ranks end with {_shown(first)}: slope and intercept should be near 2 and 1. What else has changed?"
    return played


def _shown(values):
    return ", ".join(f"{value:.3f}" for value in np.ravel(values)[:3])


def reported(played, word, times):
    """Case of a job that does not print so many times what all ranks have."""
    count = sum(len(each) >= playing.RANKS for each in played.numbers(word))
    yield count != times, f"{count} printed lines hold the {word} of all ranks. When should one rank print one?"


@judges("standing.3")
def reports_loss(path):
    played = yield from on_ranks(path)
    yield from reported(played, "losses", 6)


@judges("standing.15")
def keeps_best(path):
    played = yield from on_ranks(path)
    tests = played.kinds.count("allgather") + max(0, played.kinds.count("allreduce") - 60)
    exchange = f"The job no longer hangs, but outside of the 60 steps, the ranks exchange {tests} times"
    yield tests != 6, f"{exchange}. Is the line still tested on the points of all ranks, after every 10th step?"


@judges("standing.5")
def every_error(path):
    played = yield from on_ranks(path)
    yield np.size(played.returned[0]) != 3, "`main` no longer returns three numbers: slope, intercept and error."
    slope, intercept, error = np.ravel(played.returned[0])
    random = np.random.default_rng(7)
    x = random.uniform(-1, 1, 25)
    errors = (slope * x + intercept - (2 * x + 1 + random.normal(0, 0.1, 25))) ** 2
    right, by_rank = errors.mean(), np.mean([errors[rank :: playing.RANKS].mean() for rank in range(playing.RANKS)])
    unequal = not near(error, right, 1e-6) and near(error, by_rank, 1e-6)
    yield unequal, "This is the mean of the ranks' means, but not all ranks have equally many points. Which count more?"
    lost = f"{error:.6f} is not the mean square error of all 25 points. Are some left out, or counted twice?"
    yield not near(error, right, 1e-6), lost


@judges("standing.6")
def own_share(path):
    taken = {}

    def noting(names):
        own, rank = names.get("own_batches"), names["hvd"].rank
        if callable(own):
            names["own_batches"] = lambda count: taken.setdefault(rank(), [*own(count)])

    played = yield from on_ranks(path, noting)
    yield from reported(played, "slopes", 3)
    steps = played.kinds.count("allreduce") / 3
    most = "How many of the 25 batches can each rank have, if both have equally many?"
    yield steps != 12, f"All ranks now take {steps:.0f} steps in each epoch. {most}"
    both = set(taken.get(0, ())) & set(taken.get(1, ()))
    yield both, f"In an epoch, both ranks take batches {sorted(both)[:3]}. Each should be used at most once."
    others = yield from playing.play(path, ranks=5)
    steps = others.kinds.count("allreduce") / 3
    yield steps != 5, f"Right on 2 ranks. On 5, each should take 5 steps in an epoch, but takes {steps:.0f}."


@judges("standing.8")
def prepares_once(path):
    with mock.patch.object(np, "save", wraps=np.save) as saved:
        yield from on_ranks(path)
    count = saved.call_count
    yield count > 1, f"`np.save` is called {count} times: while one rank writes, another may read half of the file."


@judges("standing.17")
def smallest_first(path):
    played = yield from on_ranks(path)
    lost = "The job no longer hangs, but there is no `allgather`. How do all ranks get all the far points?"
    yield "allgather" not in played.kinds, lost


@judges("standing.12")
def two_means(path):
    yield from on_ranks(path)
    moved = yield from playing.play(path, change=_moved)
    alike = np.allclose(moved.returned, LINE, atol=0.08)
    yield not alike, "With these points it is right. With other points, the order still depends on a rank's own data."


def _moved(names):
    """Let each rank but the first have other points of the same line, whose y is smaller than x."""
    share, rank = names.get("share"), names["hvd"].rank
    if callable(share):
        names["share"] = lambda: [values - by * rank() for values, by in zip(share(), (10.0, 20.0), strict=True)]
