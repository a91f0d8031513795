# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Does the larger network scale better or worse?
#
# **Time: 110 minutes, of which 32 minutes on 2 cores are computing.**
#
# ResNet152V2 is the larger sister of ResNet50V2. "It is bigger, so it scales worse" is quickly said, and it is a guess. You
# write its training, find its largest batch, run it, and let the intervals say what your data support. Then you take a step
# apart, predict what you did not measure, and try a machine with 4096 workers. You hand in tasks **T7** to **T10**.

# %%
from labs import costs, devices, jobs, presets, recorded
from labs.checks import check, outcome, predict
from labs.lessons.nb08 import experiments, pictures
from labs.measure import breakdown, maxbatch, study
from labs.models import counts as facts
from labs.results import collect, verdict
from labs.results.run import load_record
from labs.show import compare, plots, tables, widgets
from labs.slurm import sites

plan = presets.choose()
quick = plan.name == "test"
unit = "GPU" if devices.gpus() else "CPU core"
small, large = "ResNet50V2", "ResNet152V2"
print(f"preset {plan.name}: {plan.images or 'all'} images of {plan.dataset}, {plan.local_batch} per worker and step")
print(f"A worker is one {unit}; this machine has {devices.cores()} cores.")

# %% [markdown]
# ## Predict first
#
# Both networks train on the same images, with the same batch, on **one** worker. How many times as long is an epoch of
# ResNet152V2?

# %% labs={"id": "08.1"}
### BEGIN SOLUTION
epoch_ratio_expected = 3.1
### END SOLUTION
predict("08.1", epoch_ratio_expected)

# %% [markdown]
# And on 2 workers, with the same batch per worker: which network has the larger speedup? `"ResNet50V2"`, `"ResNet152V2"` or
# `"equal"` (no difference that your runs can show)?

# %% labs={"id": "08.2"}
### BEGIN SOLUTION
larger_speedup_expected = "ResNet152V2"
### END SOLUTION
predict("08.2", larger_speedup_expected)

# %% [markdown]
# ## What grows how much?
#
# These numbers are counted in the Keras models themselves, layer by layer, for the image size of this notebook. Nothing is
# trained for that. A **multiply-add** is one multiplication with the addition that follows, forward, for one image.

# %%
size = {name: facts.of(name, image_size=plan.image_size, classes=10) for name in (small, large)}
columns = {
    "model": "network",
    "multiply_adds": "multiply-adds per image",
    "gradient_bytes": "bytes of the gradient",
    "tensors": "gradient tensors",
    "activation_bytes": "bytes of activations per image",
}
tables.show([vars(found) for found in size.values()], tuple(columns), columns)

# %% [markdown]
# How many times as many multiply-adds has ResNet152V2, and how many times as many bytes of gradient? `size[large]` and
# `size[small]` have the columns as attributes: `size[large].multiply_adds`.

# %% labs={"id": "08.3"}
### BEGIN SOLUTION
operations_ratio = size[large].multiply_adds / size[small].multiply_adds
gradient_ratio = size[large].gradient_bytes / size[small].gradient_bytes
### END SOLUTION
check("08.3", operations_ratio, gradient_ratio, size[small], size[large])

# %% [markdown]
# Computing is what you want to divide; exchanging is what dividing costs. So look at how many bytes of gradient are
# exchanged for each multiply-add that a worker computes in a step. A worker computes forward for all images of its batch.
# (Backward is about twice as much again, for both networks.)


# %% labs={"id": "08.4"}
def bytes_per_operation(facts, batch):
    """Bytes of gradient for each multiply-add of forward, in a step with `batch` images per worker."""
    ### BEGIN SOLUTION
    return facts.gradient_bytes / (batch * facts.multiply_adds)
    ### END SOLUTION


right = check("08.4", bytes_per_operation)

# %%
if right:
    rows = [
        {"batch": batch} | {name: 1000 * bytes_per_operation(size[name], batch) for name in size}
        for batch in (8, 16, 32, 64, 128, 256)
    ]
    print("bytes of gradient for each 1000 multiply-adds:")
    tables.show(rows, ("batch", small, large))
else:
    print("Skipped: this table needs your function.")

# %% [markdown]
# In each row the larger network has *fewer* bytes to exchange for what it computes. **By bytes alone it should scale better
# at an equal batch.** What pulls the other way?
#
# - **a**: its gradient has more bytes, whatever it computes meanwhile
# - **b**: with three times as many layers, workers wait for each other three times as often in a step
# - **c**: less memory is left for images, so its largest batch is smaller; and it has three times as many tensors to agree on
# - **d**: it needs more epochs, and every epoch is one more exchange

# %% labs={"id": "08.5"}
### BEGIN SOLUTION
other_way = "c"
### END SOLUTION
check("08.5", other_way)

# %% [markdown]
# Which pull is stronger depends on batch, links and software. No argument decides it; a measurement may.
#
# ## T7: the script
#
# Open `scripts/ResNet152V2.py` beside your `scripts/ResNet50.py`. What is the same in every training is there. **Write the
# rest from your own script**: strategy, rate, the log's first line, the network, the recorder and the training. Few lines
# change.
#
# What happens if you change the network, and forget `model="ResNet50V2"` in the recorder?
#
# - **a**: the run stops, since record and network do not agree
# - **b**: nothing stops; the times of ResNet152V2 stand under the name of ResNet50V2, and are divided by its times
# - **c**: ResNet50V2 is trained: the recorder chooses the network
# - **d**: no record is written

