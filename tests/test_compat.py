"""What the kit assumes of private parts of TensorFlow, Keras and Horovod: a version without one fails here, by name."""

import keras
import pytest
import tensorflow as tf

from labs import compat


def dense(**options):
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)], **options)


def test_a_part_that_is_gone_is_named_with_the_version():
    with pytest.raises(compat.CompatError, match=rf"^keras {keras.__version__} has no SGD._gone any more") as caught:
        compat._part(keras.optimizers.SGD, "_gone", "keras")
    assert "\n" not in str(caught.value)
    with pytest.raises(compat.CompatError, match=rf"^tensorflow {tf.__version__} has no tensorflow._gone any more"):
        compat._part(tf, "_gone", "tensorflow")


def test_buffers_of_distributed_iterators_come_from_a_function_that_can_be_replaced():
    from tensorflow.python.data.ops import multi_device_iterator_ops as module

    compat.no_tuning_thread()
    once = module._create_device_dataset
    compat.no_tuning_thread()
    assert module._create_device_dataset is once and once.labs  # what it does: tests/data/test_data.py


def test_keras_clips_the_mean_of_summed_gradients_once_in_k_steps(needs_horovod):
    """What labs.hvd builds on, of the locked Keras: 3.3 clips in every step."""
    seen = []

    class Clipping(keras.optimizers.SGD):
        def _clip_gradients(self, gradients):
            seen.append([float(gradient) for gradient in gradients])
            return super()._clip_gradients(gradients)

    compat.clips_summed_gradients(keras.optimizers.SGD)
    optimizer, weight = Clipping(1.0, gradient_accumulation_steps=2), keras.Variable(0.0)
    for gradient in (1.0, 2.0, 3.0, 5.0):
        optimizer.apply([tf.constant(gradient)], [weight])
    assert seen == [[1.5], [4.0]] and float(weight) == pytest.approx(-5.5)


def test_xla_is_known_of_a_compiled_model():
    for jit_compile, xla in ((True, True), (False, False)):
        model = dense()
        model.compile("sgd", "mse", jit_compile=jit_compile)
        assert compat.compiled_by_xla(model) is xla


def test_all_layers_of_a_model_are_found_at_any_depth():
    class Mine(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.inside = [keras.Sequential([keras.layers.BatchNormalization()])]

        def build(self, shape):
            self.inside[0].build(shape)

        def call(self, x):
            return self.inside[0](x)

    found = {type(layer).__name__ for layer in compat.layers(keras.Sequential([keras.Input((4,)), Mine()]))}
    assert {"Sequential", "Mine", "BatchNormalization"} <= found


def test_samples_of_an_epoch_are_counted_with_the_loss():
    model = dense()
    model.compile("sgd", "mse", jit_compile=False)
    data = keras.ops.ones((13, 4)), keras.ops.ones((13, 3))
    model.fit(*data, batch_size=8, verbose=0)
    assert compat.samples(model) == 13
    model.evaluate(data[0][:5], data[1][:5], verbose=0)
    assert compat.samples(model) == 5
    assert compat.samples(dense()) == 0


def test_an_optimizer_knows_what_it_trains():
    model, optimizer = dense(), keras.optimizers.SGD(0.1, momentum=0.9)
    assert compat.trained_by(optimizer) == []
    for each in (optimizer, keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1))):
        each.build(model.trainable_weights)
        assert [variable.path for variable in compat.trained_by(each)] == [w.path for w in model.trainable_weights]


def test_what_weight_decay_leaves_out_can_be_copied():
    model, optimizer, other = dense(), keras.optimizers.AdamW(0.1), keras.optimizers.AdamW(0.1, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    compat.copy_exclusions(optimizer, other)
    model.set_weights([keras.ops.ones(weight.shape) for weight in model.trainable_weights])
    other.apply([tf.zeros(weight.shape) for weight in model.trainable_weights], model.trainable_weights)
    assert float(tf.reduce_max(model.layers[-1].kernel.value)) < 1 == float(tf.reduce_min(model.layers[-1].bias.value))


def test_the_graph_of_a_model_gives_its_calls_in_order():
    model = dense()
    graph = compat.graph(model)
    assert [type(node.operation).__name__ for node in compat.calls(graph)] == ["InputLayer", "Dense"]
    for node, shapes in zip(compat.calls(graph), ([], [(None, 4)]), strict=True):
        assert [tensor.shape for tensor in node.input_tensors] == shapes
    functional = keras.Model(graph.inputs, graph.outputs)
    assert compat.graph(functional) is functional and len(compat.calls(functional)) == 2

    class Mine(keras.Model):
        pass

    assert compat.graph(Mine()) is None and compat.graph(keras.Sequential()) is None and compat.graph(None) is None


def test_an_optimizer_that_horovod_wrapped_is_known(needs_horovod):
    import horovod.tensorflow.keras as horovod

    horovod.init()
    assert compat.wrapped_by_horovod(horovod.DistributedOptimizer(keras.optimizers.SGD(0.1)))
    assert not compat.wrapped_by_horovod(keras.optimizers.SGD(0.1))


def test_a_mask_that_reaches_the_loss_is_known():
    layers = keras.layers
    for last, masked in (([], True), ([layers.Dense(2)], True), ([layers.GlobalAveragePooling1D()], False)):
        model = keras.Sequential([keras.Input((4,)), layers.Embedding(5, 3, mask_zero=True), *last])
        assert compat.masked(model) is masked
    assert not compat.masked(dense())


def test_strategy_and_replicas_of_a_model():
    model = dense()
    assert compat.strategy(model) is tf.distribute.get_strategy() and compat.replicas(model) == 1
    with (mirrored := tf.distribute.MirroredStrategy(devices=["CPU:0"])).scope():
        assert compat.strategy(dense()) is mirrored
