# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # What changes with a larger network?
#
# **Time: 50 minutes, including 9 minutes of computing on 2 cores.**
#
# **Paths:** *the practical* (next: `10_two_networks`), *everything*; *an afternoon* leaves this notebook out.
#
# ResNet152V2 has about three times as many layers as ResNet50V2. "It is bigger, so it scales worse" is a guess; in this
# notebook and the next one, you test it. Here you count what grows with the network, write the training script
# (**T7**), find the largest batch size (**T8**), and train on one or more workers (**T9**). Notebook 10 then compares
# the two networks.

# %%
from labs import devices, presets
from labs.checks import check, outcome, predict

plan = presets.choose()
small, large = "ResNet50V2", "ResNet152V2"
print(f"preset {plan.name}: {plan.images or 'all'} images of {plan.dataset}, {plan.local_batch} per worker and step")
print(f"A worker is one {'GPU' if devices.gpus() else 'CPU core'}; this machine has {devices.cores()} cores.")

# %% [markdown]
# ## Predict first
#
# Both networks train on the same images, with the same batch size, on **one** worker. What is the epoch time of
# ResNet152V2, divided by that of ResNet50V2? Enter a number.

# %% labs={"id": "resnet152.1"}
### BEGIN SOLUTION
epoch_ratio_expected = 3.1
### END SOLUTION
predict("resnet152.1", epoch_ratio_expected)

# %% [markdown]
# Now both train on 2 workers, with the same batch size per worker. Which network has the larger speedup? Enter
# `"ResNet50V2"`, `"ResNet152V2"` or `"unclear"` (if you expect your runs to show no difference).

# %% labs={"id": "resnet152.2"}
### BEGIN SOLUTION
larger_speedup_expected = "ResNet152V2"
### END SOLUTION
predict("resnet152.2", larger_speedup_expected)

# %% [markdown]
# ## What grows, and by how much?
#
# These numbers are counted layer by layer, for the image size of this notebook. A **multiply-add** is one
# multiplication and the addition that follows it; the table counts those of one forward pass for one image. The
# gradient consists of **tensors**, one for each array of weights.

# %%
from lessons import counts
from labs.show import tables

size = {name: counts.of(name, image_size=plan.image_size, classes=10) for name in (small, large)}
columns = {
    "model": "network",
    "multiply_adds": "multiply-adds per image",
    "gradient_bytes": "bytes of the gradient",
    "tensors": "gradient tensors",
    "activation_bytes": "bytes of activations per image",
}
tables.show([vars(found) for found in size.values()], tuple(columns), columns)

# %% [markdown]
# Divide ResNet152V2's number of multiply-adds by ResNet50V2's, and do the same with the bytes of the gradient.
# `size[small]` and `size[large]` hold the table's numbers as `multiply_adds`, `gradient_bytes`, `tensors` and
# `activation_bytes`.

# %% labs={"id": "resnet152.3"}
### BEGIN SOLUTION
operations_ratio = size[large].multiply_adds / size[small].multiply_adds
gradient_ratio = size[large].gradient_bytes / size[small].gradient_bytes
### END SOLUTION
check("resnet152.3", operations_ratio, gradient_ratio, size[small], size[large])

# %% [markdown]
# Workers share the computation, but must exchange gradients. Compare the two costs: for each multiply-add that a worker
# computes in a step, how many bytes of gradient are exchanged? In a step, a worker runs the forward pass for all the
# images in its batch. Leave out the backward pass, which takes about twice as much work, for both networks.


# %% labs={"id": "resnet152.4"}
def bytes_per_operation(facts, batch):
    """Bytes of gradient for each multiply-add of the forward pass, in a step with `batch` images per worker."""
    ### BEGIN SOLUTION
    return facts.gradient_bytes / (batch * facts.multiply_adds)
    ### END SOLUTION


if check("resnet152.4", bytes_per_operation):
    shown = [
        {"batch": batch} | {name: 1000 * bytes_per_operation(size[name], batch) for name in size}
        for batch in (8, 16, 32, 64, 128, 256)
    ]
    print("bytes of gradient for each 1,000 multiply-adds:")
    tables.show(shown, ("batch", small, large))