# %% labs={"id": "08.6"}
### BEGIN SOLUTION
forgotten = "b"
### END SOLUTION
check("08.6", forgotten)

# %%
script = "scripts/ResNet152V2.py"
compare.scripts("scripts/ResNet50.py", script)

# %% [markdown]
# The check tries the script out, as in notebook 05. `labs` also compares: above you see which lines one script has and the
# other has not (printing and the record are left out there).

# %% labs={"id": "T7"}
ready = check("T7", script)

# %% [markdown]
# ## T8: the largest batch
#
# As in notebook 04: real training steps with 1, 2, 4, ... images, in a process of its own, until memory runs out. Both
# networks get the same memory for a step.
#
# **Predict:** how many times as large is the largest batch of ResNet50V2? The table above shows what grows with the batch.

# %% labs={"id": "08.7"}
### BEGIN SOLUTION
batch_ratio_expected = size[large].activation_bytes / size[small].activation_bytes
### END SOLUTION
predict("08.7", batch_ratio_expected)

# %%
pair = ("SmallCNN", small) if quick else (small, large)  # the preset test is for tests: it takes smaller networks here
memory = 2**29 if quick else plan.memory
search = {name: maxbatch.search(name, image_size=plan.image_size, memory=memory) for name in pair}
for result in search.values():
    print(maxbatch.table(result), "\n")

# %%
plots.show(plots.search(search[pair[1]]))

# %% [markdown]
# The evidence is in the `.err` file of the search. Find the line that names the tensor for which there was no memory.

# %% labs={"id": "08.8"}
result = search[pair[1]]
error_file = (result["evidence"] or result["trials"][-1]).get("file") or result["trials"][-1]["err"]
text = open(error_file, errors="replace").read()
print(error_file, text[-600:], sep="\n")
### BEGIN SOLUTION
evidence_line = next((line for line in text.splitlines() if line.startswith("OOM")), "none")
### END SOLUTION
check("08.8", evidence_line, result)

# %% [markdown]
# Doubling tells the border only up to a factor of 2: it lies between `result["largest"]`, which fits, and
# `result["fails"]`, which does not. Between which two numbers is therefore the *ratio* of the two borders (first network /
# second network)?

# %% labs={"id": "08.9"}
first, second = (search[name] for name in pair)
### BEGIN SOLUTION
ratio_low = first["largest"] / second["fails"]
ratio_high = first["fails"] / second["largest"]
### END SOLUTION
check("08.9", ratio_low, ratio_high, first, second)

# %%
kept = [facts.of(name, image_size=plan.image_size, classes=10).activation_bytes for name in pair]
print(f"activations per image of {pair[1]}: {kept[1] / kept[0]:.2f} times those of {pair[0]}")
borders = [first["largest"], second["fails"], first["fails"], second["largest"]]
low, high = (borders[0] / borders[1], borders[2] / borders[3]) if all(borders) else (None, None)
outcome("08.7", borders[0] / borders[3] if low and not quick else None, (low, high) if low else None)

# %% [markdown]
# Weights, gradients and optimizer take their share first; what is left is divided by the activations of an image. The speed
# at the largest batch is another question: where images per second have stopped rising, a smaller batch costs nothing on
# *one* worker. On many it does: fewer images per exchange.

# %% [markdown] labs={"id": "T8", "kind": "answer"}
# ### T8: your answer
# ### BEGIN SOLUTION
# I doubled the batch of ResNet152V2 from 1 until memory ran out, with the memory for a step that the preset gives (the
# table shows each trial). The largest batch that fits is the last one marked "fits"; the next one ends with the line `OOM
# when allocating tensor with shape[...]` in the .err file of the search, whose first number is the batch that failed.
# ResNet50V2 with the same memory takes more images; doubling gives the ratio of the two borders only as an interval, and
# the ratio of the activations per image, computed from the layers, can be compared with it. Activations set the limit: they
# alone grow with the batch; weights and gradients of ResNet152V2 take 2.5 times as much, once.
# ### END SOLUTION

# %% [markdown]
# ## T9: the runs
#
# One job for each number of workers, **in turns**, as in notebook 05: an epoch of each is a round, and the first one is
# warm-up. Look at the run on **one worker** only; what the others took is for later. As long as the script has blanks, the
# notebook goes on with *recorded* runs of a machine with 2 cores.

# %%
sizes = [*plan.arguments(), "--images", 64] if quick else plan.arguments()
turns = jobs.Turns()
with turns:
    for workers in plan.workers if ready else ():
        asked = ["--n_gpus", workers, "--batch_size", workers * plan.local_batch, *sizes]
        turns.start(script, *asked, name=f"ResNet152V2_w{workers}")
own = bool(turns.jobs) and turns.state == "finished"

# %% [markdown]
# Beside it stand the runs of ResNet50V2: yours of notebook 05 if they are there and of the same sizes, else recorded ones.


# %%
def of_recorded(name):
    return [file for file in recorded.laptop_two_networks() if file.name.startswith(name)]


mine = [jobs.folder() / f"ResNet50_w{n}.json" for n in plan.workers]
settings = [study.configuration(plan, small, n, "mirrored") for n in plan.workers]
own_small = all(study.reusable(file, setting) for file, setting in zip(mine, settings))
small_files = mine if own_small else of_recorded(small)
large_files = [jobs.folder() / f"ResNet152V2_w{n}.json" for n in plan.workers] if own else of_recorded(large)
print("ResNet50V2: ", "your runs" if own_small else "recorded runs")
print("ResNet152V2:", "your runs" if own else "recorded runs")

