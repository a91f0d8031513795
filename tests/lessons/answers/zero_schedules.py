"""Answers to the self-checks of 32_zero_schedules: the first mistake of a puzzle is right, but plain."""

SCATTERED, GATHERED = "        reduce_scatter(gradient(layer))\n", "        all_gather(weights(layer))"
UPDATED = "        update(layer)\n"
LATE = """        started.append(reduce_scatter(gradient(layer), wait=False))
        if layer < L - 1:
            wait(started.pop(0))
"""
PASSES, FREED = "    for layer in reversed(range(L)):\n", "free(weights(layer), keep=rank)"

MISTAKES = [
    ("zero.1", SCATTERED, "        all_reduce(gradient(layer))\n"),
    ("zero.1", f"{UPDATED}{GATHERED}", f"{GATHERED}\n{UPDATED}"),
    ("zero.1", SCATTERED, ""),
    ("zero.1", GATHERED, ""),
    ("zero.2", SCATTERED, "", UPDATED, f"{SCATTERED}{UPDATED}"),
    ("zero.2", "forward(layer, rank)", "[forward(layer, rank) for _ in range(2)]"),
    ("zero.2", SCATTERED, f"{LATE}    wait(started[0])\n", PASSES, f"    started = []\n{PASSES}"),
    ("zero.3", ", wait=False)", ")", "wait(arriving)", "arriving", "wait(summed)", "summed"),
    ("zero.3", FREED, "pass"),
]
