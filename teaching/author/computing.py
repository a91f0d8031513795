"""The computing time that the top of a notebook and the README's table state: the longest execution so far on 2 cores
that other programs left alone. The build writes it.

A shorter one changes nothing, since a faster machine explains it as well as a shorter notebook: who has cut a notebook
writes its time by hand.
"""

import math
import os
import re
import time
from pathlib import Path

from labs import devices, files, presets

CORES, QUIET = 2, 0.05  # what the texts speak of; the share of the cores' time that others may take
_STATED = re.compile(r"(?<=, including )(?:less than )?(\d+) minutes?(?= of computing on 2 cores\.\*\*)")


class Stopwatch:
    """A context: the `seconds` that its content took, and the share of the cores that `others` took meanwhile (0 to 1;
    None where Linux does not tell). What the content started must have ended, and been waited for, with it."""

    def __enter__(self):
        self._begin = self._now()
        return self

    def __exit__(self, *_):
        (wall, own, busy), (wall_0, own_0, busy_0) = self._now(), self._begin
        self.seconds, self.others = wall - wall_0, None
        if busy is not None and busy_0 is not None:
            spent = busy - busy_0 - (own - own_0)
            self.others = max(0.0, spent / self.seconds / len(os.sched_getaffinity(0)))

    @staticmethod
    def _now():
        return time.perf_counter(), sum(os.times()[:4]), devices.busy()

    def __str__(self):
        others = "" if self.others is None else f", {self.others:.0%} of the cores were taken by other programs"
        return f"{self.seconds:.0f} s{others}"

    def why_not(self):
        """Why these seconds are not those to state, as a text; None if they are."""
        reasons = {
            "the preset is another one": presets.choose().name != "laptop",
            f"this machine has {devices.cores()} cores": devices.cores() != CORES,
            "the machine was not quiet": self.others is None or self.others > QUIET,
        }
        return next((why for why, holds in reasons.items() if holds), None)


def state(root, name, seconds):
    """Write the minutes of a notebook's execution, rounded up, into its source and its row of README.md's table.

    Returns whether the source changed. One that states no time, or not less than this, stays as it is.
    """
    source, readme = Path(root, "solutions", f"{name}.py"), Path(root, "README.md")
    minutes, stated = math.ceil(seconds / 60), _STATED.search(source.read_text(encoding="utf-8"))
    if not stated or minutes <= int(stated[1]):
        return False
    row = re.compile(rf"(?m)^(\| `{name}`.*\| )\d+( min \|)$")
    for path, pattern, text in ((readme, row, rf"\g<1>{minutes}\g<2>"), (source, _STATED, f"{minutes} minutes")):
        if path.exists():
            files.write(path, pattern.sub(text, path.read_text(encoding="utf-8"), count=1))
    return True
