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
ONLY_0 = REPORT.replace(":\n", " and hvd.rank() == 0:\n", 1)
DESCENT = "line = line - RATE * gradient"
EVERY = "        if step % 10 == 0:\n            tested"
TESTED = "float(np.mean(hvd.allgather((x @ line - y) ** 2)))"
GATHERED = "np.mean(hvd.allgather(errors))"
DEALT = "range(hvd.rank(), count // hvd.size() * hvd.size(), hvd.size())"
SAVED = "np.save(path, [x, y / np.mean(y)])"
PREPARES = "    if hvd.rank() == 0:\n        prepare(path)\n"
EARLIER = "    while not path.exists():\n"
LOOP = "for collective in sent:"
SORTED = "sorted(own)"

ANSWERS = {
    "standing.2": dict(
        right=[(0, 32, "hvd.allgather"), (0, 32, "All-gather()")],
        wrong=[(1, 32, "allgather"), (0, 32, "allreduce"), (0, 12, "allgather")],
        secret=r"\b32\b",
    ),
    "standing.3": dict(
        right=[reports()],
        wrong=[
            reports((REPORT, ONLY_0)),
            reports(("if step % 10 == 0:", "if step % 20 == 0:")),
            reports((DESCENT, "line = line + 0 * gradient")),
        ],
        secret=r"hvd\.allgather\(",
    ),
    "standing.14": dict(
        right=[(0, 37, "allgather")], wrong=[(1, 34, "allreduce"), (0, 26, "allgather")], secret=r"\b37\b"
    ),
    "standing.15": dict(
        right=[keeps(), keeps((TESTED, "float(mean(np.mean((x @ line - y) ** 2)))"))],
        wrong=[
            keeps((EVERY, EVERY.replace(":\n", " and hvd.rank() == 0:\n"))),
            keeps((TESTED, "float(np.mean((x @ line - y) ** 2))")),
            keeps((EVERY, EVERY.replace("step % 10 == 0", "True"))),
        ],
        secret=r"hvd\.rank",
    ),
    "standing.5": dict(
        right=[errors(), errors((GATHERED, "hvd.allreduce(np.sum(errors), op=hvd.Sum) / 25"))],
        wrong=[errors((GATHERED, "hvd.allreduce(np.mean(errors))")), errors((GATHERED, "np.mean(errors)"))],
        secret=r"allgather",
    ),
    "standing.18": dict(
        right=[(0, 32, "allreduce")], wrong=[(1, 42, "allgather"), (0, 19, "allreduce")], secret=r"\b32\b"
    ),
    "standing.6": dict(
        right=[share(), share((DEALT, "range(count)[hvd.rank() :: hvd.size()][: count // hvd.size()]"))],
        wrong=[
            share((DEALT, "range(hvd.rank(), count, hvd.size())")),
            share((DEALT, "range(hvd.rank(), count - 1, hvd.size())")),
            share(("    slopes = ", "    slopes = line[:1] if True else ")),
            share(("RATE * mean(2 * x[batch].T @ error / BATCH)", "RATE * 2 * x[batch].T @ error / BATCH")),
        ],
        secret=r"//",
    ),
    "standing.7": dict(
        right=[(1, 33, "allreduce"), (1, 32, "allreduce")],
        wrong=[(0, 33, "allreduce"), (1, 42, "allreduce")],
        secret=r"\b3[23]\b",
    ),
    "standing.8": dict(
        right=[prepares(), prepares((EARLIER, f"    mean(0.0)\n{EARLIER}"))],
        wrong=[prepares((SAVED, "np.save(path, [x, y / np.max(y)])")), prepares((PREPARES, "    prepare(path)\n"))],
        secret=r"np\.mean",
    ),
    "standing.16": dict(
        right=[("allreduce", "allgather")], wrong=[("allgather", "allreduce"), ("allreduce", "allreduce")]
    ),
    "standing.17": dict(
        right=[smallest(), smallest((LOOP, f"{LOOP[:-6]} sorted(sent, key=lambda of: of.__name__):"))],
        wrong=[
            smallest((LOOP, f"{LOOP[:-6]} sorted(sent, key=lambda of: sent[of].size):")),
            smallest(
                (LOOP, "got[hvd.allgather] = far\n    for collective in [hvd.allreduce]:"),
                ("got[hvd.allgather]\n", "far\n"),
            ),
        ],
        secret=r"for collective in sent",
    ),
    "standing.11": dict(right=[("9",)], wrong=[(15,), (137,)], secret=r"\b9\b"),
    "standing.12": dict(
        right=[means(), means((SORTED, "own"))],
        wrong=[
            means((SORTED, "sorted(own, key=lambda name: -abs(own[name]))")),
            means(('middle["y"] - slope * middle["x"]', "0.0")),
        ],
        secret=r"sorted",
    ),
}
