"""Baselines are found without looking at every run: what is found is what looking at all of them finds."""

import random

import pytest

from labs.results import metrics
from labs.results.record import Configuration
from labs.results.run import Epoch, MetricsError, Run


def one_by_one(run, runs):
    """The rules of find_baseline, tried on all runs: the sources of the runs that it takes together, or an error."""
    ones = [one for one in runs if one.workers == 1 and not metrics.apart(run, one) and one.steady]
    ones = [one for one in ones if one.configuration.strategy == run.configuration.strategy] or ones
    chosen = []
    for wanted in ("weak", "strong", None):
        chosen = chosen or [one for one in ones if metrics.scaling(run, one) == wanted]
    chosen = [one for one in chosen if metrics.together(run, one)] or chosen
    if not chosen or any(not metrics.together(chosen[0], one) for one in chosen):
        return None
    first = chosen[0].configuration
    return first, sum(len(one.repeats) for one in chosen if one.configuration.same_training(first))


@pytest.mark.parametrize("seed", range(20))
def test_what_is_found_is_what_the_rules_say(seed):
    pick, runs = random.Random(seed), []
    for number in range(40):
        workers = pick.choice([1, 1, 2, 4])
        batch = pick.choice([64, 64 * workers, 128])
        has = Configuration(
            model=pick.choice(["A", "B", None]),
            strategy=pick.choice(["mirrored", "single", "horovod"]),
            workers=workers,
            global_batch=pick.choice([batch, batch, None]),
        )
        place = {"study": pick.choice([None, None, "s", "t"]), "job": pick.choice([None, None, "1"])}
        place |= {"folder": pick.choice(["f", "g"]), "hardware": pick.choice(["c", None])}
        epochs = [Epoch(1.0)] * pick.choice([1, 3])
        runs.append(Run(f"file {number // 2}", configuration=has, repeats=[epochs], **place))
    for run in runs:
        if run.workers == 1:
            continue
        wanted = one_by_one(run, runs)
        if wanted is None:
            with pytest.raises(MetricsError):
                metrics.find_baseline(run, runs)
        else:
            found = metrics.find_baseline(run, runs)
            assert (found.configuration, len(found.repeats)) == wanted
