"""What notebook 26 reads of notebooks 05 and 09, the steps that it measures, and what it fits to them."""

from dataclasses import replace

from labs import recorded, results
from labs.errors import UseError
from labs.measure import breakdown
from labs.results import intervals
from lessons.resnet152_scaling.experiments import earlier, largest_kept
from lessons.when_workers_do_not_help.compared import bounded
from lessons.where_a_step_goes.fitted import Fit


def fitted(measured):
    """The Fit to these MeasuredSteps; None where there are none, or, with the reason printed, no fit.

    Steps of a few milliseconds on a busy machine can come out shorter for the larger batch.
    """
    try:
        return Fit(measured) if measured else None
    except UseError as problem:
        print(f"There is no fit, so nothing is predicted: {problem}")
        return None


def largest_batch(model, image_size, otherwise):
    """The largest batch of a network that the search of T8 has kept; a printed line and `otherwise` without one, or
    where the other network of T8 was not searched with the same memory."""
    other = "ResNet152V2" if model == "ResNet50V2" else "ResNet50V2"
    try:
        return largest_kept(model, image_size, other)
    except UseError as problem:
        print(f"{model}: {problem}, so {otherwise} images are used as its largest batch.")
        return otherwise


def runs_of_two_networks(plan, names):
    """(runs of both networks on 1 and 2 workers, whether they are yours).

    Yours of notebooks 05 and 09 if all of them are there and have this plan's sizes, else recorded ones.
    """
    on_two = replace(plan, workers=(1, 2))
    small, large = (earlier(on_two, name.replace("50V2", "50"), "mirrored", name) for name in names)
    own = bool(small and large)
    return results.load(small + large if own else recorded.laptop_two_networks()), own


def whole_steps(steps, runs):
    """Rows for a table: the sum of a step's parts, a step of the run on as many workers with the same local batch, and
    how many times as long that takes; for a network without such a run a printed line.

    steps: {network: what labs.measure.breakdown.measure returns}. 95 % intervals; the two were not measured in turns,
    so that of the ratio does not cover a change of the machine between them.
    """
    rows, of = [], {(run.model, run.workers, run.global_batch): run for run in runs}
    for name, parts in steps.items():
        workers, local_batch = parts["ranks"], parts["local_batch"]
        if run := of.get((name, workers, workers * local_batch)):
            summed = intervals.mean(breakdown.means(parts)[breakdown.KINDS[-1]])
            whole = run.epoch_seconds.scaled(1 / run.steps)
            row = {"network": name, "sum of the parts (ms)": bounded(summed.scaled(1e3), ",.1f")}
            row |= {"whole step (ms)": bounded(whole.scaled(1e3), ",.1f")}
            rows.append(row | {"whole / sum": bounded(intervals.ratio(whole, summed), ".3g")})
        else:
            print(f"{name}: no run on {workers} workers with {local_batch} images each to compare.")
    return rows
