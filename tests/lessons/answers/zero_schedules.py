"""Answers to the self-checks of 32_zero_schedules: the first mistake of a puzzle is right, but plain."""

SCATTERED, GATHERED = "        reduce_scatter(gradient(layer))\n", "        all_gather(weights(layer))"
LAYERS, UPDATED = "    for layer in range(L):\n", "        update(layer)\n"
AT_ONCE = f"""    reduce_scatter(*map(gradient, range(L)))
{LAYERS}{UPDATED}    all_gather(*map(weights, range(L)))"""
LATE = """        started.append(reduce_scatter(gradient(layer), wait=False))
        if layer < L - 1:
            wait(started.pop(0))
"""
NOT_LAST, FREED = "        if layer < L - 1:\n", "free(weights(layer), keep=rank)"
FIRST, PASSES = "    arriving = all_gather(weights(0), wait=False)\n", "    for layer in reversed(range(L)):\n"
SOME_FREED = f"{NOT_LAST}            {FREED}\n    summed"
AHEAD = f"        wait(arriving)\n{NOT_LAST}            arriving = all_gather(weights(layer + 1), wait=False)\n"
BEHIND = f"""{NOT_LAST}            wait(arriving)
        if layer > 0:
            arriving = all_gather(weights(layer - 1), wait=False)
"""

STYLES = [("zero.1", f"{LAYERS}{SCATTERED}{UPDATED}{GATHERED}", AT_ONCE)]
MISTAKES = [
    ("zero.1", SCATTERED, "        all_reduce(gradient(layer))\n"),
    ("zero.1", f"{UPDATED}{GATHERED}", f"{GATHERED}\n{UPDATED}"),
    ("zero.1", SCATTERED, ""),
    ("zero.2", SCATTERED, "", UPDATED, f"{SCATTERED}{UPDATED}"),
    ("zero.2", SCATTERED, f"{LATE}    wait(started[0])\n", PASSES, f"    started = []\n{PASSES}"),
    ("zero.3", FIRST, "", AHEAD, f"{GATHERED}\n", BEHIND, f"{GATHERED}\n", SOME_FREED, f"        {FREED}\n    summed"),
    ("zero.3", FREED, "pass"),
]
