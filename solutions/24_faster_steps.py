# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Making a step faster, and watching it: what limits a step, and what makes it shorter
#
# **Time: 50 minutes, including 5 minutes of computing on 2 cores.** Five optional parts take about 30 minutes more.
#
# **Paths:** only *everything* contains this notebook.
#
# More workers are one way to shorten training. A shorter *step* is another, and it needs no extra hardware. First you
# learn to see what a training run is waiting for. Then you write an input pipeline that never keeps it waiting. At the
# end you make a given training script at least twice as fast, and hand in **F1**.

# %%
from labs import data, devices, jobs, presets, recorded, results  # import this first: it sets up TensorFlow
from labs.checks import answered, check, outcome, predict
from labs.measure.step import compiled
from labs.results import intervals, metrics
from labs.show import plots, tables
from lessons import on_gpu
from lessons.faster_steps import by_hand, feeding, limited, pictures, profile
from lessons.faster_steps import samples
from lessons.faster_steps import watched as show_watched

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
# A **sampler** watches a training run. Several times a second, it records for each rank how many cores and how much
# memory the rank uses, how many images it has processed, and how many page faults it has caused. (A page fault means
# that the operating system gave the process another page of memory.) On GPUs, it also records utilisation, memory and
# power.
#
# Here two ranks train over MPI, and rank 1 pauses for 150 ms in each step. Rank 0 waits for it, and has nothing to
# compute during that time. **Predict:** what share of its core does rank 0 use, averaged over the whole run? Give a
# number from 0 to 1.

# %% labs={"id": "faster.1"}
### BEGIN SOLUTION
cores_waiting = 0.5
### END SOLUTION
predict("faster.1", cores_waiting)

# %%
seconds = 2 if quick else 6
slow = None
if devices.has("horovod"):
    job = limited.start("E", name="pausing", launcher="mpiexec", seconds=seconds).wait()
    slow = samples.ranks(jobs.folder() / job.name) if job.state == "finished" else None
    print(job.explain())
outcome("faster.1", slow[0].mean("cores") if slow else None)

# %%
title = "Rank 1 pauses in each step" if slow else "Recorded: two ranks over MPI"
slow = slow or [samples.read(file) for file in recorded.traces()["B"]]
plots.show(show_watched.figure(slow, title=title))

# %% [markdown]
# The upper panels show what each rank uses and how many images it has processed, the lower ones the phases of a step.
# Only the program itself knows them, so it reports them to the sampler (`sampler.phase("input")`). The pause counts as
# computation here.
#
# **Utilisation is not progress.** About once a millisecond, a thread of Horovod on *every* rank asks the other ranks
# which gradients are ready, also while its rank pauses. Over MPI, the thread that comes first asks again and again
# whether the message of the others has arrived, and this keeps its core busy. So two ranks that wait use about one core
# together (less if other programs need it). How they share it differs from run to run: the rank that pauses may use
# more than the rank that waits for it. A GPU that waits in an all-reduce looks busy, too. A GPU utilisation of 100 %
# says only that *some* program (a *kernel*) was running on it, even if that program used only a hundredth of the GPU.

# %%
print(on_gpu.utilisation())

# %% [markdown]
# So ask how much was *done*: how many images per second, and how many operations per second? The next table shows, for
# each rank, the images per second, the operations per image, the highest number of operations per second that the
# worker can reach, and the share of it that the rank reached. (The operation count per image includes the forward and
# the backward pass, and a multiply-add counts as two. The maximum was measured with a large matrix product before
# training began.)

# %%
headers = {"images": "images/s", "each": "million operations per image", "most": "maximum (billion operations/s)"}
headers["share"] = "share of the maximum"
shown = []
for rank in slow:
    each, most = rank.about["operations_of_an_image"], rank.about["most_operations_per_second"]
    row = {"rank": rank.rank, "images": rank.images_per_second, "each": each / 1e6, "most": most / 1e9}
    shown.append(row | {"share": f"{rank.images_per_second * each / most:.1%}"})
tables.show(shown, ("rank", *headers), headers)

# %% [markdown]
# ## Six training runs
#
# Six training runs of small networks on the digits were watched and recorded. Each of them has a different limit:
# `input`, `computation`, `exchange`, `validation` (too often), a `slow rank`, or a `small batch`. Which run has which
# limit? Answer with a dictionary such as `{"A": "computation", "B": ...}`.
#
# B and E have two ranks each. B exchanges over MPI, where two ranks that only wait keep about one core busy, as above.
# E exchanges over Gloo, where a waiting rank sleeps and its core is idle. So a busy core means something different in B
# and in E.
#
# The table below the figure shows how many cores each rank used, and what share of its maximum operations per second
# it reached.
#
# Large tensors, such as large gradients, cause many page faults. Many small messages cause few.

