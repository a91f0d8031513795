"""The solution notebooks among the other tests: nbval executes them, a cell is a test, all cells of one in one process.

A question that is open or answered wrong is an error (LABS_STRICT). All share a folder of runs; a notebook that makes a
report looks at the runs of the others, so it waits for their end.
"""

import os
import re
import time
from pathlib import Path

import pytest

PATIENCE = 900  # seconds that a report's notebook waits for what never comes
COLD = "03"  # of this one the kernel and what it starts import TensorFlow themselves, as a student's do
BEGIN_FIRST = ("08", "09", "05", "07", "22", "24", "26")  # they take longest


def prepare(shared):
    """Give the kernels that nbval starts in this process their settings. shared: a folder of all processes."""
    from nbval.plugin import IPyNbCell, IPyNbFile

    start, stop, execute = IPyNbFile.setup, IPyNbFile.teardown, IPyNbCell.runtest
    settings = {"LABS_STRICT": "1", "LABS_RUNS": str(shared / "runs"), "LABS_PRESET": "test"}

    def setup(self):
        if _reports(self.path):
            others = {item.path for item in self.session.items if item.path.suffix == ".ipynb"} - {self.path}
            limit = time.monotonic() + PATIENCE
            while not all(_ended(shared, path).exists() for path in others) and time.monotonic() < limit:
                time.sleep(0.2)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in settings.items():
                patch.setenv(name, value)
            if self.path.name.startswith(COLD):
                patch.delenv("WARM_SERVER", raising=False)
            if whole(self.path):
                patch.setenv("BLOCKS", "all")
            start(self)

    def teardown(self):
        stop(self)
        _ended(shared, self.path).touch()

    def runtest(self):
        """A cell that runs out of time fails, and so do the cells behind it, at once.

        nbval interrupts such a cell: a program's run takes that for the button Stop and ends without an error.
        """
        if not self.parent.timed_out:
            execute(self)
        if self.parent.timed_out:
            pytest.fail("out of time, or behind a cell that was", pytrace=False)

    IPyNbFile.setup, IPyNbFile.teardown = setup, teardown
    # Its own set-up excuses the cells behind one that was out of time.
    IPyNbCell.setup, IPyNbCell.runtest = lambda self: None, runtest


def whole(path):
    """Is this notebook to run with all blocks of its networks? WHOLE names the numbers of such (Makefile)."""
    return path.name[:2] in os.environ.get("WHOLE", "").split()


def by_length(items):
    """Paths of the notebooks among tests, those first that take longest."""
    paths = dict.fromkeys(item.path for item in items if item.path.suffix == ".ipynb")
    return sorted(paths, key=lambda path: (path.name[:2] not in BEGIN_FIRST, path.name))


def reports(items):
    """Paths of the notebooks among tests that make a report."""
    return {item.path for item in items if item.path.suffix == ".ipynb" and _reports(item.path)}


def _reports(path):
    return bool(re.search(r"report[.]make", Path(path).with_suffix(".py").read_text(encoding="utf-8")))


def _ended(shared, path):
    return shared / f"{path.stem}.ended"
