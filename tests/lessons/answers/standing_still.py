"""Answers to the self-checks of 21_standing_still: right ones, and wrong ones that students give."""

EVERY = "if step % 10 == 0:\n"
ONLY_0 = "if step % 10 == 0 and hvd.rank() == 0:\n"
TESTED = "float(np.mean(hvd.allgather((x @ line - y) ** 2)))"
GATHERED = "np.mean(hvd.allgather(errors))"
DEALT = "range(hvd.rank(), count // hvd.size() * hvd.size(), hvd.size())"
PREPARES = "    if hvd.rank() == 0:\n        prepare(path)\n"
EARLIER = "    while not path.exists():\n"
LOOP, BY = "for collective in sent:", "for collective in sorted(sent, key=lambda of:"

STYLES = [
    ("standing.15", TESTED, "float(mean(np.mean((x @ line - y) ** 2)))"),
    ("standing.5", GATHERED, "hvd.allreduce(np.sum(errors), op=hvd.Sum) / 25"),
    ("standing.6", DEALT, "range(count)[hvd.rank() :: hvd.size()][: count // hvd.size()]"),
    ("standing.8", EARLIER, f"    mean(0.0)\n{EARLIER}"),
    ("standing.17", LOOP, f"{BY} of.__name__):"),
    ("standing.12", "sorted(own)", "own"),
]
MISTAKES = [
    ("standing.3", EVERY, ONLY_0),
    ("standing.3", EVERY, "if step % 20 == 0:\n"),
    ("standing.3", "line = line - RATE * gradient", "line = line + 0 * gradient"),
    ("standing.15", EVERY, ONLY_0),
    ("standing.15", TESTED, "float(np.mean((x @ line - y) ** 2))"),
    ("standing.15", EVERY, "if True:\n"),
    ("standing.5", GATHERED, "hvd.allreduce(np.mean(errors))"),
    ("standing.5", GATHERED, "np.mean(errors)"),
    ("standing.5", "np.array([*line, error])", "line"),
    ("standing.6", DEALT, "range(hvd.rank(), count, hvd.size())"),
    ("standing.6", DEALT, "range(count // hvd.size())"),
    ("standing.6", DEALT, "range(12 * hvd.rank(), 12 + 12 * hvd.rank())"),
    ("standing.6", "    slopes = ", "    slopes = line[:1] if True else "),
    ("standing.8", "y / np.mean(y)", "y / np.max(y)"),
    ("standing.8", PREPARES, "    prepare(path)\n"),
    ("standing.17", LOOP, f"{BY} sent[of].size):"),
    ("standing.17", LOOP, "for collective in [hvd.allreduce]:", "got[hvd.allgather]\n", "far\n"),
    ("standing.12", "sorted(own)", "sorted(own, key=lambda name: -abs(own[name]))"),
    ("standing.12", 'middle["y"] - slope * middle["x"]', "0.0"),
]