# %%
traces = {case: [samples.read(file) for file in files] for case, files in recorded.traces().items()}
over = {"mpiexec": ", over MPI", "horovodrun": ", over Gloo", None: ""}
shown = {f"Run {case}{over[limited.SETTINGS[case].launcher]}": ranks for case, ranks in traces.items()}
plots.show(show_watched.several(shown))

# %%
rows = []
for case, ranks in traces.items():
    for rank in ranks:
        done = rank.images_per_second * rank.about["operations_of_an_image"]
        row = {"run": case, "rank": rank.rank, "batch": rank.about["batch"], "cores": rank.mean("cores")}
        row["images"] = rank.images_per_second
        rows.append(
            row | {"share": f"{done / rank.about['most_operations_per_second']:.1%}", "faults": rank.mean("faults")}
        )
headers = {"cores": "cores in use", "images": "images/s", "share": "operations, of the most", "faults": "page faults/s"}
tables.show(rows, ("run", "rank", "batch", *headers), headers)

# %% labs={"id": "faster.2"}
### BEGIN SOLUTION
limits = {"A": "input", "B": "exchange", "C": "validation", "D": "computation", "E": "slow rank", "F": "small batch"}
### END SOLUTION
check("faster.2", limits)

# %% [markdown]
#
# Naming a limit is only a guess. An experiment can confirm it: if you remove the limit, training becomes faster; if you
# remove something else, nothing changes. Choose one of the runs A to F, but not the one limited by its computation: it
# has no remedy here. Choose a remedy, too: `feed` (no image is read or decoded), `exchange less`, `validate less`,
# `equal ranks` (none pauses) or `larger batch`. Write both as strings, such as `case, remedy = "A", "feed"`.
# **Predict** the gain: images per second with this remedy, divided by images per second without it.

# %% labs={"id": "faster.3"}
### BEGIN SOLUTION
case, remedy = "F", "larger batch"
times_as_fast = 5
### END SOLUTION
predict("faster.3", times_as_fast)

# %%
rates = {}
case, remedy = limited.chosen(case, remedy)
for change in (None, remedy) if case else ():
    if limited.SETTINGS[case].ranks and not devices.has("horovod"):
        break
    job = limited.start(case, change, seconds=seconds).wait()
    if job.state != "finished":
        print(job.explain())
        break
    ranks = samples.ranks(jobs.folder() / job.name)
    rates[change] = sum(rank.images_per_second for rank in ranks)
    plots.show(show_watched.figure(ranks, title=f"Run {case}, {change or 'as it was'}"))
outcome("faster.3", rates[remedy] / rates[None] if len(rates) == 2 else None)

# %% [markdown]
# If your remedy changed little, it addresses a different limit. The two versions ran one after the other, once
# each, so only a large difference means anything.
#
# ## Feed
#
# The images in a folder have 256 x 256 pixels, but the network takes images of 32 x 32. `feeding.read` reads and
# decodes a file; `feeding.small` shrinks one image, or a whole batch of them. The pipeline below does all this, one
# file after another, and only when the step asks for a batch. Until the batch is ready, the network waits: it
# **starves**. (Newer versions of TensorFlow automatically read in parallel and prepare batches in advance. Here this is
# switched off, so that you can see the effect of each change.)

# %%
digits = data.load("digits")
files, validation = feeding.folder(digits, 64 if quick else 256, jobs.folder())


def starving(files, read, small, batch):
    images = tf.data.Dataset.from_tensor_slices(files).map(read)
    return images.map(lambda image, label: (small(image), label)).batch(batch, drop_remainder=True)


# %% [markdown]
# **Predict:** what share of a step does the worker spend waiting for its batch? Give a number from 0 to 1.

# %% labs={"id": "faster.4"}
### BEGIN SOLUTION
waiting = 0.7
### END SOLUTION
predict("faster.4", waiting)

# %% [markdown]
# Now write two faster pipelines. Each is a function with the same arguments as `starving`, and also drops the last,
# incomplete batch. Use the arguments, not `feeding.read` or the `files` above: the check passes its own.
#
# **1.** Read several files at the same time. `map` has an argument for this, `num_parallel_calls`; its value
# `tf.data.AUTOTUNE` lets TensorFlow choose how many files to read at once. An element is a pair (image, label).


