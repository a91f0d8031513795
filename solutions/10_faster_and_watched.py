# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Faster, and watched: what limits a step, and what makes it shorter
#
# **Time: 80 minutes, including 5 minutes of computing on 2 cores.**
#
# **Paths:** *everything*; *an afternoon* and *the practical* leave it out.
#
# More workers are one way to a shorter training. A shorter *step* is another, and it costs no hardware. First you learn to see
# what a training waits for. Then you write an input pipeline that never makes it wait. At the end you make a given training at
# least twice as fast, and hand in **F1**.

# %%
from labs import data, devices, jobs, presets, recorded  # first: it silences TensorFlow's start-up messages
from labs.checks import answered, check, outcome, predict
from labs.lessons.nb10 import by_hand, feeding, limited, pictures, profile
from labs.measure.step import compiled
from labs.results import intervals, metrics, watched
from labs.results import record as run_record
from labs.results.run import load_record
from labs.show import plots, tables
from labs.show import watched as show_watched

import random
import time

import keras
import numpy as np
import tensorflow as tf

quick = presets.choose().name == "test"
print(f"preset {presets.choose().name}; {devices.cores()} cores; GPUs: {devices.gpus() or 'none'}")

# %% [markdown]
# ## Watch
#
# A **sampler** watches a training: several times a second it writes down what the training uses, in one file for each rank beside
# the run record. It counts cores in use, memory, images and page faults. (A page fault means that the kernel gave the process
# another page of memory.) For GPUs it adds utilisation, memory and power. To watch any training of the course, put
# `LABS_SAMPLES=0.2` into its environment; `benchmarks/sampler.py` measures what watching costs.
#
# Here two ranks train over MPI, and rank 1 pauses for 150 ms in each step. Rank 0 has to wait for it, and has nothing to compute
# meanwhile. **Predict:** how many cores does rank 0 use, as a mean over the whole time (0 to 1)?

# %% labs={"id": "10.1"}
### BEGIN SOLUTION
cores_waiting = 0.5
### END SOLUTION
predict("10.1", cores_waiting)

# %%
seconds = 2 if quick else 6
slow = None
if devices.has("horovod"):
    job = limited.start("E", name="slow_rank_mpi", launcher="mpiexec", seconds=seconds).wait()
    slow = watched.ranks(jobs.folder() / job.name) if job.state == "finished" else None
    print(job.explain())
outcome("10.1", slow[0].mean("cores") if slow else None)

# %%
title = "Rank 1 pauses in each step" if slow else "Recorded: two ranks over MPI"
slow = slow or [watched.read(file) for file in recorded.traces()["B"]]
plots.show(show_watched.figure(slow, title=title))

# %% [markdown]
# **Utilisation is not progress.** A rank that waits over MPI asks again and again whether the message has come. This keeps its core
# busy; the outcome above says how busy it was here. A GPU does the same in an all-reduce. A GPU utilisation of 100 % says only that
# *some* kernel was running, even if it used a hundredth of the GPU. So ask what was *done*: how many images a second, and how many
# operations a second. Compare the operations with the most that this worker can do, which was measured with a large matrix product
# before the training began:

# %%
columns = ("rank", "images", "operations_of_an_image", "most_operations_per_second")
shown = [rank.about | {"rank": rank.rank, "images": rank.images_per_second} for rank in slow]
tables.show(shown, columns, {"images": "images/s"})

# %% [markdown]
# `operations_of_an_image` includes the forward and the backward pass, and counts a multiply-add as two operations. What share of
# the operations that it could do did rank 0 do (from 0 to 1)?

# %% labs={"id": "10.2"}
### BEGIN SOLUTION
most = slow[0].about["most_operations_per_second"]
share = slow[0].images_per_second * slow[0].about["operations_of_an_image"] / most
### END SOLUTION
check("10.2", share, slow)

# %% [markdown]
# ## Six trainings
#
# Six trainings of small networks on the digits were watched and recorded. Each has a different limit: `input`, `computation`,
# `exchange`, `validation` (too often), a `slow rank`, or a `small batch`. Which is which?
#
# B and E have two ranks. B exchanges over MPI, where a waiting rank keeps its core busy, as above. E exchanges over Gloo, where a
# waiting rank sleeps, and its core is idle. So a busy core means something different in B than in E.
#
# Many page faults are a sign of large tensors. In each step the process takes tens of megabytes from the kernel and gives them back,
# and each page of 4 kB that it writes to causes a fault.

