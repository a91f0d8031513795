# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # MirroredStrategy: one network, several copies
#
# **Time: 30 minutes, including 1 minute of computing on 2 cores.**
#
# **Paths:** *an afternoon* (next: `05_resnet50_scaling`), *the practical* (next: `04_batch_and_rate`), *everything*.
#
# You have one network and several devices. Where are the weights stored? What do the devices send each other, and when?
# Why do all the copies stay equal? At the end you complete task **T3** in your own words.

# %% [markdown]
# ## Four devices
#
# This notebook is about *how* MirroredStrategy works, not about speed. So it divides the CPU into 4 logical devices,
# which TensorFlow treats like 4 GPUs.

# %%
from labs import devices  # import this first: it sets up TensorFlow
from labs.checks import answered, check, outcome, predict
from labs.show import plots, tables

import tensorflow as tf

tf.get_logger().setLevel("ERROR")
tf.config.set_visible_devices([], "GPU")  # GPUs are left out here
tf.config.threading.set_intra_op_parallelism_threads(1)  # one thread for each operation,
tf.config.threading.set_inter_op_parallelism_threads(4)  # and 4 operations at a time
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
print("in this cell:  ", *(device.name for device in tf.config.list_logical_devices("CPU")))
workers = devices.workers(4, pin=False, kind="cpu")  # the kit's function for these lines
print("devices.workers:", *workers)

# %% [markdown]
# In training scripts, `devices.workers` chooses for you: a worker is a GPU, or a core where there are no GPUs.
#
# ## Without a strategy
#
# You create a variable and compute with it. **Predict first:** how many of the four devices will be used?

# %% labs={"id": "mirrored.1"}
### BEGIN SOLUTION
devices_at_work = 1
### END SOLUTION
predict("mirrored.1", devices_at_work)

# %%
plain = tf.Variable([1.0, 2.0, 3.0])
result = plain * 2
print("variable on", plain.device)
print("result on  ", result.device)
outcome("mirrored.1", len({plain.device, result.device}), how="counted")

# %% [markdown]
# Without a strategy, an epoch takes 60 s on a machine with 4 GPUs. How many seconds would it take with only one of
# them?

# %% labs={"id": "mirrored.2"}
### BEGIN SOLUTION
seconds_on_one = 60
### END SOLUTION
check("mirrored.2", seconds_on_one)

# %% [markdown]
# On its own, TensorFlow uses the first device and leaves the others idle. The same is true of GPUs.
#
# ## With a strategy
#
# Every *variable* that you create inside `with strategy.scope():` gets one copy on each device of the strategy.

# %%
strategy = tf.distribute.MirroredStrategy(devices=workers)
print("replicas:", strategy.num_replicas_in_sync)

# %% [markdown]
# Create the variable `mirrored` with the value `[1.0, 2.0, 3.0]` inside the scope: a `with` block takes the place of
# the line below.

# %% labs={"id": "mirrored.3"}
### BEGIN SOLUTION
with strategy.scope():
    mirrored = tf.Variable([1.0, 2.0, 3.0])
### END SOLUTION
if check("mirrored.3", mirrored):
    tables.show([{"device": copy.device[-13:], "copy": copy.numpy()} for copy in mirrored.values])

# %% [markdown]
# One name refers to four copies, one on each device. What keeps them equal?
#
# ## Each replica gets its share of the batch
#
# A **pipeline** feeds images to the training. It takes three lines: shuffle the images, group them into batches, and
# prepare the next batches during the current step.

# %%
from labs import data

dataset = data.load("digits", images=64)
pipeline = tf.data.Dataset.from_tensor_slices((dataset.images, dataset.labels)).shuffle(64)
pipeline = pipeline.batch(16, drop_remainder=True)
pipeline = pipeline.prefetch(2)

for name, batches in {"three lines": pipeline, "data.pipeline": data.pipeline(dataset, 16, workers=4)}.items():
    different = {image.tobytes() for images, _ in batches for image in images.numpy()}
    print(f"{name}: {len(batches)} batches with {len(different)} different images in all")