# %% [markdown]
# In each row, the larger network exchanges *fewer* bytes for each multiply-add. **Judging by bytes alone, it should
# scale better at the same batch size.** What could still make it scale worse?
#
# - **a**: its gradient takes up more bytes, no matter how much the workers compute during the exchange
# - **b**: it has three times as many layers, so the workers wait for each other three times as often in each step
# - **c**: it leaves less memory for images, so its largest batch is smaller, and it exchanges more often for the same
#   number of images
# - **d**: it needs more epochs, and each additional epoch means one more exchange

# %% labs={"id": "resnet152.5"}
### BEGIN SOLUTION
other_way = "c"
### END SOLUTION
check("resnet152.5", other_way)

# %% [markdown]
# Which effect is stronger depends on the batch size, the links and the software. Only a measurement can tell.
#
# ## T7: the script
#
# Open `scripts/ResNet152V2.py` next to your `scripts/ResNet50.py`, and **fill in its blanks**: the strategy, the
# learning rate, the first line of the log, the network and the training. As in notebook 05, the check tries out your
# script. Once it is right, you see the lines that occur in only one of the two scripts, except those that print or
# record.

# %% labs={"id": "T7"}
from lessons import compare

script = "scripts/ResNet152V2.py"
ready = check("T7", script)
if ready:
    compare.scripts("scripts/ResNet50.py", script)

# %% [markdown]
# ## T8: the largest batch
#
# As in notebook 04, the search takes real training steps. Both networks get the same amount of memory for a step.
#
# **Predict:** what is ResNet50V2's largest batch, divided by ResNet152V2's? Enter a number. (Which column of the first
# table grows with the batch size?)

# %% labs={"id": "resnet152.6"}
### BEGIN SOLUTION
batch_ratio_expected = size[large].activation_bytes / size[small].activation_bytes
### END SOLUTION
predict("resnet152.6", batch_ratio_expected)

# %%
from labs.measure import maxbatch

pair = ("SmallCNN", small) if plan.name == "test" else (small, large)  # the preset test takes smaller networks here
search = {name: maxbatch.search(name, image_size=plan.image_size, memory=plan.memory) for name in pair}
for result in search.values():
    print(maxbatch.table(result), "\n")

# %% [markdown]
# ## T9: start the runs
#
# The search is over, so the machine is free for the training runs. There is one job for each number of workers, and the
# jobs **take turns**, as in notebook 05. `begin()` starts them **in the background**, where they train for several
# minutes. Go on reading and writing, but start nothing that computes: rounds in which other programs took the cores are
# left out.

# %%
from labs import jobs

sizes = [*plan.arguments(), *(["--images", 64] if plan.name == "test" else [])]
turns = jobs.Turns()
if ready:
    for workers in plan.workers:
        asked = ["--n_gpus", workers, "--batch_size", workers * plan.local_batch, *sizes]
        turns.start(script, *asked, name=f"ResNet152V2_w{workers}")
    turns.begin()

# %% [markdown]
# As long as the script has blanks, no run starts, and the notebook continues with *recorded* runs from a machine with
# 2 cores.
#
# ## While they run: what the search found
#
# This is the loop of notebook 04:


# %%
def double(step):
    """(Largest batch that fits, smallest that does not.)"""
    batch = 1
    while True:
        try:
            step(batch)
        except MemoryError:
            return batch // 2, batch
        batch *= 2


# %% [markdown]
# Give it a step that trains nothing and only counts: it "needs" the activations of its images, and no other memory.


# %%
def count(batch):
    if batch * activations > memory:
        raise MemoryError


for name, result in search.items():
    memory, activations = result["memory"], counts.of(name, image_size=plan.image_size, classes=10).activation_bytes
    if memory:  # a search without a limit may use the whole GPU
        print(f"{name}: counted {double(count)}, found by labs with real steps {(result['largest'], result['fails'])}")

