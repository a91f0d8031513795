"""What notebook 26 reads of notebooks 05 and 09, the steps that it measures, and what it fits to them."""

import threading
import time
from statistics import fmean

from labs import jobs, recorded, results
from labs.errors import UseError
from labs.jobs import bar
from labs.measure import breakdown
from labs.results import intervals, metrics
from lessons.resnet152_scaling.experiments import largest_kept
from lessons.where_a_step_goes.fitted import fit


class Measuring:
    """Measures networks one after the other in the background, each with `breakdown.measure`.

    `wait` collects. What is computed meanwhile takes from the cores, and shows in the steps. The measurement ends with
    this process, also where nobody waited.
    """

    jobs = ()  # none whose rate a bar could show

    def __init__(self, models, **options):
        self._models, self._options, self._found = list(models), options | {"show": False}, {}
        self._problem, self._over, self._begun = None, threading.Event(), time.monotonic()
        threading.Thread(target=self._run, name="breakdown", daemon=True).start()

    def __repr__(self):
        return f"<steps of {', '.join(self._models)}: {self.state}>"

    @property
    def state(self):
        if not self._over.is_set():
            return "running"
        return "failed" if self._problem else "finished"

    def _run(self):
        try:
            for model in self._models:
                self._found[model] = breakdown.measure(model, **self._options)
        except Exception as problem:  # for the one who waits
            self._problem = problem
        self._over.set()

    def wait(self, show=True):
        """{model: what `breakdown.measure` returns}, once all are done; an interrupt ends the waiting. show: a bar.

        Raises what that raises.
        """
        with bar.shown("steps", self, show) as update:
            while not self._over.wait(0.3):
                said = f"{len(self._found)} of {len(self._models)} networks measured"
                update({}, time.monotonic() - self._begun, said)
        if self._problem:
            raise self._problem
        return dict(self._found)


def fitted(measured):
    """The Fit to these MeasuredSteps (`fitted.fit`); None where there are none, or, with the reason printed, no fit.

    Steps of a few milliseconds on a busy machine can come out shorter for the larger batch.
    """
    try:
        return fit(measured) if measured else None
    except UseError as problem:
        print(f"There is no fit, so nothing is predicted: {problem}")
        return None


def largest_batch(model, image_size, otherwise):
    """The largest batch of a network that the search of T8 has kept; a printed line and `otherwise` without one, or
    where the other network of T8 was not searched with the same memory."""
    try:
        other = "ResNet152V2" if model == "ResNet50V2" else "ResNet50V2"
        if found := largest_kept(model, image_size, other):
            return found
        why = "there is no search of T8 (notebook 09) here"
    except UseError as problem:
        why = problem
    print(f"{model}: {why}, so {otherwise} images are used as its largest batch.")
    return otherwise


def runs_of_two_networks(plan, names):
    """(runs of both networks on 1 and 2 workers, whether they are yours).

    Yours of notebooks 05 and 09 if all of them are there and have this plan's sizes, else recorded ones.
    """
    from labs.measure import study

    wanted = [(name, workers) for name in names for workers in (1, 2)]
    files = [jobs.folder() / f"{name.replace('50V2', '50')}_w{workers}.json" for name, workers in wanted]
    settings = [study.configuration(plan, name, workers, "mirrored") for name, workers in wanted]
    own = all(study.reusable(file, setting) for file, setting in zip(files, settings, strict=True))
    return results.load(files if own else recorded.laptop_two_networks()), own


WHOLE = ("sum of the parts", "whole step", "residual")


def whole_step(found, seconds):
    """{name: (seconds of a step, (low, high) or None)} for WHOLE: the parts' sum against a step measured elsewhere.

    found: of labs.measure.breakdown.measure; seconds: those of a step in a training run with the same network, local
    batch and number of workers, one for each round or repeat: [epoch / run.steps for epoch in metrics.sample(run)[0]]
    of a labs.results.run.Run. Of this measurement itself there is no residual: the parts are differences, and add up to
    its last kind of step in each round.

    95 % t intervals over rounds; of the residual, which is whole minus sum and can be negative, Welch's. The two were
    not measured in turns: a change of the machine between them shifts the residual, and its interval does not cover
    that.
    Raises BreakdownError: a kind of steps is missing, or there are no seconds.
    """
    from scipy.stats import ttest_ind

    breakdown.parts(found)  # raises for missing kinds
    steps, seconds = breakdown.means(found)[breakdown.KINDS[-1]], list(seconds)
    if not seconds:
        raise breakdown.BreakdownError(
            "No step of a training run was given, so there is nothing to compare the parts with."
        )
    both = [(fmean(values), intervals.plain(values)) for values in (steps, seconds)]
    welch = None
    if min(len(seconds), len(steps)) > 1:
        welch = tuple(ttest_ind(seconds, steps, equal_var=False).confidence_interval())
    return dict(zip(WHOLE, [*both, (both[1][0] - both[0][0], welch)], strict=True))


def whole_steps(steps, runs):
    """{network: `whole_step` of its measured steps and of the run on as many workers}, where a run has
    the same local batch; for the other networks a printed line."""
    found = {}
    for name, parts in steps.items():
        batch = parts["ranks"], parts["ranks"] * parts["local_batch"]
        same = [run for run in runs if (run.model, run.workers, run.global_batch) == (name, *batch)]
        if same and same[0].steps:
            seconds = [epoch / same[0].steps for epoch in metrics.sample(same[0])[0]]
            found[name] = whole_step(parts, seconds)
        else:
            print(f"{name}: no run on {batch[0]} workers with {parts['local_batch']} images each to compare.")
    return found


def predictions(found, measured):
    """Rows of pictures.held_out: what a Fit says of MeasuredSteps, and how long their steps took; [] without a Fit.

    Intervals: of predictions the noise of the fitted steps; of measured steps over rounds, valid for these minutes.
    """
    rows = []
    for each in measured if found else ():
        name = f"{each.model}, {each.workers} worker{'s' if each.workers > 1 else ''} x {each.local_batch}"
        took = fmean(each.seconds), intervals.plain(each.seconds)
        predicted = found.step(each.model, each.workers, each.local_batch)
        rows.append({"name": name, "predicted": predicted, "measured": took})
    return rows