# %% [markdown]
# **Predict the step on 2 workers before you look at it**, by hand. What 2 workers add to the step of ResNet50V2 is exchange and
# waiting. Suppose that this grows as the bytes of the gradient do, and add it to the step of ResNet152V2 on one worker.


# %% labs={"id": "08.10"}
def step(row):
    return row["epoch_seconds"] / row["steps"]


small_step = {row["workers"]: step(row) for row in collect.rows(small_files)}
large_step = {1: step(collect.rows(large_files[:1])[0])}
print(f"{small}: {small_step[1]:.3f} s on 1 worker, {small_step[2]:.3f} s on 2; {large}: {large_step[1]:.3f} s on 1")
### BEGIN SOLUTION
step_expected = (
    large_step[1] + (small_step[2] - small_step[1]) * size[large].gradient_bytes / size[small].gradient_bytes
)
### END SOLUTION
by_hand = check("08.10", step_expected, small_step, large_step[1], size[small], size[large])

# %% [markdown]
# Now look. The same number of images per worker and step, so twice as many per step in all.

# %%
rows = collect.rows([*small_files, *large_files])
tables.scaling(rows)
if own != own_small:
    print("Recorded and own runs stand beside each other here: compare ratios, and with care. Run notebook 05 first.")

# %%
if by_hand:
    measured_step = next(step(row) for row in rows if (row["model"], row["workers"]) == (large, 2))
    print(f"step of {large} on 2 workers: predicted {step_expected:.3f} s, measured {measured_step:.3f} s")
    print(f"residual: {measured_step / step_expected - 1:+.1%} of the prediction")
else:
    print("Skipped: this comparison needs your prediction 08.10.")

# %% [markdown]
# Keep the residual in mind; further down you find out what a step is made of.
#
# Images per second count the images that were really processed: 512 images are 8 steps of 64, or 4 of 128. Where a batch
# does not divide the data, a last, partial step costs its share of a full one and what every step costs, whatever its size; the
# kit's pipeline leaves it out.

# %% labs={"id": "08.11"}
check("08.11", rows if own else ...)

# %% [markdown]
# With 4 workers on 2 cores the run would be marked **oversubscribed** and say nothing about speed. Where you have GPUs, the
# preset trains on 1, 2 and 4.
#
# ## The same with Horovod
#
# MirroredStrategy is one process; with Horovod every worker is a process of its own. What belongs to the *networks* should
# show with both. `text` is your Horovod script of notebook 07. Turn it into one that trains ResNet152V2; it is a string,
# so `text.replace(old, new)` goes far.

# %% labs={"id": "08.12"}
from importlib.util import find_spec
from pathlib import Path

original = Path("scripts/ResNet50_horovod.py")
text = original.read_text()
### BEGIN SOLUTION
changed = text.replace("ResNet50V2", "ResNet152V2")
### END SOLUTION
many = check("08.12", changed, original)

# %% [markdown]
# It runs beside your runs of ResNet50V2 of notebook 07. Where these are missing, recorded runs of both networks stand here.

# %%
launcher = "horovodrun" if devices.oversubscribed(max(plan.workers)) else "mpiexec"  # MPI wants a core for each rank
horovod_files = [jobs.folder() / f"ResNet50_horovod_w{n}.json" for n in plan.workers]
settings = [study.configuration(plan, small, n, "horovod") for n in plan.workers]
own_horovod = all(study.reusable(file, setting) for file, setting in zip(horovod_files, settings))
horovod_turns = jobs.Turns()
with horovod_turns:
    for workers in plan.workers if many and own_horovod else (2,) if many and quick and find_spec("horovod") else ():
        target = jobs.folder() / "ResNet152V2_horovod.py"
        target.write_text(changed)
        options = {"name": f"ResNet152V2_horovod_w{workers}", "ranks": workers, "launcher": launcher}
        horovod_turns.start(target, "--batch_size", workers * plan.local_batch, *sizes, **options)
horovod_files += [job.record for job in horovod_turns.jobs]
if not (many and own_horovod and horovod_turns.state == "finished"):
    horovod_files = recorded.laptop_two_networks_horovod()
    print("Recorded runs: yours need your script and runs of notebook 07.")
horovod_rows = collect.rows(horovod_files)
tables.scaling(horovod_rows)

# %% [markdown]
# Compare the speedups with those of MirroredStrategy above; seconds only if all four runs are yours. The two exchange
# gradients in other ways, and a rank has its own input pipeline.
#
# ## On the cluster
#
# `slurm/local/ResNet152V2.sh` (or the folder of your site) is the twin of the script that you wrote in notebook 05. Fill
# its blanks; the check says what `sbatch` would not.

# %%
site = sites.load()
batch_script = sites.script("ResNet152V2.sh")
print(batch_script.read_text())

# %% labs={"id": "08.13"}
submit = check("08.13", batch_script)

# %%
short = ["--images", 128, "--epochs", 2, "--repeats", 1] if site.preset != "course" else []
batch_job = None
if quick or not (ready and submit):
    print("Skipped: this run comes when both scripts are ready, with the preset laptop or course.")
else:
    batch_job = jobs.run(batch_script, *short, name="ResNet152V2", site=site.id)

# %%
if batch_job:
    print(*batch_job.out.read_text().split("\n")[:12], sep="\n")
    print("...\nin the .err:", batch_job.err.read_text().strip() or "nothing")
    if batch_job.records:
        tables.scaling(collect.rows(batch_job.records))

