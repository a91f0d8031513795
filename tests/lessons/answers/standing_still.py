"""Answers to the self-checks of 21_standing_still: right ones, and wrong ones that students give."""

from functools import partial

from making import swapped

reports = partial(swapped, "scripts/reports_loss.py")
keeps = partial(swapped, "scripts/keeps_best.py")
errors = partial(swapped, "scripts/every_error.py")
share = partial(swapped, "scripts/own_share.py")
prepares = partial(swapped, "scripts/prepares_once.py")
smallest = partial(swapped, "scripts/smallest_first.py")
means = partial(swapped, "scripts/two_means.py")
REPORT = """        if step % 10 == 0:
            losses = hvd.allgather([np.mean(error**2)]).numpy()
            if hvd.rank() == 0:
"""
ONLY_0 = """        if step % 10 == 0 and hvd.rank() == 0:
            losses = hvd.allgather([np.mean(error**2)]).numpy()
            if True:
"""
OWN = REPORT.replace("hvd.allgather([np.mean(error**2)]).numpy()", "np.array([np.mean(error**2)])")
EVERY = "        if step % 10 == 0:\n            tested"
GATHERED = "np.mean(hvd.allgather(errors))"
DEALT = "range(hvd.rank(), count // hvd.size() * hvd.size(), hvd.size())"
SAVED = "np.save(path, [x, y / np.mean(y)])"
EARLIER = """    while not path.exists():
"""
LOOP = "for collective in sent:"
SORTED = "sorted(own)"

