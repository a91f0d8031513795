"""What networks for uint8 images of 32 x 32 x 3 with 10 classes are built of."""

import keras


def classifier(*layers, name=None):
    """The network of these layers."""
    first = keras.Input((32, 32, 3)), keras.layers.Rescaling(1 / 255)
    last = keras.layers.Dense(10), keras.layers.Activation("softmax", dtype="float32")
    return keras.Sequential([*first, *layers, *last], name=name)


def convolutions(shape=((32, 1), (64, 2), (128, 2))):
    """Layers; shape: (filters, stride) of each."""
    look = {"padding": "same", "activation": "relu"}
    return [keras.layers.Conv2D(filters, 3, strides=stride, **look) for filters, stride in shape]
