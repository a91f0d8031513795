# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Where does a step go?
#
# **Time: 30 minutes, including 8 minutes of computing on 2 cores.**
#
# **Paths:** only *everything* contains this notebook.
#
# This notebook is **optional**: you hand nothing in, and no other notebook depends on it. In notebook 10, you found
# out whether two networks scale equally well. Here you find out why they do or do not. You take a step apart, watch the
# backward pass hide messages, predict step times and compare them with measured ones, and try out a machine with 4096
# workers.

# %%
from labs import devices, jobs, presets, recorded
from labs.checks import answered, check, outcome, predict
from labs.measure import breakdown
from lessons import counts
from labs.results import intervals
from labs.results import steps as of_steps
from labs.show import plots, tables, widgets
from lessons import drawing, timeline, timelines
from lessons.where_a_step_goes import experiments, pictures, what_if
from lessons.where_a_step_goes.fitted import measured_steps

from statistics import mean, median

plan = presets.choose()
quick = plan.name == "test"
small, large = "ResNet50V2", "ResNet152V2"
launcher = "horovodrun" if devices.oversubscribed(2) else "mpiexec"  # MPI wants a core for each rank
print(f"preset {plan.name}: {plan.local_batch} images per worker and step; {devices.cores()} cores")

# %% [markdown]
# ## Waiting
#
# A run record contains the time of every step. With 2 workers, a step lasts until the *slower* worker has finished.
# **Predict** for which network this waiting lengthens the step more, as a share of the step: `"ResNet50V2"`,
# `"ResNet152V2"`, or `"equal"` (to within 1 % of a step).

# %% labs={"id": "step.1"}
### BEGIN SOLUTION
waits_more_expected = "ResNet50V2"
### END SOLUTION
predict("step.1", waits_more_expected)

# %% [markdown]
# The next cell uses your own runs from notebooks 05 and 09 if their batch and image sizes are those of this notebook.
# Otherwise it uses recorded runs.

# %%
runs, own = experiments.runs_of_two_networks(plan, (small, large))
print("your runs" if own else "recorded runs")
plots.show(plots.steps(*runs))

# %% [markdown]
# Both time axes are logarithmic: equal distances mean equal *ratios*, so you can compare the two networks by eye. The
# dashed curves are computed as in notebook 05: they show the slower of two steps that are drawn at random from the
# steps of one worker. The distance from the solid curve for 1 worker to the dashed curve is what **waiting** accounts
# for, assuming that the steps of two workers vary as much as those of one. The distance from the dashed curve to the
# solid curve for 2 workers is the rest: the exchange, sharing the machine, and any further variation. Here are the
# numbers for the median step:

# %%
shown = []
for name in (small, large):
    one, two = (next(run for run in runs if (run.model, run.workers) == (name, n)) for n in (1, 2))
    alone, both = (of_steps.quantile(*of_steps.distribution(run)) for run in (one, two))
    slower = of_steps.quantile(*of_steps.distribution(one, workers=2))
    row = {"network": name, "alone": alone, "two": both, "waiting": slower / alone - 1, "rest": both / slower - 1}
    shown.append(row)
headers = {"alone": "step on 1 worker (s)", "two": "on 2 workers (s)", "waiting": "waiting adds (share, computed)"}
tables.show(shown, tuple(shown[0]), headers | {"rest": "the rest adds (share)"})

# %%
more = shown[1]["waiting"] - shown[0]["waiting"]
outcome("step.1", "equal" if abs(more) < 0.01 else large if more > 0 else small, how="computed")

# %% [markdown]
# ## Four kinds of steps
#
# Now take a step apart. Timing parts inside a step would disturb it. Instead, you compare whole steps that differ in
# *one* thing. Two Horovod ranks run four kinds of steps in turn, round after round, with the same number of images per
# rank:
#
# | kind of step | what it contains |
# |---|---|
# | **alone** | one rank runs a step while the other is idle; the batch is already in memory |
# | **together** | both ranks run a step at the same time, without an exchange |
# | **exchange** | both ranks run a step at the same time and average their gradients |
# | **input** | the same as **exchange**, but each batch comes from the input pipeline |
#
# The measurement takes a few minutes. Read on meanwhile and write the next answer, but do not use the cores for anything
# else while it runs.