# %% [markdown]
# Where the two agree, the activations alone explain the limit: everything else takes up the same memory at every batch
# size.
#
# Doubling finds a limit only to within a factor of 2: the limit lies between `result["largest"]`, which fits, and
# `result["fails"]`, which does not. So for the *ratio* of two limits (first network / second network), you can only
# give a lower and an upper bound. Compute them; `first` and `second` are the results of the two searches.

# %% labs={"id": "resnet152.7"}
first, second = (search[name] for name in pair)
### BEGIN SOLUTION
ratio_low = first["largest"] / second["fails"]
ratio_high = first["fails"] / second["largest"]
### END SOLUTION
if check("resnet152.7", ratio_low, ratio_high, first, second) and pair == (small, large):
    outcome("resnet152.6", first["largest"] / second["largest"], (float(ratio_low), float(ratio_high)))

# %% [markdown]
# The largest batch need not be the fastest. Once the number of images per second has stopped rising, a larger batch
# gains nothing on *one* worker. On many workers it still helps, because there are fewer exchanges per image.
#
# **Write for T8**, in about four sentences:
#
# - What is the largest batch of ResNet152V2 that fits, and how much memory was available for a step?
# - Which line of the `.err` file names the tensor that did not fit? Quote it, and give the file's name. Both are shown
#   below the trials of your search.
# - How does this limit compare with that of ResNet50V2 for the same amount of memory? Give the ratio as an interval.
# - Which part of the memory sets the limit, and why?

# %% [markdown] labs={"id": "T8", "kind": "answer"}
# ### T8: your answer
# ### BEGIN SOLUTION
# I doubled the batch size of ResNet152V2, starting from 1, until a step no longer fitted into the memory that the
# preset allows (the table shows each trial). The largest batch that fits is the last one marked "fits". The next one
# fails with the line `OOM when allocating tensor with shape[...]` in the search's .err file; the first number in this
# shape is the batch size that failed. ResNet50V2 fits more images into the same memory. Doubling gives the ratio of the
# two limits only as an interval (resnet152.7). Activations set the limit, since they alone grow with the batch size;
# the loop that counts nothing else can be compared with the search. The weights and gradients of ResNet152V2 take up
# 2.5 times as much memory as those of ResNet50V2, but this amount is the same at every batch size.
# ### END SOLUTION

# %% [markdown]
# ## T9: what the runs say
#
# `print(turns)` tells you at any time how far the runs have got, and `wait()` returns when all of them have finished.
# They are compared with your runs of ResNet50V2 from notebook 05. If your runs of either network are missing, recorded
# runs are used for *both*: mixing them with yours would mean comparing machines as well as networks.

# %%
from labs import recorded, results
from lessons.resnet152_scaling import experiments

print(turns)
turns.wait()
files = {small: experiments.earlier(plan, "ResNet50", "mirrored")}
files[large] = [job.record for job in turns.jobs if turns.state == "finished"]
lacks = experiments.lacks(files[small], files[large])
if plan.name == "test" and turns.jobs:  # the preset test measures nothing, so it may mix them
    lacks = ""
for name, own in files.items():
    if lacks or not own:
        files[name] = [file for file in recorded.laptop_two_networks() if file.name.startswith(name)]
print(f"Recorded runs are used for both networks. {lacks}" if lacks else "These are your own runs of both networks.")

# %% [markdown]
# **Predict the step time on 2 workers by hand before you look at it.** A step of ResNet50V2 takes longer on 2 workers
# than on 1, because the workers share the machine, exchange gradients and wait. Assume that all this extra time is
# proportional to the bytes of the gradient. How long is this extra time for ResNet152V2? Add it to the step time of
# ResNet152V2 on one worker. (`small_step[2]` is ResNet50V2's seconds per step on 2 workers.)


# %% labs={"id": "resnet152.8"}
def step_seconds(run):
    return run.epoch_seconds.value / run.steps