ANSWERS = {
    "standing.2": dict(
        right=[(0, 32, "allgather"), (0, 32, "hvd.allgather"), (0, 32, "All-gather"), (0, 32, "allgather()")],
        wrong=[
            (1, 29, "allreduce"),
            (0, 39, "allgather"),
            (1, 32, "allgather"),
            (0, 32, "allreduce"),
            (0, 12, "allgather"),
            (0, 32, "loss"),
            (0, "46 > 39 > 32", "allgather"),
        ],
        secret=r"\b32\b",
    ),
    "standing.3": dict(
        right=[
            reports(),
            reports(
                (REPORT, REPORT.replace("        if step", "        reduced = hvd.allreduce(0.0)\n        if step"))
            ),
            reports(("hvd.allgather([np.mean(error**2)])", "hvd.allgather(np.mean(error**2).reshape(1))")),
        ],
        wrong=[
            reports((REPORT, ONLY_0)),
            reports((REPORT, OWN)),
            reports(("if step % 10 == 0:", "if False:")),
            reports(("if step % 10 == 0:", "if step % 20 == 0:")),
            reports(("line = line - RATE * gradient", "line = line - RATE * 2 * x.T @ error / len(y)")),
            reports(("line = line - RATE * gradient", "line = line + 0 * gradient")),
            reports(("    return line\n\n\nif", "    return None\n\n\nif")),
        ],
        secret=r"hvd\.allgather\(",
    ),
    "standing.14": dict(
        right=[(0, 37, "allgather")],
        wrong=[
            (1, 34, "allreduce"),
            (0, 26, "allgather"),
            (1, 37, "allgather"),
            (0, 37, "allreduce"),
            (0, 1, "allgather"),
        ],
        secret=r"\b37\b",
    ),
    "standing.15": dict(
        right=[
            keeps(),
            keeps(("float(np.mean(hvd.allgather((x @ line - y) ** 2)))", "float(mean(np.mean((x @ line - y) ** 2)))")),
        ],
        wrong=[
            keeps((EVERY, EVERY.replace(":\n", " and hvd.rank() == 0:\n"))),
            keeps(("float(np.mean(hvd.allgather((x @ line - y) ** 2)))", "float(np.mean((x @ line - y) ** 2))")),
            keeps((EVERY, EVERY.replace("step % 10 == 0", "True"))),
            keeps((EVERY, EVERY.replace("step % 10 == 0", "step == 1"))),
        ],
        secret=r"hvd\.rank",
        same=[(1, 3)],
    ),
    "standing.5": dict(
        right=[errors(), errors((GATHERED, "hvd.allreduce(np.sum(errors), op=hvd.Sum) / 25"))],
        wrong=[
            errors((GATHERED, "np.mean(hvd.allreduce(errors))")),
            errors((GATHERED, "hvd.allreduce(np.mean(errors))")),
            errors((GATHERED, "np.mean(errors)")),
            errors((GATHERED, "np.mean(hvd.allreduce(errors[:12]))")),
            errors(("np.array([*line, error])", "line")),
        ],
        secret=r"allgather",
    ),
    "standing.18": dict(
        right=[(0, 32, "allreduce")],
        wrong=[
            (1, 42, "allgather"),
            (0, 19, "allreduce"),
            (1, 32, "allreduce"),
            (0, 32, "allgather"),
            (0, 7, "allreduce"),
        ],
        secret=r"\b32\b",
    ),
    "standing.6": dict(
        right=[
            share(),
            share((DEALT, "range(count)[hvd.rank() :: hvd.size()][: count // hvd.size()]")),
            share((DEALT, "np.arange(count)[: count - count % hvd.size()].reshape(hvd.size(), -1)[hvd.rank()]")),
        ],
        wrong=[
            share((DEALT, "range(hvd.rank(), count, hvd.size())")),
            share((DEALT, "range(count)")),
            share((DEALT, "range(hvd.rank(), 20, hvd.size())")),
            share((DEALT, "range(hvd.rank(), count - 1, hvd.size())")),
            share((DEALT, "[*range(hvd.rank(), count - 1, hvd.size()), 0]")),
            share(("    slopes = ", "    slopes = line[:1] if True else ")),
            share(("RATE * mean(2 * x[batch].T @ error / BATCH)", "RATE * 2 * x[batch].T @ error / BATCH")),
        ],
        secret=r"//",
    ),
    "standing.7": dict(
        right=[(1, 33, "allreduce"), (1, 32, "allreduce")],
        wrong=[
            (0, 25, "allreduce"),
            (1, 42, "allreduce"),
            (0, 33, "allreduce"),
            (1, 33, "broadcast"),
            (1, 5, "allreduce"),
            (1, 33, "sleep"),
        ],
        secret=r"\b3[23]\b",
    ),
    "standing.8": dict(
        right=[prepares(), prepares((EARLIER, f"    mean(0.0)\n{EARLIER}"))],
        wrong=[
            prepares((SAVED, "np.save(path, [x, y / mean(np.mean(y))])")),
            prepares((SAVED, "np.save(path, [x, y])")),
            prepares(("    if hvd.rank() == 0:\n        prepare(path)\n", "    prepare(path)\n")),
            prepares((SAVED, "np.save(path, [x, y / np.max(y)])")),
            prepares(
                ("    if hvd.rank() == 0:\n        prepare(path)\n", "    if hvd.rank() == 2:\n        prepare(path)\n")
            ),
        ],
        secret=r"np\.mean",
    ),
    "standing.16": dict(
        right=[("allreduce", "allgather")],
        wrong=[("allgather", "allreduce"), ("allreduce", "allreduce"), ("sleep", "allgather")],
        secret=None,
    ),
    "standing.17": dict(
        right=[
            smallest(),
            smallest((LOOP, "for collective in sorted(sent, key=lambda collective: collective.__name__):")),
        ],
        wrong=[
            smallest((LOOP, "for collective in sorted(sent, key=lambda collective: sent[collective].size):")),
            smallest(
                (LOOP, "got[hvd.allgather] = far\n    for collective in [hvd.allreduce]:"),
                ("got[hvd.allgather]\n", "far\n"),
            ),
            smallest(("line = line - RATE * gradient", "line = line - RATE * 2 * x.T @ error / len(y)")),
        ],
        secret=r"for collective in sent",
    ),
    "standing.11": dict(
        right=[(9,), ("9",)], wrong=[(15,), (137,), (-9,), (1,), ("SIGKILL",)], secret=r"\b9\b", same=[(1, 2)]
    ),
    "standing.12": dict(
        right=[means(), means((SORTED, "own")), means((SORTED, "sorted(own, key=lambda name: name != 'y')"))],
        wrong=[
            means((SORTED, "sorted(own, key=lambda name: -abs(own[name]))")),
            means((SORTED, "sorted(own, key=lambda name: own[name])")),
            means(("return {name: mean(own[name])", "return {name: own[name]")),
            means(('middle["y"] - slope * middle["x"]', "0.0")),
        ],
        secret=r"sorted",
    ),
}
