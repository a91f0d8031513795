"""What the tests cost: the dearest are printed at the end, and kept in build/dearest.json.

Processor time of a test is that of its process, of the programs that it waits for, and of those that the server runs
for it (warm/warm_server.py). What nobody waits for, as the daemons of a cluster, is in the machine's sum only.
"""

import json
import resource
import time
from collections import defaultdict

import psutil
import pytest

MOST = 30


class Dearest:
    """A plugin of pytest. shared: a folder of all processes of the run. kept: the file for the list."""

    def __init__(self, shared, kept, config):
        self._file, self._kept, self._worker = shared / "costs.jsonl", kept, hasattr(config, "workerinput")
        self._begun, self._busy = time.monotonic(), _busy()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        wall, spent = time.monotonic(), _spent()
        try:
            return (yield)
        finally:
            cost = [item.nodeid, time.monotonic() - wall, _spent() - spent]
            with open(self._file, "a") as file:  # a line is written at once
                file.write(json.dumps(cost) + "\n")

    def pytest_terminal_summary(self, terminalreporter):
        if self._worker or not self._file.exists():
            return
        costs = read(self._file)
        told = {"wall_seconds": time.monotonic() - self._begun}
        told["processor_seconds"] = sum(cpu for _, cpu in costs.values())
        told["processor_seconds_of_machine"] = _busy() - self._busy
        rows = sorted(costs.items(), key=lambda row: -row[1][1])
        told["tests"] = [{"test": name, "wall_seconds": wall, "processor_seconds": cpu} for name, (wall, cpu) in rows]
        if len(rows) < MOST:
            return
        self._kept.parent.mkdir(exist_ok=True)
        self._kept.write_text(json.dumps(told, indent=1))
        terminalreporter.section(f"{MOST} dearest tests: seconds by the clock, of processors")
        for name, (wall, cpu) in rows[:MOST]:
            terminalreporter.line(f"{wall:7.1f} {cpu:7.1f}  {name}")
        line = "{wall_seconds:.0f} s by the clock; {processor_seconds:.0f} s of processors in tests"
        terminalreporter.line(f"{line}, {{processor_seconds_of_machine:.0f}} s on the whole machine".format(**told))


def read(file):
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
    of = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in of)


def _busy():
    """Processor seconds that this machine has worked."""
    times = psutil.cpu_times()
    return sum(times) - times.idle - getattr(times, "iowait", 0.0)
