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
# **Time: 85 minutes, including 9 minutes of computing on 2 cores.**
#
# **Paths:** *the practical* (next: `10_two_networks`), *everything*; *an afternoon* leaves this notebook out.
#
# ResNet152V2 has about three times as many layers as ResNet50V2. "It is bigger, so it scales worse" is easily said,
# but it is a guess. In this notebook and the next one, `10_two_networks`, you test it. First you count what
# grows with the network. Then you write the training script (**T7**), find the largest batch size (**T8**), and train
# on one or more workers (**T9**). The training runs continue in the background while you work. Notebook 10 then
# compares the two networks.

# %%
from labs import devices, jobs, presets, recorded, results
from labs.checks import answered, check, outcome, predict
from labs.measure import maxbatch
from labs.models import counts as facts
from labs.show import plots, tables
from labs.slurm import sites
from lessons import compare
from lessons.resnet152_scaling import experiments

plan = presets.choose()
quick = plan.name == "test"
unit = "GPU" if devices.gpus() else "CPU core"
small, large = "ResNet50V2", "ResNet152V2"
print(f"preset {plan.name}: {plan.images or 'all'} images of {plan.dataset}, {plan.local_batch} per worker and step")
print(f"A worker is one {unit}; this machine has {devices.cores()} cores.")

# %% [markdown]
# ## Predict first
#
# Suppose both networks train on the same images, with the same batch size, on **one** worker. What is the epoch time
# of ResNet152V2, divided by that of ResNet50V2? Enter a number.

# %% labs={"id": "resnet152.1"}
### BEGIN SOLUTION
epoch_ratio_expected = 3.1
### END SOLUTION
predict("resnet152.1", epoch_ratio_expected)

# %% [markdown]
# Now suppose both networks train on 2 workers, with the same batch size per worker. Which network has the larger
# speedup? Enter `"ResNet50V2"`, `"ResNet152V2"` or `"equal"` (if you expect your runs to show no difference).

# %% labs={"id": "resnet152.2"}
### BEGIN SOLUTION
larger_speedup_expected = "ResNet152V2"
### END SOLUTION
predict("resnet152.2", larger_speedup_expected)

# %% [markdown]
# ## What grows, and by how much?
#
# The numbers below are counted layer by layer in the Keras models, for the image size of this notebook. No training
# is needed. A **multiply-add** is one multiplication and the addition that follows it; the table counts those of one
# forward pass for one image. **Activations** are the outputs of the layers, which stay in memory until the backward
# pass. The gradient consists of **tensors**, one for each array of weights.

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
# What is ResNet152V2's number of multiply-adds, divided by ResNet50V2's? And what is this ratio for the bytes of the
# gradient? `size[small]` and `size[large]` hold the numbers from the table under the names `multiply_adds`,
# `gradient_bytes`, `tensors` and `activation_bytes`: for example, `size[large].multiply_adds`.

# %% labs={"id": "resnet152.3"}
### BEGIN SOLUTION
operations_ratio = size[large].multiply_adds / size[small].multiply_adds
gradient_ratio = size[large].gradient_bytes / size[small].gradient_bytes
### END SOLUTION
check("resnet152.3", operations_ratio, gradient_ratio, size[small], size[large])

# %% [markdown]
# Several workers share the computation, but in return they must exchange gradients. So compare the two costs: for
# each multiply-add that a worker computes in a step, how many bytes of gradient are exchanged? In each step, a worker
# runs the forward pass for all the images in its batch. Leave out the backward pass: it takes about twice as much
# work as the forward pass, for both networks.


# %% labs={"id": "resnet152.4"}
def bytes_per_operation(facts, batch):
    """Bytes of gradient for each multiply-add of the forward pass, in a step with `batch` images per worker."""
    ### BEGIN SOLUTION
    return facts.gradient_bytes / (batch * facts.multiply_adds)
    ### END SOLUTION


check("resnet152.4", bytes_per_operation)