# %% [markdown]
# `data.pipeline` does the same, and the course's scripts use it. (It refuses batches that cannot be divided by `workers`.)
#
# `strategy.run(f)` calls `f` once on each replica. Here, `f` counts the images that it receives.

# %%
batches = strategy.experimental_distribute_dataset(data.pipeline(dataset, 16, workers=4))


@tf.function
def count(images, labels):
    return tf.shape(images)[0]


images, labels = next(iter(batches))
shares = strategy.experimental_local_results(strategy.run(count, args=(images, labels)))
tables.show([{"device": worker, "images": int(share)} for worker, share in zip(workers, shares)])

# %% [markdown]
# The batch of 16 images is the **global batch**. How large is the **local batch**, the share of one replica?

# %% labs={"id": "mirrored.4"}
### BEGIN SOLUTION
local_batch = 4
### END SOLUTION
check("mirrored.4", local_batch)

# %% [markdown]
# ## One gradient from four
#
# Each replica computes a gradient from its own share. The gradients are **summed** over the replicas (an *all-reduce*),
# and every replica gets the sum. It should be the gradient of the mean loss over the whole batch:
#
# $$ \nabla L = \frac{1}{16} \sum_{i=1}^{16} \nabla L_i . $$
#
# So each replica must scale its loss. Write `scaled_loss`: `losses` contains the losses for the images of *one*
# replica, and `global_batch` is the number of images over all replicas. You can use `tf.reduce_sum` and
# `tf.reduce_mean`.


# %% labs={"id": "mirrored.5"}
def scaled_loss(losses, global_batch):
    ### BEGIN SOLUTION
    return tf.reduce_sum(losses) / global_batch
    ### END SOLUTION


check("mirrored.5", scaled_loss)

# %% [markdown]
# Test it on a small network: is the sum of the gradients for four shares equal to the gradient for all 16 images on one
# device?

# %%
import keras

