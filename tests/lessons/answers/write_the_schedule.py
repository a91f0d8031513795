"""Answers to the self-checks of 31_write_the_schedule: the first mistake of a puzzle is right, but plain."""

EXCHANGE = "all_reduce(*[gradient(layer) for layer in range(L)])"
RECEIVED = "from lessons.write_the_schedule.programs import receive\n    receive(gradient(0), 1 - rank)"
LAYER, STARTED = "all_reduce(gradient(layer))", "started.append(all_reduce(gradient(layer), wait=False))"
LAST, PASSES = (
    f"            if batch + K >= M:\n                {STARTED}\n",
    "        for layer in reversed(range(L)):\n",
)
BUCKET = "started.append(all_reduce(*bucket, wait=False))"

STYLES = [("schedule.2", "== 3", "== 4")]
MISTAKES = [
    ("schedule.1", EXCHANGE, f"for layer in range(L):\n        {LAYER}"),
    ("schedule.1", "rank)", "rank + 1)"),
    ("schedule.1", "gradient(layer) for layer in range(L)", "gradient(layer) for layer in range(6)"),
    ("schedule.1", EXCHANGE, f"all_reduce([gradient(0)])\n    {EXCHANGE}"),
    ("schedule.1", EXCHANGE, f"{RECEIVED}\n    {EXCHANGE}"),
    ("schedule.1", "K, L, M):", "K):"),
    ("schedule.2", "== 3", "== 1"),
    ("schedule.2", BUCKET, f"{BUCKET}\n            wait(started.pop())"),
    ("schedule.3", PASSES, f"    for batch in range(rank, M, K):\n{PASSES}"),
    ("schedule.3", LAST, "", "for each in started:\n        wait(each)", EXCHANGE),
    ("schedule.3", "batch + K >= M", "True", STARTED, LAYER),
]
