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
EVERY = "        if step % 10 == 0:\n"
ONLY_0 = "        if step % 10 == 0 and hvd.rank() == 0:\n"
TESTED = "float(np.mean(hvd.allgather((x @ line - y) ** 2)))"
GATHERED = "np.mean(hvd.allgather(errors))"
DEALT = "range(hvd.rank(), count // hvd.size() * hvd.size(), hvd.size())"
PREPARES = "    if hvd.rank() == 0:\n        prepare(path)\n"
EARLIER = "    while not path.exists():\n"
LOOP = "for collective in sent:"
SORTED = "sorted(own)"

ANSWERS = {
    "standing.3": dict(
        right=[reports()],
        wrong=[
            reports((EVERY, ONLY_0)),
            reports((EVERY, EVERY.replace("10", "20"))),
            reports(("line = line - RATE * gradient", "line = line + 0 * gradient")),
        ],
        secret=r"hvd\.allgather\(",
    ),
    "standing.15": dict(
        right=[keeps(), keeps((TESTED, "float(mean(np.mean((x @ line - y) ** 2)))"))],
        wrong=[
            keeps((EVERY, ONLY_0)),
            keeps((TESTED, "float(np.mean((x @ line - y) ** 2))")),
            keeps((EVERY, "        if True:\n")),
        ],
        secret=r"hvd\.rank",
    ),
    "standing.5": dict(
        right=[errors(), errors((GATHERED, "hvd.allreduce(np.sum(errors), op=hvd.Sum) / 25"))],
        wrong=[errors((GATHERED, "hvd.allreduce(np.mean(errors))")), errors((GATHERED, "np.mean(errors)"))],
        secret=r"allgather",
    ),
    "standing.6": dict(
        right=[share(), share((DEALT, "range(count)[hvd.rank() :: hvd.size()][: count // hvd.size()]"))],
        wrong=[
            share((DEALT, "range(hvd.rank(), count, hvd.size())")),
            share((DEALT, "range(count // hvd.size())")),
            share((DEALT, "range(12 * hvd.rank(), 12 + 12 * hvd.rank())")),
            share(("    slopes = ", "    slopes = line[:1] if True else ")),
        ],
        secret=r"//",
    ),
    "standing.8": dict(
        right=[prepares(), prepares((EARLIER, f"    mean(0.0)\n{EARLIER}"))],
        wrong=[prepares(("y / np.mean(y)", "y / np.max(y)")), prepares((PREPARES, "    prepare(path)\n"))],
        secret=r"np\.mean",
    ),
    "standing.17": dict(
        right=[smallest(), smallest((LOOP, f"{LOOP[:-6]} sorted(sent, key=lambda of: of.__name__):"))],
        wrong=[
            smallest((LOOP, f"{LOOP[:-6]} sorted(sent, key=lambda of: sent[of].size):")),
            smallest((LOOP, "for collective in [hvd.allreduce]:"), ("got[hvd.allgather]\n", "far\n")),
        ],
        secret=r"for collective in sent",
    ),
    "standing.12": dict(
        right=[means(), means((SORTED, "own"))],
        wrong=[
            means((SORTED, "sorted(own, key=lambda name: -abs(own[name]))")),
            means(('middle["y"] - slope * middle["x"]', "0.0")),
        ],
        secret=r"sorted",
    ),
}