# %%
pair = ("SmallCNN",) if quick else (small, large)  # the preset test is for tests: one small network here
options = {"local_batch": plan.local_batch, "image_size": plan.image_size, "launcher": launcher}
short = {"rounds": 2, "steps": 1} if quick else {}
steps = {}
if devices.has("horovod", "two devices"):
    quarter = (plan.local_batch // 4,)
    steps = {name: breakdown.measure(name, further_batches=quarter, **options, **short) for name in pair}

# %% [markdown]
# Write a function that takes the times of the four kinds of steps, in seconds, and returns the four parts of a step.
# The parts add up to the time of the last kind of step.


# %% labs={"id": "step.2"}
def parts(alone, together, exchange, input):
    """Seconds of (computation, sharing the machine, exchange and waiting, input), from the four kinds of steps."""
    ### BEGIN SOLUTION
    return alone, together - alone, exchange - together, input - exchange
    ### END SOLUTION


check("step.2", parts)

# %%
if answered("step.2"):
    columns = ("network", *breakdown.PARTS)
    found = [parts(*map(mean, breakdown.means(each).values())) for each in steps.values()]
    in_ms = [[1e3 * seconds for seconds in each] for each in found]
    tables.show([dict(zip(columns, (name, *each))) for name, each in zip(steps, in_ms)], columns)
    print("milliseconds per step, by your function")

# %%
if steps:
    plots.show(pictures.breakdown(steps.values()))

# %% [markdown]
# Each bar except *computation* shows a *difference* between two kinds of steps. If the whisker of a part crosses 0, the
# measurement cannot distinguish the part from 0.
#
# - **computation**: the forward pass, the backward pass and the update of one undisturbed worker.
# - **sharing the machine**: the time that is lost because both cores use the same memory and cache. The exchange is not
#   part of it, so a faster link would not help.
# - **exchange and waiting**: the time that averaging adds to the step.
# - **input**: the time that the input pipeline adds to the step.
#
# The parts add up to the time of the last kind of step because you computed them that way. The real test is a step that
# was measured separately: a step of a complete training run on 2 workers, from the runs above.

# %%
compared = experiments.whole_steps(steps, runs)
if compared:
    tables.show(compared, headers={"whole step (ms)": f"whole step (ms), {runs[0].kind}"})

# %% [markdown]
# If the last column is not 1, there is a **residual**, which the parts do not explain: Keras's loop and metrics, and the
# difference between the exchange in MirroredStrategy and in Horovod. The interval covers the noise of both measurements.
# But the machine may have been faster during one of the two, and the interval does not cover that: the kinds of steps
# took turns with each other, but not with the training run. If you used recorded runs, they come from another machine,
# and the residual shows mainly how the two machines differ.
#
# Some work does not appear in the bars above, because it does not lengthen the step. Here is that work, measured alone:

# %%
rows = [
    {
        "network": name,
        "batch": found["local_batch"],
        "read": 1e3 * mean(found["pipeline_seconds"]),
        "megabytes": found["gradient_bytes"] / 1e6,
        "reduce": 1e3 * mean(found["all_reduce_seconds"]),
    }
    for name, found in steps.items()
]
headers = {
    "read": "reading a batch alone (ms)",
    "megabytes": "gradient (MB)",
    "reduce": "one all-reduce of it, alone (ms)",
}
tables.show(rows, ("network", "batch", *headers), headers)

# %% [markdown]
# Compare the time for reading with *input*, and the time for the all-reduce with *exchange and waiting*. The next batch
# is read while the current one is processed, so reading need not lengthen a step. Is the all-reduce hidden in the same
# way?
#
# ## Overlap
#
# The backward pass works from the last layer to the first. The gradient of the last layer is ready first, so it can be
# sent while the others are still being computed. **Predict:** on 2 ranks, what share of the all-reduce time (0 to 1)
# falls within the backward pass?

# %% labs={"id": "step.3"}
### BEGIN SOLUTION
within_expected = 0.7
### END SOLUTION
predict("step.3", within_expected)

# %% [markdown]
# Horovod's timeline (notebook 20) shows when each rank announced each gradient, and when the gradients were averaged.
# Here you record the timelines of two short training runs on two ranks: one with the default settings, and one with
# **fusion** turned off, so that every tensor is sent as a separate message.

# %%
network, images = ("SmallCNN", 8) if quick else (small, 32)
sizes = ["--model", network, "--images", 16 * images, "--epochs", 1, "--batch_size", 2 * images]


def watched(name, **env):
    """The timeline of a run on 2 ranks with 8 steps."""
    file = (jobs.folder() / f"{name}_timeline.json").resolve()
    file.unlink(missing_ok=True)
    env |= {"HOROVOD_TIMELINE": str(file), "HOROVOD_CACHE_CAPACITY": "0"}
    jobs.run("-m", "lessons.horovod_training.experiment", *sizes, name=name, ranks=2, launcher=launcher, env=env)
    return timeline.read(file)


# %%
events, kind = {"fusion on": timeline.read(recorded.horovod_timeline())}, "recorded"
if devices.has("horovod", "two devices"):
    events = {"fusion on": watched("fused"), "fusion off": watched("not_fused", HOROVOD_FUSION_THRESHOLD="0")}
    kind = "measured"

# %%
plots.show(timelines.figure(events["fusion on"], kind=kind))

# %% [markdown]
# The backward pass ends when the last gradient is announced. Whatever is sent before that moment falls within the
# backward pass, and the rest comes after it. (The first step is left out because it includes TensorFlow's tracing.)

# %%
laps = {name: timeline.summary(found)[1:] for name, found in events.items()}
shown = []
for name, lap in laps.items():
    whole, within, after = (sum(row[f"{key}_seconds"] for row in lap) for key in ("allreduce", "within", "behind"))
    row = {"": name, "messages": mean(row["buffers"] for row in lap)}
    shown.append(row | {"ms": 1e3 * whole / len(lap), "after": 1e3 * after / len(lap), "share": within / whole})
headers = {"messages": "messages per step", "ms": "all-reduce (ms)", "after": "after the backward pass (ms)"}
tables.show(shown, tuple(shown[0]), headers | {"share": "share within the backward pass"})
outcome("step.3", shown[0]["share"], how=kind)

# %% [markdown]
# Rank 0 learns only after a delay that a gradient is ready, so the share within the backward pass is an upper bound.
# Even hidden messages are not always free: on CPU cores, the all-reduce slows down the backward pass that hides it. On
# GPUs, NCCL does the same to a lesser extent.
#
# What would happen with larger messages or a slower link? In the next picture, the gradients of ResNet50V2 fill
# **buckets**. A full bucket is sent as soon as the link is free. Find the bucket size that leaves the shortest exchange
# after the backward pass, first at 25 Gbit/s and then at 5 Gbit/s.

# %%
what_if.networks()  # counts both networks, which takes some seconds the first time
widgets.explore(pictures.overlap, bucket=list(pictures.BUCKETS), bandwidth=[5, 10, 25, 50, 100], latency=[5, 50, 200])

# %% [markdown]
# With small buckets, you pay the latency many times. A single large bucket is full only when the backward pass ends, so
# nothing hides it. The best bucket size lies in between and depends on the link and the network. PyTorch uses such
# buckets. Horovod checks every millisecond which gradients are ready, and fuses them into messages up to a size limit.
# The last bucket is always sent after the backward pass, because it contains the gradient of the first layer.
#
# Now return to the bar chart of the parts. "Exchange and waiting" is the difference between two kinds of steps. What
# does it show?
#
# - **a**: how long it takes to transmit the bytes of the gradient, and nothing else
# - **b**: how long the whole all-reduce takes, including its hidden parts
# - **c**: how much averaging lengthens the step, but not how much of this is due to bytes, to messages, or to waiting
#   for the slower rank
# - **d**: how long the slower rank computes

# %% labs={"id": "step.4"}
### BEGIN SOLUTION
what_it_says = "c"
### END SOLUTION
check("step.4", what_it_says)

# %% [markdown]
# A barrier is never free. The step lasts until the *slowest* worker has arrived, and with more workers, the slowest one
# is likely to be slower. If the workers' step times vary by 3 %, the slowest of many workers takes several per cent
# longer than the mean:

# %%
from lessons.step_model import slowest

rows = [{"workers": f"{n:,}", "slowest": slowest(n, 0.03)} for n in (1, 2, 4, 16, 64, 256, 1024, 4096)]
tables.show(rows, ("workers", "slowest"), {"slowest": "slowest step / mean step, if steps vary by 3 %"})

# %% [markdown]
# ## Predict, measure, explain the residual
#
# A cost model of a step fits on one line:
#
# $$ \text{step} = \text{computation}(\text{batch}) \times \frac{\text{slowest}}{\text{mean}} + \text{exchange that the
# backward pass does not hide.} $$
#
# The computation is a line over the batch size, fitted to measured steps of one worker. You measured eight
# configurations: 2 networks with 2 batch sizes each, on 1 and 2 workers. The fit uses five of them (the four on one
# worker and one on two workers) and then predicts the other three. Compare these predictions with the measurements:

# %%
every = [each for found in steps.values() for each in measured_steps(found)]
given = (pair[0], plan.local_batch)
held_out = [each for each in every if each.workers == 2 and (each.model, each.local_batch) != given]
fitted = experiments.fitted([each for each in every if each not in held_out])
shown, errors = [], []
for each in held_out if fitted else ():
    predicted, noise = fitted.step(each.model, each.workers, each.local_batch)
    took = intervals.mean(each.seconds)
    residual = took.value - predicted
    errors.append(residual / predicted)
    row = {"configuration": f"{each.model}, {each.workers} workers x {each.local_batch}"}
    row |= {"predicted [interval]": drawing.in_words(predicted, noise)}
    row |= {"measured [interval]": drawing.in_words(took.value, took.interval)}
    shown.append(row | {"residual": drawing.in_words(residual), "of the prediction": f"{errors[-1]:+.1%}"})
if shown:
    tables.show(shown)
    print(f"median of the relative errors: {median(map(abs, errors)):.1%}")

# %% [markdown]
# The intervals of the predictions contain only the noise of the steps that were fitted. Those of the measured times are
# valid only for the few minutes in which the steps were measured. Where the residual is larger than the intervals, the
# model is missing something. Look for candidates in the pictures above:
# sharing the machine costs time that does not depend on the bytes, the ranks wait for each other, and 514 tensors
# produce more messages than 174. Then look at the fitted parameters. The exchange was fitted to steps of two workers, so
# the fit cannot tell latency, bandwidth and overlap apart. For other numbers of workers, it assumes the bytes of a ring,
# 2 (K - 1) / K. If steps on two workers were not longer than on one, the exposed exchange is taken as 0.

# %%
full = experiments.fitted(every)
if full:
    rows = [
        {
            "network": name,
            "level": f"{line.level} at batch {line.centre:.4g}",
            "slope": str(line.slope),
            "exposed": str(full.exposed[name]),
        }
        for name, line in full.lines.items()
    ]
    headers = {"level": "computation [interval]", "slope": "for each further image", "exposed": "exposed exchange"}
    tables.show(rows, ("network", *headers), headers)
    print(f"standard deviation of a worker's steps / their mean: {full.spread}")

# %% [markdown]
# ## From what batch size on is the exchange hidden?
#
# A message of `size` bytes takes size / bandwidth seconds over a link that carries `bandwidth` bytes per second,
# whatever the batch size is. The backward pass gets longer with every image in the batch: it takes two thirds of the
# `image_seconds` that an image needs (the forward pass takes the other third). Write a function that returns the
# **threshold**: the batch size per worker at which the message and the backward pass take equally long. (The number
# need not be whole.) At this batch size and above, the backward pass *can* hide the message.


# %% labs={"id": "step.5"}
def threshold(size, bandwidth, image_seconds):
    """The batch size per worker at which the backward pass lasts as long as the message.

    size: bytes; bandwidth: bytes per second; image_seconds: of the forward and backward passes, for one image
    """
    ### BEGIN SOLUTION
    message = size / bandwidth
    return message / (2 / 3 * image_seconds)
    ### END SOLUTION


check("step.5", threshold)

# %% [markdown]
# The next cell calls your function with the step time of one worker from the runs above, and with the bandwidth that
# the all-reduces in the timeline reached:

# %%
if answered("step.5"):
    one = next(run for run in runs if (run.model, run.workers) == (small, 1))
    image_seconds = of_steps.quantile(*of_steps.distribution(one)) / one.configuration.global_batch
    last = timeline.summary(events["fusion on"])[-1]
    bandwidth = last["bytes"] / last["allreduce_seconds"]
    size = counts.of(small, image_size=plan.image_size, classes=10).gradient_bytes
    messages = {"float32": size, "float16": size / 2}
    rows = [
        {
            "gradients": name,
            "MB": size / 1e6,
            "ms": 1e3 * size / bandwidth,
            "threshold": threshold(size, bandwidth, image_seconds),
        }
        for name, size in messages.items()
    ]
    headers = {"MB": "message (MB)", "ms": "all-reduce (ms)", "threshold": "threshold (images per worker)"}
    tables.show(rows, ("gradients", *headers), headers)
    print(f"The backward pass takes {drawing.in_words(2 / 3 * image_seconds)} for each image.")

# %% [markdown]
# With half the batch per worker, the backward pass takes half as long, but the message takes as long as before. A batch
# size that was above the threshold may now be below it, and then the exchange lengthens the step. This happens in
# *strong* scaling, where more workers share one batch.
#
# If the message is half as large (gradients sent as float16), the threshold is half as large too. (Halving the number
# of layers would also halve the backward pass, and so leave the threshold roughly where it is.) If a worker computes
# twice as fast, the threshold doubles: the faster the GPUs, the harder it is to hide the exchange.
#
# The threshold is a best case, because it assumes that the entire backward pass can hide messages. In fact, the last
# bucket is never hidden.
#
# ## At each network's own largest batch
#
# So far, both networks have had the same batch size. With its own largest batch, each network spreads the cost of an
# exchange over more images. The search in T8 found how many images fit into memory. The fit above **predicts** the
# efficiency at these batch sizes, although they are far outside the range that it was fitted to:

# %%
largest = {name: experiments.largest_batch(name, plan.image_size, 2 * plan.local_batch) for name in steps}
shown = []
for name in steps if full else ():
    for what, batch in (("equal", plan.local_batch), ("its largest", largest[name])):
        value, (low, high) = full.efficiency(name, 2, batch)
        efficiency = f"{value:.3f} [{low:.3f}, {high:.3f}]"
        shown.append({"network": name, "batch": f"{batch:,} ({what})", "efficiency": efficiency})
tables.show(shown, ("network", "batch", "efficiency"), {"efficiency": "predicted efficiency [noise of the fit]"})

# %% [markdown]
# Now **measure** the efficiency. The next cell times steps of the kinds *alone* and *exchange*, with each network's
# own largest batch on each of the two ranks.

# %%
at_largest = {}
for name in steps:
    asked = options | {"local_batch": largest[name], "kinds": breakdown.EFFICIENCY, "name": f"largest_{name}"}
    try:
        at_largest[name] = breakdown.measure(name, **asked, steps=1, rounds=2 if quick else 3)
    except breakdown.BreakdownError as problem:  # what fits beside one rank need not fit beside two
        print(problem)

# %%
shown = []
for name in at_largest if full else ():
    for what, found in (("equal", steps[name]), ("its largest", at_largest[name])):
        predicted, _ = full.efficiency(name, 2, found["local_batch"])
        value, (low, high) = breakdown.efficiency(found)
        row = {"network": name, "batch": f"{found['local_batch']:,} ({what})", "predicted": predicted}
        shown.append(row | {"measured": f"{value:.3f} [{low:.3f}, {high:.3f}]"})
tables.show(shown, ("network", "batch", "predicted", "measured"), {"measured": "measured [95 % interval]"})

# %% [markdown]
# Read the table in two ways. First compare the rows of one network: how much does a larger batch gain? Then compare the
# two rows marked "its largest": is the order of the networks still the same? The fit does not include *sharing the
# machine*, whose cost grows with the batch. If the measured efficiency is below the predicted one, look for the
# reason there first.
#
# ## What if: 4096 workers
#
# Now use the same model for a machine that you do not have: nodes with 8 V100 GPUs each, connected by Ethernet.
# Everything here is **computed**, for images of 224x224 pixels, from the inputs in this table. It is arithmetic with
# stated assumptions: nothing was measured on such a machine.

# %%
rows = [{"input": name, "value": str(found), "source": found.source} for name, found in what_if.INPUTS.items()]
tables.show(rows, ("input", "value", "source"), {"value": "value [range]"})

# %% [markdown]
# Move one control at a time and look at both plots: the efficiencies and the shares of a step. A dotted curve means
# that the batch does not fit into the GPU's 16 GB of memory.

# %%
widgets.explore(
    pictures.scaling,
    network=list(what_if.NAMES),
    batch=[8, 16, 32, 64, 128, 256],
    bandwidth=[10, 25, 100, 400],
    latency=[2, 10, 30, 100],
    precision=["float32", "float16"],
    fusion=[0, 8, 128],
    accumulation=(1, 8),
)

# %% [markdown]
# The bandwidth between nodes is in Gbit/s, the latency in microseconds per message, and fusion in MiB (0 means that
# every tensor is sent as a separate message). Accumulation is the number of passes before each exchange. In float16, a
# GPU computes 2.71 times as fast as in float32 (measured for ResNet-50 by DLPerf, assumed for both networks).
#
# The curves show *central* values, but each efficiency also has a range: it comes from the ranges of the inputs. Both
# networks run on the same machine. Whatever is uncertain about it, such as the real speed of the links, shifts both
# curves together, so part of this uncertainty cancels in their ratio. Even with these assumptions, you know the order
# of the two only if the range of **their ratio** does not contain 1:

# %%
shown = []
for what, batches in (("equal", (64, 64)), ("its largest", (128, 64))):
    for workers in (8, 64, 512, 4096):
        found = what_if.order(workers, batches, bandwidth=10)
        cells = {key: f"{value:.3f} [{low:.3f}, {high:.3f}]" for key, (value, (low, high)) in found.items()}
        shown.append({"batch": f"{what}: {batches[0]} and {batches[1]}", "workers": f"{workers:,}", **cells})
print("computed efficiencies at 10 Gbit/s, with their ranges")
tables.show(shown, tuple(shown[0]), {"ratio": f"{large} / {small}"})

# %% [markdown]
# In the picture above, set the bandwidth to **10** Gbit/s. Give each network its own largest batch that is a power of
# two: **128** for ResNet50V2 and **64** for ResNet152V2. For each network, what is the smallest number of workers in
# the picture at which the central efficiency is below 0.8?
#
# Then look at **64** workers in the table. Which network has the higher efficiency if both have the same batch, and
# which if each has its own largest batch? Answer `"ResNet50V2"`, `"ResNet152V2"` or `"can't tell"` for each of the two
# cases.

# %% labs={"id": "step.6"}
### BEGIN SOLUTION
below_small = what_if.first_below(small, batch=128, bandwidth=10)
below_large = what_if.first_below(large, batch=64, bandwidth=10)
higher_at_equal = "can't tell"
higher_at_largest = "ResNet50V2"
### END SOLUTION
check("step.6", below_small, below_large, higher_at_equal, higher_at_largest)

# %% [markdown]
# How far can you trust such numbers? They are as good as their assumptions. A range contains the results that the
# ranges of the inputs allow. Nobody has shown that it contains what such a machine really does. What the model leaves
# out can be as large as what it computes: on one machine with 32 V100, four programs trained ResNet-50 with
# efficiencies from 0.82 to 0.94 (Oneflow-Inc/DLPerf, 2020). All four run one process per GPU. If one process drives
# several GPUs, the efficiency depends more on the program than on the machine: on 8 V100, one such program reached
# 0.86, and another 0.20 (tensorpack/benchmarks). Only a measurement of your program tells.
#
# You may know the order of two networks even if their ranges overlap: look at the ratio. Conversely, you may not
# know the order even if their curves are clearly apart in a picture. A statement about "the scaling of ResNet152V2"
# must give the batch *and* the range.
#
# Now go back to 25 Gbit/s and a batch of 64 for both networks, and set fusion to **0**. The central curve of
# ResNet152V2 was above the other one. Now it lies below it, from 32 workers on. Why?
#
# - **a**: ResNet152V2 now has more bytes to send
# - **b**: ResNet152V2 sends 514 messages and ResNet50V2 only 174, and each message costs the latency of every step in
#   the ring
# - **c**: its backward pass takes longer without fusion
# - **d**: its batch no longer fits into memory

# %% labs={"id": "step.7"}
### BEGIN SOLUTION
without_fusion = "b"
### END SOLUTION
check("step.7", without_fusion)

# %% [markdown]
# Try float16, too. The computation gets faster but the gradients stay in float32, so the *efficiency* falls although
# the number of images per second rises. Efficiency alone never shows which machine is better.
#
# ## Summary
#
# - To break a step down into its parts, run different kinds of complete steps in turn and compare them. Each part is
#   the time that one thing *adds*, given with an interval.
# - The differences between the kinds of steps always add up to the whole step, so their sum proves nothing. Compare it
#   with a whole step that was measured separately, and state the residual.
# - The backward pass can hide messages if there are not too many of them and they do not come too late. It cannot hide
#   the last message.
# - The batch size per worker determines what can be hidden: with a smaller batch, the number of bytes stays the same
#   but the backward pass gets shorter.
# - Predict first. A residual that you can explain is worth more than a fit that happens to match.
#
# Next: `27_other_engines`.
