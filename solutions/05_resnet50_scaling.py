# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # How much faster do more workers train ResNet50V2?
#
# **Time: 45 minutes, including 8 minutes of computing on 2 cores.** A part at the end is optional.
#
# **Paths:** *an afternoon* (its last notebook), *the practical* (next: `06_a_job_for_slurm`), *everything*.
#
# You train ResNet50V2 on 1 and 2 workers (and on more, if you have them) with a script that you complete yourself. You
# compute how much faster 2 workers are, and how certain that is. Then you take a step apart to see what limits the
# speedup. You hand in task **T6**. In the next notebook, the same training becomes a job on a cluster (**T5**).

# %%
from statistics import fmean, median

from labs import devices, presets, results
from labs.checks import answered, check, outcome, predict
from labs.show import plots, tables

plan = presets.choose()
unit = "GPU" if devices.gpus() else "CPU core"
print(f"preset {plan.name}: {plan.images or 'all'} images of {plan.dataset}, {plan.local_batch} per worker and step,")
print(f"{plan.epochs} epochs, the first as warm-up. A worker is one {unit}; this machine has {devices.cores()} cores.")

# %% [markdown]
# ## Predict first
#
# Each worker gets the same number of images per step (**weak scaling**), so with 2 workers an epoch has half as many
# steps. How many times as fast is an epoch with 2 workers? (2 is ideal, 1 is no gain, and less than 1 is a loss.)

# %% labs={"id": "resnet50.1"}
### BEGIN SOLUTION
speedup_expected = 1.6
### END SOLUTION
predict("resnet50.1", speedup_expected)

# %% [markdown]
# After the same number of epochs, is the training accuracy of 2 workers `"higher"` than that of 1 worker, `"equal"`
# (within one percentage point) or `"lower"`?

# %% labs={"id": "resnet50.2"}
### BEGIN SOLUTION
accuracy_expected = "lower"
### END SOLUTION
predict("resnet50.2", accuracy_expected)

# %% [markdown]
# ## The script
#
# Open `scripts/ResNet50.py` in the file browser on the left. It has four blanks:
#
# 1. the **strategy**, for the devices in `workers`
# 2. the **learning rate**: 0.01 for one worker, in proportion to the number of workers, `args.n_gpus` (the **linear
#    rule**)
# 3. the **network**: `keras.applications.ResNet50V2` without pretrained weights, for `len(dataset.classes)` classes and
#    images with sides of `args.image_size` pixels and three colour channels (arguments `weights`, `classes` and
#    `input_shape`)
# 4. the **training**: `model.fit(train, ...)` with `epochs=args.epochs`, `shuffle=False`, `verbose=2` and
#    `callbacks=[recorder]`
#
# Save the file, then run the check. It tries your script on a few images, with a tiny network in place of ResNet50V2.

# %% labs={"id": "resnet50.3"}
script = "scripts/ResNet50.py"
ready = check("resnet50.3", script)

# %% [markdown]
# ## Run it
#
# You start one job for each number of workers. The speed of a machine drifts: another program starts, or a laptop gets
# warm. So the jobs take **turns**: one trains for an epoch while the others are paused, and then the next one. One
# epoch of each job makes up a **round**. Whatever slows down a whole round slows down all its jobs. The first epoch of
# each job is a warm-up, which is not measured.
#
# In the menu *Kernel*, *Interrupt Kernel* stops the jobs and keeps what they have measured. Until the check above
# passes, this notebook continues with *recorded* runs from a machine with 2 cores.

# %%
from labs import jobs, recorded

turns = jobs.Turns()
with turns:
    for workers in plan.workers if ready else ():
        batch = workers * plan.local_batch  # the global batch
        asked = ["--n_gpus", workers, "--batch_size", batch, *plan.arguments()]
        turns.start(script, *asked, name=f"ResNet50_w{workers}")

own = bool(turns.jobs) and turns.state == "finished"
if own:
    files = [jobs.folder() / f"ResNet50_w{workers}.out" for workers in plan.workers]
else:
    files = recorded.laptop()
    print("Your own runs are not done yet. From here on you see recorded ones:")
    print(*(file.name for file in files))

# %% [markdown]
# ## Read the log
#
# This is the `.out` file of the first job:

# %%
print(files[0].read_text())