# %% [markdown]
# A batch for 2 workers must be as large as both workers' images together. What else may differ from `ResNet50.sh`: a larger
# network needs more time (`--time`), and at the largest batch another number of images per worker.
#
# Hand in for T9: your `ResNet152V2.py` and `ResNet152V2.sh`, the relevant lines of `.out` and `.err` of each number of
# workers, and epoch time and speedup with their intervals.

# %%
for file in large_files:
    if file.with_suffix(".out").exists():
        print(file.with_suffix(".out").read_text()[:420], "...\n")

# %% [markdown] labs={"id": "T9", "kind": "answer"}
# ### T9: your answer
# ### BEGIN SOLUTION
# The scripts are scripts/ResNet152V2.py and slurm/local/ResNet152V2.sh. I ran them on 1 and 2 workers (a worker is one CPU
# core, or one GPU where there are GPUs) with the batch per worker fixed, in turns, several rounds; the files are
# runs/ResNet152V2_w1 and _w2 with .out, .err and .json. The header of .out names model, workers, global batch and rate; the
# lines `N/N - ..s` after the first epoch of each are what counts. The .err files hold no error. Epoch time, images
# per second, speedup and efficiency with 95 % intervals stand in the table above; the accuracy after the same epochs is
# lower on 2 workers, which make half as many updates. From ResNet50V2's runs I had predicted the step on 2 workers; the
# residual is printed below the table. With Horovod the same network ran on 1 and 2 ranks; its table stands below that of
# MirroredStrategy. A run on 4 workers would be oversubscribed on 2 cores.
# ### END SOLUTION

# %% [markdown]
# ## T10: both networks together
#
# Plot epoch time, images per second and speedup over the number of workers, **both networks in each plot**, from `rows`.
# Label the axes with units, and add a legend that names the networks. Each row has the keys `model`, `workers`,
# `epoch_seconds`, `images_per_second` and `speedup`. Start with `figure = Figure(figsize=(12, 3.2), layout="constrained")`.

# %% labs={"id": "08.14"}
from matplotlib.figure import Figure

### BEGIN SOLUTION
figure = Figure(figsize=(12, 3.2), layout="constrained")
for axis, key, label in zip(
    figure.subplots(1, 3),
    ("epoch_seconds", "images_per_second", "speedup"),
    ("seconds per epoch", "images per second", "speedup (times)"),
):
    for name, mark in ((small, "o-"), (large, "s-")):
        mine = sorted((row for row in rows if row["model"] == name), key=lambda row: row["workers"])
        axis.plot([row["workers"] for row in mine], [row[key] for row in mine], mark, label=name)
    axis.set(xlabel=f"workers (one worker: one {unit})", ylabel=label, ylim=(0, None))
    axis.legend()
### END SOLUTION
if check("08.14", figure, rows):
    figure.alt = "Your plots of epoch time, images per second and speedup of both networks over the number of workers."
    plots.show(figure)

# %% [markdown]
# The kit's plot of the same rows adds the intervals, and the one below it shows the runs with Horovod:

# %%
plots.show(plots.scaling(rows, ("epoch time", "speedup", "efficiency")))

# %%
plots.show(plots.scaling(horovod_rows, ("epoch time", "speedup", "efficiency")))

# %% [markdown]
# How many times as long is the epoch of ResNet152V2 on one worker? Compute it from `rows`. (The two networks were measured in two
# studies, so drift of the machine counts in: `rows` does not divide them.)

# %% labs={"id": "08.15"}
### BEGIN SOLUTION
alone = {row["model"]: row["epoch_seconds"] for row in rows if row["workers"] == 1}
epoch_ratio = alone[large] / alone[small]
### END SOLUTION
check("08.15", epoch_ratio, rows)

# %%
grown = {
    what: getattr(size[large], key) / getattr(size[small], key)
    for what, key in (
        ("multiply-adds", "multiply_adds"),
        ("bytes of activations", "activation_bytes"),
        ("tensors", "tensors"),
        ("bytes of gradients", "gradient_bytes"),
    )
}
for what, factor in grown.items():
    print(f"{what} of {large}: {factor:.2f} times as many")
took = {row["model"]: row["epoch_seconds"] for row in rows if row["workers"] == 1}
longer = took[large] / took[small]
outcome("08.1", longer, how="measured" if own and own_small else "recorded")
inside = min(grown.values()) <= longer <= max(grown.values())
print(
    f"The epoch is {longer:.2f} times as long:", "within these factors." if inside else "outside of all these factors."
)

# %% [markdown]
# No single factor has to be that of the epoch. Multiply-adds take time, and so do moving activations, starting one operation after
# the other, and updating weights; each grows by a factor of its own. And some of a step does not grow at all: reading the batch,
# Keras' loop, the work around each step. With images of 32x32 pixels little is computed, so these fixed costs are a large share,
# and they pull the ratio below the factors; with large images they hardly count. A ratio above all factors would need another
# cause: a machine that was slower in one of the two studies, say.
#
# A speedup compares workers of one kind. "ResNet50V2 on 2 GPUs is so many times as fast as ResNet152V2 on a CPU" mixes
# three things: other work, other hardware, more workers. None of them can be told from the product.
#
# ### Accuracy beside speed

# %%
plots.show(plots.learning(rows))

