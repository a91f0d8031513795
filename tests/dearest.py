"""What the tests cost: the dearest 20 are printed at the end, with processor time.

Processor time of a test is that of its process, of the programs that it waits for, and of those that the server runs
for it (warm/warm_server.py). What nobody waits for, as the daemons of a cluster, is left out.
"""

import json
import resource
import time
from collections import defaultdict

import pytest


class Dearest:
    """A plugin of pytest. shared: a folder of all processes of the run, where each test leaves a line."""

    def __init__(self, shared, config):
        self._file, self._worker = shared / "costs.jsonl", hasattr(config, "workerinput")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        wall, cpu = time.monotonic(), _spent()
        try:
            return (yield)
        finally:
            cost = [item.nodeid, time.monotonic() - wall, _spent() - cpu]
            with open(self._file, "a") as file:  # a line is written at once
                file.write(json.dumps(cost) + "\n")

    def pytest_terminal_summary(self, terminalreporter):
        if self._worker or not self._file.exists():
            return
        rows = sorted(_costs(self._file).items(), key=lambda row: -row[1][1])
        if len(rows) <= 20:
            return
        terminalreporter.section("dearest tests: seconds by the clock, of processors")
        for name, (wall, cpu) in rows[:20]:
            terminalreporter.line(f"{wall:7.1f} {cpu:7.1f}  {name}")
        terminalreporter.line(f"{sum(cpu for _, (_, cpu) in rows):.0f} s of processors in all tests")


def _costs(file):
    """{test: [seconds by the clock, of processors]}; the cells of a notebook together."""
    costs = defaultdict(lambda: [0.0, 0.0])
    for line in file.read_text().splitlines():
        test, wall, cpu = json.loads(line)
        name, _, inside = test.partition("::")
        cost = costs[name if name.endswith(".ipynb") else f"{name}::{inside}".partition("@")[0]]
        cost[0], cost[1] = cost[0] + wall, cost[1] + cpu
    return costs


def _spent():
    """Processor seconds of this process and of those that it has waited for."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