# %% labs={"id": "faster.5"}
def parallel(files, read, small, batch):
    ### BEGIN SOLUTION
    images = tf.data.Dataset.from_tensor_slices(files).map(read, num_parallel_calls=tf.data.AUTOTUNE)
    return images.map(lambda image, label: (small(image), label)).batch(batch, drop_remainder=True)
    ### END SOLUTION


check("faster.5", parallel)

# %% [markdown]
# **2.** Read in parallel as before, and also do the work only once, in advance. The order of the stages matters:
#
# - `cache`: keep the small images for the next epochs. (The large ones would take up 64 times as much memory.)
# - `shuffle(len(files))`: put the individual images into a new order in each epoch, so that the batches change, too.
#   Then `batch`, with `drop_remainder=True` as above.
# - `prefetch`: have a batch ready before the step asks for it.


# %% labs={"id": "faster.6"}
def fed(files, read, small, batch):
    ### BEGIN SOLUTION
    images = tf.data.Dataset.from_tensor_slices(files).map(read, num_parallel_calls=tf.data.AUTOTUNE)
    images = images.map(lambda image, label: (small(image), label)).cache()
    return images.shuffle(len(files)).batch(batch, drop_remainder=True).prefetch(2)
    ### END SOLUTION


check("faster.6", fed)

# %% [markdown]
# How much does each change gain? The pipelines take turns, and the same network trains on their batches. The first
# epoch of each pipeline, in which the cache fills, is not counted.

# %%
train = compiled(feeding.network(), keras.optimizers.SGD(0.01))
batch = 32
given = {"starving": starving, "parallel": parallel, "cached, ahead": fed}
pipelines = {"starving": starving(files, feeding.read, feeding.small, batch)}
if answered("faster.5", "faster.6"):
    for name, function in given.items():
        pipelines[name] = function(files, feeding.read, feeding.small, batch)
waits = feeding.measure(pipelines, lambda images, labels: float(train(images, labels)), rounds=2 if quick else 5)
plots.show(pictures.waits(waits))
shares = [wait / (wait + compute) for wait, compute in waits["starving"]]
outcome("faster.4", np.mean(shares), intervals.shares(shares))

# %% [markdown]
# A worker that always finds its batch ready no longer waits, so a faster input pipeline cannot help it any further. If
# there are few cores, parallel reading takes them away from the network: on 2 cores, look at the computing part as
# well. On a machine with a GPU, the cores are free for reading. Where opening a file is slow, as on a cluster's shared
# file system, a few large files help (**TFRecord**, an optional part).
#
# ## Faster, step by step
#
# `scripts/slow.py` trains a small network on the image folder. Its input is slow, its batches have only 8 images, and a
# callback fetches the loss in each step. (On a GPU, the program then has to wait in each step until the device has
# finished. An optional part measures what a fetch costs here.) `scripts/faster.py` starts out as a copy of this script,
# and is yours to change: make it at least **twice as fast at equal accuracy** (at most 0.03 lower). Make one change at
# a time, and run the script after each change: the dictionary `runs` keeps the evidence. The options are `--batch_size`
# (the learning rate is scaled with it), `--rate`, `--epochs` and `--precision` (explained in notebook 25).
#
# `run` lets your version and `scripts/slow.py` take turns, epoch by epoch. So the same disturbances on the machine
# affect both, and you get an interval for the ratio of their speeds. The first call compares the given script with
# itself. The ratio should be 1; its distance from 1 tells you which differences are too small to measure here.

# %%
runs, steps = {}, {}
short = ["--images", 96, "--epochs", 2] if quick else []


def run(name, script, *options):
    if name in runs:
        print(f"{name!r}: kept as measured before. Measure a changed script under a new name.")
        return
    number = len(runs)
    turns = jobs.Turns()
    with turns:
        given = turns.start("scripts/slow.py", *short, name=f"given_{number}")
        job = turns.start(script, *options, *short, name=f"faster_{number}")
    if turns.state == "finished":
        runs[name], as_given = results.load([job.record, given.record])
        steps[name] = rung(runs[name], as_given)


def rung(own, given):
    """What the table shows of a run: its ratio to the given one, images/s, accuracy."""
    ratio, note = pictures.gain(own, given)
    if note and own.study:  # recorded runs did not take turns, as the next cell says
        print(f"Note: {note}.")
    return ratio, metrics.throughput(own).value, own.repeats[-1][-1].metrics["val_accuracy"]


