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
# **Time: 75 minutes, including 8 minutes of computing on 2 cores.** Two optional parts at the end take about 20 minutes more.
#
# **Paths:** *an afternoon* (its last notebook), *the practical* (next: `06_a_job_for_slurm`), *everything*.
#
# You train ResNet50V2 on 1 and 2 workers (and on more, if you have them) with a script that you complete yourself. You
# compute an epoch time from your own log, and write two functions: the speedup of each round, and the interval that
# shows how certain you can be. From the run records, `labs` computes the rest in the same way.
# Then you take a step apart to see what limits the speedup. You hand in task **T6**. Task **T5** follows in the second
# part, `06_a_job_for_slurm`, where you run the same training as a job on a cluster.

# %%
from statistics import fmean, median

from labs import devices, jobs, presets, recorded, results
from labs.checks import answered, check, outcome, predict
from labs.measure import breakdown
from labs.results import log, metrics
from labs.show import plots, tables
from lessons.asked import question

plan = presets.choose()
unit = "GPU" if devices.gpus() else "CPU core"
print(f"preset {plan.name}: {plan.images or 'all'} images of {plan.dataset}, {plan.local_batch} per worker and step,")
print(f"{plan.epochs} epochs, the first as warm-up. A worker is one {unit}; this machine has {devices.cores()} cores.")

# %% [markdown]
# ## Predict first
#
# Each worker gets the same number of images per step (**weak scaling**). With 2 workers, a step processes twice as many
# images, so an epoch has half as many steps. How many times as fast is an epoch with 2 workers? (2 is ideal, 1 is no
# gain, and less than 1 is a loss.)

# %% labs={"id": "resnet50.1"}
### BEGIN SOLUTION
speedup_expected = 1.6
### END SOLUTION
predict("resnet50.1", speedup_expected)

# %% [markdown]
# And how does the training accuracy of 2 workers after the same number of epochs compare with that of 1 worker: is it
# `"higher"`, `"equal"` (within one percentage point) or `"lower"`?

# %% labs={"id": "resnet50.2"}
### BEGIN SOLUTION
accuracy_expected = "lower"
### END SOLUTION
predict("resnet50.2", accuracy_expected)

# %% [markdown]
# ## The script
#
# Open `scripts/ResNet50.py` in the file browser on the left. It is the complete training script. You fill in four
# blanks:
#
# 1. the **strategy**, for the devices in `workers`,
# 2. the **learning rate**: 0.01 for one worker; it grows in proportion to the number of workers, which is `args.n_gpus`
#    (the **linear rule**),
# 3. the **network**: `keras.applications.ResNet50V2` with its top layer, without pretrained weights, for
#    `len(dataset.classes)` classes and images with sides of `args.image_size` pixels and three colour channels,
# 4. the **training**: `model.fit(train, ...)` with `epochs=args.epochs`, `verbose=2` and `callbacks=[recorder]`.
#
# The network's arguments that you need are `weights`, `classes` and `input_shape`.
#
# Save the file, then run the check. It runs your script in a separate process, with 1 and with 4 workers, on a few
# images, with a tiny network in place of ResNet50V2, and examines what happens.

# %% labs={"id": "resnet50.3"}
script = "scripts/ResNet50.py"
ready = check("resnet50.3", script)

# %% [markdown]
# ## Run it
#
# You start one job for each number of workers and measure each of them several times: every epoch is one measurement. A
# single measurement cannot tell you how much the next one would differ.
#
# The speed of a machine drifts: another program starts, or a laptop gets warm. If the jobs ran one after the other,
# they would differ for that reason alone. So they take **turns**: one trains for an epoch while the others are paused,
# and then the next one trains. One epoch of each job makes up a **round**. Whatever slows down a whole round slows down
# all the jobs equally. The first epoch of each job is a warm-up.
#
# The line below shows their progress. In the menu *Kernel*, *Interrupt Kernel* stops them and keeps the measurements
# made so far.
#
# Until the check above passes, this notebook continues with *recorded* runs from a machine with 2 cores.

