"""The most operations a second that one worker does: those of a large matrix product."""

import time


def operations_per_second(size=1024, seconds=1.0):
    """float32 operations a second (a multiply-add is two) of TensorFlow's product of two size x size matrices here.

    With the threads of this process, or on its GPU. The fastest of the products of `seconds` counts, after one more:
    the others were disturbed.
    """
    import tensorflow as tf

    a = tf.random.stateless_normal((size, size), seed=(0, 1))
    product = tf.function(lambda: tf.reduce_sum(a @ a))
    float(product())
    fastest, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        float(product())  # waits for the device
        fastest = min(fastest, time.perf_counter() - begin)
    return 2 * size**3 / fastest