# %%
if answered("resnet152.4"):
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
# Which effect is stronger depends on the batch size, the links between the workers and the software. Arguments cannot
# settle this; a measurement may.
#
# ## T7: the script
#
# Open `scripts/ResNet152V2.py` next to your `scripts/ResNet50.py`. It already contains everything that is the same in
# every training script. **Fill in the six blanks**: the strategy, the learning rate, the first line of the log, the
# network, the recorder and the training. Follow your own script: only a few lines differ. The check below accepts your
# script if
#
# - it trains ResNet152V2 from random weights, with one output for each class, and one replica on each of the `workers`;
# - the learning rate follows the linear rule;
# - both the log and the record give the name `ResNet152V2` and the number of workers;
# - the recorder records every epoch, and the log has one line for each epoch.

# %%
script = "scripts/ResNet152V2.py"
compare.scripts("scripts/ResNet50.py", script)

# %% [markdown]
# The cell above shows the lines that occur in only one of the two scripts. Lines that print or record are left out.
# The check tries out your script, as in notebook 05.

# %% labs={"id": "T7"}
check("T7", script)

# %% [markdown]
# ## T8: the largest batch
#
# As in notebook 04, a separate process trains with batches of 1, 2, 4, ... images until memory runs out. Both networks
# get the same amount of memory for a step.
#
# **Predict:** what is ResNet50V2's largest batch, divided by ResNet152V2's? Enter a number. (Which column of the first
# table grows with the batch size?)

# %% labs={"id": "resnet152.6"}
### BEGIN SOLUTION
batch_ratio_expected = size[large].activation_bytes / size[small].activation_bytes
### END SOLUTION
predict("resnet152.6", batch_ratio_expected)

# %%
pair = ("SmallCNN", small) if quick else (small, large)  # the preset test is for tests: it takes smaller networks here
memory = 2**27 if quick else plan.memory
search = {name: maxbatch.search(name, image_size=plan.image_size, memory=memory) for name in pair}
for result in search.values():
    print(maxbatch.table(result), "\n")

# %% [markdown]
# ## T9: start the runs
#
# There is one job for each number of workers, and the jobs **take turns**, as in notebook 05: in each round, every job
# trains for one epoch. The first round is a warm-up. The runs take several minutes. They start only now, after the
# search, because two measurements must not run at the same time. `begin()` starts the jobs **in the background** and
# returns at once. You can go on reading and writing, but do not start anything that computes: a round waits while other
# programs use the cores, but it does not wait for ever.

# %%
sizes = [*plan.arguments(), "--images", 64] if quick else plan.arguments()
turns = jobs.Turns()
if answered("T7"):
    for workers in plan.workers:
        asked = ["--n_gpus", workers, "--batch_size", workers * plan.local_batch, *sizes]
        turns.start(script, *asked, name=f"ResNet152V2_w{workers}")
    turns.begin()

# %% [markdown]
# As long as the script has blanks, no run starts, and the notebook continues with *recorded* runs from a machine with
# 2 cores.
#
# ## While they run: what the search found

# %%
plots.show(plots.search(search[pair[1]]))

# %% [markdown]
# Doubling finds a limit only to within a factor of 2: the limit lies between `result["largest"]`, which fits, and
# `result["fails"]`, which does not. So you cannot know the *ratio* of the two limits (first network / second network)
# exactly, but you can give a lower and an upper bound for it. Compute the bounds. In the next cell, `first` and
# `second` are the results of the two searches.

# %% labs={"id": "resnet152.7"}
first, second = (search[name] for name in pair)
### BEGIN SOLUTION
ratio_low = first["largest"] / second["fails"]
ratio_high = first["fails"] / second["largest"]
### END SOLUTION
check("resnet152.7", ratio_low, ratio_high, first, second)