# %%
traces = {case: [watched.read(file) for file in files] for case, files in recorded.traces().items()}
for case, ranks in traces.items():
    over = {"mpiexec": ", over MPI", "horovodrun": ", over Gloo"}.get(limited.SETTINGS[case].launcher, "")
    plots.show(show_watched.figure(ranks, phases=False, title=f"Training {case}{over}"))

# %%
rows = []
for case, ranks in traces.items():
    for rank in ranks:
        done = rank.images_per_second * rank.about["operations_of_an_image"]
        row = {"training": case, "rank": rank.rank, "batch": rank.about["batch"], "cores": rank.mean("cores")}
        row["images"] = rank.images_per_second
        rows.append(
            row | {"share": f"{done / rank.about['most_operations_per_second']:.1%}", "faults": rank.mean("faults")}
        )
headers = {"cores": "cores in use", "images": "images/s", "share": "operations, of the most", "faults": "page faults/s"}
tables.show(rows, ("training", "rank", "batch", *headers), headers)

# %% labs={"id": "10.3"}
### BEGIN SOLUTION
limits = {"A": "input", "B": "exchange", "C": "validation", "D": "computation", "E": "slow rank", "F": "small batch"}
### END SOLUTION
check("10.3", limits)

# %% [markdown]
# B has 67,000 page faults a second, which is 5,230 in each step. They come from the size of its tensors (the gradient takes up 42 MB),
# not from its messages. With a C library that keeps freed memory (`MALLOC_MMAP_THRESHOLD_`, `MALLOC_TRIM_THRESHOLD_`) the same
# training had 57 page faults in a step instead of 5,234, and its cores were as busy as before (November 2026, a machine with 2 cores).
#
# To name a limit is only a guess. An experiment confirms it: remove the limit, and the training becomes faster; remove something
# else, and nothing changes. Choose one of the trainings A to F and a remedy: `feed`, `exchange less`, `validate less`, `even ranks`
# or `larger batch`. **Predict:** with this remedy, how many times as many images a second does the training process?

# %% labs={"id": "10.4"}
### BEGIN SOLUTION
case, remedy = "F", "larger batch"
times_as_fast = 5
### END SOLUTION
predict("10.4", times_as_fast)

# %%
rates = {}
for change in (None, remedy) if case in limited.SETTINGS and remedy in limited.REMEDIES else ():
    if limited.SETTINGS[case].ranks and not devices.has("horovod"):
        break
    job = limited.start(case, change, seconds=seconds).wait()
    if job.state != "finished":
        print(job.explain())
        break
    ranks = watched.ranks(jobs.folder() / job.name)
    rates[change] = sum(rank.images_per_second for rank in ranks)
    plots.show(show_watched.figure(ranks, title=f"Training {case}, {change or 'as it was'}"))
outcome("10.4", rates[remedy] / rates[None] if len(rates) == 2 else None)

# %% [markdown]
# The lower panels show phases of a step. Only the program itself knows them, so it names them to the sampler
# (`sampler.phase("input")`). If your remedy changed little, it cures another limit. The two trainings ran one after the other, once
# each, so only a large difference counts.
#
# ## Optional: profile
#
# A sampler sees whole processes; a **profiler** sees single operations. TensorFlow has a profiler that works on CPUs, too. Here it
# records the steps 4 to 6. (Keras' TensorBoard callback uses the same profiler, with `profile_batch=(4, 6)`; it needs the package
# `tensorboard`.)

# %%
digits = data.load("digits")
model = feeding.network()
model.compile("sgd", "sparse_categorical_crossentropy", jit_compile=False)
folder = jobs.folder() / "profile"
watch = profile.callback(folder, first=4, last=6)
model.fit(digits.images[:512], digits.labels[:512], batch_size=64, verbose=0, callbacks=[watch])

# %%
rows = profile.operations(folder)
columns = {"operation": "operation", "ms": "ms", "calls": "calls", "share": "share"}
tables.show([row | {"ms": 1e3 * row["seconds"]} for row in rows[:10]], tuple(columns), columns)

