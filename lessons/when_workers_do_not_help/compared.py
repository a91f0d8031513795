"""The tables of notebooks 22 and 23 that compare trainings."""

import json
import re
from pathlib import Path
from statistics import fmean

from labs.printed import grouped
from labs.results import intervals
from labs.show import tables


def bounded(estimate, digits):
    """A labs.results.intervals.Estimate as a cell of a table: the value, and its interval where there is one."""
    value, *ends = (f"{number:{digits}}" for number in (estimate.value, *(estimate.interval or ())))
    return f"{value} [{', '.join(ends)}]" if ends else value


def _columns(trainings):
    return {key: [training[key] for training in trainings] for key in trainings[0]}


def by_k(log):
    """Show the trainings of scripts/local_sgd.py for each k.

    log: what the script printed, a path. Returns {k: labs.results.intervals.Estimate} of the steps per second, divided
    by those with the first k of the same repeat, for each later k.
    """
    trained = [json.loads(found) for found in re.findall(r'\{"k".*\}', Path(log).read_text())]
    rows, gains, first = [], {}, []
    for k, of_k in grouped((training["k"], training) for training in trained).items():
        of, gain = _columns(of_k), "1"
        if first:
            gains[k] = intervals.paired(first[: len(of_k)], of["step_seconds"])
            gain = bounded(gains[k], ".3g")
        first = first or of["step_seconds"]
        row = {"k": k, "means": of["means"][0], "step (ms), measured": 1000 * fmean(of["step_seconds"])}
        row |= {"steps/s against k = 1": gain, "accuracy": fmean(of["accuracy"])}
        rows.append(row | {"weights identical at the end": all(of["identical"])})
    tables.show(rows)
    return gains


def by_batch(trainings):
    """Show {batch: [what trials.train returned, for each seed]}, as means over the seeds.

    Returns the batch with the highest mean test accuracy.
    """
    rows, means = [], {}
    for batch, of_seeds in trainings.items():
        of = _columns(of_seeds)
        means[batch], steps = fmean(of["test"]), of["steps"][0]
        row = {"batch": batch, "rate": of_seeds[0].get("rate"), "steps": steps, "images": batch * steps}
        row |= {"seconds (measured)": fmean(of["seconds"]), "training loss at the end": fmean(of["loss"])}
        rows.append(row | {"test accuracy": means[batch]})
    tables.show(rows)
    return max(means, key=means.get)


def steps_to_target(measured):
    """Show [{batch, rate, steps of each seed}], with intervals over the seeds."""
    rows = []
    for row in measured:
        steps, batch = intervals.mean(row["steps"]), row["batch"]
        found = {"batch": batch, "best rate": row["rate"], "steps to 95 %": bounded(steps, ".0f")}
        rows.append(found | {"images": f"{batch * steps.value:,.0f}"})
    tables.show(rows)