# %%
kept = [facts.of(name, image_size=plan.image_size, classes=10).activation_bytes for name in pair]
print(f"activations per image of {pair[1]}: {kept[1] / kept[0]:.2f} times those of {pair[0]}")
borders = [first["largest"], second["fails"], first["fails"], second["largest"]]
low, high = (borders[0] / borders[1], borders[2] / borders[3]) if all(borders) else (None, None)
outcome("resnet152.6", borders[0] / borders[3] if low and not quick else None, (low, high) if low else None)

# %% [markdown]
# Weights, gradients and optimizer state take up the same amount of memory at every batch size. The images share what
# is left, and each image needs memory for its activations. Whether the largest batch is also the fastest is a
# separate question: once the number of images per second has stopped rising, a larger batch gains nothing on *one*
# worker. On many workers it still helps, because there are fewer exchanges per image.
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
# two limits only as an interval; the ratio of the activations per image, computed from the layers, can be compared with
# it. Activations set the limit, since they alone grow with the batch size. The weights and gradients of ResNet152V2
# take up 2.5 times as much memory as those of ResNet50V2, but this amount is the same at every batch size.
# ### END SOLUTION

# %% [markdown]
# How far have the runs got? `print(turns)` tells you at any time.

# %%
print(turns)

# %% [markdown]
# ## T9: what the runs say
#
# Collect the runs: `wait()` returns when all of them have finished. For now, look only at the run on **one worker**,
# since you will predict the others.

# %%
if turns.jobs:
    turns.wait()
own_small = experiments.earlier(plan, "ResNet50", "mirrored")
lacks = experiments.lacks(own_small, turns)
own = not lacks
if quick and not own_small:  # the preset test is for tests: it looks at the new runs without those of notebook 05
    own = bool(turns.jobs) and turns.state == "finished"

# %% [markdown]
# Your runs of ResNet152V2 are compared with your runs of ResNet50V2 from notebook 05. If your runs of either network
# are missing, recorded runs are used for *both*. Recorded runs come from another machine, so mixing them with yours
# would mean comparing machines as well as networks.


# %%
def of(name, files):
    return [file for file in files if file.name.startswith(name)]


small_files, large_files = (of(name, recorded.laptop_two_networks()) for name in (small, large))
if own:
    small_files, large_files = own_small or small_files, [job.record for job in turns.jobs]
if lacks:
    print("Recorded runs are used for", f"{small}." if own else "both networks.", lacks)
else:
    print("These are your own runs of both networks.")

# %% [markdown]
# **Predict the step time on 2 workers by hand before you look at it.** A step of ResNet50V2 takes longer on 2 workers
# than on 1, because the workers exchange gradients and wait for each other. Assume that this extra time is
# proportional to the bytes of the gradient. How long is it, then, for ResNet152V2? Add it to the step time of
# ResNet152V2 on one worker.
#
# `small_step` and `large_step` hold the seconds per step for each number of workers: `small_step[2]` is ResNet50V2's
# step time on 2 workers.


# %% labs={"id": "resnet152.8"}
def step(run):
    return run.epoch_seconds.value / run.steps


small_step = {run.workers: step(run) for run in results.load(small_files)}
large_step = {1: step(results.load(large_files[0])[0])}
print(f"{small}: {small_step[1]:.3f} s on 1 worker, {small_step[2]:.3f} s on 2; {large}: {large_step[1]:.3f} s on 1")
### BEGIN SOLUTION
step_expected = (
    large_step[1] + (small_step[2] - small_step[1]) * size[large].gradient_bytes / size[small].gradient_bytes
)
### END SOLUTION
check("resnet152.8", step_expected, small_step, large_step[1], size[small], size[large])

# %% [markdown]
# Now look. Each worker processes the same number of images in a step, so 2 workers together process twice as many.

# %%
runs = results.load([*small_files, *large_files])
tables.scaling(runs)