# %% [markdown]
# Each epoch's line begins with its number of steps. Then come the epoch time, in whole seconds, and the time per step.
# In `12/12 - 9s - 760ms/step`, the milliseconds are more precise: 12 x 760 ms is 9.12 s, whereas 9 s may be anything
# from 8.5 s to 9.5 s. If a step takes longer than a second, the epoch time is more precise: in `12/12 - 25s - 2s/step`,
# 12 x 2 s may be anything from 18 s to 30 s.
#
# **By hand:** how many seconds does a *steady* epoch take on 1 worker, on average? Think about which epochs count.
# (`first` contains what the kit reads from the same log; the check compares your number with it.)

# %% labs={"id": "resnet50.4"}
first = results.log.read(files[0])[0]
### BEGIN SOLUTION
epoch_1 = fmean(epoch.seconds for epoch in first.repeats[0][1:])
### END SOLUTION
check("resnet50.4", epoch_1, first)

# %% [markdown]
# ## The speedup of each round
#
# Write a function that takes two lists of equal length: the seconds of one epoch on 1 worker, one number for each
# round, and those on p workers. It returns a list with the speedup in each round.


# %% labs={"id": "resnet50.5"}
def round_speedups(seconds_1, seconds_p):
    """A list with the speedup within each round."""
    ### BEGIN SOLUTION
    return [one / p for one, p in zip(seconds_1, seconds_p)]
    ### END SOLUTION


check("resnet50.5", round_speedups)

# %% [markdown]
# ## How certain is it?
#
# Six rounds give six speedups; another six would give others. So you report the mean with a **95 % interval**: in 95 of
# 100 studies, an interval that is computed in this way contains the true value. For n speedups:
#
# 1. Take their logarithms: twice as fast and half as fast are then equally far from 1.
# 2. The **standard error** of the mean of the logarithms is their standard deviation divided by $\sqrt n$. (`stdev`
#    divides by n - 1.)
# 3. The ends are this mean minus and plus t standard errors. **Student's t** allows for a spread that is itself
#    estimated from few rounds. For n - 1 degrees of freedom it is `stats.t.ppf(0.975, n - 1)`: 2.57 for six rounds,
#    4.30 for three, and 1.96 for very many.
# 4. Take `exp` of the mean and of both ends: these are speedups again. (This assumes that one round does not influence
#    the next.)
#
# Write `interval`: it returns the mean (this one is called *geometric*) and the two ends.


# %% labs={"id": "resnet50.6"}
from math import exp, log, sqrt
from statistics import stdev

from scipy import stats


def interval(speedups):
    """(geometric mean, lower end, upper end) of the 95 % interval."""
    ### BEGIN SOLUTION
    logs = [log(speedup) for speedup in speedups]
    margin = stats.t.ppf(0.975, len(logs) - 1) * stdev(logs) / sqrt(len(logs))
    return exp(fmean(logs)), exp(fmean(logs) - margin), exp(fmean(logs) + margin)
    ### END SOLUTION


check("resnet50.6", interval)

# %% [markdown]
# Is it really 95 of 100? Here are 1000 **simulated** studies of six rounds each, with a true speedup of 1.6.
# **Predict:** how many of your 1000 intervals contain it?

# %% labs={"id": "resnet50.7"}
### BEGIN SOLUTION
intervals_that_hold = 950
### END SOLUTION
predict("resnet50.7", intervals_that_hold)

# %%
import numpy as np

studies = 1.6 * np.exp(np.random.default_rng(0).normal(0, 0.05, (1000, 6)))
if answered("resnet50.6"):
    from lessons.resnet50_scaling import pictures

    intervals = [interval(speedups) for speedups in studies]
    plots.show(pictures.coverage(intervals, true=1.6))
    hold = [low <= 1.6 <= high for _, low, high in intervals]
    outcome("resnet50.7", sum(hold), how="counted")
    logs = np.log(studies)
    narrow = np.abs(logs.mean(1) - log(1.6)) <= 1.96 * logs.std(1, ddof=1) / sqrt(6)
    print(f"Student's t: {sum(hold)} of 1000 intervals contain 1.6; with 1.96 in its place: {narrow.sum()}")

# %% [markdown]
# With six rounds, the factor 1.96 promises more than it delivers.
#
# ## Your study
#
# `labs` takes the times from the run records, which contain every step, and computes such intervals. Those for seconds
# and for images per second are valid only for the *minutes in which they were measured*: an hour later, the machine may
# be faster or slower.

# %%
runs = results.load([file.with_suffix(".json") for file in files])
tables.scaling(runs)
how = "measured" if own else "recorded"
one, two = (next(run for run in runs if run.workers == n) for n in (1, 2))
outcome("resnet50.1", two.speedup.value, two.speedup.interval, how=how)