# %%
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
# In a terminal, in the folder `notebooks`, this command starts a single training run on all images for 5 epochs, without
# turns (`--help` lists the options):
#
# ```
# uv run python scripts/ResNet50.py --n_gpus 2 --batch_size 128 > runs/my.out 2> runs/my.err
# ```
#
# ## Read the log
#
# This is the `.out` file of the first job, as Keras wrote it:

# %%
print(files[0].read_text())

# %% [markdown]
# Each epoch's line begins with its number of steps. Then come the epoch time, in whole seconds, and the time per step.
# Keras writes the time per step in one of three ways:
#
# - `12/12 - 9s - 760ms/step`: milliseconds, if a step takes less than a second,
# - `12/12 - 25s - 2s/step`: whole seconds, if it takes longer,
# - `12/12 - 0s - 850us/step`: microseconds, if it takes less than a millisecond.
#
# Milliseconds per step are more precise than whole seconds per epoch: 12 x 760 ms is 9.12 s, whereas 9 s may be
# anything from 8.5 s to 9.5 s. Whole seconds per step are the least precise of all: 12 x 2 s may be anything from 18 s
# to 30 s.
#
# **By hand:** how many seconds does a *steady* epoch take on 1 worker, on average? Think about which epochs count, and
# compute their mean from the lines above. (`first` contains what the kit reads from the same log; the check compares
# your number with it.)

# %% labs={"id": "resnet50.4"}
first = log.read(files[0])[0]
### BEGIN SOLUTION
epoch_1 = fmean(epoch.seconds for epoch in first.repeats[0][1:])
### END SOLUTION
check("resnet50.4", epoch_1, first)

# %% [markdown]
# ## The speedup of each round
#
# In notebook 01 you wrote functions for images per second, speedup and efficiency; below, `labs` computes these for
# you. Now write one more function. It takes two lists of equal length: the seconds of one epoch on 1 worker, one number
# for each round, and those on p workers. It returns a list with the speedup in each round. The check tests it on
# numbers from another machine. Below, a cell applies it to your own runs.


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
# Six rounds gave six speedups; another six would have given others. So you report the mean with a **95 % interval**:
# in 95 of 100 studies, an interval that is computed in this way holds the true value. For n speedups:
#
# 1. Take their logarithms, since the errors of ratios are relative: twice as fast and half as fast are equally far from
#    1.
# 2. The **standard error** of the mean of the logarithms is their standard deviation divided by $\sqrt n$. (`stdev`
#    divides by n - 1.)
# 3. Go from this mean to both sides, by t standard errors. **Student's t** for n - 1 degrees of freedom is
#    `stats.t.ppf(0.975, n - 1)`: 2.57 for six rounds, 4.30 for three.
# 4. The mean and both ends are logarithms still: `exp` makes speedups of them.
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
    reach = stats.t.ppf(0.975, len(logs) - 1) * stdev(logs) / sqrt(len(logs))
    return exp(fmean(logs)), exp(fmean(logs) - reach), exp(fmean(logs) + reach)
    ### END SOLUTION


check("resnet50.6", interval)

# %% [markdown]
# Is it really 95 of 100? Here are 1000 **simulated** studies of six rounds each. In all of them, the true speedup is
# 1.6. **Predict:** how many of your 1000 intervals hold it?

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
    print(f"Student's t: {sum(hold)} of 1000 hold 1.6; with 1.96 in its place: {narrow.sum()} of 1000")