small_step = {run.workers: step_seconds(run) for run in results.load(files[small])}
large_step = {1: step_seconds(results.load(files[large][0])[0])}
print(f"{small}: {small_step[1]:.3f} s on 1 worker, {small_step[2]:.3f} s on 2; {large}: {large_step[1]:.3f} s on 1")
### BEGIN SOLUTION
step_expected = (
    large_step[1] + (small_step[2] - small_step[1]) * size[large].gradient_bytes / size[small].gradient_bytes
)
### END SOLUTION
predicted = check("resnet152.8", step_expected, small_step, large_step[1], size[small], size[large])

# %% [markdown]
# Now look. Each worker processes the same number of images in a step, so 2 workers together process twice as many.

# %%
runs = results.load([*files[small], *files[large]])
tables.scaling(runs)

# %%
if predicted:
    found = next(step_seconds(run) for run in runs if (run.model, run.workers) == (large, 2))
    how = "recorded" if lacks else "measured"
    print(f"step of {large} on 2 workers: predicted {float(step_expected):.3f} s, {how} {found:.3f} s")
    print(f"residual: {found / float(step_expected) - 1:+.1%} of the prediction")

# %% [markdown]
# The **residual** is the part of the measured time that the prediction does not account for. Note it down for T9. It
# need not be zero: other things in a step take time, too, and the machine may have been slower in one of the studies.
#
# The next check has no blank. It tests whether your study is complete: both networks need a run on 1 worker and at
# least one run on more workers.

# %% labs={"id": "resnet152.9"}
check("resnet152.9", runs, lacks)

# %% [markdown]
# ## The batch script
#
# `slurm/local/ResNet152V2.sh` (or the one in your site's folder) is the batch script for your new training script. Fill
# in its blanks, as in `ResNet50.sh`. A larger network may need more time (`--time`).

# %%
from labs.slurm import sites

batch_script = sites.script("ResNet152V2.sh")
print(batch_script.read_text())

# %% labs={"id": "resnet152.10"}
check("resnet152.10", batch_script)

# %% [markdown]
# If you have SLURM, submit the script with `sbatch`, as in notebook 06.
#
# **Hand in for T9** your `ResNet152V2.py` and `ResNet152V2.sh`. Besides the quoted lines, write about eight
# sentences, with
#
# - the batch size per worker, and the learning rate for each number of workers;
# - the relevant lines of `.out` for each number of workers, and what `.err` shows;
# - the epoch time and the images per second, averaged over the rounds;
# - the speedup with its interval, and what counts as one worker;
# - the accuracy alongside the speed, with the number of updates;
# - your prediction of the step time on 2 workers, with its residual.
#
# The next cell prints the beginning of each log. The other numbers are in the table above.

# %%
for file in files[large]:
    print(file.with_suffix(".out").read_text()[:420], "...\n")

# %% [markdown] labs={"id": "T9", "kind": "answer"}
# ### T9: your answer
# ### BEGIN SOLUTION
# The scripts are scripts/ResNet152V2.py and slurm/local/ResNet152V2.sh. I trained on 1 and 2 workers (a worker is one
# CPU core, or one GPU if there are GPUs). The runs took turns for several rounds, with a fixed batch size per worker.
# The files are runs/ResNet152V2_w1 and _w2 with .out, .err and .json. The header of the .out file names the model, the
# number of workers, the global batch size and the learning rate. The lines `N/N - ..s` give the time of each epoch; I
# left out the first epoch of each run. The .err files contain no errors. The table above gives the speedup and the
# efficiency with 95 % intervals, alongside the epoch time and images per second measured in the same few minutes. It
# also gives the accuracy after the last epoch, when 2 workers have made half as many updates as 1 worker. I predicted
# the step time on 2 workers from the runs of ResNet50V2; the residual is printed below the table. A run on 4 workers
# would be oversubscribed on 2 cores.
# ### END SOLUTION

# %% [markdown]
# ## What is still open
#
# Two measurements always differ: is the difference between the networks more than chance? Notebook 10 answers this, and
# shows what came of your first two predictions.

# %%
outcome("resnet152.1", None)
outcome("resnet152.2", None)

# %% [markdown]
# Next: `10_two_networks`.