run("as given", "scripts/slow.py")

# %% [markdown]
# Now edit `scripts/faster.py` and save it. After each change, add a call with a new name to the next cell, such as
# `run("faster input", "scripts/faster.py")`. Options follow the script: `run("batch 32", "scripts/faster.py",
# "--batch_size", 32)`. Then run the cell: it runs only the new call, and keeps what it measured for the others. The
# check needs at least three runs, including that of the given script. One run must have both: a lower end of the
# interval of at least 2, and an accuracy at most 0.03 below that of the given script.

# %%
### BEGIN SOLUTION
run("input fixed, nothing fetched", "scripts/faster.py")
if not quick:
    run("batch 32", "scripts/faster.py", "--batch_size", 32)
### END SOLUTION
own = len(runs) > 1
if quick and own:
    ladder = recorded.faster()
    runs = dict(zip(ladder, results.load(ladder.values())))
    print("These short runs learn nothing: recorded ones follow. The second of them makes two changes at once. They")
    print("did not take turns with the given script, so their ratios have no intervals.")
    given, *_ = runs.values()
    steps = {name: rung(each, given) for name, each in runs.items()}
if steps:
    rows = []
    for name, (ratio, rate, accuracy) in steps.items():
        interval = " [{:.2f}, {:.2f}]".format(*ratio.interval) if ratio.interval else ""
        row = {"run": name, "times as fast as given": f"{ratio.value:.2f}{interval}"}
        rows.append(row | {"images/s": rate, "validation accuracy": accuracy})
    tables.show(rows)
    p, n = list(steps.values())[-1][2], 773
    print(f"Two standard errors of the last accuracy, on {n} images: {2 * np.sqrt(p * (1 - p) / n):.3f}")

# %% labs={"id": "faster.7"}
gains = {name: (ratio.value, ratio.interval) for name, (ratio, _, _) in steps.items()}
check("faster.7", runs if own else ..., gains)

# %% [markdown]
# ## F1
#
# What limited the speed of this training script, and how much did you gain from each change? Write 6 to 8 sentences,
# with your own numbers. Answer these four questions:
#
# - What limited the script at first, and which measurement shows it?
# - After each change, how many times as fast as the given script was yours, and with what interval?
# - What is your evidence that the accuracy is equal to that of the given script? On how many images was it measured,
#   and how much could it vary by chance? (Two standard errors of a share p of n images are 2 sqrt(p (1 - p) / n).)
# - Which change helped least here, and on what kind of machine would it help more?

# %% [markdown] labs={"id": "F1", "kind": "answer"}
# ### F1: your answer
# ### BEGIN SOLUTION
# The given script spent its time waiting for its input. In each epoch, every image was read, decoded and shrunk, one
# after another, before the step could begin; in the figure of the pipelines above, waiting is the larger part of a
# step. The second row of the table shows the version that keeps the images after the first epoch, prepares a batch in
# advance, and has no callback that fetches the loss in each step. It gives the speed of this version relative to the
# given script, with the interval. The first row compares the given script with itself: it shows how far from 1 a ratio
# may be when nothing was changed. The third row shows the larger batch. A step with 8 images costs nearly as much as
# one with 32, since both start every operation once; the rate was scaled with the batch size. The last column shows the
# accuracy, measured on the 773 images that no run trained on. At an accuracy of 0.95, chance alone can make it differ
# by about 0.015 (two standard errors), so a smaller difference proves nothing. Parallel reading alone gains little on a
# few cores, since it takes them away from the network; on a node with many cores and a GPU, it would help more.
# ### END SOLUTION

# %% [markdown]
# ## Summary
#
# - Utilisation is not progress: count images and operations, and compare them with what the machine can do.
# - Name the limit, remove it, and measure again. A remedy for a different limit changes nothing.
# - Read each file only once and in advance, and read several files in parallel. Do not fetch anything inside a step.
#
# Next: `25_memory_and_exchange`. Five optional parts follow.

# %% [markdown]
# ## Optional: profile
#
# A sampler sees whole processes; a **profiler** sees individual operations. TensorFlow has a profiler that works on
# CPUs, too. Here it records three steps. (Keras' TensorBoard callback uses the same profiler, with
# `profile_batch=(4, 6)`; it needs the package `tensorboard`.)

