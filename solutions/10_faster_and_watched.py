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
# **Time: 80 minutes, of which 5 minutes on 2 cores are computing.**
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
# A **sampler** writes a few numbers a second beside the run record, one file for each rank: cores in use, memory, page faults (each
# time the kernel has to give the process a page of memory), images, and of GPUs utilisation, memory and power. Any training of the
# course is watched with `LABS_SAMPLES=0.2` in its environment; what it costs is measured by `benchmarks/sampler.py`.
#
# Here two ranks train over MPI, and rank 1 pauses 150 ms in each step. Rank 0 has to wait for it. **Predict:** while it waits, it
# has nothing to compute. How many cores has rank 0 in use, as a mean over the time (0 to 1)?

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
# **Utilisation is not progress.** A rank that waits over MPI asks again and again whether the message has come, which keeps its core
# busy: the outcome above says how much here. A GPU does the same in an all-reduce, and "100 %" of a GPU says only that *some*
# kernel was running, be it one that uses a hundredth of it. So ask what was *done*: images a second, and operations a second beside
# the most that this worker can do, measured with a large matrix product before the training began:

# %%
columns = ("rank", "images", "operations_of_an_image", "most_operations_per_second")
shown = [rank.about | {"rank": rank.rank, "images": rank.images_per_second} for rank in slow]
tables.show(shown, columns, {"images": "images/s"})

# %% [markdown]
# `operations_of_an_image` holds forward and backward, and counts a multiply-add as two. Which share of what it could do has
# rank 0 done (from 0 to 1)?

# %% labs={"id": "10.2"}
### BEGIN SOLUTION
most = slow[0].about["most_operations_per_second"]
share = slow[0].images_per_second * slow[0].about["operations_of_an_image"] / most
### END SOLUTION
check("10.2", share, slow)

# %% [markdown]
# ## Six trainings
#
# Each of these was watched (`benchmarks/traces.py` records them again), and each is limited by something else: `input`,
# `computation`, `exchange`, `validation` (too often), a `slow rank`, or a `small batch`. All of them compute small networks on the
# digits. Which is which?
#
# B and E have two ranks. B exchanges over MPI, where a rank that waits is busy, as above. E exchanges over Gloo, where a rank that waits
# sleeps, and its core is idle. So "busy" and "idle" mean different things in the two.
#
# Page faults tell of large tensors: memory for tens of megabytes is taken from the kernel and given back in each step, and every page of 4 kB
# that is then written to is a fault.

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
# The 67,000 page faults a second of B come from its size and not from its messages: its gradient takes up 42 MB. They are 5,230 a step. When
# the C library was told to keep freed memory (`MALLOC_MMAP_THRESHOLD_`, `MALLOC_TRIM_THRESHOLD_`), the same training had 57 in place of 5,234 a step
# (November 2026, a machine with 2 cores), and its cores were as busy as before.
#
# Naming is a guess until an experiment has confirmed it: take the limit away, and the training must become faster; take away
# something else, and nothing happens. Choose a training and a remedy of `feed`, `exchange less`, `validate less`, `even ranks`
# and `larger batch`. **Predict:** with the remedy, how many times as many images a second?

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
# The lower panels show the phases that the program itself has named (`sampler.phase("input")`): only it can know them. If
# your remedy did little, it was the cure for another limit. The two trainings ran one after the other, once each, so only a large
# difference counts.
#
# ## Profile
#
# A sampler sees processes, a **profiler** single operations. TensorFlow has one, which works on CPUs as well: here for the steps 4
# to 6. (Keras' TensorBoard callback uses the same, with `profile_batch=(4, 6)`; it needs the package `tensorboard`.)

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
# Time in an operation is counted without that of operations inside it, over all threads; MaxPool or Relu may be fused into others.
# All that a profile holds shows `uvx xprof --logdir runs/profile` in the browser (it needs a network once, to be installed).
#
# Which share of the operations' time do convolutions take, forward and both passes backward? `rows` holds all operations; their
# names hold `Conv2D`.

# %% labs={"id": "10.5"}
### BEGIN SOLUTION
convolutions = sum(row["share"] for row in rows if "Conv2D" in row["operation"])
### END SOLUTION
check("10.5", convolutions, rows)

# %% [markdown]
# What is not in them will not get faster by faster convolutions: Amdahl's law (notebook 01), now with measured shares.
#
# ## Feed
#
# Images lie in a folder, 256 x 256 pixels each; the network sees 32 x 32. `feeding.read` reads and decodes a file, `feeding.small`
# makes one image or a whole batch small. This pipeline does it all when a batch is asked for, one file after the other. (Newer
# TensorFlows make some of it parallel and ahead by themselves; here that is switched off, so that you see each change.)

# %%
files, validation = feeding.folder(digits, 64 if quick else 256, jobs.folder())


def starving(files, read, small, batch):
    images = tf.data.Dataset.from_tensor_slices(files).map(read)
    return images.map(lambda image, label: (small(image), label)).batch(batch, drop_remainder=True)


# %% [markdown]
# **Predict:** which share of a step does the worker wait for its batch?

# %% labs={"id": "10.6"}
### BEGIN SOLUTION
waiting = 0.7
### END SOLUTION
predict("10.6", waiting)

# %% [markdown]
# **1.** Let several files be read at the same time. `map` has an argument for it; `tf.data.AUTOTUNE` chooses how many.


# %% labs={"id": "10.7"}
def parallel(files, read, small, batch):
    ### BEGIN SOLUTION
    images = tf.data.Dataset.from_tensor_slices(files).map(read, num_parallel_calls=tf.data.AUTOTUNE)
    return images.map(lambda image, label: (small(image), label)).batch(batch, drop_remainder=True)
    ### END SOLUTION


