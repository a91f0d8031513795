"""The tables of notebooks 22 and 23 that compare trainings."""

import json
from pathlib import Path
from statistics import fmean

from labs.checks import predictions
from labs.printed import grouped
from labs.results import intervals
from labs.show import tables


def by_k(log):
    """Show the trainings of scripts/local_sgd.py for each k.

    log: what the script printed, a path. Returns {k: labs.results.intervals.Estimate} of the steps per second, divided
    by those with the first k of the same repeat, for each later k.
    """
    lines = [line for line in Path(log).read_text().splitlines() if '{"k"' in line]
    trained = [json.loads(line[line.index("{") :]) for line in lines]
    seconds = grouped((training["k"], training["step_seconds"]) for training in trained)
    rows, gains = [], {}
    for k, of_k in grouped((training["k"], training) for training in trained).items():
        row = {"k": k, "means": of_k[0]["means"], "step": 1000 * fmean(seconds[k]), "gain": "1"}
        if rows:
            gains[k] = gain = intervals.paired(seconds[rows[0]["k"]][: len(of_k)], seconds[k])
            row["gain"] = f"{gain.value:.3g}" + (" [{:.3g}, {:.3g}]".format(*gain.interval) if gain.interval else "")
        row["accuracy"] = fmean(training["accuracy"] for training in of_k)
        rows.append(row | {"identical": all(training["identical"] for training in of_k)})
    headers = {"step": "step (ms), measured", "gain": "steps/s against k = 1"}
    tables.show(
        rows,
        ("k", "means", "step", "gain", "accuracy", "identical"),
        headers | {"identical": "weights identical at the end"},
    )
    return gains


def by_batch(trainings):
    """Show {batch: [what trials.train returned, for each seed]}, with intervals over the seeds.

    Returns the batch with the highest mean test accuracy.
    """
    rows, means = [], {}
    for batch, of_seeds in trainings.items():
        accuracy = [training["test"] for training in of_seeds]
        means[batch], (low, high) = fmean(accuracy), intervals.shares(accuracy)
        span = f"[{low:.3f}, {high:.3f}]" if len(set(accuracy)) > 1 else "(the same with all seeds)"
        row = {"batch": batch, "rate": of_seeds[0].get("rate"), "steps": of_seeds[0]["steps"]}
        row |= {key: fmean(training[key] for training in of_seeds) for key in ("seconds", "loss")}
        rows.append(row | {"images": batch * row["steps"], "accuracy": f"{means[batch]:.3f} {span}"})
    columns = ("batch", "rate", "steps", "images", "seconds", "loss", "accuracy")
    headers = {"seconds": "seconds (measured)", "loss": "training loss at the end", "accuracy": "test accuracy"}
    tables.show(rows, columns, headers)
    return max(means, key=means.get)


def steps_to_target(measured):
    """Show [{batch, rate, steps of each seed}], with intervals over the seeds."""
    rows = []
    for row in measured:
        estimate = intervals.mean(row["steps"])
        low, high = estimate.interval or (estimate.value, estimate.value)
        steps = f"{estimate.value:.0f} [{low:.0f}, {high:.0f}]"
        rows.append(row | {"steps": steps, "images": f"{row['batch'] * estimate.value:,.0f}"})
    tables.show(rows, ("batch", "rate", "steps", "images"), {"rate": "best rate", "steps": "steps to 95 %"})


def outcomes(*notebooks):
    """Show what came of the student's predictions in these notebooks, as far as it is known."""
    rows = []
    for each in predictions():
        if each["notebook"] in notebooks and each["outcome"] is not None:
            found, span = each["outcome"], each["interval"]
            text = f"{found:.3g}" if isinstance(found, float) else str(found)
            text += " [{:.3g}, {:.3g}]".format(*span) if span else ""
            rows.append({"notebook": each["notebook"].partition("_")[0], "prediction": each["title"], "outcome": text})
    if rows:
        tables.show(rows)
    else:
        print("There are no outcomes yet: they come with your predictions.")