# %% [markdown]
# The time of an operation is the sum over all threads, without the operations inside it. TensorFlow may fuse a small operation, such
# as Relu, into another one. `uvx xprof --logdir runs/profile` shows the whole profile in the browser (the first time it is installed,
# which needs the internet).
#
# What share of the operations' time do the convolutions take, with their forward pass and their two gradients? `rows` lists all
# operations; the names of these contain `Conv2D`.

# %% labs={"id": "10.5"}
### BEGIN SOLUTION
convolutions = sum(row["share"] for row in rows if "Conv2D" in row["operation"])
### END SOLUTION
check("10.5", convolutions, rows)

# %% [markdown]
# Faster convolutions do not shorten the rest of the step. This is Amdahl's law of notebook 01, now with measured shares.
#
# ## Feed
#
# A folder holds images of 256 x 256 pixels, but the network takes 32 x 32. `feeding.read` reads and decodes a file; `feeding.small`
# makes one image small, or a whole batch of them. The pipeline below does all this only when the step asks for a batch, one file
# after the other. Meanwhile the network waits: it **starves**. (Newer versions of TensorFlow read in parallel and prepare batches
# ahead by themselves. Here this is switched off, so that you see the effect of each change.)

# %%
files, validation = feeding.folder(digits, 64 if quick else 256, jobs.folder())


def starving(files, read, small, batch):
    images = tf.data.Dataset.from_tensor_slices(files).map(read)
    return images.map(lambda image, label: (small(image), label)).batch(batch, drop_remainder=True)


# %% [markdown]
# **Predict:** during what share of a step does the worker wait for its batch?

# %% labs={"id": "10.6"}
### BEGIN SOLUTION
waiting = 0.7
### END SOLUTION
predict("10.6", waiting)

# %% [markdown]
# **1.** Read several files at the same time. `map` has an argument for this; `tf.data.AUTOTUNE` lets TensorFlow choose how many.


# %% labs={"id": "10.7"}
def parallel(files, read, small, batch):
    ### BEGIN SOLUTION
    images = tf.data.Dataset.from_tensor_slices(files).map(read, num_parallel_calls=tf.data.AUTOTUNE)
    return images.map(lambda image, label: (small(image), label)).batch(batch, drop_remainder=True)
    ### END SOLUTION


check("10.7", parallel)

# %% [markdown]
# **2.** Each call of an operation has a start-up cost. `small` works on whole batches, too, so call it less often: change the order
# of `batch` and `map`.


# %% labs={"id": "10.8"}
def by_batch(files, read, small, batch):
    ### BEGIN SOLUTION
    images = tf.data.Dataset.from_tensor_slices(files).map(read, num_parallel_calls=tf.data.AUTOTUNE)
    return images.batch(batch, drop_remainder=True).map(lambda images, labels: (small(images), labels))
    ### END SOLUTION


check("10.8", by_batch)

# %% [markdown]
# **3.** The next epoch needs the same small images, so keep the small ones (`cache`): the large ones would take up 64 times the
# memory. Each epoch still needs a new order and other batches (`shuffle`). Last, have a batch ready before the step asks for it
# (`prefetch`). The order of these stages matters.
#
# `AUTOTUNE` has a trap under a strategy: an epoch may begin seconds late while the processor is idle, because the old iterator waits
# for its tuning thread, which sleeps. The kit switches that thread off. In a script without the kit, set
# `options.autotune.enabled = False` in the pipeline's `tf.data.Options`.


# %% labs={"id": "10.9"}
def fed(files, read, small, batch):
    ### BEGIN SOLUTION
    images = tf.data.Dataset.from_tensor_slices(files).map(read, num_parallel_calls=tf.data.AUTOTUNE)
    images = images.map(lambda image, label: (small(image), label)).cache()
    return images.shuffle(len(files)).batch(batch, drop_remainder=True).prefetch(2)
    ### END SOLUTION


check("10.9", fed)

# %% [markdown]
# What does each change bring? The pipelines take turns, and the same network trains on their batches. The first epoch of each, in
# which the cache fills, is not counted. One more pipeline starves with **TFRecord** files: a few large files that hold the same PNGs
# one after the other, instead of many small files.

# %%
records = feeding.records(digits, len(files), jobs.folder())


def from_records(paths, small, batch):
    images = tf.data.TFRecordDataset(paths).map(feeding.example)
    return images.map(lambda image, label: (small(image), label)).batch(batch, drop_remainder=True)