# %% [markdown]
# The same epochs on 2 workers are half as many updates, for both networks. After so few epochs the larger network need not
# be ahead: it has more to learn. What a second of training buys is another question than what an epoch buys; this study is
# too short to answer it.
#
# ## Is the difference real?
#
# The two speedups differ, for two runs always differ. Is it more than chance? Each network has rounds, and in each round an epoch
# on 1 worker and one on 2, seconds apart. Take the logarithm of their ratio, $d = \log(t_1 / t_2)$: what slowed the whole round
# down is not in it. Then the ratio of the efficiencies is a difference of means over rounds,
#
# $$ \log\frac{E_\text{large}}{E_\text{small}} = \bar d_\text{large} - \bar d_\text{small} . $$
#
# A mean of n values with variance $s^2$ has the variance $s^2/n$, and the variances of independent means add up. Write
# both: the difference, and its standard error.

# %% labs={"id": "08.16"}
from math import exp, log, sqrt
from statistics import mean, median, variance


def contrast(small_1, small_2, large_1, large_2):
    """(log of E(large) / E(small), its standard error); each argument: epoch seconds by round, on 1 or 2 workers."""
    ### BEGIN SOLUTION
    d_small, d_large = (
        [log(one / two) for one, two in zip(*times)] for times in ((small_1, small_2), (large_1, large_2))
    )
    return mean(d_large) - mean(d_small), sqrt(variance(d_large) / len(d_large) + variance(d_small) / len(d_small))
    ### END SOLUTION


right = check("08.16", contrast)

# %% [markdown]
# With Student's t instead of 1.96, for there are few rounds, this gives a 95 % interval of the ratio. Three answers are
# possible:
#
# - `"yes"`: the interval leaves out 1. The difference is real, even if it is a small one.
# - `"no"`: the interval holds 1 and lies *wholly* within what does not matter to you, from 1 / (1 + matters) to 1 + matters.
# - `"can't tell"`: the interval holds 1, and also differences that would matter.


# %% labs={"id": "08.17"}
def answer(low, high, matters):
    """ "yes", "no" or "can't tell", for the interval [low, high] of a ratio; matters: 0.05 for 5 %."""
    ### BEGIN SOLUTION
    if low > 1 or high < 1:
        return "yes"
    if low >= 1 / (1 + matters) and high <= 1 + matters:
        return "no"
    return "can't tell"
    ### END SOLUTION


decided = check("08.17", answer)

# %% [markdown]
# Before you look: which of the three do your runs give, if a difference of 5 % matters?

# %% labs={"id": "08.18"}
### BEGIN SOLUTION
verdict_expected = "can't tell"
### END SOLUTION
predict("08.18", verdict_expected)

# %%
runs = [load_record(file) for file in (*small_files, *large_files)]
found = verdict.compare(runs, large, small, workers=2, matters=0.05)
print(found)
kind = "measured" if own and own_small else "recorded"
outcome("08.18", found.answer, how=kind)
outcome("08.2", "equal" if found.answer != "yes" else large if found.ratio > 1 else small, how=kind)

# %%
if right and decided and found.interval:
    times = [
        list(run.rounds.values()) or run.steady_times()[0]
        for name in (small, large)
        for run in sorted(runs, key=lambda run: run.workers)
        if run.model == name and run.workers <= 2
    ]
    centre, error = contrast(*times)
    print(f"your ratio: {exp(centre):.3f}, standard error of its logarithm {error:.3f}")
    print("your answer:", answer(*found.interval, 0.05))
else:
    print("Skipped: this needs both functions, and runs with several rounds.")

# %% [markdown]
# And with Horovod?

# %%
print(verdict.compare([load_record(file) for file in horovod_files], large, small, workers=2, matters=0.05))

# %% [markdown]
# The two verdicts are two measurements, on the same machine at other minutes and with another exchange. Where they agree,
# you may say more than either alone.
#
# **Why in turns?** Had the runs come one after the other, a machine that was slower during one of them (another user, a hot
# laptop) would have looked like a property of the network. Here are the rounds of ResNet152V2:

# %%
one, two = (load_record(file) for file in large_files[:2])
if one.rounds and two.rounds:
    plots.show(plots.rounds(two, one))
else:
    print("These recorded runs came one after the other, so they have no rounds: yours will.")

# %% [markdown]
# "Can't tell" is a result. It says what to do: the last sentence names the smallest difference that such data can show. To
# halve it, you need about four times as many rounds, or a quieter machine.
#
# ### What a log in whole seconds would have said
#
# Keras' log gives whole seconds for an epoch. Here are the same runs, rounded: once taken at face value, once with the
# rounding counted.

# %%
versions = {
    "every step, as recorded": runs,
    "whole seconds, at face value": [verdict.rounded(run, counted=False) for run in runs],
    "whole seconds, rounding counted": [verdict.rounded(run) for run in runs],
}
shown = []
for name, several in versions.items():
    told = verdict.compare(several, large, small)
    span = f"[{told.interval[0]:.3f}, {told.interval[1]:.3f}]" if told.interval else ""
    shown.append(
        {
            "epoch times": name,
            "ratio of efficiencies": told.ratio,
            "95 % interval": span,
            "difference real?": told.answer,
        }
    )
tables.show(shown, tuple(shown[0]))

# %% [markdown]
# A log says 12 s for every epoch. What do you know of the epoch time?
#
# - **a**: it is 12.0 s, and since all epochs agree, the interval has no width
# - **b**: it is anything from 11.5 s to 12.5 s, however many epochs say so
# - **c**: the more epochs, the closer to 12.0 s
# - **d**: nothing at all

# %% labs={"id": "08.19"}
### BEGIN SOLUTION
whole_seconds = "b"
### END SOLUTION
check("08.19", whole_seconds)

