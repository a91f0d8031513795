"""Questions of 02_concurrency, second half: stale gradients, the race, server and ring (T2)."""

import math

import numpy as np

from labs.checks.judging import choice, prediction, question, written

HERE = "02_concurrency"

prediction("02.11", "Mean staleness with 8 equally fast workers", HERE)
prediction("02.14", "Who is first in three races (s: synchronous, a: asynchronous)", HERE)
prediction("02.16", "Steps of a ring all-reduce with 4 workers", HERE)
prediction("02.18", "Which is faster for 94 MB and for 4 kB (r: ring, s: server)", HERE)


@question(
    "02.12",
    "Staleness, counted",
    HERE,
    points=2,
    why="Every gradient of others that ended in between has changed the weights.",
)
def staleness(function):
    from labs.simulate.sgd import Work

    spans = [(0, 0, 2), (1, 0, 3.5), (2, 0.5, 9), (0, 2, 4), (1, 3.5, 5), (0, 4, 8), (1, 5, 6)]
    work = [Work(worker, begin, end, -1) for worker, begin, end in spans]
    got = [function(list(work), one) for one in work]
    if any(isinstance(value, list | tuple | set | np.ndarray) for value in got):
        return "These are the gradients themselves: return how many there are."
    got, one = [float(value) for value in got], work[5]
    if got == [sum(one.begin < other.end < one.end for other in work) for one in work]:
        return None
    if all(value == -1 for value in got):
        return "This is what the simulator has noted. Count it yourself, from `begin` and `end` of the others."
    if got == [sum(one.begin < other.end <= one.end for other in work) for one in work]:
        return "Your count holds the gradient itself: its own end is no change while it was computed."
    if got == [sum(one.begin <= other.end < one.end for other in work) for one in work]:
        return "An update at the moment when `one` begins is in its weights already: it is not older for that."
    if got == [sum(one.begin <= other.end <= one.end for other in work) for one in work]:
        return "This counts the updates at the first and at the last moment, too: one before it began, one itself."
    if got == [sum(one.begin < other.begin < one.end for other in work) for one in work]:
        return "This counts those that *began* in between. A gradient changes the weights when it ends."
    if got == [sum(other.end < one.end for other in work) for one in work]:
        return "This counts all updates before its end. Those before its begin are in its weights already."
    if got == [sum(other.begin < one.end and other.end > one.begin for other in work) - 1 for one in work]:
        return "This counts all that were at work at the same time. Which of them were applied before `one` ended?"
    return (
        f"For a gradient from {one.begin} s to {one.end} s, and others that end at "
        f"{', '.join(f'{other.end:g}' for other in work if other is not one)} s, your function gives {got[5]:g}. "
        "Which of these are in between?"
    )


@question(
    "02.13",
    "Seconds until the loss is reached",
    HERE,
    points=2,
    why="The first time counts; a race that does not get there has no time.",
)
def seconds_to(function):
    from labs.simulate.sgd import History

    seconds, losses = np.array([0.0, 1.5, 3.0, 4.5, 6.0]), np.array([2.3, 1.0, 0.5, 0.7, 0.4])
    history = History(seconds, losses, None, [])
    trials = {0.6: 3.0, 0.5: 3.0, 2.5: 0.0, 0.4: 6.0}
    got = {target: function(history, target) for target in [*trials, 0.1]}
    lists = [value for value in got.values() if isinstance(value, list | tuple | np.ndarray) and np.ndim(value)]
    if lists:
        return "These are several times: return the first one, a single number."
    never = got.pop(0.1)
    if any(value is None for value in got.values()):
        return "For a target that is reached, your function returns nothing. Is there a `return` on every way?"
    got = {target: float(value) for target, value in got.items()}
    if all(math.isclose(got[target], time) for target, time in trials.items()):
        if never is None:
            return "The times are right. A loss that is never reached gives None: return np.inf, which can be compared."
        if float(never) == math.inf:
            return None
        return f"The times are right. A loss that is never reached gives {float(never):g}: what does the docstring say?"
    if got[0.6] == 2:
        return "This is the number of the update. How many seconds have passed then?"
    if got[0.6] == 0.5:
        return "This is the loss. At which time was it reached?"
    if math.isclose(got[0.5], 6.0) and math.isclose(got[0.6], 3.0):
        return "A loss *equal* to the target has reached it, too."
    if got[0.6] == 6.0:
        return "This is the last time at which the loss is low enough. When was it so for the first time?"
    if got[0.6] == 0.0:
        return "At 0 s the loss is above the target. In which direction do you compare?"
    if math.isclose(got[0.6], 4.5):
        return "This time is one update too late: the loss was low enough before."
    return (
        f"With losses {', '.join(f'{loss:g}' for loss in losses)} at {', '.join(f'{s:g}' for s in seconds)} s "
        f"your function gives {got[0.6]:g} s for a target of 0.6."
    )