# %%
model = feeding.network()
model.compile("sgd", "sparse_categorical_crossentropy", jit_compile=False)
folder = jobs.folder() / "profile"
model.fit(digits.images[:256], digits.labels[:256], batch_size=64, verbose=0)  # the first steps also trace
with tf.profiler.experimental.Profile(str(folder)):
    model.fit(digits.images[:192], digits.labels[:192], batch_size=64, verbose=0)

# %%
rows = profile.operations(folder)
tables.show([row | {"ms": 1e3 * row["seconds"]} for row in rows[:10]], ("operation", "ms", "share"))

# %% [markdown]
# The time of an operation is the sum over all threads, excluding the operations nested in it. TensorFlow may fuse a
# small operation, such as Relu, into another one. `uvx xprof --logdir runs/profile` shows the whole profile in the
# browser (the first call installs xprof, which needs an internet connection).
#
# What share of the total operation time do the convolutions take, including their forward pass and their two gradients?
# Give a number from 0 to 1. `rows` lists all the operations, not only these ten, each as a dictionary with the keys
# `operation`, `seconds` and `share`; the names of the convolutions contain `Conv2D`.

# %% labs={"id": "faster.8"}
### BEGIN SOLUTION
convolutions = sum(row["share"] for row in rows if "Conv2D" in row["operation"])
### END SOLUTION
check("faster.8", convolutions, rows)

# %% [markdown]
# Faster convolutions do not shorten the rest of the step. This is Amdahl's law from notebook 01, now with measured
# shares.

# %% [markdown]
# ## Optional: whole batches
#
# Each call to an operation has a start-up cost. `small` works on whole batches, too, so call it less often: read in
# parallel as in `parallel`, but swap `batch` and the second `map`.


# %% labs={"id": "faster.9"}
def by_batch(files, read, small, batch):
    ### BEGIN SOLUTION
    images = tf.data.Dataset.from_tensor_slices(files).map(read, num_parallel_calls=tf.data.AUTOTUNE)
    return images.batch(batch, drop_remainder=True).map(lambda images, labels: (small(images), labels))
    ### END SOLUTION


check("faster.9", by_batch)

# %%
if answered("faster.5", "faster.9"):
    given = {"parallel": parallel, "small by batches": by_batch}
    pipelines = {name: function(files, feeding.read, feeding.small, batch) for name, function in given.items()}
    waits = feeding.measure(pipelines, lambda images, labels: float(train(images, labels)), rounds=2 if quick else 5)
    plots.show(pictures.waits(waits))

# %% [markdown]
# If the bars hardly differ, the start-up cost of `small` is low compared with its work on such large images.
#
# ## Optional: do not fetch inside the step
#
# Suppose that a callback reads the loss after each step, perhaps to print it. On a GPU, the program then has to wait
# until the device has finished the step, and after that the device has to wait for the program. On a CPU there is
# nothing to wait for, but in each step Keras still computes the metrics and passes them to the callback. **Predict**
# this ratio for a tiny network: the step time with such a callback, divided by the step time without it.

# %% labs={"id": "faster.10"}
### BEGIN SOLUTION
fetching_costs = 1.2
### END SOLUTION
predict("faster.10", fetching_costs)


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
        outcome("faster.10", ratio.value, ratio.interval)
    row = {"what": fetching, "without": 1e6 * np.mean(times[plain]), "with": 1e6 * np.mean(times[fetching])}
    rows.append(row | {"ratio": f"{ratio.value:.2f} ({ratio.interval[0]:.2f} to {ratio.interval[1]:.2f})"})
tables.show(rows, tuple(rows[0]), {"without": "step without (µs)", "with": "step with (µs)"})

# %% [markdown]
# If an interval contains 1, the cost of the fetch is lost in this machine's noise. On a GPU it is not: there, every
# fetch means a wait. These ratios were recorded on one:

# %%
print(f"{on_gpu.WHERE}:")
tables.show(on_gpu.fetching())

# %% [markdown]
# A fetch lengthens a short step by a larger share than a long one. A callback with `on_train_batch_end` makes Keras
# fetch the loss in every step, which is why the course's recorder uses the *beginning* of a batch instead. Read the
# loss only in every hundredth step, or at the end of the epoch.

# %% [markdown]
# ## Optional: an image folder
#
# Large data sets are read from files during training, in a pipeline: files → decode → preprocess → shuffle → batch →
# prefetch. Here are the sorted digits as a folder of PNG files, with one subfolder for each class:

# %%
from lessons import formats