# %% [markdown]
# At 12 s, half a second either way is 4 % of the efficiency: as much as people argue about. Look at the table again. Where all epochs
# of a run are rounded to one number, they look like certainty, and are the opposite: the spread that would have warned you is gone.
# Where your epochs spread over several seconds, that spread survives the rounding, and the line that counts the rounding is the
# widest of the three.
#
# ## Where does the time go?
#
# Begin with what the record holds: every step. On 2 workers a step lasts until the *slower* one is done. **Predict:** of
# which network does this waiting lengthen the step by the larger share, `"ResNet50V2"`, `"ResNet152V2"` or `"equal"` (within 1 % of a
# step)?

# %% labs={"id": "08.24"}
### BEGIN SOLUTION
waits_more_expected = "ResNet50V2"
### END SOLUTION
predict("08.24", waits_more_expected)

# %%
pairs = [run for run in runs if run.workers <= 2]
plots.show(plots.steps(*pairs))

# %% [markdown]
# Both axes of seconds are logarithmic: equal distances are equal *ratios*, so the two networks can be compared by eye. The
# dashed curves are computed as in notebook 05: the slower of two steps of one worker alone. From the solid curve of 1 worker
# to the dashed one is what **waiting** explains by the jitter of one worker; from there to the solid curve of 2 workers is
# the rest: exchange, sharing the machine, and jitter that comes with the second worker. In numbers, for the median step:

# %%
from labs.results import steps as of_steps

shown = []
for name in (small, large):
    one, two = (next(run for run in pairs if (run.model, run.workers) == (name, n)) for n in (1, 2))
    alone, both = (of_steps.quantile(*of_steps.distribution(run)) for run in (one, two))
    slower = of_steps.quantile(*of_steps.distribution(one, workers=2))
    shown.append(
        {"network": name, "alone": alone, "two": both, "waiting": slower / alone - 1, "rest": both / slower - 1}
    )
headers = {"alone": "step on 1 worker (s)", "two": "on 2 workers (s)", "waiting": "waiting adds (share, computed)"}
tables.show(shown, tuple(shown[0]), headers | {"rest": "the rest adds (share)"})
more = shown[1]["waiting"] - shown[0]["waiting"]
outcome("08.24", "equal" if abs(more) < 0.01 else large if more > 0 else small, how="computed")

# %% [markdown]
# Now take a step apart. A stopwatch inside a step would disturb it, so whole steps are compared that differ in *one* thing.
# Two Horovod ranks take turns with four kinds of steps, round after round, with the same images per rank:
#
# | kind of step | what is in it |
# |---|---|
# | **alone** | one rank steps, the other rests; its batch lies in memory |
# | **together** | both ranks step at once, each for itself |
# | **exchange** | both step and average their gradients |
# | **input** | the same, and each batch comes from the input pipeline |


# %% labs={"id": "08.20"}
def parts(alone, together, exchange, input):
    """Seconds of (computation, sharing the machine, exchange and waiting, input), from the four kinds of steps."""
    ### BEGIN SOLUTION
    return alone, together - alone, exchange - together, input - exchange
    ### END SOLUTION


check("08.20", parts)