choice(
    "02.15",
    "What the race says",
    HERE,
    right="d",
    wrong={
        "a": "Look at the first row of the table, at the larger rates.",
        "b": "It did train: in the table asynchronous SGD reaches the loss in every race. What did old gradients cost?",
        "c": "Go down the columns of the table: whose times grow with the slow worker, and whose do not?",
    },
    why="Waiting costs with unequal workers, staleness costs at large rates: each kind has its place.",
)


@question(
    "02.17",
    "Bytes through a server and in a ring",
    HERE,
    points=3,
    why="A server's bytes grow with K; those of a ring's worker stay below twice the gradient.",
)
def bytes_moved(server, ring):
    trials = [(2, 600, 1), (4, 600, 1), (8, 600, 4), (4, 1200, 2)]
    got = [float(server(*trial)) for trial in trials]
    if not math.isclose(float(server(4, 600)), got[1]):
        return "Your server_bytes gives another number if `servers` is left out: its default is 1."
    if not np.allclose(got, [2 * k * size / servers for k, size, servers in trials]):
        if np.allclose(got, [k * size / servers for k, size, servers in trials]):
            return "The server's link carries these bytes in. What must go out again?"
        if np.allclose(got, [2 * k * size for k, size, _ in trials]):
            return "Right for one server. If several divide the gradient, how much of it goes through each?"
        if np.allclose(got, [2 * k * size * servers for k, size, servers in trials]):
            return "More servers would mean more bytes through each of them. They divide the gradient."
        if np.allclose(got, [(k + 1) * size / servers for k, size, servers in trials]):
            return "K gradients come in. The sum goes out, but how many times?"
        if np.allclose(got, [2 * (k - 1) * size / servers for k, size, servers in trials]):
            return "The server is a process of its own here: every worker's gradient goes through its link."
        return f"With 4 workers and 600 bytes your server_bytes gives {got[1]:g}. What comes in, and what goes out?"
    got = [float(ring(workers, 600)) for workers in (1, 2, 4, 100)]
    if np.allclose(got, [2 * (k - 1) / k * 600 for k in (1, 2, 4, 100)]):
        return None
    if np.allclose(got, [2 * (k - 1) * 600 for k in (1, 2, 4, 100)]):
        return "The server is right. In the ring, a message is not the whole gradient: how large is a chunk?"
    if np.allclose(got, [(k - 1) / k * 600 for k in (1, 2, 4, 100)]):
        return "The server is right. For the ring this is the reduce-scatter alone."
    if np.allclose(got, [2 * 600] * 4):
        return "The server is right. For the ring this is close for many workers. Count steps and chunks for 2 workers."
    if np.allclose(got, [4 * (k - 1) / k * 600 for k in (1, 2, 4, 100)]):
        return "The server is right. For the ring count what a worker sends, and not also what it receives."
    return f"The server is right. In a ring of 4 workers with 600 bytes, yours sends {got[2]:g}: steps times chunk?"


choice(
    "02.19",
    "The bottleneck on 256 workers",
    HERE,
    right="a",
    wrong={
        "b": "Look at the last column of the table of bytes: how does it change from 64 to 10,000 workers?",
        "c": "A message costs 10 microseconds. Do 256 of them explain the seconds for 94 MB, or do its bytes?",
        "d": "Each worker sends its whole gradient through its own link. Do more servers help that?",
    },
    why="One link carries everything, or many small messages follow each other: bandwidth, or latency.",
)


written("T2", "Synchronous and asynchronous SGD; the bottleneck of a parameter server", HERE, points=4)