# %% [markdown]
# Which claim can you make about *your own* runs: 2 workers are `"faster"`, they are `"slower"`, or you `"can't tell"`?
# The interval decides.

# %% labs={"id": "resnet50.8"}
from lessons.asked import question

low, high = two.speedup.interval or (0, 2)  # without an interval the speedup may be anything
### BEGIN SOLUTION
sentence = "faster" if low > 1 else "slower" if high < 1 else "can't tell"
### END SOLUTION
if check("resnet50.8", sentence, runs):
    print(question(two.speedup.value, two.speedup.interval))

# %% [markdown]
# One worker is a fair baseline: `MirroredStrategy` costs it almost nothing. (On a 2-core machine, a step with it took
# 1.006 (0.989 to 1.021) times the processor time of a step without it.)
#
# Now look at the rounds. On the left are the epoch times, which drift with the speed of your machine. On the right is
# the speedup within each round. A round in which other programs took over 20 % of the cores does not count. If fewer
# than three others remain, all count, and a note says so.

# %%
from labs.results import metrics

if one.rounds and two.rounds:
    plots.show(plots.rounds(two, one))
    if answered("resnet50.5"):
        counted, _ = metrics.undisturbed_rounds(two, one)
        seconds = ([run.rounds[n] / metrics.epoch_images(run)[0] for n in counted] for run in (one, two))  # per image
        speedups = round_speedups(*seconds)
        print("your function on the rounds that count:", *(f"{speedup:.2f}" for speedup in speedups))
        if answered("resnet50.6"):
            print("your interval:", *(f"{number:.6f}" for number in interval(speedups)))
            print("the kit's:    ", *(f"{number:.6f}" for number in (two.speedup.value, *two.speedup.interval)))
else:
    print("These recorded runs came one after the other, so they have no rounds: yours will.")

# %% [markdown]
# The interval comes from the spread of these ratios. What slows down a whole round does not change its ratio. What
# comes and goes within a round changes it, and the interval gets wider.
#
# ## Every step
#
# The record keeps each step's time, too. Half of the steps on 1 worker take longer than their median. With 2 workers,
# each still processes the same number of images per step; the faster one then waits for the other. **Predict:** what
# share of the steps on 2 workers takes longer than the median on 1 worker?

# %% labs={"id": "resnet50.9"}
### BEGIN SOLUTION
longer_expected = 0.9
### END SOLUTION
predict("resnet50.9", longer_expected)

# %%
plots.show(plots.steps(one, two))

# %% [markdown]
# *On the left*: the steps in chronological order. During the first step, TensorFlow traces the program, which is why
# the first epoch is a warm-up. Look for isolated slow steps (**jitter**), and for whole rounds in which both runs are
# slower.
#
# *On the right*: the share of the steady steps that took at most the time on the horizontal axis. A steep curve means
# that all steps take nearly the same time; a long upper tail is jitter. The median is where a curve crosses 0.5. (If
# the workers only waited for each other, about 3/4 of the steps on 2 workers (1 - 1/2 x 1/2) would lie above the median
# of 1 worker; a larger share has other causes, too.)

# %%
from labs.results import steps

middle = steps.quantile(*steps.distribution(one))
outcome("resnet50.9", np.mean(steps.distribution(two)[0] > middle), how=how)

# %% [markdown]
# ## T6: the three plots
#
# Draw one `figure` with three plots side by side: the epoch time, the images per second and the speedup of your own
# runs, each against the number of workers. (Recorded runs are not accepted.) `runs` contains one run for each line of
# the table above; its values are `run.workers`, `run.epoch_seconds.value`, `run.images_per_second.value` and
# `run.speedup.value`. The axes must say in words what they show, with a unit where there is one, such as "seconds per
# epoch". Write these lines in place of `figure = ...`, then draw on the three axes:
#
# ```
# figure = Figure(figsize=(12, 3.2), layout="constrained")
# epoch_time, rate, gain = figure.subplots(1, 3)
# workers = [run.workers for run in runs]
# ```

# %% labs={"id": "T6"}
from matplotlib.figure import Figure