# %% [markdown]
# The factor 1.96 is for very many rounds. With six, it promises more than it keeps, and with three it would hold the true
# value in only about 81 of 100 studies.
#
# ## Your study
#
# `labs` takes the times from the run records, which contain every step, and computes such intervals. (To see the same
# table in a terminal, run `uv run labs results runs` in the folder `notebooks`.) The intervals for seconds and for images
# per second are valid only for the *minutes in which they were measured*: an hour later, the machine may be faster or
# slower.

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
low, high = two.speedup.interval or (0, 2)  # without an interval the speedup may be anything
### BEGIN SOLUTION
sentence = "faster" if low > 1 else "slower" if high < 1 else "can't tell"
### END SOLUTION
check("resnet50.8", sentence, runs)
if answered("resnet50.8"):
    print(question(two.speedup.value, two.speedup.interval))

# %% [markdown]
# (The section *Why is it below the ideal?* looks for the reason. With one worker, `MirroredStrategy` costs almost
# nothing, so one worker is a fair baseline: on a 2-core machine, a step took 1.006 times the processor time, 95 %
# interval 0.989 to 1.021.)
#
# Now look at the rounds themselves. On the left are the epoch times, which drift with the speed of your machine. On the
# right is the speedup within each round. A round in which other programs took over 20 % of the cores does not
# count, as long as three others remain; the table above says in its column "rounds" how many count.

# %%
if one.rounds and two.rounds:
    plots.show(plots.rounds(two, one))
    if answered("resnet50.5"):
        counted, _ = metrics.quiet_rounds(two, one)
        seconds = ([run.rounds[n] / metrics.epoch_images(run)[0] for n in counted] for run in (one, two))  # per image
        speedups = round_speedups(*seconds)
        print("your function on the rounds that count:", *(f"{speedup:.2f}" for speedup in speedups))
        if answered("resnet50.6"):
            print("your interval:", *(f"{number:.6f}" for number in interval(speedups)))
            print("the kit's:    ", *(f"{number:.6f}" for number in (two.speedup.value, *two.speedup.interval)))
else:
    print("These recorded runs came one after the other, so they have no rounds: yours will.")

# %% [markdown]
# The interval comes from the spread of these ratios. If something slows down a whole round, the ratio of that round
# stays the same. If something comes and goes within a round, the ratios vary more, and the interval gets wider. That is
# not a flaw in the interval: it tells you how good the measurement was.
#
# ## Every step
#
# An epoch is made up of steps, and the record keeps the time of each one. With 2 workers, each of them still processes
# as many images per step as a single worker; the faster one then waits for the other. **Predict:** divide the median
# step time on 2 workers by that on 1 worker. What do you expect?

# %% labs={"id": "resnet50.9"}
### BEGIN SOLUTION
step_ratio_expected = 1.2
### END SOLUTION
predict("resnet50.9", step_ratio_expected)

# %%
plots.show(plots.steps(one, two))

# %% [markdown]
# *On the left*: the steps in chronological order. During the first step, TensorFlow traces the program, which is why
# the first epoch is a warm-up. Look for a step that is slow in every epoch (the first one also starts the input
# pipeline), for isolated slow steps (**jitter**), and for whole rounds in which both runs are slower.
#
# *On the right*: the share of the steady steps that took at most the time on the horizontal axis. A steep curve means
# that all steps take nearly the same time; a long upper tail is jitter. The median is where a curve crosses 0.5: read
# off the two medians and subtract them to see what the second worker costs in each step. (The dashed curve belongs to
# the second optional part at the end.)

# %%
from labs.results import steps

alone, both = (steps.quantile(*steps.distribution(run)) for run in (one, two))
outcome("resnet50.9", both / alone, how=how)

# %% [markdown]
# ## T6: the three plots
#
# Draw one `figure` with three plots side by side. They show the epoch time, the images per second and the speedup of
# your own runs, each against the number of workers. `runs` contains one run for each line of the table above; its values
# are `run.workers`, `run.epoch_seconds.value`, `run.images_per_second.value` and `run.speedup.value`. You may draw
# lines, points or bars, but recorded runs are not accepted. Every plot must include every number of workers in your
# `runs`, and the axes must say in words what they show, with a unit where there is one, such as "seconds per epoch".
# These lines replace `figure = ...`; you draw on the three axes:
#
# ```
# figure = Figure(figsize=(12, 3.2), layout="constrained")
# epoch_time, rate, gain = figure.subplots(1, 3)
# workers = [run.workers for run in runs]
# ```