# %%
train = compiled(feeding.network(), keras.optimizers.SGD(0.01))
batch = 32
given = {"starving": starving, "parallel": parallel, "small by batches": by_batch, "cached, ahead": fed}
pipelines = {"starving": starving(files, feeding.read, feeding.small, batch)}
if answered("10.7", "10.8", "10.9"):
    for name, function in given.items():
        pipelines[name] = function(files, feeding.read, feeding.small, batch)
pipelines["starving, TFRecord"] = from_records(records, feeding.small, batch)
waits = feeding.measure(pipelines, lambda images, labels: float(train(images, labels)), rounds=2 if quick else 5)
plots.show(pictures.waits(waits))
shares = [wait / (wait + compute) for wait, compute in waits["starving"]]
outcome("10.6", np.mean(shares), intervals.shares(shares))

# %% [markdown]
# A worker that finds its batch ready no longer waits, so a faster input cannot help it any more. Where there are few cores, parallel
# reading takes them from the network: on 2 cores, look at the computing part, too. On a machine with a GPU the cores are free for
# reading. The two kinds of files differ where opening a file is slow, as on a cluster's shared file system. Where the files are in
# memory they hardly differ.

# %% [markdown]
# ## Do not fetch inside the step
#
# A callback reads the loss after each step, perhaps to print it. On a GPU the program then has to wait until the device has finished
# the step, and after that the device waits for the program. On a CPU there is nothing to wait for, but Keras still computes the
# metrics and hands them to the callback in each step. **Predict** for a tiny network: the time of a step with such a callback, divided
# by the time without it.

# %% labs={"id": "10.19"}
### BEGIN SOLUTION
fetching_costs = 1.2
### END SOLUTION
predict("10.19", fetching_costs)


# %%
class Reader(keras.callbacks.Callback):
    """Reads the loss after each step."""

    def on_train_batch_end(self, batch, logs=None):
        self.loss = logs["loss"]


tiny = by_hand.network("dense", 16, seed=0)
tiny.compile("sgd", "sparse_categorical_crossentropy", jit_compile=False)
step = compiled(by_hand.network("dense", 16, seed=0), keras.optimizers.SGD(0.01))
pixels, labels = tf.constant(digits.images[:8]), tf.constant(digits.labels[:8])
images, targets = np.tile(digits.images[:8], (40, 1, 1, 1)), np.tile(digits.labels[:8], 40)


def fit(callbacks):
    tiny.fit(images, targets, batch_size=8, epochs=2, verbose=0, callbacks=callbacks)


def loop(fetches):
    for _ in range(80):
        loss = step(pixels, labels)
        if fetches:
            loss.numpy()
    loss.numpy()


trials = {"fit": lambda: fit([]), "fit, read in each step": lambda: fit([Reader()])}
trials |= {"loop": lambda: loop(False), "loop, .numpy() in each step": lambda: loop(True)}
times, order = {name: [] for name in trials}, random.Random(0)
for number in range(3 if quick else 9):
    for name, trial in order.sample(list(trials.items()), len(trials)):  # turns, in random order
        begin = time.perf_counter()
        trial()
        if number:  # the first round traces
            times[name].append((time.perf_counter() - begin) / 80)
rows = []
for plain, fetching in (("fit", "fit, read in each step"), ("loop", "loop, .numpy() in each step")):
    ratio = intervals.mean([a / b for a, b in zip(times[fetching], times[plain])])
    if plain == "fit":
        outcome("10.19", ratio.value, ratio.interval)
    row = {"what": fetching, "without": 1e6 * np.mean(times[plain]), "with": 1e6 * np.mean(times[fetching])}
    rows.append(row | {"ratio": f"{ratio.value:.2f} ({ratio.interval[0]:.2f} to {ratio.interval[1]:.2f})"})
tables.show(rows, tuple(rows[0]), {"without": "step without (µs)", "with": "step with (µs)"})