### BEGIN SOLUTION
### GIVEN: figure = ...  # your code here
figure = Figure(figsize=(12, 3.2), layout="constrained")
epoch_time, rate, gain = figure.subplots(1, 3)
workers = [run.workers for run in runs]
epoch_time.plot(workers, [run.epoch_seconds.value for run in runs], "o-")
rate.plot(workers, [run.images_per_second.value for run in runs], "o-")
gain.plot(workers, [run.speedup.value for run in runs], "o-")
labels = ("seconds per epoch", "images per second", "speedup (times)")
for axis, label in zip((epoch_time, rate, gain), labels):
    axis.set(xlabel=f"workers (one worker: one {unit})", ylabel=label, ylim=(0, None), xticks=workers)
### END SOLUTION
if check("T6", figure, runs):
    figure.alt = "Your plots of epoch time, images per second and speedup over the number of workers."
    plots.show(figure)

# %% [markdown]
# The kit's own plot adds the intervals and the ideal line:

# %%
plots.show(plots.scaling(runs))

# %% [markdown]
# ## Why is it below the ideal?
#
# Compare whole steps that differ in only *one* thing. Four kinds of step take turns, with the same number of images per
# worker:
#
# | kind of step | what is in it |
# |---|---|
# | **alone** | one worker trains while the other one is idle; the batch is already in memory |
# | **together** | two independent training runs side by side, one on each core or GPU |
# | **exchange** | one training run on both, with MirroredStrategy |
# | **input** | like *exchange*, but each batch comes from the input pipeline |

# %%
from labs.measure import breakdown

apart = None  # with a single GPU, there is nothing to compare
if len(devices.gpus()) != 1:
    sizes = {"local_batch": plan.local_batch, "image_size": plan.image_size}
    apart = breakdown.measure(plan.models[0], strategy="mirrored", name="side_by_side", **sizes)

# %%
steps_of = {"alone": 0.8, "together": 0.9, "exchange": 1.0, "input": 1.0}  # examples, in case nothing was measured
if apart:
    rounds = breakdown.means(apart)  # {kind: seconds of a step in each round}
    rows = [{"round": number, **dict(zip(rounds, row))} for number, row in enumerate(zip(*rounds.values()), 1)]
    tables.show(rows, headers={kind: f"{kind} (s per step)" for kind in rounds})
    steps_of = {kind: fmean(seconds) for kind, seconds in rounds.items()}
print({kind: float(f"{seconds:.4g}") for kind, seconds in steps_of.items()}, "seconds per step")

# %% [markdown]
# The differences between one kind of step and the previous one are the parts of a step. Within a round, take *together*
# minus *alone*: this is what **sharing the machine** costs.

# %%
if apart:
    sharing = [together - alone for alone, together in zip(rounds["alone"], rounds["together"])]
    mean, margin = fmean(sharing), stats.t.ppf(0.975, len(sharing) - 1) * stdev(sharing) / sqrt(len(sharing))
    print("in this cell:", *(f"{1e3 * seconds:.2f}" for seconds in (mean, mean - margin, mean + margin)), "ms")
    mean, ends = breakdown.parts(apart)["sharing the machine"]
    print("by labs:     ", *(f"{1e3 * seconds:.2f}" for seconds in (mean, *ends)), "ms")

# %%
if apart:
    found = breakdown.parts(apart)
    shown = [{"part": part, "ms": 1e3 * s, "low": 1e3 * a, "high": 1e3 * b} for part, (s, (a, b)) in found.items()]
    headers = {"ms": "ms per step (measured)", "low": "95 % interval in these minutes, from", "high": "to"}
    tables.show(shown, headers=headers)
    print(*(f"Note: {note}." for note in apart["notes"]), sep="\n")

# %% [markdown]
# *Computation* is the step of one worker alone. If the interval of a part contains 0, you cannot say that this part
# costs anything; if it lies below 0, measure again. Two training runs that exchange nothing may still slow each other
# down, because they share the memory and part of the cache.
#
# `steps_of` contains the mean time of each kind of step, in seconds. **Compute** the speedup of the two independent
# training runs: divide the number of images that both together process per second by the number that one alone
# processes per second. In a step, each worker processes one batch. This estimates what the speedup would be if the
# exchange cost nothing. (Your speedup was measured in other minutes, so it may even be larger.)

# %% labs={"id": "resnet50.10"}
### BEGIN SOLUTION
unconnected = 2 * steps_of["alone"] / steps_of["together"]
### END SOLUTION
if check("resnet50.10", unconnected, steps_of) and float(unconnected) > 2:
    print(question(float(unconnected), None))

# %% [markdown]
# Two more times, each measured separately: preparing a batch for both workers, and an all-reduce of the whole gradient.

