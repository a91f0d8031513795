"""The jobs of notebook 21 do what their judges and texts say of them."""

import pytest

from benchmarks import standing
from lessons.standing_still import questions
from teaching.author import regions

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


@pytest.mark.more("nine jobs under two launchers really hang, end or go on: minutes")
@pytest.mark.parametrize("launcher", ["horovodrun", "mpiexec"])
@pytest.mark.parametrize("name", standing.NAMES)
def test_each_job_does_what_is_said_of_it(name, launcher, tmp_path, needs_horovod):
    script = tmp_path / f"{name}.py"
    script.write_text(regions.blank((standing.SCRIPTS / script.name).read_text()))
    what, said, _ = standing.observed(script, launcher, tmp_path / "runs")
    assert what == OTHERWISE.get(name, "hangs")
    parts = OBSERVED[name].split(", line ")  # before the script's own lines there may be those of what started it
    assert all(part in said for part in parts), said
    assert all(str(place.at[0]) in parts[-1] for place in questions.PLACES.values() if place.script == script.name)