# %%
if answered("resnet152.8"):
    measured_step = next(step(run) for run in runs if (run.model, run.workers) == (large, 2))
    how = "recorded" if lacks else "measured"
    print(f"step of {large} on 2 workers: predicted {step_expected:.3f} s, {how} {measured_step:.3f} s")
    print(f"residual: {measured_step / step_expected - 1:+.1%} of the prediction")

# %% [markdown]
# The **residual** is the part of the measured time that the prediction does not account for. Note it down: you need
# it for T9. It need not be zero. The extra time may not be proportional to the bytes, and other things in a step may
# take time, too.
#
# The number of images per second counts only the images that were actually processed: 512 images are 8 steps of 64
# images, or 4 steps of 128. If the batch size does not divide the number of images evenly, the kit's pipeline leaves
# out the last, incomplete batch.
#
# The next check has no blank. It tests whether your study is complete: both networks need a run on 1 worker and at
# least one run on more workers.

# %% labs={"id": "resnet152.9"}
check("resnet152.9", runs, "" if own else lacks)

# %% [markdown]
# On 2 cores, a run with 4 workers would be marked **oversubscribed**, and its times would say nothing about speed. If
# you have GPUs, the preset trains on 1, 2 and 4 workers.
#
# ## On the cluster
#
# `slurm/local/ResNet152V2.sh` is the batch script for your new training script. If you work on another cluster, use the
# one in your site's folder. Fill in its blanks; the `ResNet50.sh` that you wrote in notebook 06 shows how. Then run
# the next two cells. The check finds mistakes that `sbatch` would accept.

# %%
site = sites.load()
batch_script = sites.script("ResNet152V2.sh")
print(batch_script.read_text())

# %% labs={"id": "resnet152.10"}
check("resnet152.10", batch_script)

# %% [markdown]
# If SLURM is available on this machine, the next cell submits the script. Otherwise, nothing runs here: the check has
# already tried out the script, and your runs above did the same training.

# %%
from labs.jobs import queue

short = ["--images", 128, "--epochs", 2, "--repeats", 1] if site.preset != "course" else []
if answered("T7", "resnet152.10") and not quick and queue.available():
    batch_job = jobs.run(batch_script, *short, name="ResNet152V2", site=site.id)
    print(*batch_job.out.read_text().split("\n")[:12], sep="\n")
    print("...\nin the .err:", batch_job.err.read_text().strip() or "nothing")
    if batch_job.records:
        tables.scaling(results.load(batch_job.records))

# %% [markdown]
# The global batch for 2 workers must include the images of both. What else may differ from `ResNet50.sh`? A larger
# network needs more time (`--time`). If you train with the largest batch size, the number of images per worker is
# different, too.
#
# **Hand in for T9** your `ResNet152V2.py` and `ResNet152V2.sh`. Besides the quoted lines, write about eight
# sentences, with
#
# - the batch size per worker, and the learning rate for each number of workers;
# - the relevant lines of `.out` for each number of workers, and a comment on `.err`;
# - the epoch time and the images per second, averaged over all rounds except the first;
# - the speedup with its interval, and what counts as one worker;
# - the accuracy alongside the speed, with the number of updates;
# - your prediction of the step time on 2 workers, with its residual.
#
# The next cell prints the beginning of each log. The other numbers are in the table above.

# %%
for file in large_files:
    if file.with_suffix(".out").exists():
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
# You do not know yet whether your first two predictions were right. The table above shows two speedups, and they
# differ. But two measurements always differ: is the difference between the networks more than chance? Notebook 10
# answers this.

# %%
outcome("resnet152.1", None)
outcome("resnet152.2", None)

# %% [markdown]
# ## Summary
#
# - A larger network computes more *and* exchanges more. What counts is the ratio of the two, at a given batch size.
# - Memory sets the largest batch, and activations fill the memory: with the larger network, fewer images fit.
# - Change the network and its name in the recorder together: the recorder stops a run under the name of another
#   network.
# - Predict first. A residual tells you what your assumption left out.
#
# Next: `10_two_networks`.