# %% labs={"id": "T6"}
from matplotlib.figure import Figure

### BEGIN SOLUTION
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
# The kit's own plot of the same runs adds the intervals and the ideal line; its y axes start at 0:

# %%
plots.show(plots.scaling(runs))

# %% [markdown]
# ## Why is it below the ideal?
#
# Do not guess: take a step apart, by comparing whole steps that differ in only *one* thing. Four kinds of step take
# turns, round after round, with the same number of images per worker:
#
# | kind of step | what is in it |
# |---|---|
# | **alone** | one worker trains while the other one is idle; the batch is already in memory |
# | **together** | two independent training runs side by side, one on each core or GPU |
# | **exchange** | one training run on both, with MirroredStrategy: gradients are summed, and the faster worker waits |
# | **input** | like *exchange*, but each batch comes from the input pipeline |

# %%
apart = None
if devices.has("two devices"):
    name = "SmallCNN" if plan.name == "test" else "ResNet50V2"  # the preset test takes a smaller network here
    sizes = {"local_batch": plan.local_batch, "image_size": plan.image_size}
    apart = breakdown.measure(name, strategy="mirrored", name="side_by_side", **sizes)

# %%
steps_of = {"alone": 0.8, "together": 0.9, "exchange": 1.0, "input": 1.0}  # an example, for where nothing was measured
if apart:
    found = breakdown.parts(apart)
    steps_of = {kind: sum(seconds) / len(seconds) for kind, seconds in breakdown.means(apart).items()}
    shown = [{"part": part, "ms": 1e3 * s, "low": 1e3 * a, "high": 1e3 * b} for part, (s, (a, b)) in found.items()]
    headers = {"ms": "ms per step (measured)", "low": "95 % interval in these minutes, from", "high": "to"}
    tables.show(shown, ("part", *headers), headers)
    print({kind: float(f"{seconds:.4g}") for kind, seconds in steps_of.items()}, "seconds per step")
    print(*(f"Mind: {note}." for note in apart["notes"]), sep="\n")

# %% [markdown]
# The first line is pure computation: the step of one worker alone. Each line below it is the *difference* between one
# kind of step and the previous kind. If the interval of a part contains 0, you cannot say that this part costs
# anything; if it lies below 0, measure again. Rounds in which other programs ran are left out. Look at **sharing the
# machine**: two training runs that exchange nothing may still slow each other down, because they share the memory and
# part of the cache. Even a faster exchange cannot win that time back.
#
# `steps_of` contains the time of each kind of step, in seconds. **Compute** the speedup of the two independent training
# runs: divide the number of images that both together process per second by the number that one alone processes per
# second. In a step, each worker processes one batch. This speedup is an estimate of what you would get if the exchange
# cost nothing.

# %% labs={"id": "resnet50.10"}
### BEGIN SOLUTION
unconnected = 2 * steps_of["alone"] / steps_of["together"]
### END SOLUTION
if check("resnet50.10", unconnected, steps_of) and float(unconnected) > 2:
    print(question(float(unconnected), None))

# %% [markdown]
# Two more times, each measured separately: how long the pipeline takes to prepare a batch for both workers, and how
# long an all-reduce of the whole gradient takes:

# %%
if apart:
    reading, reducing = (sum(apart[key]) / len(apart[key]) for key in ("pipeline_seconds", "all_reduce_seconds"))
    values = {
        "a step of both workers, with exchange and input": steps_of["input"],
        "the pipeline alone, for a batch of both workers": reading,
        f"one all-reduce alone, of {apart['gradient_bytes'] / 1e6:.3g} MB": reducing,
    }
    tables.show([{"what": what, "ms": 1e3 * seconds} for what, seconds in values.items()], ("what", "ms"))