# %%
options = {
    "local_batch": plan.local_batch,
    "others": (plan.local_batch // 4,),
    "image_size": plan.image_size,
    "launcher": launcher,
}
if quick:
    options |= {"rounds": 2, "steps": 1}
steps = {}
if find_spec("horovod") and len(devices.gpus()) != 1:
    steps = {name: breakdown.measure(name, **options) for name in pair}
else:
    print("Skipped: this needs Horovod (`make horovod`) and two devices. Tables and predictions of it are empty below.")

# %%
if steps:
    plots.show(pictures.breakdown(steps.values(), [] if quick or not (own and own_small) else rows))


# %%
def shown_parts(name):
    for part, (seconds, (low, high)) in breakdown.parts(steps[name]).items():
        yield {
            "network": name,
            "part": part,
            "ms per step": 1e3 * seconds,
            "95 % interval": f"{1e3 * low:.3g} to {1e3 * high:.3g}",
        }


tables.show([row for name in steps for row in shown_parts(name)], ("network", "part", "ms per step", "95 % interval"))

# %% [markdown]
# A part below 0 is smaller than the noise. Each line is a *difference*, and says no more than one:
#
# - **computation**: forward, backward and update of one worker, undisturbed.
# - **sharing the machine**: both cores use one memory and one cache. No exchange is in it, so no faster network would help.
# - **exchange and waiting**: what averaging adds to the step.
# - **input**: what the pipeline adds. Read alone, a batch takes as long as the table below says; prefetching hides it behind the step.
#
# What remains between these bars and the steps of your own runs (black marks, if they are yours) is **the rest**: Keras'
# loop and metrics, and that MirroredStrategy exchanges in another way than Horovod. A mark far to the left of its bar says
# that the machine was faster when you ran: within the bars all kinds of steps took turns, between bars and marks they did not.

# %%
tables.show(
    [
        {
            "network": name,
            "batch": found["local_batch"],
            "read": 1e3 * mean(found["pipeline_seconds"]),
            "reduce": 1e3 * mean(found["all_reduce_seconds"]),
            "megabytes": found["gradient_bytes"] / 1e6,
        }
        for name, found in steps.items()
    ],
    ("network", "batch", "read", "megabytes", "reduce"),
    {"read": "reading a batch alone (ms)", "megabytes": "gradient (MB)", "reduce": "one all-reduce of it, alone (ms)"},
)

# %% [markdown]
# "Exchange and waiting" is the difference of two steps. What does it say?
#
# - **a**: how long the gradient's bytes travel, and nothing else
# - **b**: how long the whole all-reduce takes, hidden parts included
# - **c**: by how much averaging lengthens the step; it does not say how much of this is bytes, messages, or waiting for the slower rank
# - **d**: how long the slower rank computes

# %% labs={"id": "08.21"}
### BEGIN SOLUTION
what_it_says = "c"
### END SOLUTION
check("08.21", what_it_says)

# %% [markdown]
# A barrier is never free: the step lasts until the *slowest* worker is there, and among more workers the slowest one is
# slower. If steps differ by 3 % among workers, the slowest of many is some per cent behind the mean:

# %%
from labs.costs.stragglers import slowest

tables.show(
    [{"workers": workers, "slowest": slowest(workers, 0.03)} for workers in (1, 2, 4, 16, 64, 256, 1024, 4096)],
    ("workers", "slowest"),
    {"slowest": "slowest worker / mean worker, steps that differ by 3 %"},
)

# %% [markdown]
# ## Predict, measure, explain the residual
#
# A model of a step fits into one line:
#
# $$ \text{step} = \text{computation}(\text{batch}) \times \frac{\text{slowest}}{\text{mean}} + \text{exchange that backward does not hide.} $$
#
# `labs.costs` fits it to measured steps. You have eight configurations: 2 networks, 2 batches, 1 and 2 workers. Five are
# given to the fit, all on one worker, and one on two workers. The other three are predicted, then compared.

# %%
every = [seen for found in steps.values() for seen in breakdown.observations(found)]
given = (pair[0], plan.local_batch)
held_out = [seen for seen in every if seen.workers == 2 and (seen.model, seen.local_batch) != given]
shown, errors = [], []
fitted = experiments.fitted([seen for seen in every if seen not in held_out])
for seen in held_out if fitted else ():
    told = costs.predict_from_fit(fitted, seen.model, seen.workers, seen.local_batch).step_seconds
    took = mean(seen.seconds)
    errors.append(abs(told.value / took - 1))
    shown.append(
        {
            "network": seen.model,
            "workers": seen.workers,
            "batch": int(seen.local_batch),
            "predicted (s)": told.value,
            "95 % interval": "{:.3g} to {:.3g}".format(*told.interval),
            "measured (s)": took,
            "error": f"{told.value / took - 1:+.1%}",
        }
    )
if shown:
    tables.show(shown, tuple(shown[0]))
    print(f"median of the relative errors: {median(errors):.1%}")

# %% [markdown]
# Where the error is larger than the interval, the model lacks something. Look for it in the picture above: sharing the
# machine grows with another quantity than bytes; the ranks wait for each other; 514 tensors make more messages than 174.
# Then look at the parameters, and at what the fit itself says it could not tell apart:

# %%
full = experiments.fitted(every)
if full:
    tables.show(
        [{"parameter": name, "value and 95 % interval": str(found)} for name, found in full.parameters().items()],
        ("parameter", "value and 95 % interval"),
    )
    print(*(f"Note: {note}." for note in full.notes), sep="\n")

# %% [markdown]
# ### At each network's own largest batch
#
# So far both networks had the same batch. With their own largest batches, each exchange is spread over more images. The
# search of T8 says how many images fit. The fit above **predicts** the efficiency there, far outside the batches that were
# fitted:

# %%
shown, notes = [], []
for name in steps if full else ():
    for what, batch in (("equal", plan.local_batch), ("its largest", search[name]["largest"])):
        told = costs.predict_from_fit(full, name, 2, batch)
        low, high = told.efficiency.interval
        shown.append(
            {
                "network": name,
                "batch": f"{batch} ({what})",
                "predicted efficiency": told.efficiency.value,
                "95 % interval": f"{low:.3f} to {high:.3f}",
            }
        )
        notes += [note for note in told.notes if note not in notes and note not in full.notes]
if shown:
    tables.show(shown, tuple(shown[0]))
    print(*(f"Note: {note}." for note in notes), sep="\n")

# %% [markdown]
# Now **measure** it: steps alone and with exchange, each network with its own largest batch on each of the two ranks.

# %%
at_largest = {}
for name in list(steps)[:1] if quick else steps:
    options |= {"local_batch": search[name]["largest"], "others": (), "kinds": breakdown.EFFICIENCY, "steps": 1}
    try:
        at_largest[name] = breakdown.measure(name, **options | {"rounds": 2 if quick else 3, "name": f"largest_{name}"})
    except breakdown.BreakdownError as problem:  # what fits beside one rank need not fit beside two
        print(problem)

# %%
shown = []
for name in at_largest if full else ():
    for what, found in (("equal", steps[name]), ("its largest", at_largest[name])):
        told = costs.predict_from_fit(full, name, 2, found["local_batch"]).efficiency.value
        value, (low, high) = breakdown.efficiency(found)
        shown.append(
            {
                "network": name,
                "batch": f"{found['local_batch']} ({what})",
                "predicted": told,
                "measured": value,
                "95 % interval of the measured": f"{low:.3f} to {high:.3f}",
            }
        )
if shown:
    tables.show(shown, tuple(shown[0]))

# %% [markdown]
# Read it in two directions. From line to line of one network: what does a larger batch give? And between the two lines with
# "its largest": does the order of the networks stay? The fit knows nothing of *sharing the machine*, which grows with the
# batch; where the measured efficiency is below the predicted one, this is the first suspect.

# %% [markdown]
# ## What if: 4096 workers
#
# The same model, with the data of a machine that you don't have: nodes of 8 V100, joined by Ethernet
# (`labs/machines/v100-ethernet25.toml`). Everything here is **predicted**, for images of 224x224. Move one control at a
# time, and look at both plots: the curves, and the shares of a step. A dotted line means that the batch does not fit into
# the GPU's 16 GB.

# %%
pictures.networks()  # counts both networks; the first time it takes some seconds
widgets.explore(
    pictures.scaling,
    network=list(pictures.NAMES),
    batch=[8, 16, 32, 64, 128, 256],
    bandwidth=[10, 25, 100, 400],
    latency=[2, 10, 30, 100],
    precision=["float32", "float16"],
    fusion=[0, 8, 128],
    accumulation=(1, 8),
)

# %% [markdown]
# Bandwidth is in Gbit/s between nodes, latency in microseconds for a message, fusion in MiB (0: every tensor is a message
# of its own), accumulation in passes before an exchange.
#
# The curves are *central* values, and a prediction has an interval. Both networks are predicted for one machine, so what
# its file leaves open (what the links really reach, say) moves both curves together, and part of it cancels in their ratio.
# The order of two predictions is known only where the 95 % interval of **their ratio** leaves out 1:

# %%
shown = []
for what, batches in (("equal", (64, 64)), ("its largest", (128, 64))):
    for workers in (8, 64, 512, 4096):
        told = pictures.order(workers, batches, bandwidth=10)
        cells = {key: f"{value:.3f} [{low:.3f}, {high:.3f}]" for key, (value, (low, high)) in told.items()}
        shown.append({"batch": f"{what}: {batches[0]} and {batches[1]}", "workers": workers, **cells})
print("predicted efficiencies at 10 Gbit/s, with 95 % intervals")
tables.show(shown, tuple(shown[0]), {"ratio": f"{large} / {small}"})

# %% [markdown]
# Set the bandwidth to **10** Gbit/s in the picture above. Give each network its own largest batch, as a power of two: **128** for
# ResNet50V2, **64** for ResNet152V2. From how many workers on is the central efficiency of each below 0.8?
#
# Then the order on **64** workers: which network has the higher efficiency, at an equal batch and at its own largest one?
# `"ResNet50V2"`, `"ResNet152V2"`, or `"can't tell"`?

# %% labs={"id": "08.22"}
### BEGIN SOLUTION
below_small = pictures.first_below(small, batch=128, bandwidth=10)
below_large = pictures.first_below(large, batch=64, bandwidth=10)
higher_at_equal = pictures.told(pictures.order(64, (64, 64), bandwidth=10)["ratio"][1])
higher_at_largest = pictures.told(pictures.order(64, (128, 64), bandwidth=10)["ratio"][1])
### END SOLUTION
check("08.22", below_small, below_large, higher_at_equal, higher_at_largest)

# %% [markdown]
# Two intervals may overlap and the order be known all the same: look at the ratio. And two curves may lie apart in a picture, and
# the order be open. A sentence about "the scaling of ResNet152V2" needs its batch *and* its interval.
#
# Now go back to 25 Gbit/s and batch 64 for both, and set fusion to **0**. The central curve of ResNet152V2, which was the upper one,
# falls below the other. Why?
#
# - **a**: it has more bytes to send now
# - **b**: it sends 514 messages instead of 174, and each one pays the latency of all the ring's steps
# - **c**: its backward takes longer without fusion
# - **d**: its batch does not fit any more

# %% labs={"id": "08.23"}
### BEGIN SOLUTION
without_fusion = "b"
### END SOLUTION
check("08.23", without_fusion)

# %% [markdown]
# Try float16 too: computing gets faster, the weights' gradients stay float32, and the *efficiency* falls while the images
# per second rise. An efficiency alone never says which machine is the better one.
#
# ## T10
#
# Explain with your three plots: why is the epoch of ResNet152V2 longer, and what does its speedup do compared with
# ResNet50V2's? Say what your data decide and what they leave open; separate equal batch from own largest batch, and
# measured from predicted.

# %% [markdown] labs={"id": "T10", "kind": "answer"}
# ### T10: your answer
# ### BEGIN SOLUTION
# The epoch of ResNet152V2 is longer because it computes 3.13 times as many multiply-adds for each image; the measured ratio
# on one worker (08.15) is another one, since activations and the number of operations grow by other factors, and what a step
# costs whatever the network is does not grow at all. Its gradient has only 2.47 times as many bytes, so for each operation it exchanges less, and at an equal batch it
# should scale better by bytes. The plots show both speedups with their intervals, and the verdict above says whether they
# differ: the ratio of the efficiencies, its interval, and the smallest difference that these repeats could show. What whole
# seconds would have said stands in the table below the verdict. The breakdown says where the time goes: computation, sharing of
# memory, exchange and waiting, input. At each network's own largest batch the efficiencies are measured for steps of 2
# ranks, beside what the fit predicts. ResNet152V2 fits fewer images, so it exchanges more often per image; on the
# predicted machine at 10 Gbit/s it is behind at its own largest batch on 64 workers, by the interval of the ratio; at an equal
# batch the prediction cannot tell the order. Without fusion its 514 tensors cost it latency. After the same epochs 2 workers have made half as many updates and the accuracy is lower, for both
# networks.
# ### END SOLUTION

# %% [markdown]
# ## What you take along
#
# - A larger network computes more *and* exchanges more. What counts is the ratio of the two, at a given batch.
# - Say at which batch, on which machine, against which baseline. Without these, "scales better" means nothing.
# - A difference is real, absent or open. Only an interval tells which, and "open" is worth writing down.
# - Rounded times look certain because they hide their spread.
# - Predict first. A residual that you can explain is worth more than a fit that happens to match.
#
# Next: `09_why_scaling_fails`.
