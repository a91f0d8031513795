"""What the kit assumes of private parts of TensorFlow, Keras and Horovod: a version without one fails here, by name."""

import keras
import pytest
import tensorflow as tf

from labs import compat


def dense(**options):
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)], **options)


def test_keras_clips_summed_gradients_once_in_k_steps_and_what_horovod_wrapped_is_known(one_rank):
    """What labs.hvd builds on, of the locked Keras: 3.3 clips in every step."""
    seen = []

    class Clipping(keras.optimizers.SGD):
        def _clip_gradients(self, gradients):
            seen.append([float(gradient) for gradient in gradients])
            return super()._clip_gradients(gradients)

    optimizer, weight = Clipping(1.0, gradient_accumulation_steps=2), keras.Variable(0.0)
    for gradient in (1.0, 2.0, 3.0, 5.0):
        optimizer.apply([tf.constant(gradient)], [weight])
    assert seen == [[1.5], [4.0]] and float(weight) == pytest.approx(-5.5)
    import horovod.tensorflow.keras as horovod

    assert compat.wrapped_by_horovod(horovod.DistributedOptimizer(keras.optimizers.SGD(0.1)))
    assert not compat.wrapped_by_horovod(optimizer)


def test_samples_of_an_epoch_are_counted_with_the_loss():
    model = dense()
    model.compile("sgd", "mse", jit_compile=False)
    data = keras.ops.ones((13, 4)), keras.ops.ones((13, 3))
    model.fit(*data, batch_size=8, verbose=0)
    assert compat.samples(model) == 13
    model.evaluate(data[0][:5], data[1][:5], verbose=0)
    assert compat.samples(model) == 5 and compat.samples(dense()) == 0


def test_an_optimizer_knows_what_it_trains_and_what_weight_decay_leaves_out():
    model, sgd = dense(), keras.optimizers.SGD(0.1, momentum=0.9)
    assert compat.trained_by(sgd) == []
    for each in (sgd, keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1))):
        each.build(model.trainable_weights)
        assert [variable.path for variable in compat.trained_by(each)] == [w.path for w in model.trainable_weights]
    optimizer, other = keras.optimizers.AdamW(0.1), keras.optimizers.AdamW(0.1, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    compat.copy_state(optimizer, other)
    model.set_weights([keras.ops.ones(weight.shape) for weight in model.trainable_weights])
    other.apply([tf.zeros(weight.shape) for weight in model.trainable_weights], model.trainable_weights)
    assert float(tf.reduce_max(model.layers[-1].kernel.value)) < 1 == float(tf.reduce_min(model.layers[-1].bias.value))


def test_the_graph_of_a_model_gives_its_calls_in_order():
    graph = compat.graph(dense())
    assert [type(node.operation).__name__ for node in compat.calls(graph)] == ["InputLayer", "Dense"]
    assert [[tensor.shape for tensor in node.input_tensors] for node in compat.calls(graph)] == [[], [(None, 4)]]
    assert compat.graph(keras.Sequential()) is None and compat.graph(None) is None


def test_what_a_model_was_compiled_for():
    for xla in (True, False):
        model = dense()
        model.compile("sgd", "mse", jit_compile=xla)
        assert model.jit_compile is xla and compat.replicas(model) == 1
    with (mirrored := tf.distribute.MirroredStrategy(devices=["CPU:0"])).scope():
        assert compat.strategy(dense()) is mirrored
