"""Corrections of TensorFlow without which a measurement would not be true."""


def no_tuning_thread():
    """Keep tf.distribute's iterators from waiting, at the end of an epoch, for a thread that sleeps.

    tf.data tunes a pipeline from a thread that sleeps ever longer, up to 60 s, between its rounds. In TensorFlow
    2.18 the end of an iterator does not wake it but waits for it. MirroredStrategy makes new iterators for every
    epoch: with one core per worker, the first step of an epoch of ResNet50V2 took 8 to 57 s where the others took 1 s.
    A pipeline can switch tuning off for itself (tf.data.Options); the buffer that tf.distribute adds on each
    device cannot be reached by options, so its constructor is wrapped here. Nothing in it needs tuning: it has
    one element. Where TensorFlow has no such function any more, nothing is changed.
    """
    import tensorflow as tf
    from tensorflow.python.data.ops import multi_device_iterator_ops as module

    original = getattr(module, "_create_device_dataset", None)
    if original is None or getattr(original, "labs", False):
        return

    def untuned(*args, **kwargs):
        options = tf.data.Options()
        options.autotune.enabled = False
        return original(*args, **kwargs).with_options(options)

    untuned.labs = True
    module._create_device_dataset = untuned
