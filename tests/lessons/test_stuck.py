"""The jobs of notebook 21 do what their judges and texts say of them."""

import pytest
from tree import ROOT

from benchmarks import standing
from lessons.standing_still import questions
from teaching.author import regions

SCRIPTS = {name: (ROOT / f"solutions/scripts/{name}.py").read_text() for name in standing.NAMES}
# What each does, unless it hangs, and what is observed of it, or what `labs why` says of those that hang.
OBSERVED = {
    "reports_loss": "Rank 0 waits in allgather, reports_loss.py, line 46 > 39 > 32. Not there: rank 1.",
    "keeps_best": "Rank 0 waits in allgather, keeps_best.py, line 52 > 45 > 37 > 26. Not there: rank 1.",
    "own_share": "Rank 0 waits in allreduce, own_share.py, line 49 > 41 > 32 > 19. Not there: rank 1.",
    "smallest_first": "Rank 1 waits in allgather, smallest_first.py, line 47 > 40 > 33 > 24. Not there: rank 0.",
    "prepares_once": "Rank 1 sleeps (prepares_once.py, line 33), in no collective",
    "every_error": "Mismatched ALLREDUCE tensor shapes",
    "remembers": "",
    "two_means": "slope 0.5",
    "tries_many": "Rank 1 computes",
}
OTHERWISE = dict.fromkeys(("every_error", "remembers"), "ends with a message")
OTHERWISE |= {"two_means": "goes on wrong", "tries_many": "is slow"}


def test_lines_of_the_answers_are_those_of_the_scripts():
    for place in questions.PLACES.values():
        lines = (ROOT / "notebooks/scripts" / place.script).read_text().split("\n")
        at = [lines[number - 1] for number in place.at]
        other = [lines[number - 1] for number in (*place.other, *place.stack)]
        assert all(any(part in line for part in ("hvd.", "mean(", "loss(", "exists", "sleep(")) for line in at)
        assert all("(" in line and not line.startswith("def") for line in at + other)


@pytest.mark.more("nine jobs under two launchers really hang, end or go on: minutes")
@pytest.mark.parametrize("launcher", ["horovodrun", "mpiexec"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_each_job_does_what_is_said_of_it(name, launcher, tmp_path, needs_horovod):
    script = tmp_path / f"{name}.py"
    script.write_text(regions.blank(SCRIPTS[name]))
    what, said, _ = standing.observed(script, launcher, tmp_path / "runs")
    assert what == OTHERWISE.get(name, "hangs")
    parts = OBSERVED[name].split(", line ")  # before the script's own lines there may be those of what started it
    assert all(part in said for part in parts), said