some = data.load("digits", images=480)
by_class = np.argsort(some.labels, kind="stable")
source = data.Dataset("sorted digits", some.images[by_class], some.labels[by_class], some.classes)
pngs = formats.write_folder(source, jobs.folder() / "digits_png")
print(len(pngs), "files:", *("/".join(file.split("/")[-3:]) for file in (pngs[0], pngs[-1])))

# %% [markdown]
# `reads` counts the files that are opened and decoded: `reads.file` wraps `tf.io.read_file`, and `reads.image` wraps
# `tf.io.decode_png`.

# %%
reads = formats.Reads()


def read_png(file):
    """One file to (image, label): read, decode, preprocess."""
    image = reads.image(reads.file(file))
    label = tf.strings.to_number(tf.strings.split(file, "/")[-2], tf.int64)
    return tf.cast(image, tf.float32) / 255, label


# %% [markdown]
# Where in this pipeline does the shard belong? Write `folder_share`: it returns the share of one rank as a
# `tf.data.Dataset` of (image, label) pairs. Use `from_tensor_slices(files)`, `.shard` and `.map(read_png)`. No rank may
# open a file that it does not need.


# %% labs={"id": "faster.11"}
def folder_share(files, rank, size):
    ### BEGIN SOLUTION
    return tf.data.Dataset.from_tensor_slices(files).shard(size, rank).map(read_png)
    ### END SOLUTION


check("faster.11", folder_share, pngs, reads)

# %%
if answered("faster.11"):
    reads.reset()
    train = folder_share(pngs, 0, 2).shuffle(240, seed=0).batch(16).prefetch(2)
    labels = [label for _, batch_of_labels in train.as_numpy_iterator() for label in batch_of_labels]
    print(f"rank 0 of 2: opened {len(reads.opened)} files, {reads.read:,} bytes; decoded {reads.decoded} images")
    print("images of each class:", np.bincount(labels))

# %% [markdown]
# ## Optional: TFRecord files
#
# Many small files are slow on a cluster's file system, so samples are often packed, as **records**, into a few large
# files. Here are the digits again, written to four TFRecord files in sorted order. `reads.records` reads the records of
# files, and `reads.example` decodes one record. Now there are three places where you can shard:

# %%
records = formats.write_tfrecords(source, jobs.folder() / "digits_tfrecord", files=4)
names = tf.data.Dataset.from_tensor_slices(records)
places = {
    "the files": lambda rank, size: reads.records(names.shard(size, rank)).map(reads.example),
    "the records, before decoding": lambda rank, size: reads.records(names).shard(size, rank).map(reads.example),
    "the samples, after decoding": lambda rank, size: reads.records(names).map(reads.example).shard(size, rank),
}

# %% [markdown]
# **Predict** for two ranks: what share of the 480 images does rank 0 *decode* if you shard the samples after decoding?
# And what share does it decode if you shard the files? Give two numbers from 0 to 1.

# %% labs={"id": "faster.12"}
### BEGIN SOLUTION
decoded_of_samples, decoded_of_files = 1, 0.5
### END SOLUTION
predict("faster.12", [decoded_of_samples, decoded_of_files])

# %%
rows, decoded = [], {}
for place, share in places.items():
    reads.reset()
    labels = [label for _, label in share(0, 2).as_numpy_iterator()]
    row = {"rank 0 of 2 shards ...": place, "files opened": len(reads.opened), "bytes read": reads.read}
    row |= {"images decoded": reads.decoded, "samples kept": len(labels)}
    rows.append(row | {"of the classes 0 to 9": " ".join(map(str, np.bincount(labels, minlength=10)))})
    decoded[place] = reads.decoded / len(source.labels)
tables.show(rows)
outcome("faster.12", [decoded["the samples, after decoding"], decoded["the files"]], how="counted")

# %% [markdown]
# If you shard the files, a rank reads only half the bytes, but its share is only as fair as its files are. Each of
# these files contains neighbouring classes, so the two ranks train on different classes. If you shard the records, the
# shares are fair, but every rank reads everything. If you shard after decoding, every rank also has to decode
# everything.
#
# Eight workers cannot share these four *files*: four workers get nothing at all, and could not take part in any
# all-reduce.

# %%
print([sum(1 for _ in places["the files"](rank, 8)) for rank in range(8)], "samples for ranks 0 to 7")

# %% [markdown]
# So shuffle *before* you write the files, write many more files than workers (a multiple of the number of workers), and
# shard the files. If you cannot do that, shard the records before they are decoded.
