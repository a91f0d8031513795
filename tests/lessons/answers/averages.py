"""Answers to the self-checks of 02_averages: right ones, and wrong ones that students give."""

import numpy as np

from lessons.averages import sgd


def length(difference, at=lambda weights: weights):
    """Answer to averages.2: the length, or something else, of what differs at these weights."""
    return (lambda w, rows: difference(sgd.gradient(at(w), rows), sgd.gradient(at(w))),)


def mean(how):
    return (lambda gradients: how(np.array(gradients)),)


def sums_in_place(gradients):
    total = gradients[0]
    for gradient in gradients[1:]:
        total += gradient
    return total / len(gradients)


def weighs_in_place(gradients, sizes):
    for gradient, size in zip(gradients, sizes, strict=True):
        gradient *= size
    return sum(gradients) / sum(sizes)


def changes_weights(weights, rows):
    weights -= weights
    return NORM(sgd.gradient(weights, rows) - sgd.gradient(weights))


def time(how):
    """Answer to averages.13: how(places that are low enough, history), or inf if there are none."""

    def seconds_to(history, target):
        places = np.flatnonzero(history.losses <= target)
        return how(places, history) if len(places) else np.inf

    return (seconds_to,)


def earliest(low, never=np.inf):
    def seconds_to(history, target):
        reached = [now for now, loss in zip(history.seconds, history.losses, strict=True) if low(loss, target)]
        return min(reached, default=never)

    return (seconds_to,)


def sizes(how):
    return (lambda gradients, sizes: how(np.array(gradients), np.array(sizes)),)


def total(gradients, weights):
    return np.tensordot(weights, gradients, 1)


START = np.zeros((65, 10))
NORM = np.linalg.norm


ANSWERS = {
    "averages.2": dict(
        right=[
            length(lambda few, full: NORM(few - full)),
            length(lambda few, full: np.sqrt(((few - full) ** 2).sum())),
        ],
        wrong=[
            length(lambda few, full: abs(NORM(few) - NORM(full))),
            length(lambda few, full: NORM(few - full), at=np.zeros_like),
            length(lambda few, full: few - full),
            length(lambda few, full: NORM(few - full, axis=0)),
            length(lambda few, full: NORM(few)),
            length(lambda few, full: NORM(few - full) ** 2),
            length(lambda few, full: (few - full).sum()),
            length(lambda few, full: np.abs(few - full).max()),
            (lambda w, rows: NORM(sgd.gradient(w, rows) - sgd.gradient(START)),),
            (lambda w, rows: 0.0,),
            (lambda w, rows: None,),
            (changes_weights,),
        ],
        secret=r"norm\(",
        same=[(6, 9), (1, 11)],  # both give 0; both take the gradients at the start
    ),
    "averages.4": dict(
        right=[
            mean(lambda g: g.mean(0)),
            (lambda gradients: sum(gradients) / len(gradients),),
            mean(lambda g: g.mean(0).tolist()),
        ],
        wrong=[
            mean(lambda g: g.mean()),
            mean(lambda g: g.sum(0)),
            mean(lambda g: g.sum(0) / 4),
            mean(lambda g: np.median(g, 0)),
            mean(lambda g: g.mean(1)),
            mean(lambda g: g[0]),
            (sums_in_place,),
            (lambda gradients: np.mean([gradients.pop() for _ in range(len(gradients))], axis=0),),
            mean(lambda g: g.sum(0) / 3),
        ],
        secret=r"\.mean|axis|len\(",
        same=[(6, 7)],
    ),
    "averages.6": dict(
        right=[
            sizes(lambda g, n: np.average(g, 0, n)),
            sizes(lambda g, n: total(g, n) / n.sum()),
            (lambda gradients, sizes: sum(n * g for n, g in zip(sizes, gradients, strict=True)) / sum(sizes),),
        ],
        wrong=[
            sizes(lambda g, n: g.mean(0)),
            sizes(lambda g, n: total(g, n)),
            sizes(lambda g, n: total(g, n) / 3),
            sizes(lambda g, n: total(g, n) / 16),
            sizes(lambda g, n: np.average(g, 0, 1 / n)),
            sizes(lambda g, n: g.mean()),
            sizes(lambda g, n: g[0]),
            sizes(lambda g, n: total(g, n) / 17),
            (weighs_in_place,),
        ],
        secret=r"\b17\b|sum\(",
    ),
    "averages.8": dict(
        right=[(lambda t: t.max(axis=1).mean(),), (lambda t: sum(max(row) for row in t) / len(t),)],
        wrong=[
            (lambda t: t.max(axis=0).mean(),),
            (lambda t: t.mean(),),
            (lambda t: t.max(),),
            (lambda t: t.mean(axis=0).max(),),
            (lambda t: t.max(axis=1).sum(),),
            (lambda t: t.sum(axis=1).mean(),),
            (lambda t: t.min(axis=1).mean(),),
            (lambda t: t.max(axis=1),),
            (lambda t: t.max(axis=0),),
            (lambda t: np.median(t),),
            (lambda t: None,),
            (lambda t: np.median(t.max(axis=1)),),
            (lambda t: t.max(axis=1).sum() / 2,),
            (lambda t: t[:2, :3].max(axis=1).mean(),),
        ],
        secret=r"\b6\.5\b|axis=|\.max|\.mean",
        same=[(11, 12), (11, 13), (12, 13)],  # right for 2 steps of 3 workers only
    ),
    "averages.12": dict(
        right=[
            (lambda work, one: sum(one.begin < other.end < one.end for other in work),),
            (lambda work, one: len([w for w in work if w.end > one.begin and w.end < one.end]),),
        ],
        wrong=[
            (lambda work, one: one.staleness,),
            (lambda work, one: sum(one.begin < other.end <= one.end for other in work),),
            (lambda work, one: sum(one.begin <= other.end < one.end for other in work),),
            (lambda work, one: sum(one.begin <= other.end <= one.end for other in work),),
            (lambda work, one: sum(one.begin < other.begin < one.end for other in work),),
            (lambda work, one: sum(other.end < one.end for other in work),),
            (lambda work, one: sum(w.begin < one.end and w.end > one.begin for w in work) - 1,),
            (lambda work, one: [other for other in work if one.begin < other.end < one.end],),
            (lambda work, one: 7,),
        ],
        secret=r"one\.begin <|other\.end",
    ),
    "averages.13": dict(
        right=[time(lambda places, h: h.seconds[places[0]]), earliest(lambda x, target: x <= target)],
        wrong=[
            time(lambda places, h: places[0]),
            time(lambda places, h: h.losses[places[0]]),
            time(lambda places, h: h.seconds[places[-1]]),
            time(lambda places, h: h.seconds[places]),
            time(lambda places, h: h.seconds[min(places[0] + 1, 4)]),
            earliest(lambda x, target: x < target),
            earliest(lambda x, target: x >= target),
            (lambda h, target: h.seconds[np.argmax(h.losses <= target)],),
            earliest(lambda x, target: x <= target, never=None),
            (lambda h, target: next(s for s, loss in zip(h.seconds[1:], h.losses[1:], strict=True) if loss <= target),),
            earliest(lambda x, target: x <= target and x != 2.3),
            (lambda h, target: print(end=""),),
        ],
        secret=r"argmax|flatnonzero|<=",
        raises=[9],
    ),
}