# %%
if apart:
    reading, reducing = fmean(apart["pipeline_seconds"]), fmean(apart["all_reduce_seconds"])
    values = {
        "a step of both workers, with exchange and input": steps_of["input"],
        "the pipeline alone, for a batch of both workers": reading,
        f"one all-reduce alone, of {apart['gradient_bytes'] / 1e6:.3g} MB": reducing,
    }
    tables.show([{"what": what, "ms": 1e3 * seconds} for what, seconds in values.items()], ("what", "ms"))

# %% [markdown]
# The pipeline prepares the next batch during the current step, so it costs little as long as it is faster than a step.
# Compare the all-reduce with "exchange and waiting" in the table before. If the latter is longer, the rest is waiting,
# and work that `MirroredStrategy` adds: this measurement cannot tell the two apart. If it is shorter, part of the
# all-reduce ran during the backward pass.
#
# Why is the speedup below the number of workers?
#
# - **a**: after each epoch, worker 0 has to collect the parameters of all the others
# - **b**: the larger global batch gives each worker more to compute in a step
# - **c**: in each step, the workers share the machine, sum their gradients and wait
# - **d**: TensorFlow has to trace the whole program again for each of the workers

# %% labs={"id": "resnet50.11"}
### BEGIN SOLUTION
why = "c"
### END SOLUTION
check("resnet50.11", why)

# %% [markdown]
# ## Do they learn the same?
#
# Speed is worth nothing if the network learns less.

# %%
plots.show(plots.learning(runs))
gain = two.final_accuracy.value - one.final_accuracy.value
outcome("resnet50.2", "equal" if abs(gain) < 0.01 else "higher" if gain > 0 else "lower", how=how)

# %% [markdown]
# Both runs have the same number of epochs and the same images. But how many times are the weights updated in one epoch,
# on 1 worker and on 2?

# %% labs={"id": "resnet50.12"}
### BEGIN SOLUTION
updates_1, updates_2 = one.steps, two.steps
### END SOLUTION
check("resnet50.12", updates_1, updates_2, runs)

# %% [markdown]
# A few epochs of a single run for each number of workers say little about learning: another seed would give different
# curves.
#
# ## Optional: how much of it is waiting?
#
# The dashed curve in the picture of the steps assumes that each of two workers takes steps like those of a single one,
# independently of the other. A step then lasts as long as the *slower* of the two. So the curve shows the effect of
# waiting alone. You compute its mean, using two functions.
#
# **The usual step:** `epochs` contains one list for each epoch, with the times of its steps in seconds. Return the
# *median* of all the steps that count, taken together.


# %% labs={"id": "resnet50.13"}
def usual_step(epochs):
    """Median of the seconds of the steady steps. epochs: a list of lists."""
    ### BEGIN SOLUTION
    return median(step for epoch in epochs[1:] for step in epoch)
    ### END SOLUTION


check("resnet50.13", usual_step)

# %% [markdown]
# **The slower of two:** two workers each draw one of these steps, independently; all steps are equally likely. Both are
# done when the slower one is. How long does that take on average, over all pairs? (Both may draw the same step, so 3
# steps make 9 pairs.)


# %% labs={"id": "resnet50.14"}
def slower_of_two(steps):
    """Mean seconds of the slower of two steps, over all pairs. steps: seconds of the steps of one worker."""
    ### BEGIN SOLUTION
    return fmean(max(one, other) for one in steps for other in steps)
    ### END SOLUTION


check("resnet50.14", slower_of_two)

# %%
if answered("resnet50.13", "resnet50.14"):
    of_1, of_2 = ([epoch.step_seconds for epoch in run.repeats[0]] for run in (one, two))
    waiting = fmean(slower_of_two(epoch) for epoch in of_1[1:])
    shown = [("one worker", usual_step(of_1), fmean(fmean(epoch) for epoch in of_1[1:]))]
    shown += [("the slower of two such steps", "", waiting)]
    shown += [(f"{two.workers} workers", usual_step(of_2), fmean(fmean(epoch) for epoch in of_2[1:]))]
    keys = ("step", "usual (s)", "mean (s)")
    tables.show([dict(zip(keys, row)) for row in shown], keys)

# %% [markdown]
# From the first line to the second, the mean step gets longer because of waiting. From the second to the third, it gets
# longer because of everything else: the exchange, and sharing one machine.
#
# Next: `06_a_job_for_slurm`.
