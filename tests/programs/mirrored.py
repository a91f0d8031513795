"""Started by tests/keys/test_one_machine.py: what MirroredStrategy sums, keeps and traces on 8 devices, as JSON."""

# warm
import json
import tempfile

from labs import devices
from lessons.faster_steps import profile

names = devices.workers(8, pin=False, kind="cpu")

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.ops import gen_collective_ops

strategy = tf.distribute.MirroredStrategy(names)
images = np.random.default_rng(0).normal(size=(32, 6)).astype("float32")
labels = np.arange(32) % 3
found = {}

# What a step sums, as numbers on each device
summed, plain = [], gen_collective_ops.collective_reduce_v2


def noted(input, *args, **kwargs):
    summed.append(int(np.prod(input.shape)))
    return plain(input, *args, **kwargs)


gen_collective_ops.collective_reduce_v2 = noted


class Traced(keras.layers.Layer):
    """Counts how often Python runs it, which is when TensorFlow traces it."""

    times = 0

    def call(self, x):
        Traced.times += 1
        return x


def network():
    layers = [keras.layers.Dense(5, activation="tanh"), Traced(), keras.layers.Dense(3)]
    return keras.Sequential([keras.Input((6,)), *layers])


def copies(variable):
    return [copy.numpy() for copy in strategy.experimental_local_results(variable.value)]


# Creation: how often a value is drawn, and the copies
drawn = []


def draw():
    drawn.append(tf.random.normal([4]))
    return drawn[-1]


with strategy.scope():
    random = tf.Variable(draw)
    keras.utils.set_random_seed(0)
    model = network()
    model.compile(
        keras.optimizers.SGD(0.1), keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False
    )
values = [copy.numpy() for copy in strategy.experimental_local_results(random)]
found["drawn"], found["created"] = [one.numpy().tolist() for one in drawn], [value.tolist() for value in values]

# Training, with one copy moved away by hand: what comes back?
kernel = model.layers[0].kernel
strategy.experimental_local_results(kernel.value)[7].assign_add(np.ones((6, 5), "float32"))
before, summed[:], traced = copies(kernel), [], []
epoch_ends = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: traced.append(Traced.times))
model.fit(images, labels, batch_size=16, epochs=3, shuffle=False, verbose=0, callbacks=[epoch_ends])
found["traced"], found["summed"] = traced, [sorted(set(summed))]
summed.clear()
found["moved"] = [float(np.abs(after - then).max()) for then, after in zip(before, copies(kernel), strict=True)]
found["apart"] = [float(np.abs(copy - copies(kernel)[0]).max()) for copy in copies(kernel)]

# What runs in each of two steps
model.train_on_batch(images, labels)
found["summed"].append(sorted(set(summed)))
found["trainable"] = model.count_params()
found["steps"] = []
for _ in range(2):
    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder)
        model.train_on_batch(images, labels)
        tf.profiler.experimental.stop()
        kinds = [row["operation"] for row in profile.operations(folder)]
    found["steps"].append([kind for kind in kinds if "ollective" in kind or "Nccl" in kind])


def sizes(variable, strategy):
    return [int(tf.size(copy)) for copy in strategy.experimental_local_results(variable.value)]


# What each device keeps, with the same local batch on 8 devices and on 1
def kept(strategy, batch):
    with strategy.scope():
        model, optimizer = network(), keras.optimizers.SGD(0.1, momentum=0.9)
        optimizer.build(model.trainable_variables)
        layers = keras.Model(model.inputs, [layer.output for layer in model.layers])

    @tf.function
    def step(x):
        def on_replica(x):
            with tf.GradientTape() as tape:
                outputs = layers(x)
                loss = tf.reduce_sum(outputs[-1] ** 2)
            gradients = tape.gradient(loss, [w.value for w in model.trainable_variables])
            total = tf.distribute.get_replica_context().all_reduce("SUM", gradients)
            return [tf.add_n([tf.size(one) for one in some]) for some in (total, outputs)]

        return strategy.run(on_replica, args=(x,))

    shares = strategy.experimental_distribute_values_from_function(lambda _: tf.ones((batch, 6)))
    gradients, activations = ([int(n) for n in strategy.experimental_local_results(some)] for some in step(shares))
    states = [v for v in optimizer.variables if v.shape.rank]  # without the counter of steps and the learning rate
    weights, momentum = (np.sum([sizes(v, strategy) for v in some], 0).tolist() for some in (model.variables, states))
    return [list(device) for device in zip(weights, momentum, gradients, activations, strict=True)]


found["on 8"] = kept(strategy, 32)
found["on 1"] = kept(tf.distribute.MirroredStrategy(names[:1]), 32)

# A cut between two layers, on two devices that see only what is passed to them
first, second = tf.random.normal([6, 5]), tf.random.normal([5, 3])
x, wanted = tf.constant(images), tf.one_hot(labels, 3)
with tf.GradientTape() as tape:
    tape.watch([first, second])
    whole = tape.gradient(tf.reduce_mean((tf.tanh(x @ first) @ second - wanted) ** 2), [first, second])
with tf.GradientTape() as tape:
    tape.watch(first)
    sent = tf.tanh(x @ first)  # device 0: its activations go on
with tf.GradientTape() as other:
    arrived = tf.constant(sent.numpy())
    other.watch([second, arrived])
    loss = tf.reduce_mean((arrived @ second - wanted) ** 2)
of_second, back = other.gradient(loss, [second, arrived])  # device 1: the gradient of these activations comes back
of_first = tape.gradient(sent, first, output_gradients=back)
found["cut"] = [float(tf.reduce_max(abs(a - b))) for a, b in zip((of_first, of_second), whole, strict=True)]

print(json.dumps(found))