# %% [markdown]
# The pipeline prepares the next batch during the current step, so it costs little as long as it is faster than a step.
# Compare the all-reduce row with the row "exchange and waiting" of the table before. If the latter is longer, waiting
# and the rest of `MirroredStrategy` take the difference; if it is shorter, part of the all-reduce ran during the
# backward pass.
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
# Speed is worth nothing if the network learns less. Here are the loss and accuracy after each epoch:

# %%
plots.show(plots.learning(runs))
gain = two.final_accuracy.value - one.final_accuracy.value
outcome("resnet50.2", "equal" if abs(gain) < 0.01 else "higher" if gain > 0 else "lower", how=how)

# %% [markdown]
# "Twice as fast and just as good" is a claim that needs checking. Both runs have the same number of epochs and the same
# images. But how many times are the weights updated in one epoch, on 1 worker and on 2?

# %% labs={"id": "resnet50.12"}
### BEGIN SOLUTION
updates_1, updates_2 = one.steps, two.steps
### END SOLUTION
check("resnet50.12", updates_1, updates_2, runs)

# %% [markdown]
# A few epochs of a single run for each number of workers say little about learning: another seed would give different
# curves.
#
# ## Optional: more workers than cores
#
# What do you gain from 4 workers on this machine? If it has fewer than 4 cores, the workers share them. The run is then
# marked **oversubscribed**, here and in every table and plot. Such a run shows that the program works with 4 workers;
# it says nothing about speed. (The preset `test` skips this.)

# %%
if answered("resnet50.8") and 4 not in plan.workers and plan.name != "test":
    crowd = jobs.Turns()
    with crowd:
        for workers in (1, 4):
            asked = ["--n_gpus", workers, "--batch_size", workers * plan.local_batch, *plan.arguments(), "--epochs", 4]
            crowd.start(script, *asked, name=f"ResNet50_w{workers}_crowded")
    if crowd.state == "finished":
        tables.scaling(results.load([job.record for job in crowd.jobs]))

# %% [markdown]
# ## Optional: how much of it is waiting?
#
# The dashed curve in the picture of the steps is computed. It assumes that each of two workers takes steps like those
# of a single one, independently of the other. A step then lasts as long as the *slower* of the two. So it shows the
# effect of waiting alone. Here you compute its mean, using two functions.
#
# **The usual step:** `epochs` contains one list for each epoch, with the times of its steps in seconds. Return the
# *median* of all the steps that count, taken together. (Half of the steps are shorter than the median; a few very slow
# ones hardly change it.)


# %% labs={"id": "resnet50.13"}
def usual_step(epochs):
    """Median of the seconds of the steady steps. epochs: a list of lists."""
    ### BEGIN SOLUTION
    return median(step for epoch in epochs[1:] for step in epoch)
    ### END SOLUTION


check("resnet50.13", usual_step)

# %% [markdown]
# **The slower of two:** two workers each draw one of these steps. They draw independently; all steps are equally
# likely. Both are done when the slower one is. How long does that take on average, over all pairs? (Both may draw the
# same step, so 3 steps make 9 pairs.)


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
# From the first line to the second, the mean step gets longer by the amount that waiting accounts for. From the
# second to the third, it gets longer because of everything else: the exchange, and the fact that two workers share
# one machine.
#
# ## Summary
#
# - Count only steady epochs. Measure several rounds, with the runs taking turns, and report each ratio with its
#   interval.
# - Weak scaling keeps the batch per worker fixed, so there are fewer updates in the same number of epochs.
# - Speed without accuracy is half a result.
# - Compare whole steps that differ in only one thing: then you know what each part costs.
#
# Next: `06_a_job_for_slurm`.