# %% [markdown]
# If an interval contains 1, the cost of the fetch is too small for this machine's noise. On a GPU it is not: there each fetch is a
# wait. A callback with `on_train_batch_end` makes Keras fetch, which is why the course's recorder uses the *beginning* of a batch. Read
# the loss in every hundredth step, or at the end of the epoch.
#
# ## Faster, step by step
#
# `scripts/slow.py` trains a small network on the image folder. Its input is slow, its batches have 8 images, and a callback fetches in
# each step. `scripts/faster.py` begins as a copy of it, and is yours to change: make it at least **twice as fast at equal accuracy**.
# Change one thing at a time, and run the script after each change: `runs` keeps the evidence. The options are `--batch_size` (the
# learning rate follows it), `--rate`, `--epochs` and `--precision` (notebook 10b explains it).
#
# `run` lets your version and `scripts/slow.py` take turns, epoch by epoch. So both see the same disturbances of the machine, and the
# ratio gets an interval. The first call measures the given training against itself. Its ratio should be 1; how far it is from 1 tells
# you which differences are too small to be measured here.

# %%
runs, steps = {}, {}
short = ["--images", 96, "--epochs", 2] if quick else []


def run(name, script, *options):
    number = len(runs)
    turns = jobs.Turns(patience=0 if quick else 5)  # seconds, in all, to wait for a quiet machine
    with turns:
        given = turns.start("scripts/slow.py", *short, name=f"given_{number}")
        job = turns.start(script, *options, *short, name=f"faster_{number}")
    if turns.state == "finished":
        runs[name] = run_record.load(job.record)
        steps[name] = rung(load_record(job.record), load_record(given.record))


def rung(own, given):
    """What the ladder shows of a run: its ratio to the given one, images/s, accuracy."""
    ratio, note = pictures.gain(own, given)
    if note and own.study:  # recorded runs did not take turns, and the picture says so
        print(f"Mind: {note}.")
    return ratio, metrics.throughput(own).value, own.repeats[-1][-1].metrics["val_accuracy"]


run("as given", "scripts/slow.py")

# %% [markdown]
# Now edit `scripts/faster.py` and save it. After each change, add a run such as `run("faster input", "scripts/faster.py")`.

# %%
### BEGIN SOLUTION
run("input mended, nothing fetched", "scripts/faster.py")
if not quick:
    run("batch 32", "scripts/faster.py", "--batch_size", 32)
### END SOLUTION
own = len(runs) > 1
if quick and own:
    files = recorded.faster()
    runs = {name: run_record.load(file) for name, file in files.items()}
    print("These short runs learn nothing: what follows uses recorded ones instead.")
    given, *_ = map(load_record, files.values())
    steps = {name: rung(load_record(file), given) for name, file in files.items()}
if steps:
    plots.show(pictures.ladder(steps, kind="recorded" if quick and own else "measured"))

# %% labs={"id": "10.20"}
gains = {name: (ratio.value, ratio.interval) for name, (ratio, _, _) in steps.items()}
check("10.20", runs if own else ..., gains)

# %% [markdown]
# ## F1
#
# What limited this training, and what did each change bring? Write 5 to 10 sentences, with your numbers:
#
# - what the first measurement showed;
# - after each change, how many times as fast the training is as it was given, with the interval;
# - that the accuracy is equal: on how many images, and by how much may it differ by chance?
# - one change that did not help here, and a machine on which it would.

# %% [markdown] labs={"id": "F1", "kind": "answer"}
# ### F1: your answer
# ### BEGIN SOLUTION
# The training waited for its input. For each image in each epoch, reading, decoding and resizing ran one after the other before the
# step could begin; in the picture of the pipelines above, waiting is the larger part of a step. The second bar of the ladder shows
# the training with the images kept after the first epoch, a batch prepared ahead, and no callback that fetches in each step. The bar
# says how many times as fast it is as the given one within rounds, with its interval. The first bar compares the given training with
# itself: its distance from 1 shows how far a ratio may be from 1 when nothing was changed. The larger batch is the next bar. A step of
# 8 images costs nearly as much as one of 32, since both start every operation once; the rate was scaled with the batch. The accuracy
# stands in the right panel. It was measured on the 773 images that no run trained on. At an accuracy of 0.95, chance alone makes it
# differ by about 0.015 (two standard errors), so a smaller difference decides nothing. Parallel reading alone brings little on few
# cores, since it takes them from the network; on a node with many cores and a GPU it would help.
# ### END SOLUTION

# %% [markdown]
# ## What you take along
#
# - Utilisation is not progress: count images and operations, and compare them with what the machine can do.
# - Name the limit, remove it, measure again. A remedy for another limit changes nothing.
# - Read once, in parallel, ahead. Start each operation for a batch, not for an image. Fetch nothing inside a step.
#
# Next: `10b_memory_and_exchange`.