with strategy.scope():
    keras.utils.set_random_seed(1)
    network = keras.Sequential(
        [
            keras.Input((32, 32, 3)),
            keras.layers.Rescaling(1 / 255),
            keras.layers.Flatten(),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
per_image = keras.losses.SparseCategoricalCrossentropy(reduction=None)


def gradient(images, labels):
    with tf.GradientTape() as tape:
        value = scaled_loss(per_image(labels, network(images)), 16)
    return tape.gradient(value, network.trainable_weights[0].value)


@tf.function
def summed(images, labels):
    def on_replica(images, labels):
        return tf.distribute.get_replica_context().all_reduce("SUM", gradient(images, labels))

    return strategy.run(on_replica, args=(images, labels))


# %%
if answered("mirrored.5"):
    from_shares = strategy.experimental_local_results(summed(images, labels))
    all_images = tf.concat(strategy.experimental_local_results(images), 0)
    all_labels = tf.concat(strategy.experimental_local_results(labels), 0)
    whole = gradient(all_images, all_labels)
    error = max(float(tf.reduce_max(abs(share - whole))) for share in from_shares)
    print(f"largest entry of the gradient: {float(tf.reduce_max(abs(whole))):.6f}")
    print(f"summed shares against whole batch, largest difference: {error:.1e}")
    assert error < 1e-6  # equal, but for the order in which numbers were added

# %% [markdown]
# If each replica took the *mean* over its own 4 images, the sum would be 4 times too large. Keras' `fit` does the
# scaling for you; your own training loop must do it itself.
#
# ## Do the copies stay equal?
#
# Here is one whole step, from left to right: three weights, 16 samples, 4 replicas. Coloured boxes differ from one
# replica to another; white boxes are the same on all of them. Add up the first numbers of the four gradients. Do you
# get the first number of the sum?

# %%
from lessons.mirrored_strategy import pictures

plots.show(pictures.step())

# %% [markdown]
# All copies are equal at the start, get the same sum, and make the same update. Is that enough? Measure it: write a
# function that takes a list of copies (NumPy arrays of the same shape), compares every copy with the first one, entry
# by entry, and returns the largest absolute difference.


# %% labs={"id": "mirrored.6"}
import numpy as np


def largest_difference(copies):
    ### BEGIN SOLUTION
    return max(np.max(np.abs(copy - copies[0])) for copy in copies)
    ### END SOLUTION


check("mirrored.6", largest_difference)

# %% [markdown]
# Now write what the strategy does at every step, in plain NumPy. You are given:
#
# - `copies`, a list of K weight matrices
# - `shares`, a list of K pairs (images, labels): the batch, divided among the replicas
# - `gradient(weights, images, labels)`, which returns the mean gradient over these images
#
# Each replica computes a gradient from its own copy and its own share. All replicas exchange their gradients, and each
# one updates its own copy. (Above, each loss was divided by the global batch, so the *sum* of the gradients was
# correct. Here, each gradient is a mean over one share, so their *mean* is correct.)


# %% labs={"id": "mirrored.7"}
def step(copies, shares, gradient, rate):
    """The list of the K copies after one step of SGD."""
    ### BEGIN SOLUTION
    gradients = [gradient(copy, *share) for copy, share in zip(copies, shares)]
    mean = sum(gradients) / len(gradients)
    return [copy - rate * mean for copy in copies]
    ### END SOLUTION


check("mirrored.7", step)

# %% [markdown]
# Train a one-layer network for 40 steps with 4 copies: once with your `step`, and once without the
# exchange.


# %%
def without_exchange(copies, shares, gradient, rate):
    return [copy - rate * gradient(copy, *share) for copy, share in zip(copies, shares)]


# %%
def gradient_of_layer(weights, images, labels):
    """Mean gradient of the loss (cross-entropy) over these images."""
    x = images.reshape(len(images), -1) / 255
    scores = np.exp(x @ weights)
    error = scores / scores.sum(1, keepdims=True) - np.eye(10)[labels]
    return x.T @ error / len(images)


def loss(weights):
    """Mean loss (cross-entropy) of one copy over all images."""
    x, labels = np.asarray(dataset.images).reshape(len(dataset.labels), -1) / 255, np.asarray(dataset.labels)
    scores = np.exp(x @ weights)
    return float(-np.mean(np.log(scores[np.arange(len(labels)), labels] / scores.sum(1))))


# %%
def train(step, steps=40, rate=0.01):
    """4 copies of one weight matrix; (distance between the copies, loss of each copy) after each step."""
    start = np.random.default_rng(0).normal(0, 0.05, (3072, 10)).astype("float32")
    copies = [start.copy() for _ in range(4)]
    distances, losses = [largest_difference(copies)], [[loss(copy) for copy in copies]]
    for images, labels in data.pipeline(dataset, 16, workers=4).repeat().take(steps):
        copies = step(copies, list(zip(np.split(images, 4), np.split(labels, 4))), gradient_of_layer, rate)
        distances.append(largest_difference(copies))
        losses.append([loss(copy) for copy in copies])
    return distances, losses


# %%
if answered("mirrored.6", "mirrored.7"):
    (together, _), (alone, losses) = train(step), train(without_exchange)
    plots.show(
        plots.curves(
            {"your step": together, "without the exchange": alone},
            x="step",
            y="largest difference between copies",
            title="4 copies of one network",
        )
    )
    assert together[-1] == 0.0 and alone[-1] > 0.001
    plots.show(
        plots.curves(
            {f"copy {number}": list(values) for number, values in enumerate(zip(*losses))},
            x="step",
            y="loss (cross-entropy, nats)",
            title="without the exchange: loss of each copy",
        )
    )

# %% [markdown]
# With the exchange, the difference is exactly zero at every step. Without it, the copies become four different
# networks, and nothing warns you: there is no error message, and the loss of each copy falls.
#
# ## What travels
#
# How many bytes does the gradient of ResNet50V2 with 10 classes take up, in float32 (4 bytes)? Only trainable weights
# have a gradient. (2 or 3 significant digits are enough.)

# %%
from labs import models

resnet = models.network("ResNet50V2", image_size=32, classes=10)
print(f"trainable weights:     {sum(np.prod(w.shape) for w in resnet.trainable_weights):>12,}")
print(f"not trainable weights: {sum(np.prod(w.shape) for w in resnet.non_trainable_weights):>12,}")

# %% labs={"id": "mirrored.8"}
### BEGIN SOLUTION
gradient_bytes = 4 * sum(int(np.prod(w.shape)) for w in resnet.trainable_weights)
### END SOLUTION
check("mirrored.8", gradient_bytes)

# %% [markdown]
# These bytes are exchanged at every step, between the backward pass and the update. Now the local batch doubles. How
# many are exchanged in an *epoch*?
#
# - **a**: as many: the images are the same
# - **b**: half as many: there are half as many steps
# - **c**: as many: half as many steps, twice as many in each
# - **d**: twice as many: twice as many images per replica

# %% labs={"id": "mirrored.9"}
### BEGIN SOLUTION
in_an_epoch = "b"
### END SOLUTION
check("mirrored.9", in_an_epoch)

# %% [markdown]
# ## From the sequential script to four replicas
#
# This is a complete training script for one device:
#
# ```python
# model = models.build("SmallCNN", image_size=32, classes=10)
# model.compile(optimizer=keras.optimizers.SGD(0.01), loss="sparse_categorical_crossentropy",
#               metrics=["accuracy"], jit_compile=False)
# batches = data.pipeline(more, 16)
# model.fit(batches, epochs=2, shuffle=False, verbose=2)
# ```
#
# For 4 replicas with 16 images each, three things change:
#
# - the model and the optimizer are *created* inside the scope
# - the pipeline gets the *global* batch size
# - the learning rate grows by the same factor as the batch (the **linear rule**, Goyal et al. 2017): there are fewer
#   updates, so each goes further
#
# Write everything that comes before `fit`, for the strategy above. `fit` follows below, outside the scope.

# %%
more = data.load("digits", images=512)

# %% labs={"id": "mirrored.10"}
### BEGIN SOLUTION
with strategy.scope():
    model = models.build("SmallCNN", image_size=32, classes=10)
    model.compile(
        optimizer=keras.optimizers.SGD(4 * 0.01),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
        jit_compile=False,
    )
batches = data.pipeline(more, 4 * 16)
### END SOLUTION
check("mirrored.10", model, batches)

# %%
if answered("mirrored.6", "mirrored.10"):
    model.fit(batches, epochs=2, shuffle=False, verbose=2)
    kernels = [v for v in model.trainable_variables if v.path.endswith("kernel")]
    copies = [copy.numpy() for copy in kernels[0].value.values]
    print("first kernel, largest difference between its 4 copies:", largest_difference(copies))
    moving = [v for v in model.non_trainable_variables if v.path.endswith("moving_mean")]
    copies = [copy.numpy() for copy in moving[0].value.values]
    print("first moving mean, largest difference between its 4 copies:", largest_difference(copies))

# %% [markdown]
# One thing does *not* stay equal: **batch normalisation** uses the mean and variance of the *local* batch. With a local
# batch of 2 or 4, these are noisy. The moving averages of this layer have no gradient, so they are not exchanged: each
# replica has its own, as the last line above shows.
#
# (`MultiWorkerMirroredStrategy`, for several machines, does not work with Keras 3's `fit`: Keras issue 20585. This
# course uses Horovod there.)
#
# ## T3
#
# Explain MirroredStrategy in 5 to 10 sentences: where are parameters stored, what does each replica compute, what is
# exchanged and when, and why do the replicas remain consistent? Say what would happen if one of these steps were left
# out.

# %% [markdown] labs={"id": "T3", "kind": "answer"}
# ### T3: your answer
# ### BEGIN SOLUTION
# Every variable that is created inside `strategy.scope()` has one copy on each device, with the same values at the
# start. The global batch is divided among the replicas; each replica runs the forward and backward passes on its own
# share, with its own copy. At every step, an all-reduce then sums the gradients over all replicas, scaled so that the
# sum is the gradient of the mean loss over the global batch. Each replica applies this same gradient to its own copy.
# Because the copies start out equal and get the same updates, they stay equal, to the last bit: parameters do not have
# to be sent, and no replica is special. Without the all-reduce, each replica would train a network of its own, without
# any error message; with a mean over only the local batch, the summed gradient would be K times too large. Batch
# normalisation uses each replica's own share of the batch, and its moving averages are local, too.
# ### END SOLUTION

# %% [markdown]
# Next: `04_batch_and_rate`.
