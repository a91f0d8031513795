"""Answers to the checks of 02_averages_and_rings that have judges of their own: the functions of the ring."""

SEND, ADDED = "chunks[(worker - step) % K]", "chunks[place] + arrived"
PLACE, ENDS = "place = (worker - step - 1) % K", "return chunks"
SUMS, RETURNED = f"chunks[place] = {ADDED}", "return [total if c == place else chunks[c] for c in range(K)]"

STYLES = [
    ("averages.16", SUMS, "chunks[place] += arrived", ENDS, "pass"),  # in place
    ("averages.16", SEND, "total if step else chunks[worker]", SUMS, "total = arrived + chunks[place]", ENDS, RETURNED),
]
MISTAKES = [
    ("averages.16", SEND, SEND.replace("step", "step - 1"), PLACE, PLACE.replace("1", "2")),
    ("averages.16", PLACE, PLACE.replace("- 1", "+ 2")),  # right on 3 workers
    ("averages.16", ADDED, f"({ADDED}) / 2"),
    ("averages.16", ENDS, "return [np.resize(each, chunks[1].size) for each in chunks]"),
    ("averages.16", SEND, "np.concatenate(chunks)", ADDED, "chunks[place] + arrived[: chunks[place].size]"),
    ("averages.16", "range(K - 1)", "range(K - 1 if worker else 0)"),
    ("averages.17", "(worker - step)", "(worker - step - 1)", "(worker + 1 - step)", "(worker - step)"),
    ("averages.17", ENDS, "return np.concatenate(chunks)"),
]