check("10.7", parallel)

# %% [markdown]
# **2.** `small` works on batches, too, and each call of an operation costs its start. Change the order of `batch` and `map`.


# %% labs={"id": "10.8"}
def by_batch(files, read, small, batch):
    ### BEGIN SOLUTION
    images = tf.data.Dataset.from_tensor_slices(files).map(read, num_parallel_calls=tf.data.AUTOTUNE)
    return images.batch(batch, drop_remainder=True).map(lambda images, labels: (small(images), labels))
    ### END SOLUTION


check("10.8", by_batch)

# %% [markdown]
# **3.** The next epoch needs the same small images: keep them (`cache`), but in a new order in each epoch, with other batches
# (`shuffle`). And have a batch ready before it is asked for (`prefetch`). The order of these stages matters.
#
# A pipeline that TensorFlow tunes by itself (`AUTOTUNE`) may begin an epoch seconds late under a strategy, while the processor is
# idle: the old iterator waits for its tuning thread, which sleeps. The kit switches that thread off. In a script without the kit,
# `options.autotune.enabled = False` in the pipeline's `tf.data.Options` does.


# %% labs={"id": "10.9"}
def fed(files, read, small, batch):
    ### BEGIN SOLUTION
    images = tf.data.Dataset.from_tensor_slices(files).map(read, num_parallel_calls=tf.data.AUTOTUNE)
    images = images.map(lambda image, label: (small(image), label)).cache()
    return images.shuffle(len(files)).batch(batch, drop_remainder=True).prefetch(2)
    ### END SOLUTION


check("10.9", fed)

# %% [markdown]
# What does each change give? The pipelines take turns, and the same network trains on each of their batches; cached
# images are counted from the second epoch on. Beside them the starving pipeline on **TFRecord** files, which hold the same PNGs one
# behind the other: few large files in place of many small ones.

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
# A worker that finds its batch ready waits for nothing, and no faster input can help it any more. Parallel reading takes cores from
# the network where there are few: on 2 cores look at the computing part as well. On a machine with a GPU the cores are free for it.
# The two kinds of files differ where opening a file is dear, as on a cluster's shared file system; on a disk in memory they hardly do.

# %% [markdown]
# ## Do not fetch inside the step
#
# A callback reads the loss after each step, to show it. On a GPU the program has to wait there until the device is done,
# and the device then waits for the program. On a CPU there is nothing to wait for, but Keras still has to compute and hand out
# the metrics each time. **Predict** for a tiny network: the time of a step with such a callback, divided by that without.

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
# Where an interval holds 1, what the fetch costs is lost in the noise of this machine. The course's recorder listens at the *begin* of a
# batch all the same: a callback that has `on_train_batch_end` makes Keras fetch, and on a GPU each fetch is a wait. Read a loss every
# hundredth step, or at the end of the epoch.
#
# ## Faster, step by step
#
# `scripts/slow.py` trains a small network on the image folder: with a slow input, batches of 8, and a callback that fetches in each
# step. `scripts/faster.py` is the same, and yours: make it at least **twice as fast at equal accuracy**. Change one thing at a
# time, and run it after each: `runs` keeps the evidence. Options are `--batch_size` (the rate follows it), `--rate`, `--epochs`
# and `--precision`.
#
# `run` lets each version take turns with `scripts/slow.py`, an epoch of each: what the machine does meanwhile is in both, and the ratio has an
# interval. The first call measures the given training against itself. Its ratio should be 1, and how far it is from 1 shows
# what this measurement cannot tell.

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
# Now edit `scripts/faster.py`, save, and add runs such as `run("input mended", "scripts/faster.py")`.

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
# What limited this training, and what did each change give? 5 to 10 sentences, with your numbers: what the first measurement showed,
# after each change how many times as fast the training is as it was given, with its interval, that the accuracy is equal (on how many images; how far may it differ by chance?), and
# one change that did not help here, with a machine on which it would.

# %% [markdown] labs={"id": "F1", "kind": "answer"}
# ### F1: your answer
# ### BEGIN SOLUTION
# The training waited for its input: reading, decoding and making small was done for each image in each epoch, one after the other,
# before the step could begin, and in the picture of the pipelines above this wait is the larger part of a step. With the images kept
# after the first epoch and a batch made ahead, and without the callback that fetches in each step, the second bar of the ladder says
# how many times as fast it is as the given one within rounds, with its interval; the first bar, the given one against itself, says how far a ratio is from 1 when
# nothing was changed. The larger batch is the next bar: a step of 8 images costs
# nearly as much as one of 32, since each operation has to be started in both; the rate was scaled with the batch. The accuracy on the
# images that no run trained on stands beside each bar; they are 773, so that at an accuracy of 0.95 chance alone makes it differ by
# about 0.015 (two standard errors), and what differs less decides nothing. What mixed_bfloat16 gave the table of precisions says: where its
# interval holds 1 or lies below it did not help, since this CPU has no tiles for it; on one with AMX, or on a GPU with tensor cores, it
# would. Where that table says that it is faster, the ladder still decides for this smaller network: converting costs, too. Parallel reading gives little with one core, and much on a node with many cores and a GPU.
# ### END SOLUTION

# %% [markdown]
# ## What you take along
#
# - Utilisation is not progress: count images and operations, and compare with what the machine can do.
# - Name the limit, take it away, measure again. A remedy for another limit changes nothing.
# - Read once, in parallel, ahead; start each operation for a batch, not for an image; fetch nothing inside a step.
#
# Next: `10b_memory_and_exchange`.
